"""The few signs that are drawn, with plain ASCII for terminals that have nothing else."""

import sys
from functools import cache
from typing import Final

from msgspec import Struct


class Glyphs(Struct, frozen=True):
    """One set of signs, each a single cell wide."""

    open: str
    """A branch whose children are shown."""
    closed: str
    branch: str
    """Two cells: a child with further siblings."""
    last: str
    """Two cells: the last child."""
    pipe: str
    """Two cells: an ancestor has further siblings."""
    blank: str
    here: str
    """Beside what is chosen in a text."""
    ascending: str
    descending: str
    ellipsis: str
    full: str
    """A filled cell of a bar."""
    empty: str
    trail: str
    """Between the parts of a path of screens."""
    dot: str
    """Between facts on one line."""
    ok: str
    caution: str
    stop: str
    note: str


UNICODE: Final = Glyphs(
    open="▾",
    closed="▸",
    branch="├ ",
    last="└ ",
    pipe="│ ",
    blank="  ",
    here="▌",
    ascending="▲",
    descending="▼",
    ellipsis="…",
    full="█",
    empty="░",
    trail="▸",
    dot="·",
    ok="✓",
    caution="▲",
    stop="✗",
    note="•",
)
ASCII: Final = Glyphs(
    open="-",
    closed="+",
    branch="|-",
    last="`-",
    pipe="| ",
    blank="  ",
    here=">",
    ascending="^",
    descending="v",
    ellipsis="~",
    full="#",
    empty=".",
    trail=">",
    dot="|",
    ok="+",
    caution="!",
    stop="x",
    note="*",
)


def glyphs_for(encoding: str | None) -> Glyphs:
    """Return the signs that a terminal of `encoding` can draw."""
    return UNICODE if (encoding or "").lower().replace("-", "").startswith("utf") else ASCII


@cache
def terminal_glyphs() -> Glyphs:
    """Return the signs for the terminal of this process. Textual draws on the standard error stream."""
    return glyphs_for(getattr(sys.__stderr__, "encoding", None))
