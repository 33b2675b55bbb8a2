"""Who may speak to the server: pure decisions over the headers of a request.

Whoever can open a session reads what the person who started the server can read. So the address has to be known (a random
word in its path), and the page that opens the socket has to be our own: another site in the same browser knows neither the
word nor may it name our host (DNS rebinding).
"""

import ipaddress
import secrets
from typing import Final
from urllib.parse import urlsplit

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of every answer. Nothing is loaded from anywhere else: no font, no script, no picture."""


def new_token() -> str:
    """Return a word that nobody guesses, for the path of the address."""
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Tell whether an address or a name stays on this machine by what it is, not by what a resolver says."""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_allowed(header: str | None, host: str) -> bool:
    """Tell whether the `Host` of a request is one that this server answers to, when it listens on `host`.

    Any port is admitted: `ssh -L 9000:localhost:8000` changes it. A server on every address is known by many names, of which
    only the word in the path remains to tell friend from foe.
    """
    named = _name(f"//{header}") if header else None
    if named is None:
        return False
    return is_loopback(named) or named == host.lower() or host in ("0.0.0.0", "::")  # noqa: S104 - what was typed


def origin_allowed(origin: str | None, header: str | None) -> bool:
    """Tell whether the page that opens a socket is one that this server sent: its `Origin` is the `Host`."""
    if not origin or not header:
        return False
    return origin.lower() in (f"http://{header.lower()}", f"https://{header.lower()}")


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
