"""Bytes that weights and cache come to in one case, each figure with its formula, and around it the figures of other cases."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.model.anatomy import Line, Memory
from shardscope.widgets.figures import plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, heading
from shardscope.widgets.safe import Part, Tone

ESTIMATE: Final = "estimate: arithmetic on bytes, no promise"
_LABEL: Final = 13
_SIZE: Final = 10
_CELL: Final = 11
_BESIDE: Final = 62
"""Cells from which on a formula stands beside its figure, and not below it."""


class Setting(Struct, frozen=True):
    """One thing that a case is made of."""

    key: str
    """What changes it, as printed on a keyboard."""
    label: str
    value: str


class Grid(Struct, frozen=True):
    """Figures of several cases."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int | None, ...]], ...]
    """Label and bytes."""


class MemoryPane(Paragraphs):
    """The arithmetic of one case. `MemoryPane()`, then `show(memory, settings, grids)` as often as another case is wanted."""

    BINDING_GROUP_TITLE = "Memory"

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None) -> None:  # noqa: A002 - the word of Textual
        super().__init__(empty="", glyphs=glyphs, id=id)
        self.memory: Memory | None = None
        self._settings: tuple[Setting, ...] = ()
        self._grids: tuple[Grid, ...] = ()

    def show(self, memory: Memory, settings: Sequence[Setting], grids: Sequence[Grid] = ()) -> None:
        """Show a case."""
        self.memory, self._settings, self._grids = memory, tuple(settings), tuple(grids)
        self.rows_changed()

    def paragraphs(self, width: int) -> Iterator[Paragraph]:
        """Yield the case, its figures, and those of other cases."""
        if self.memory is None:
            return
        yield Paragraph((("Memory", Tone.STRONG), (f"  {ESTIMATE}", Tone.MUTED)))
        yield Paragraph(tuple(_settings(self._settings)))
        yield from figures(self.memory, width)
        for grid in self._grids:
            yield from _grid(grid, width)


def _settings(found: Sequence[Setting]) -> Iterator[Part]:
    for at, each in enumerate(found):
        if at:
            yield "  "
        yield f"{each.key} ", Tone.MUTED
        yield f"{each.label}\u00a0", Tone.MUTED
        yield each.value.replace(" ", "\u00a0"), Tone.HERE


def figures(memory: Memory, width: int) -> Iterator[Paragraph]:
    """Yield each figure with its formula; what is not known says so."""
    yield from (_figure(line.name, line, width) for line in memory.weights)
    if memory.cache_per_token is None:
        yield _unknown("cache", "sizes of its heads are not declared")
    else:
        yield _figure("a token", memory.cache_per_token, width)
        if memory.cache is None:
            yield _unknown("cache", "no context is declared, and none was chosen")
        else:
            yield _figure("the cache", memory.cache, width)
    if memory.together:
        yield _figure("together", memory.together[-1], width, Tone.STRONG)
    each = f"; on each of {plural(memory.devices, 'device')}" if memory.devices > 1 else ""
    yield Paragraph(((f"Not in it: {memory.left_out}{each}.", Tone.MUTED),))


def _figure(label: str, line: Line, width: int, tone: Tone = Tone.PLAIN) -> Paragraph:
    parts: tuple[Part, ...] = ((f"{label:<{_LABEL}}", Tone.MUTED), (f"{size(line.bytes):>{_SIZE}}", tone))
    hang = _LABEL + _SIZE + 4 if width >= _BESIDE else 4
    return Paragraph((*parts, (f"  = {line.formula}", Tone.MUTED)), hang=hang)


def _unknown(label: str, why: str) -> Paragraph:
    return Paragraph(
        (
            (f"{label:<{_LABEL}}", Tone.MUTED),
            (f"{'unknown':>{_SIZE}}", Tone.CAUTION),
            (f"  {why}", Tone.MUTED),
        )
    )


def _grid(grid: Grid, width: int) -> Iterator[Paragraph]:
    """Yield a table; columns for which there is no room are left out."""
    shown = max(1, (width - _LABEL) // _CELL)
    yield from heading(grid.title)
    heads = "".join(f"{each:>{_CELL}}" for each in grid.columns[:shown])
    yield Paragraph(((f"{'':<{_LABEL}}{heads}", Tone.MUTED),))
    for label, cells in grid.rows:
        said = "".join(f"{size(each):>{_CELL}}" for each in cells[:shown])
        yield Paragraph(((f"{label:<{_LABEL}}", Tone.MUTED), said))
