"""What is read for the screen: the tensor, windows into it as a person moves, and every number where that is wanted."""

from collections.abc import Callable
from dataclasses import replace as but
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from textual import on
from textual.worker import get_current_worker

from shardscope.app.explorer.messages import Progressed
from shardscope.app.explorer.peek import workers
from shardscope.app.explorer.peek.calls import CALLS, Calls
from shardscope.app.explorer.peek.frame import Frame
from shardscope.app.explorer.peek.messages import (
    GatheredSoFar,
    GatheringEnded,
    NotFound,
    TensorFound,
    WindowNotRead,
    WindowRead,
)
from shardscope.app.explorer.peek.subject import Subject
from shardscope.engine.model.tensors import DTYPES
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.value_reading import Reading

if TYPE_CHECKING:
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.looking.slices import Selection
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.peeking.gathering import Wanted

AT_ONCE: Final = 256 << 20
"""Bytes of a selection of which every number is read without being asked for."""
WINDOW, GATHER = "peek window", "peek gather"
"""Groups of workers: a new one of a group stops the one before."""
AROUND: Final = (14, 7)
"""Columns and lines of the screen beside those of a heat map."""
MOST: Final = 64
"""Lines of a heat map, and a quarter of its columns, at most."""


class Readings(Frame):
    """A tensor that is read."""

    def __init__(self, subject: Subject, calls: Calls = CALLS) -> None:
        super().__init__(subject)
        self.calls = calls
        self._side: Side | None = None
        self._wished: Subject | None = None
        """The same tensor in another way, while it is looked for."""
        self._run = 0
        """Which reading of every number it is."""

    def _start(self, work: "Callable[[], None]", group: str, description: str) -> None:
        self.app.run_worker(
            work, group=group, description=description, thread=True, exclusive=True, exit_on_error=False
        )

    def on_mount(self) -> None:
        """Find the tensor."""
        self.draw()
        self._find(self.subject)

    def _find(self, subject: Subject) -> None:
        calls = self.calls
        self._start(
            lambda: workers.find(calls, subject, get_current_worker().cancelled_event, self.post_message),
            WINDOW,
            "finding a tensor",
        )

    def on_unmount(self) -> None:
        """Stop what still runs for this screen."""
        for group in (WINDOW, GATHER):
            self.app.workers.cancel_group(self.app, group)

    # What the workers say.

    @on(TensorFound)
    def _found(self, event: TensorFound) -> None:
        from shardscope.app.explorer.peek.sight import Sight
        from shardscope.engine.looking.slices import selection
        from shardscope.engine.model.blocker import Finding, Param, blocker

        tensor = event.tensor
        self._side, self.tensor = event.side, tensor
        self.lowered, self.owners, self.packing = event.lowered, event.owners, event.packing
        if self._wished is not None:
            self.subject, self._wished = self._wished, None
        self.subject = but(self.subject, part_of=tensor.part_of)
        self.tell_facts()
        if tensor.unwritable is not None:
            params: dict[str, Param] = {"tensor": tensor.name, "why": tensor.unwritable}
            self._lost(blocker(Finding("peek.unreadable", params)))
            return
        chosen = selection(None, tensor.shape, tensor.name)
        self.sight = Sight(chosen)
        if self.subject.at is not None:
            self.sight.go_to(self.subject.at)
        self._begin(chosen)

    @on(NotFound)
    def _not_found(self, event: NotFound) -> None:
        from shardscope.app.explorer.dialogs import NotDone

        if self._wished is None:
            self._lost(event.blocker)
        else:
            self._wished = None
            self.app.push_screen(NotDone("Not unpacked", event.blocker))
            if self.sight is not None:
                self.sight.ask_again()
            self.show()

    def _lost(self, blocker: "Blocker") -> None:
        self.blocker = blocker
        self.show()

    @on(WindowRead)
    def _window_read(self, event: WindowRead) -> None:
        if self.sight is not None and self.sight.read(event.ask, event.window):
            self.blocker = None
            self.show()

    @on(WindowNotRead)
    def _window_not_read(self, event: WindowNotRead) -> None:
        if self.sight is not None and self.sight.is_of(event.ask):
            self._lost(event.blocker)

    @on(Progressed)
    def _progressed(self, event: Progressed) -> None:
        event.stop()
        if self.reading.state == "reading":
            self.query_one(ProgressLine).show(event.progress)

    @on(GatheredSoFar)
    def _gathered_so_far(self, event: GatheredSoFar) -> None:
        if event.run == self._run:
            self._know(replace(self.reading, known=event.known))

    @on(GatheringEnded)
    def _gathering_ended(self, event: GatheringEnded) -> None:
        if event.run != self._run:
            return
        self.query_one(ProgressLine).clear()
        if event.known is not None:
            self._know(replace(self.reading, state="done", known=event.known))
        elif event.blocker is not None:
            why = (event.blocker.message, event.blocker.remedy, event.blocker.code)
            self._know(replace(self.reading, state="failed", why=why))
        else:
            self._know(replace(self.reading, state="stopped"))

    def _know(self, reading: Reading) -> None:
        self.reading = reading
        if self.heat is not None:
            self.heat.take(reading.known)
        self.show()

    # Reading.

    def show(self) -> None:
        """Draw what there is, and have read what is missing in it."""
        self.draw()
        self.refresh_bindings()
        sight, side, tensor = self.sight, self._side, self.tensor
        if sight is None or side is None or tensor is None:
            return
        ask = sight.next_ask()
        if ask is not None:
            calls = self.calls
            self._start(
                lambda: workers.read(
                    calls, side, tensor, ask, get_current_worker().cancelled_event, self.post_message
                ),
                WINDOW,
                "reading numbers",
            )

    def _begin(self, chosen: "Selection") -> None:
        """Look at a selection: its figures are read at once where that is quick."""
        from shardscope.app.explorer.peek.heat_sight import HeatSight

        if self.tensor is None:
            return
        self.app.workers.cancel_group(self.app, GATHER)
        self._run += 1
        self._column = 0
        self.blocker = None
        self.heat = HeatSight(chosen)
        bits = chosen.elements * DTYPES[self.tensor.dtype].bits
        self.reading = Reading(
            bytes=-(-bits // 8), key=self._key("peek.gather"), stop_key=self._key("peek.stop")
        )
        if self.reading.bytes <= AT_ONCE:
            self.action_gather()
        self.show()

    def _key(self, name: str) -> str:
        """Return the first key of an action, as it stands on the keyboard."""
        for each in self.active_bindings.values():
            if each.binding.id == name:
                return self.app.get_key_display(each.binding)
        return {"peek.gather": "s", "peek.stop": "c"}[name]

    @property
    def _wanted(self) -> "Wanted":
        from shardscope.engine.peeking.gathering import Wanted

        room = self.app.size  # the pane may not be laid out yet
        bits = None if self.sight is None else self.sight.bits
        return Wanted(
            bits=bits,
            heat=bits is None,
            profiles=bits is None,
            heat_rows=max(8, min(MOST, room.height - AROUND[1])),
            heat_columns=max(16, min(4 * MOST, room.width - AROUND[0])),
        )

    def action_gather(self) -> None:
        """Read every number of the selection."""
        sight, side, tensor = self.sight, self._side, self.tensor
        if sight is None or side is None or tensor is None:
            return
        self._run += 1
        calls, chosen, wanted, run = self.calls, sight.chosen, self._wanted, self._run
        self.reading = replace(self.reading, state="reading", known=None, why=None)
        self._start(
            lambda: workers.gather(
                calls,
                side,
                tensor,
                chosen,
                wanted,
                run,
                get_current_worker().cancelled_event,
                self.post_message,
            ),
            GATHER,
            "reading every number of a tensor",
        )
        self.show()

    @property
    def packable(self) -> bool:
        """Whether it may be a packed weight, or is shown as one; blocks of ggml are never shown as they are stored."""
        tensor = self.tensor
        if tensor is None or tensor.dtype not in DTYPES:
            return False
        if self.packing is not None:
            return self.subject.logical
        return DTYPES[tensor.dtype].kind in ("int", "uint") or DTYPES[tensor.dtype].bits <= 8

    def action_unpack(self) -> None:
        """Show the numbers that a packed weight stands for, or those that are stored again."""
        if self.tensor is not None and self._wished is None:
            self._wished = but(self.subject, logical=not self.subject.logical, at=None)
            self._find(self._wished)

    def action_stop(self) -> None:
        """Stop reading."""
        self.app.workers.cancel_group(self.app, GATHER)
