"""What the shard map says beside its picture: the place of the cursor, the pieces of a shard, what the letters mean."""

from collections.abc import Callable, Iterator, Sequence

from rich.cells import cell_len
from textual.content import Content

from shardscope.engine.model.picture import Mark
from shardscope.engine.model.shardview import Holding, PieceRow, Spot, Stored
from shardscope.widgets.figures import plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs
from shardscope.widgets.safe import Part, Tone, content, visible
from shardscope.widgets.tensor_detail import shape_words

Who = Callable[[tuple[int, ...]], str]
"""Ranks in words."""
OTHERS = 4
"""Further holders of an element that are named."""


class ShardNotes(Paragraphs):
    """The words beside the picture. `show(paragraphs)`."""

    BINDING_GROUP_TITLE = "Notes"

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None) -> None:  # noqa: A002
        super().__init__(empty="", glyphs=glyphs, id=id)
        self._said: Sequence[Paragraph] = ()

    def show(self, paragraphs: Sequence[Paragraph]) -> None:
        """Say something else."""
        self._said = paragraphs
        self.rows_changed(0)
        self.scroll_to(y=0, animate=False)

    def paragraphs(self, width: int) -> Sequence[Paragraph]:  # noqa: ARG002 - the same at any width
        """Return what there is to say."""
        return self._said


def spot_words(spot: Spot, chosen: int, who: Who, unit: str) -> Iterator[Paragraph]:
    """Yield what lies under the cursor; `chosen` is which of its holders is told in full, `unit` what holds shards."""
    if spot.index is not None:
        yield _said(("element ", Tone.MUTED), (shape_words(spot.index), Tone.STRONG))
    if spot.says:
        tone = Tone.STOP if spot.letter in "!#" else Tone.PLAIN
        yield _said((f"{spot.letter} ".lstrip(), Tone.HERE), (spot.says, tone))
    if not spot.holdings:
        return
    here = spot.holdings[chosen % len(spot.holdings)]
    yield _said((f"{spot.letter} ", Tone.HERE), (who(here.ranks), Tone.STRONG), _ranks(here, unit))
    yield from _holding(here)
    others = [one for one in spot.holdings if one is not here]
    if others:
        names = [who(one.ranks) for one in others[:OTHERS]]
        more = f" and {len(others) - OTHERS:,} more" if len(others) > OTHERS else ""
        yield _said(("also ", Tone.MUTED), ", ".join(names) + more)
    for number, step in enumerate(spot.path):
        yield _said(("tree " if number == 0 else "  of ", Tone.MUTED), step, hang=5)


def _ranks(holding: Holding, unit: str) -> Part:
    if not holding.place or len(holding.ranks) > 1:
        return ""
    return f"  {unit} {holding.ranks[0]:,}", Tone.MUTED


def _holding(one: Holding) -> Iterator[Paragraph]:
    piece = f"piece {one.piece + 1:,} of {one.pieces:,}" if one.pieces > 1 else "in one piece"
    yield _said((f"{piece}: ", Tone.MUTED), one.full)
    if one.scale is not None:
        yield _said((f"values times {one.scale}", Tone.CAUTION))
    yield _said(("in its shard ", Tone.MUTED), f"{shape_words(one.index)} of {shape_words(one.shape)}")
    if one.pieces > 1:
        yield _said(("  as ", Tone.MUTED), one.shard)
    if one.strides == (1,):
        yield _said(("contiguous: ", Tone.MUTED), plural(one.extents[0], "element"))
    elif one.strides:
        strides = ", ".join(f"{step:,}" for step in one.strides)
        yield _said(("strides ", Tone.MUTED), f"{strides} for {' x '.join(f'{n:,}' for n in one.extents)}")
    if one.element is None:
        return
    yield _said((one.element.file, Tone.PLAIN))
    yield _said(("  element ", Tone.MUTED), _bytes(one.element))
    if one.stored is not None:
        yield _said(("  piece   ", Tone.MUTED), _bytes(one.stored))
    if one.element.inside is not None:
        yield _said((f"  decoded bytes of {one.element.inside}", Tone.MUTED))
    for file in one.copies[:OTHERS]:
        yield _said(("copy in ", Tone.MUTED), file)
    if len(one.copies) > OTHERS:
        yield _said((f"{len(one.copies) - OTHERS:,} more copies", Tone.MUTED))


def _bytes(stored: Stored) -> str:
    return f"{stored.begin:,} .. {stored.end:,}"


def piece_words(
    rows: Sequence[PieceRow], total: int, here: int | None, title: str, letters: Callable[[int], str]
) -> Iterator[Paragraph]:
    """Yield a heading and a line for each of some pieces of a shard; `here` is the number of the piece of the cursor."""
    yield Paragraph()
    yield _said((title, Tone.STRONG), (f"  {total:,}" if total > 1 else "", Tone.MUTED))
    for row in rows:
        tone = Tone.HERE if row.number == here else Tone.PLAIN
        held = "" if row.bytes is None else size(row.bytes)
        yield Paragraph(
            ((f"{letters(row.number)} ", tone), (row.full, tone)), hang=2, side=(held, Tone.MUTED)
        )
    if rows and rows[-1].number + 1 < total:
        yield _said((f"  {total - rows[-1].number - 1:,} more", Tone.MUTED))


def _said(*parts: Part, hang: int = 2) -> Paragraph:
    return Paragraph(parts, hang=hang)


def legend(marks: Sequence[Mark], width: int, glyphs: Glyphs) -> Content:
    """Return what letters mean, as many as there is room for, on one line."""
    parts: list[Part] = []
    left = width
    for number, mark in enumerate(marks):
        words = visible(mark.means)
        cells = cell_len(words) + 2 + (3 if parts else 0)
        rest = len(marks) - number
        if cells > left - (10 if rest > 1 else 0):
            parts.append((f"   {glyphs.ellipsis} {rest:,} more", Tone.MUTED))
            break
        if parts:
            parts.append("   ")
        parts += [
            (mark.letter, Tone.HERE if mark.letter.isalnum() else Tone.STRONG),
            (f" {words}", Tone.MUTED),
        ]
        left -= cells
    return content(*parts)
