"""Checkpoint text made visible and harmless: the one function every untrusted string passes.

A name from a checkpoint can carry escape sequences, bidi overrides, zero-width characters and bytes that
are not UTF-8. `display_name` turns each of them into something a person can see; `exact_text` keeps the
exact string where a machine reads it (JSON), together with the raw bytes where no string can hold them.
"""

import re
from typing import Final

_CONTROL_PICTURES: Final = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "␡"}
_CONTROL_PICTURES[0x09] = "→"
_CONTROL_PICTURES[0x0A] = "⏎"

UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, joiners, fillers
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"  # zero width, line separators, bidi
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"  # variation selectors, byte-order mark, interlinear marks
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"  # tags and variation selectors
    "\ud800-\udfff]"  # surrogates: bytes that are not UTF-8
)
"""Characters that must never reach a terminal, a log or a report as they are."""


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code in _CONTROL_PICTURES:
        return _CONTROL_PICTURES[code]
    if 0x80 <= code <= 0x9F:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:  # a byte smuggled by os.fsdecode
        return f"\\x{code - 0xDC00:02x}"
    return f"⟨U+{code:04X}⟩"


def display_name(text: str, limit: int | None = None) -> str:
    r"""Return `text` with every unsafe character made visible, its middle elided beyond `limit` characters.

    Control characters become control pictures (`␛`), newline `⏎`, tab `→`, C1 and undecodable bytes `\\x9b`,
    bidi, zero-width and other invisible characters `⟨U+202E⟩`. The result is plain text: it may still hold
    square brackets, so pass it to widgets as `Text` or `Content`, never as markup.
    """
    if limit is not None and len(text) > 4 * limit:  # a hostile name can be megabytes long
        text = text[: 2 * limit] + text[-2 * limit :]
        shown = UNSAFE.sub(_visible, text)
    else:
        shown = UNSAFE.sub(_visible, text)
        if limit is None or len(shown) <= limit:
            return shown
    head = (limit - 1) * 2 // 3
    return f"{shown[:head]}…{shown[len(shown) - (limit - 1 - head) :]}"


def is_altered(text: str) -> bool:
    """Tell whether `display_name` would change `text` (its length limit aside)."""
    return UNSAFE.search(text) is not None


def path_text(raw: bytes) -> str:
    """Return the bytes of a path as text, whatever the locale; bytes that are not UTF-8 become surrogates.

    Neutralise the result before showing it.
    """
    return raw.decode("utf-8", "surrogateescape")


def exact_text(raw: bytes) -> tuple[str, str | None]:
    r"""Return `raw` as text, and its hexadecimal bytes where it is not UTF-8 (then the text shows `\\xNN`)."""
    try:
        return raw.decode("utf-8"), None
    except UnicodeDecodeError:
        return raw.decode("utf-8", "backslashreplace"), raw.hex()


def json_escape(document: str) -> str:
    r"""Return a JSON document with every unsafe non-ASCII character as a `\\uXXXX` escape.

    JSON encoders leave DEL, C1, bidi and zero-width characters as they are. They can stand only inside strings, so
    replacing them in the finished document keeps its meaning.
    """

    def escape(match: re.Match[str]) -> str:
        code = ord(match.group())
        if code < 0x20:  # the document's own line breaks; encoders escape those inside strings
            return match.group()
        if code < 0x10000:
            return f"\\u{code:04x}"
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"

    return UNSAFE.sub(escape, document)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 file`, `3,000 files`. Only nouns that take an s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
