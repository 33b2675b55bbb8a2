"""The few signs that are drawn, with plain ASCII for terminals that have nothing else."""

import os
import sys
from collections.abc import Mapping
from typing import Final, Literal

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


def glyphs_for(encoding: str | None, environ: Mapping[str, str] | None = None) -> Glyphs:
    """Return the signs that a terminal of `encoding` can draw, in the locale that `environ` asks for.

    Python writes UTF-8 even where the locale is `C`, which says that nobody promised a terminal for it.
    """
    named = environ or {}
    locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := named.get(name))), "")
    speaks = (encoding or "").lower().replace("-", "").startswith("utf")
    return UNICODE if speaks and locale not in ("C", "POSIX") else ASCII


_chosen: list[Glyphs] = []


def choose_glyphs(choice: Literal["auto", "unicode", "ascii"]) -> None:
    """Settle what `terminal_glyphs` returns in this process; `auto` leaves it to the terminal."""
    _chosen[:] = {"unicode": [UNICODE], "ascii": [ASCII], "auto": []}[choice]


def terminal_glyphs() -> Glyphs:
    """Return the signs for the terminal of this process. Textual draws on the standard error stream."""
    if not _chosen:
        _chosen.append(glyphs_for(getattr(sys.__stderr__, "encoding", None), os.environ))
    return _chosen[0]
