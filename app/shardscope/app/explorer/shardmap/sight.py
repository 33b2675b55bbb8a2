"""Where a person is in a shard map: which view of which side, the window, the cursor, and how keys move them. No terminal."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace as but

from shardscope.engine.geometry.drawing.borders import Borders
from shardscope.engine.geometry.drawing.guide import Guide
from shardscope.engine.geometry.drawing.lanes import around, lane_spot, longest, ribbon
from shardscope.engine.geometry.drawing.lines import matrix
from shardscope.engine.geometry.drawing.window import Place, closer, following, moved
from shardscope.engine.model.shardview import Drawing, Holding, Spot, View, Window
from shardscope.engine.model.tensors import DTYPES

if TYPE_CHECKING:
    from shardscope.engine.geometry.drawing.lanes import Lane
    from shardscope.engine.peeking.tensormaps import Chart

VIEWS: Final[tuple[View, ...]] = ("logical", "shard", "files")


@dataclass(frozen=True)
class Look:
    """What is in sight of one view."""

    view: View
    window: Window
    at: Place = (0, 0)
    group: int = 0
    """Whose shard it is, in the view of a shard."""
    outer: tuple[Window, ...] = ()
    """Windows that it was zoomed in from."""


class Sight:
    """One tensor, in sight."""

    def __init__(self, chart: "Chart", guide: Guide, lanes: "Sequence[Lane]" = ()) -> None:
        self.source = chart
        self.target: Chart | None = None
        self.on_target = False
        self.lanes = lanes
        self._source_guide = guide
        self.room: tuple[int, int] = (1, 1)
        """Cells across and down."""
        self.holder = 0
        """Which of the holders of the place is told in full."""
        self.look = Look("logical", guide.atlas.full.window)
        self._drawn: tuple[object, Drawing] | None = None
        if lanes:
            self._see_files()

    # What is in front.

    @property
    def chart(self) -> "Chart":
        """The side in front."""
        return self.target if self.on_target and self.target is not None else self.source

    @property
    def guide(self) -> Guide:
        """What knows the side in front."""
        return self.chart.guide or self._source_guide

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns of all there is of the view."""
        match self.look.view:
            case "logical":
                plane = self.guide.atlas.full
            case "shard":
                plane = matrix(self.guide.atlas.groups[self.look.group].shard.shape)
            case _:
                return len(self.lanes), longest(self.lanes)
        return plane.rows, plane.columns

    @property
    def labels(self) -> list[str]:
        """The names that may stand beside lines."""
        if self.look.view == "files":
            return [self.guide.who((lane.label,)) for lane in self.lanes]
        return [part.name for part in self.guide.parts] if self.look.view == "logical" else []

    @property
    def drawing(self) -> Drawing:
        """The window as a picture. Raises `Fault`: `map.unproven`, `map.budget`."""
        look = self.look
        key = (look.view, look.window, look.group, self.on_target, self.room, len(self.lanes))
        if self._drawn is None or self._drawn[0] != key:
            self._drawn = key, self._draw(look)
        return self._drawn[1]

    def _draw(self, look: Look) -> Drawing:
        width, height = self.room
        match look.view:
            case "logical":
                return self.guide.logical(look.window, width, height)
            case "shard":
                return self.guide.atlas.shard(look.group, look.window, width, height)
        letters = [self.guide.letter_of(lane.label) for lane in self.lanes]
        return ribbon(self.lanes, letters, self.labels, look.window, width, height)

    @property
    def spot(self) -> Spot:
        """What lies under the cursor. Raises `Fault` as `drawing`."""
        row, column = self.look.at
        match self.look.view:
            case "logical":
                return self.guide.spot(row, column)
            case "shard":
                return self.guide.shard_spot(self.look.group, row, column)
        return self._lane_spot(row, column)

    def _lane_spot(self, row: int, byte: int) -> Spot:
        if not self.lanes:
            return Spot(" ", None, says="no bytes of it are known")
        lane = self.lanes[row]
        letter = self.guide.letter_of(lane.label)
        found = lane_spot(lane, byte, letter)
        stretch, known = lane.at(byte), DTYPES.get(self.guide.dtype or "")
        if stretch is None or not stretch.own or known is None:
            return found
        group = self.guide.atlas.group_of(lane.label)
        plane = matrix(self.guide.atlas.groups[group].shard.shape)
        address = (byte - stretch.begin) * 8 // known.bits
        spot = self.guide.shard_spot(group, *divmod(address, max(1, plane.columns)))
        return but(spot, letter=letter)

    @property
    def holding(self) -> Holding | None:
        """The holder of the place that is told in full."""
        held = self.spot.holdings
        return held[self.holder % len(held)] if held else None

    @property
    def group(self) -> int:
        """The group of ranks of that holder; in a gap the one that was looked at last."""
        held = self.holding
        return self.look.group if held is None else self.guide.atlas.group_of(held.ranks[0])

    # Moving.

    def _go(self, at: Place) -> None:
        window = following(self.look.window, self.extent, at)
        self.look = replace(self.look, at=at, window=window)
        self.holder = 0

    def move(self, down: int, right: int) -> None:
        """Go some cells down and right."""
        if self.drawing.cells:
            self._go(moved(self.drawing, self.look.at, down, right))

    def point(self, line: int, cell: int) -> None:
        """Go to a cell of the picture."""
        self._go(self.drawing.at(line, cell))

    def ends(self, *, last: bool) -> None:
        """Go to the first or the last place of the whole view."""
        rows, columns = self.extent
        self._go((max(0, rows - 1), max(0, columns - 1)) if last else (0, 0))

    def go_to(self, index: tuple[int, ...]) -> None:
        """Go to an element of the full tensor, or of the shard in front."""
        shape = self.shape
        address = 0
        for at, extent in zip(index, shape, strict=True):
            address = address * extent + at
        self._go(divmod(address, max(1, self.extent[1])))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that an index is typed for: of the shard in front, or of the full tensor."""
        if self.look.view == "shard":
            return self.guide.atlas.groups[self.look.group].shard.shape
        return self.guide.atlas.lowered.shape if self.look.view == "logical" else (longest(self.lanes),)

    def next_holder(self) -> None:
        """Tell another of those that hold the place."""
        held = self.spot.holdings
        self.holder = (self.holder + 1) % len(held) if held else 0

    # Piece by piece.

    def step(self, by: int) -> None:
        """Go to the next piece, or to the one before, around the ends."""
        if self.look.view == "files":
            self._step_lane(by)
            return
        groups = self.guide.atlas.groups
        held = self.holding
        group, piece = self.group, (-1 if by > 0 else 0) if held is None else held.piece
        piece += by
        for _ in range(len(groups) + 1):
            if 0 <= piece < len(groups[group].pieces):
                break
            group = (group + (1 if by > 0 else -1)) % len(groups)
            piece = 0 if by > 0 else len(groups[group].pieces) - 1
        else:
            return
        self._show_piece(group, piece)

    def _show_piece(self, group: int, piece: int) -> None:
        full, shard = self.guide.first(group, piece)
        if self.look.view == "shard":
            if group != self.look.group:
                window = matrix(self.guide.atlas.groups[group].shard.shape).window
                self.look = Look("shard", window, group=group)
            self._go(divmod(shard, max(1, self.extent[1])))
            return
        self._go(divmod(full, max(1, self.extent[1])))
        ranks = self.guide.atlas.groups[group].ranks
        for number, one in enumerate(self.spot.holdings):
            if one.ranks == ranks and one.piece == piece:
                self.holder = number

    def _step_lane(self, by: int) -> None:
        own = [(row, lane.stretches[n].begin) for row, lane in enumerate(self.lanes) for n in lane.own]
        if own:
            behind = (
                [at for at in own if at > self.look.at] if by > 0 else [at for at in own if at < self.look.at]
            )
            self._go((behind or own)[0 if by > 0 else -1])

    # Closer and further away.

    def zoom_in(self) -> None:
        """Look closer at what the cursor is on."""
        look, (width, height) = self.look, self.room
        window = closer(look.window, self.extent, self._borders, look.at, (height, width))
        if window != look.window:
            self.look = replace(look, window=window, outer=(*look.outer, look.window))

    def zoom_out(self) -> None:
        """Go back to where the person looked closer from; at last to all there is."""
        look = self.look
        if look.outer:
            window = following(look.outer[-1], self.extent, look.at)
            self.look = replace(look, window=window, outer=look.outer[:-1])
        else:
            rows, columns = self.extent
            self.look = replace(look, window=Window(0, rows, 0, columns))

    @property
    def _borders(self) -> Borders:
        atlas = self.guide.atlas
        match self.look.view:
            case "logical":
                return atlas.borders
            case "shard":
                return atlas.shard_borders(self.look.group)
        here = self.lanes[self.look.at[0]].at(self.look.at[1])
        return Borders((), () if here is None else (here.begin, here.end), known=True)

    # Other views, the other side.

    def turn(self) -> View:
        """Return the view that comes next."""
        views = VIEWS[:2] if self.on_target else VIEWS
        return views[(views.index(self.look.view) + 1) % len(views)]

    def see(self, view: View) -> None:
        """Show another view of the same place, as far as it has one there."""
        group, held, spot = self.group, self.holding, self.spot
        self.holder = 0
        if view == "shard":
            self.look = Look("shard", matrix(self.guide.atlas.groups[group].shard.shape).window, group=group)
            if held is not None:
                self.go_to(held.index)
        elif view == "logical":
            self.look = Look("logical", self.guide.atlas.full.window, group=group)
            if spot.index is not None:
                self.go_to(spot.index)
        else:
            self._see_files(group)

    def _see_files(self, group: int = 0) -> None:
        window = around(self.lanes)
        at = (0, window.column)
        fragment = self.guide.fragment(group)
        for row, lane in enumerate(self.lanes):
            if fragment is not None and lane.record == fragment.record:
                at = row, fragment.offset
        self.look = Look("files", window, at, group=group)

    def turn_side(self) -> None:
        """Show the target in the place of the source, or the source again, at the same element."""
        if self.target is None:
            return
        if self.look.view != "logical":
            self.see("logical")
        self.on_target = not self.on_target
        self.holder = 0
        self.look = replace(self.look, group=0)
