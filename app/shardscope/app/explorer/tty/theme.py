"""Which theme a terminal gets when nobody chose one."""

from collections.abc import Mapping
from typing import Final

DEFAULT: Final = "shardscope-dark"
PLAIN: Final = "ansi-dark"
"""Uses the 16 colours of the terminal's own palette, or none: their contrast is the person's own choice."""


def theme_names() -> tuple[str, ...]:
    """Return the names of the themes that there are, our own first."""
    from textual.theme import BUILTIN_THEMES

    from shardscope.styles.themes import THEMES

    return (*(each.name for each in THEMES), *sorted(BUILTIN_THEMES))


def choose_theme(requested: str | None, environ: Mapping[str, str]) -> str:
    """Return the name of the theme to draw with.

    NO_COLOR wins over everything: only an ANSI theme can be drawn without a single colour code. A terminal that
    does not say that it has 256 colours gets the ANSI theme too, because approximated colours lose their contrast.
    """
    if environ.get("NO_COLOR"):
        return requested if requested is not None and requested.startswith("ansi-") else PLAIN
    if requested is not None:
        return requested
    term = environ.get("TERM", "")
    many = environ.get("COLORTERM", "") in {"truecolor", "24bit"} or term.endswith(
        ("-256color", "-direct", "kitty")
    )
    return DEFAULT if many else PLAIN
