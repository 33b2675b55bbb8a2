"""Text for people in a column that a terminal can hold."""

import textwrap
from typing import Final

WIDTH: Final = 80


def wrapped(text: str, indent: int = 0, *, first: str = "") -> list[str]:
    """Return `text` in lines, indented, the first one beginning with `first` in place of the indent."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"{first:<{indent}}",
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
