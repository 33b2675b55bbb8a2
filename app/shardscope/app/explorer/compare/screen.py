"""The Compare screen: a second checkpoint beside the one in hand, structure first, values when they are asked for."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from textual import on
from textual.widgets import Static
from textual.worker import get_current_worker

from shardscope.app.explorer.compare import workers
from shardscope.app.explorer.compare.asking import Asking
from shardscope.app.explorer.compare.calls import CALLS, Calls
from shardscope.app.explorer.compare.frame import At
from shardscope.app.explorer.compare.messages import (
    ComparingStopped,
    Folded,
    NotCompared,
    SidesSeen,
    ValuesCompared,
)
from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.messages import Progressed
from shardscope.app.explorer.target import Target, diff_command
from shardscope.engine.model.decoded import Listed
from shardscope.engine.model.descriptor import PlaneState
from shardscope.widgets import compare_words as words
from shardscope.widgets.compare_table import CompareTable
from shardscope.widgets.figures import plural
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Tone, content

if TYPE_CHECKING:
    from shardscope.app.explorer.offer import Offer
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.model.blocker import Blocker

COMPONENTS: Final[tuple[Listed, ...]] = ("model", "optimizer", "other", "all")
"""In the order in which the key goes through them."""


class Compare(Asking):
    """Two checkpoints."""

    def __init__(
        self,
        target: Target,
        found: "Inspection | None",
        engine: Engine,
        *,
        crumbs: tuple[str, ...],
        calls: Calls = CALLS,
    ) -> None:
        """`found` is what is known of the checkpoint in hand: with its tensors where it was decoded."""
        super().__init__(target, crumbs)
        self.sides: tuple[Side, Side] | None = None
        self.adapters: tuple[Side, ...] = ()
        self.offers: tuple[Offer | None, Offer | None] = (None, None)
        self.decoded = found is not None and found.descriptor.planes.decoded is PlaneState.EXAMINED
        self._found = found
        self._engine = engine
        self._calls = calls

    def _start(self, work: "Callable[[], None]", description: str) -> None:
        self.app.run_worker(
            work, group="compare", description=description, thread=True, exclusive=True, exit_on_error=False
        )

    def on_unmount(self) -> None:
        """Stop what still runs for this screen."""
        self.app.workers.cancel_group(self.app, "compare")

    # Looking

    def _look_again(self) -> None:
        self._look((None, None))

    def _look(self, wishes: "tuple[Decoding | None, Decoding | None]") -> None:
        calls, component = self._calls, self.component
        other, adapter = (replace(self.target, path=path) for path in (self._other, self._adapter))
        more = (adapter,) if adapter.path else ()
        known: tuple[Inspection | None, Inspection | None] = (self._found, None)
        if self.sides is not None:
            first, second = (side.found for side in self.sides)
            known = (first, second if second.path == other.path else None)
        self.folded = None
        self.sides = None
        self._go(At.LOOKING)
        self._say("Looking at both; values are not read. esc stops.", Tone.PLAIN)
        self._start(
            lambda: workers.look(
                calls,
                (self.target, other, *more),
                (*known, *(None for _ in more)),
                (*wishes, *(None for _ in more)),
                component,
                get_current_worker().cancelled_event,
                self.post_message,
            ),
            "comparing two checkpoints",
        )

    @on(Progressed)
    def _progressed(self, event: Progressed) -> None:
        event.stop()
        if self.at in (At.LOOKING, At.READING):
            self.query_one(ProgressLine).show(event.progress)

    @on(SidesSeen)
    def _seen(self, event: SidesSeen) -> None:
        self.sides = (event.first, event.second)
        self.offers = event.offers
        self.adapters = event.adapters
        if self.at is At.LOOKING:
            self.query_one(ProgressLine).clear()
            self._say("Putting names, types and shapes side by side.", Tone.PLAIN)

    @on(Folded)
    def _folded(self, event: Folded) -> None:
        self.folded = event
        self._go(At.READY)
        document = event.compared.document
        self.query_one("#first", Static).update(
            content(self.target.path, (f"  {words.side_words(document.a)}", Tone.MUTED))
        )
        more = (f"+  {words.side_words(side)}" for side in document.adapters)
        notes = [f"B  {words.side_words(document.b)}", *more, *document.decisions]
        if doubt := words.unlisted(document):
            notes.append(doubt)
        if document.values and document.uncompared:
            left = plural(document.uncompared, "tensor")
            notes.append(
                f"Values of {left} were not compared: {self._key('compare.all')} lists them, with the reason."
            )
        self._say(words.answer(document), Tone.OK if document.same else Tone.CAUTION, *notes)
        self._list()
        if not isinstance(self.focused, CompareTable):
            self.set_focus(self.table)
        self._renew_dialog()

    def _key(self, binding: str) -> str:
        from shardscope.app.explorer.help.keys import key_rows

        return next((row.keys[0] for row in key_rows(self) if row.id == binding), "")

    @on(NotCompared)
    def _not_compared(self, event: NotCompared) -> None:
        self._refused(event.blocker)

    def _refused(self, blocker: "Blocker") -> None:
        self._go(At.ASKING if self.folded is None else At.READY)
        offered = any(offer is not None for offer in self.offers)
        more = (
            f"Press {self._key('compare.decode')} to read pickles of them as data, this once."
            if offered
            else blocker.remedy
        )
        if self.folded is not None:
            from shardscope.app.explorer.dialogs import NotDone

            self.app.push_screen(NotDone("Values not compared", blocker))
            return
        self._say(blocker.message, Tone.STOP, more, blocker.code)
        if self.sides is None:
            self.query_one("#other").focus()

    @on(ComparingStopped)
    def _stopped(self) -> None:
        if self.folded is None:
            self._go(At.ASKING)
            self._say("Stopped. Nothing is said about either.", Tone.CAUTION)
            self.query_one("#other").focus()
        else:
            self._go(At.READY)
            self.notify("Stopped: what was compared until then stays.", markup=False)

    # Values

    def _read(self, only: Collection[int] | None) -> bool:
        """Begin to compare values; tell whether anything can be begun now."""
        if self.folded is None or self.at is not At.READY:
            return False
        calls, compared = self._calls, self.folded.compared
        self._go(At.READING)
        self._start(
            lambda: workers.values(
                calls, compared, only, get_current_worker().cancelled_event, self.post_message
            ),
            "comparing values",
        )
        return True

    @on(ValuesCompared)
    def _values_compared(self, event: ValuesCompared) -> None:
        rows = self.table.rows
        for number, item in event.news.items():
            rows.tensors[number] = item
        self.table.rows_changed()
        self._show_row()

    # Rows

    @on(VirtualRows.RowSelected)
    def _selected(self, event: VirtualRows.RowSelected) -> None:
        event.stop()
        if event.rows is not self.table:
            return
        if self.table.rows.opens(event.row):
            self.table.toggle(event.row)
            return
        from shardscope.app.explorer.compare.detail import TensorDetail

        (number,) = self.table.rows.members(event.row)
        item = self.table.rows.tensors[number]
        self.app.push_screen(TensorDetail(number, item, lambda: self._read({number})))

    def _renew_dialog(self) -> None:
        """Show in a dialog in front what is known by now."""
        from shardscope.app.explorer.compare.detail import TensorDetail

        front = self.app.screen
        if isinstance(front, TensorDetail) and front.number < len(self.table.rows.tensors):
            front.show(self.table.rows.tensors[front.number])

    # What the keys do

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now."""
        match action:
            case "stop":
                return self.at in (At.LOOKING, At.READING)
            case "back" | "adapter":
                return self.at in (At.ASKING, At.READY)
            case "values" | "row_values" | "all" | "search" | "kind":
                return self.at is At.READY
            case "difference":
                return self.folded is not None and self.table.row is not None
            case "component":
                return self.at in (At.ASKING, At.READY) and self.sides is not None
            case "decode":
                return self.at in (At.ASKING, At.READY) and any(offer is not None for offer in self.offers)
            case "copy":
                return bool(self._other)
            case "peek" | "peek_other" | "shard_map":
                return self.at is At.READY and self._item is not None
            case "complete":
                return self._field is not None
        return True

    def action_values(self) -> None:
        """Compare the values of everything."""
        self._read(None)

    def action_row_values(self) -> None:
        """Compare the values of the row."""
        row = self.table.row
        if row is not None:
            self._read(set(self.table.rows.members(row)))

    def action_component(self) -> None:
        """Compare the next component."""
        if self.sides is None:
            return
        place = (COMPONENTS.index(self.component) + 1) % len(COMPONENTS)
        self.component = COMPONENTS[place]
        first, second = self.sides
        calls, component, adapters = self._calls, self.component, self.adapters
        self.folded = None
        self._go(At.LOOKING)
        self._start(
            lambda: workers.compare(calls, first, second, component, self.post_message, adapters),
            "comparing two checkpoints",
        )

    def action_decode(self) -> None:
        """Ask whether to decode what is opaque of both."""
        from shardscope.app.explorer.compare.decode import DecodeSides

        dialog = DecodeSides(self.target, self.offers, self._engine, self._command(decoded=True))

        def answered(wish: "Decoding | None") -> None:
            if wish is not None:
                self.decoded = True
                self._look((dialog.wishes[0], dialog.wishes[1]))

        self.app.push_screen(dialog, answered)

    def _command(self, *, decoded: bool) -> str:
        values = self.folded is not None and self.folded.compared.document.values
        return diff_command(
            self.target,
            self._other,
            values=values,
            decoded=decoded,
            component=self.component,
            adapter=self._adapter if self.component in ("model", "all") else "",
        )

    def action_shard_map(self, of_b: bool) -> None:
        """Draw which rank holds what of the tensor of the row: in A, where A has it, or in B."""
        from shardscope.app.explorer.compare.maps import map_of
        from shardscope.app.explorer.shardmap.screen import ShardMap

        item, number = self._item, self._number
        if item is None or number is None or self.folded is None:
            return
        subject = map_of(
            self.folded.compared,
            number,
            self.target,
            of_b=of_b or item.a is None,
            decoded=self.decoded,
        )
        if subject is None:
            self.notify("B has no such tensor.", markup=False)
        else:
            self.app.push_screen(ShardMap(subject))

    def action_peek(self) -> None:
        """Look at the numbers of the tensor of the row: those of A, of what only B has those of B."""
        item = self._item
        self._show_numbers(of_b=item is not None and item.a is None)

    def action_peek_other(self) -> None:
        """Look at the numbers that B has of it."""
        self._show_numbers(of_b=True)

    def _show_numbers(self, *, of_b: bool) -> None:
        from shardscope.app.explorer.compare.numbers import numbers_of
        from shardscope.app.explorer.peek.opening import show

        item, sides = self._item, self.sides
        if item is None or sides is None:
            return
        subject = numbers_of(item, sides, self.target, of_b=of_b, decoded=self.decoded)
        if subject is None:
            self.notify("B has no such tensor.", markup=False)
        else:
            show(self.app, subject)

    def action_copy(self) -> None:
        """Copy the command that says the same, and show it."""
        from shardscope.app.explorer.copying import Copy, copy, harmless

        item = self._item if self.folded is not None else None
        name = () if item is None else (Copy("n", "name", harmless(item.name)),)
        copy(self.app, (Copy("y", "command", self._command(decoded=self.decoded)), *name))

    def action_stop(self) -> None:
        """Stop looking or comparing values."""
        self.app.workers.cancel_group(self.app, "compare")

    def action_back(self) -> None:
        """Out of the path, out of the search, then back to the checkpoint."""
        if self.folded is not None and self._field is not None:
            self._leave_field()
        elif self.folded is not None and (self.filter.on or self.query_one("#find").display):
            self._list_all()
        else:
            self.dismiss(None)
