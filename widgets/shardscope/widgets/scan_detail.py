"""One finding of a scan in full: the sentence, what to do, what it says beside, and where its numbers are stored."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Blocker
from shardscope.widgets.blockers_panel import severity_mark
from shardscope.widgets.figures import size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, labelled
from shardscope.widgets.safe import Part, Tone, elide, visible

NAME: Final = 240
"""Cells of the longest name."""
_TOLD: Final = frozenset({"tensor", "file", "element"})
"""Parameters that have a line of their own."""
_SIZES: Final = frozenset({"bytes", "size", "unstored"})


class Spot(Struct, frozen=True):
    """Where a finding is. What is not known is None."""

    name: str = ""
    """Exact, of the tensor; empty where it is about none, or about several."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    index: tuple[int, ...] | None = None
    element: int | None = None
    rank: str | None = None
    file: str | None = None
    byte: int | None = None
    """Of the file."""


class FindingText(Paragraphs):
    """What is known of one finding. `FindingText()`, then `show(item, spot)`."""

    BINDING_GROUP_TITLE = "Finding"

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None) -> None:  # noqa: A002 - the word of Textual
        super().__init__(empty="", glyphs=glyphs, id=id)
        self._item: Blocker | None = None
        self._spot = Spot()

    def show(self, item: Blocker | None, spot: Spot) -> None:
        """Show another finding; None for nothing."""
        self._item, self._spot = item, spot
        self.rows_changed(0)

    def paragraphs(self, width: int) -> Iterator[Paragraph]:  # noqa: ARG002 - wrapped by the panel
        """Yield the sentences."""
        if self._item is not None:
            yield from finding(self._item, self._spot, self.glyphs)


def finding(item: Blocker, spot: Spot, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what a finding says, whatever its kind."""
    mark, tone = severity_mark(item.severity, glyphs)
    yield Paragraph(((f"{mark}  ", tone), item.message), hang=2)
    if spot.element is not None:
        index = "" if spot.index is None else f"[{', '.join(map(str, spot.index))}]"
        yield labelled("position", (index, Tone.STRONG), f"  element {spot.element:,}")
    if spot.file is not None or spot.rank is not None:
        yield labelled("stored", *_stored(spot, glyphs))
    if spot.name:
        extents = f"[{', '.join(map(str, spot.shape))}]"
        name = elide(visible(spot.name), NAME, glyphs.ellipsis)
        yield labelled("tensor", (f"{spot.dtype} {extents}  ", Tone.MUTED), name)
    yield labelled("to do", item.remedy, (f"  {item.code}", Tone.MUTED))
    told = [part for name in sorted(item.params) for part in _param(item, name)]
    if told:
        yield labelled("beside", *told)


def _stored(spot: Spot, glyphs: Glyphs) -> Iterator[Part]:
    if spot.file is not None:
        yield elide(visible(spot.file), NAME, glyphs.ellipsis)
    if spot.byte is not None:
        yield f"  byte {spot.byte:,}"
    if spot.rank is not None:
        yield f"  rank {spot.rank}", Tone.MUTED


def _param(item: Blocker, name: str) -> Iterator[Part]:
    """Yield one parameter with its name: what kinds that are not known here have to say."""
    value = item.params[name]
    if name in _TOLD or value is None:
        return
    shown = value if isinstance(value, str) else size(value) if name in _SIZES else f"{value:,}"
    yield f"{name.replace('_', ' ')} ", Tone.MUTED
    yield f"{visible(shown, NAME)}  "
