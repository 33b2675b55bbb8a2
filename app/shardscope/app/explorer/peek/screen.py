"""The screen that shows the numbers of one tensor: a grid to move through, and what all of them come to, read while one looks."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textual import on

from shardscope.app.explorer.peek.commands import command_words
from shardscope.app.explorer.peek.frame import HEAT, VALUES, VIEWS
from shardscope.app.explorer.peek.readings import Readings
from shardscope.engine.model.tensors import DTYPES
from shardscope.widgets.heat_map import HeatMap
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.value_grid import ValueGrid
from shardscope.widgets.value_statistics import largest_of
from shardscope.widgets.value_words import notations
from shardscope.widgets.view_line import ViewLine

if TYPE_CHECKING:
    from shardscope.app.explorer.peek.asking import Goal
    from shardscope.app.explorer.peek.sight import Sight
    from shardscope.engine.model.peek import Landmarks

DECODE: Final = "decode"
"""What the screen ends with where the person wants to decode."""
PACKED: Final = (None, 4, 2, 1)
"""Bits of packed numbers, in the order in which a key goes through them."""


class Peek(Readings):
    """Numbers of one tensor. Ends with `DECODE`, or with None."""

    # Going about.

    @on(ValueGrid.Resized)
    @on(HeatMap.Resized)
    def _resized(self, event: ValueGrid.Resized) -> None:
        event.stop()
        self.show()

    @on(ValueGrid.Pointed)
    def _pointed(self, event: ValueGrid.Pointed) -> None:
        event.stop()
        self._do(lambda sight: sight.point(event.line, event.cell))

    @on(ValueGrid.Turned)
    def _turned(self, event: ValueGrid.Turned) -> None:
        event.stop()
        self._do(lambda sight: sight.move(event.lines, 0))

    @on(HeatMap.Pointed)
    def _box_pointed(self, event: HeatMap.Pointed) -> None:
        event.stop()
        if self.heat is not None:
            self.heat.point(event.line, event.cell)
            self.show()

    @on(VirtualRows.RowHighlighted)
    @on(VirtualRows.RowSelected)
    def _kept(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()

    @on(ViewLine.Chosen)
    def _view_chosen(self, event: ViewLine.Chosen) -> None:
        event.stop()
        self.action_view(event.view)

    def _do(self, act: "Callable[[Sight], object]") -> None:
        if self.sight is not None:
            act(self.sight)
            self.show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now."""
        sight, reading = self.sight, self.reading.state == "reading"
        match action:
            case "copy" | "view" | "next_view":
                return True
            case "back":
                return not reading
            case "decode":
                return bool(self.subject.offer) and sight is None
            case "stop":
                return reading
            case "gather":
                return sight is not None and self.reading.state in ("unread", "stopped", "failed")
            case "notation":
                return sight is not None and self.view == VALUES
            case "axis" | "open":
                return self.view == HEAT and self.heat is not None and self.heat.there
            case "step" | "turn":
                return sight is not None and bool(sight.lead)
            case "bits":
                kind = None if self.tensor is None else DTYPES.get(self.tensor.dtype)
                return sight is not None and kind is not None and kind.kind in ("int", "uint")
            case "unpack":
                return self.packable
            case "largest":
                return self._largest is not None
            case "strange":
                return self._strange is not None
        return sight is not None

    def action_view(self, view: int) -> None:
        """Show a view."""
        self.view = view
        self.show()

    def action_next_view(self, by: int) -> None:
        """Show the next view."""
        self.action_view((self.view + by) % len(VIEWS))

    def action_notation(self) -> None:
        """Write numbers another way."""
        if self.tensor is None:
            return
        there = notations(self.tensor.dtype)
        self.notation = there[(there.index(self.notation) + 1) % len(there)]
        self._column = 0
        self.show()

    def action_bits(self) -> None:
        """Take packed integers apart, or not."""
        sight = self.sight
        if sight is not None:
            sight.bits = PACKED[(PACKED.index(sight.bits) + 1) % len(PACKED)]
            self._begin(sight.chosen)

    def action_move(self, down: int, right: int) -> None:
        """Move the cursor, or scroll."""
        if self.pane is not None:
            self.pane.action_cursor(down) if down else None
        elif self.view == HEAT and self.heat is not None:
            self.heat.move(down, right)
            self.show()
        else:
            self._do(lambda sight: sight.move(down, right))

    def action_page(self, down: int, right: int) -> None:
        """Move by what is in sight."""
        if self.pane is not None:
            self.pane.action_page(down)
        elif self.view == HEAT and self.heat is not None:
            self.heat.page(down)
            self.show()
        else:
            self._do(lambda sight: sight.page(down, right))

    def action_ends(self, last: bool) -> None:
        """Go to the beginning or the end."""
        if self.pane is not None:
            (self.pane.action_last if last else self.pane.action_first)()
        elif self.view == HEAT and self.heat is not None:
            self.heat.ends(last=last)
            self.show()
        else:
            self._do(lambda sight: sight.end() if last else sight.begin())

    def action_bottom(self) -> None:
        """Go to the last row."""
        if self.view == VALUES:
            self._do(lambda sight: sight.move(sight.extent[0], 0))
        else:
            self.action_ends(last=True)

    def action_step(self, by: int) -> None:
        """Go to another matrix."""
        self._do(lambda sight: sight.step(by))

    def action_turn(self) -> None:
        """Step through another dimension."""
        self._do(lambda sight: sight.turn())

    def action_axis(self) -> None:
        """Show the channels of another dimension."""
        if self.heat is not None:
            self.heat.turn()
            self.show()

    def action_open(self) -> None:
        """Go to the numbers of the box of the cursor."""
        if self.heat is not None and (at := self.heat.at) is not None:
            self._go_to(at)

    # Places.

    @property
    def _landmarks(self) -> "Landmarks | None":
        known = self.reading.known
        return None if known is None else known.landmarks

    @property
    def _largest(self) -> tuple[int, ...] | None:
        found, at = self.reading.statistics, self._landmarks
        return None if found is None or at is None else largest_of(found, at)[1]

    @property
    def _strange(self) -> tuple[int, ...] | None:
        at = self._landmarks
        return None if at is None else at.nan or at.positive_infinite or at.negative_infinite

    def _go_to(self, index: tuple[int, ...] | None) -> None:
        if index is not None and self.sight is not None and self.sight.go_to(index):
            self.action_view(VALUES)

    def action_largest(self) -> None:
        """Go to the number of the largest magnitude; in the heat map, to the box of the largest root mean square."""
        if self.view == HEAT and self.heat is not None:
            self.heat.loudest()
            self.show()
        else:
            self._go_to(self._largest)

    def action_strange(self) -> None:
        """Go to the first number that is not finite."""
        self._go_to(self._strange)

    def action_go_to(self) -> None:
        """Ask where to go."""
        from shardscope.app.explorer.peek.asking import EXAMPLE, read_goal
        from shardscope.app.explorer.shardmap.dialogs import Question
        from shardscope.widgets.tensor_detail import shape_words

        tensor = self.tensor
        if tensor is None or self.sight is None:
            return
        shape, name = tensor.shape, tensor.name

        def answered(goal: "Goal | None") -> None:
            if goal is not None:
                self.go(goal)

        words = f"An index in each dimension of {shape_words(shape)}, or a slice as numpy has it. Nothing typed: everything."
        self.app.push_screen(
            Question("Go to", words, EXAMPLE, lambda text: read_goal(text, shape, name)), answered
        )

    def go(self, goal: "Goal") -> None:
        """Go to an element, or look at a slice alone."""
        sight = self.sight
        if sight is None:
            return
        if goal.at is not None and sight.go_to(goal.at):
            self.action_view(VALUES)
            return
        if goal.chosen != sight.chosen:
            sight.choose(goal.chosen)
            self._begin(goal.chosen)
        self._go_to(goal.at)

    # Leaving.

    def action_copy(self) -> None:
        """Copy the command that shows the same, and show it."""
        from shardscope.app.explorer.copying import Copy, copy, harmless

        axis = None if self.heat is None else self.heat.axis
        copies = (
            Copy("y", "command", self.subject.command(*command_words(self.sight, self.view, axis))),
            Copy("n", "name", harmless(self.subject.name)),
        )
        copy(self.app, copies)

    def action_decode(self) -> None:
        """Go back, and have the question about decoding asked."""
        self.dismiss(DECODE)

    def action_back(self) -> None:
        """Back to where one came from."""
        self.dismiss(None)
