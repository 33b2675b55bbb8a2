"""A fix as a person reads it before it is made: what is wrong, every change, what is lost, and then the plan."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from shardscope.app.cli.layout import WIDTH, heading, indented, laid_out
from shardscope.app.cli.plan_text import parts as plan_parts
from shardscope.engine.model.fix import Ailment, FixDocument
from shardscope.engine.model.repair import Lost
from shardscope.engine.model.secrets import shown
from shardscope.widgets.fix_words import Row, counts, lost, mended, sections, summary

ROWS: Final = 12
"""Rows of a kind before the rest of them is counted."""
STYLES: Final = {"+": "green", "-": "red", "~": "yellow"}


def render(
    document: FixDocument,
    *,
    width: int = WIDTH,
    color: bool = False,
    everything: bool = False,
    asks: bool = False,
) -> str:
    """Return the fix as text with line ends, within `width` columns. `everything` cuts no list short.

    Where it `asks` for a word, what it comes to stands at the end once more: the beginning has left the screen.
    """
    found = list(parts(document, everything=everything))
    if asks:
        found += [heading("In short", summary(document)), indented(Text(counts(document)))]
    return laid_out(found, width=width, color=color)


def parts(document: FixDocument, *, everything: bool = False) -> Iterator[RenderableType]:
    """Yield the parts of a fix."""
    yield Text("Fix", "bold").append(f"  {summary(document)}", "not bold")
    if document.found:
        yield heading("Wrong", "in the source")
        yield from _found(document.found)
    if document.changes:
        yield heading("Changes", counts(document))
        for section in sections(document):
            yield indented(Text(section.title, "dim"))
            yield _rows(section.rows if everything else section.rows[:ROWS])
            yield from _rest(section.rows, everything=everything)
    elif not document.lost:
        yield heading("Changes", "none: the output would be the source over again")
    yield from lost_parts(document.lost, everything=everything)
    yield Text()
    yield from plan_parts(document.plan, everything=everything)


def _found(found: Sequence[Ailment]) -> Iterator[RenderableType]:
    for item in found:
        style = "green" if item.mended else "yellow"
        yield indented(Text(item.blocker.code, "dim").append(f"  {mended(item)}", f"not dim {style}"))
        yield indented(Text(shown(item.blocker.message), overflow="fold"), 6)


def _rows(rows: Sequence[Row]) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        says = Text(row.says)
        if row.why:
            says.append(f"  {row.why}", "dim")
        table.add_row(Text(row.sign, STYLES[row.sign]), says)
    return indented(table, 4)


def lost_parts(items: Sequence[Lost], *, everything: bool = False) -> Iterator[RenderableType]:
    """Yield what no output has, since the source does not have it whole."""
    if items:
        yield heading("Lost", f"{len(items):,}, since the source does not have them whole", "bold red")
        yield _rows([Row("-", lost(item), "") for item in (items if everything else items[:ROWS])])
        yield from _rest(items, everything=everything)


def _rest(listed: Sequence[object], *, everything: bool) -> Iterator[RenderableType]:
    if len(listed) > ROWS and not everything:
        yield indented(Text(f"... and {len(listed) - ROWS:,} more (-v)", "dim"), 4)
