"""Text laid out by Rich for a terminal and for a pipe alike: headings, rows of labels, tables that keep within the width.

Data of a checkpoint enters as `Text` only, so that no markup in it is ever read.
"""

import io
import os
from collections.abc import Iterable
from typing import Final, TextIO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shardscope.app.cli.output import is_terminal

WIDTH: Final = 80
"""Columns of a text in a pipe."""
NARROWEST: Final = 40
"""Columns below which lines run over the edge rather than be cut into pieces."""
WIDEST: Final = 100
"""Columns on a wide terminal: lines longer than this are hard to read."""


class Line(Text):
    """A line that is never broken: a command that is cut into pieces cannot be copied."""


def columns(stream: TextIO | None) -> int:
    """Return the columns of the terminal at the end of `stream`, and `WIDTH` where there is none."""
    if stream is None or not is_terminal(stream):
        return WIDTH
    if (asked := os.environ.get("COLUMNS", "")).isdecimal() and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH


def laid_out(parts: Iterable[RenderableType], *, width: int = WIDTH, color: bool = False) -> str:
    """Return `parts` as text with line ends and nothing behind the last word of a line, with terminal colours if `color`."""
    screen = io.StringIO()
    console = Console(
        file=screen,
        width=max(NARROWEST, min(width, WIDEST)),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Line))
    return "".join(f"{line.rstrip()}\n" for line in screen.getvalue().splitlines())


def heading(title: str, aside: str = "", style: str = "dim") -> Text:
    """Return a heading with an empty line before it."""
    text = Text("\n").append(title, "bold")
    return text.append(f"  {aside}", style) if aside else text


def rows(pairs: Iterable[tuple[str, Text]], by: int = 2) -> RenderableType:
    """Return rows of a label and what it says, moved to the right."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in pairs:
        table.add_row(Text(label), value)
    return indented(table, by)


def indented(part: RenderableType, by: int = 2) -> RenderableType:
    """Return a part moved to the right."""
    return Padding(part, (0, 0, 0, by))
