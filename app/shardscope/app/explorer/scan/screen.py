"""The Scan screen: every number of the checkpoint in hand read once, when a person says so, and what stands out as it is found."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textual import on
from textual.worker import get_current_worker

from shardscope.app.explorer.checkpoint.tensors_at import Place, glob
from shardscope.app.explorer.messages import Progressed
from shardscope.app.explorer.scan import words, workers
from shardscope.app.explorer.scan.calls import CALLS, Calls
from shardscope.app.explorer.scan.frame import At
from shardscope.app.explorer.scan.listing import Listing
from shardscope.app.explorer.scan.messages import (
    FindingsHeard,
    NotPlanned,
    ReadingPlanned,
    ScanEnded,
    Scanned,
)
from shardscope.app.explorer.scan.spots import Names
from shardscope.app.explorer.target import Target, scan_command
from shardscope.engine.model.decoded import Listed
from shardscope.widgets.blockers_panel import BlockersPanel
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.safe import Tone

if TYPE_CHECKING:
    from shardscope.app.explorer.checkpoint.panels import Found
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.model.progress import Progress
    from shardscope.engine.model.scan import ScanDocument
    from shardscope.engine.peeking.scanning import Reading

DECODE: Final = "decode"
"""What the screen ends with where the person wants to decode."""
COMPONENTS: Final[tuple[Listed, ...]] = ("model", "optimizer", "other", "all")
"""In the order in which the key goes through them."""


class Scan(Listing):
    """A scan of one checkpoint."""

    def __init__(
        self, target: Target, found: "Found", *, crumbs: tuple[str, ...], calls: Calls = CALLS
    ) -> None:
        super().__init__(crumbs, decoded=found.asked is not None)
        self.target = target
        self.side: Side | None = None
        self.reading: Reading | None = None
        """What is read; None until it is known."""
        self.document: ScanDocument | None = None
        """What came of it; None until everything was read."""
        self.progress: Progress | None = None
        self._found = found
        self._calls = calls
        if found.asked is not None:
            self.component = found.asked.listed

    def on_mount(self) -> None:
        """Find out what would be read, once the frame stands on the screen."""
        self.query_one("#find").display = False
        self._plan()

    def on_unmount(self) -> None:
        """Stop what still runs for this screen."""
        self._stop()

    @property
    def _group(self) -> str:
        return (
            f"scan-{id(self)}"  # a scan goes on behind other screens, and another checkpoint may have its own
        )

    def _start(self, work: Callable[[], None], description: str) -> None:
        self.app.run_worker(
            work, group=self._group, description=description, thread=True, exclusive=True, exit_on_error=False
        )

    def _stop(self) -> None:
        self.app.workers.cancel_group(self.app, self._group)

    # Asking

    def _plan(self) -> None:
        calls, component, decoded = self._calls, self.component, self._decoded
        known: Inspection | Side = self._found.inspection if self.side is None else self.side
        self.reading = self.document = self.progress = None
        self._go(At.PLANNING)
        self._say(((("Finding out what there is to read.", Tone.MUTED),),))
        self._start(
            lambda: workers.plan(
                calls,
                self.target,
                known,
                component,
                get_current_worker().cancelled_event,
                self.post_message,
                decoded=decoded,
            ),
            "finding out what a scan would read",
        )

    @on(ReadingPlanned)
    def _planned(self, event: ReadingPlanned) -> None:
        if self.at is At.PLANNING:
            self.side, self.reading, self._owners = event.side, event.reading, event.owners
            self._names = Names(event.reading.tensors)
            self._go(At.ASKING)
            decode = self._key("scan.decode") if self._found.offered else ""
            self._say(words.asking(event.reading, self.component, key=self._key("scan.start"), decode=decode))

    @on(NotPlanned)
    def _not_planned(self, event: NotPlanned) -> None:
        if self.at is At.PLANNING:
            self.side = event.side
            self._go(At.REFUSED)
            item = event.blocker
            offered = (
                f"{self._key('scan.decode')} asks to read pickles as data." if self._found.offered else ""
            )
            self._say((((item.message, Tone.STOP),), (offered or item.remedy,), ((item.code, Tone.MUTED),)))

    def _key(self, binding: str) -> str:
        from shardscope.app.explorer.help.keys import key_rows

        return next((row.keys[0] for row in key_rows(self) if row.id == binding), "")

    # Reading

    def action_start(self) -> None:
        """Read every number."""
        if self.at is not At.ASKING or self.side is None or self.reading is None:
            return
        calls, side, reading, component = self._calls, self.side, self.reading, self.component
        self.table.show_findings(())
        self._go(At.READING)
        self._tell()
        self.set_focus(self.table)
        self._start(
            lambda: workers.scan(
                calls, side, reading, component, get_current_worker().cancelled_event, self.post_message
            ),
            "reading every number of a checkpoint",
        )

    @on(Progressed)
    def _progressed(self, event: Progressed) -> None:
        event.stop()
        if self.at in (At.PLANNING, At.READING):
            if self.at is At.READING:
                self.progress = event.progress
            self.query_one(ProgressLine).show(event.progress)

    @on(FindingsHeard)
    def _heard(self, event: FindingsHeard) -> None:
        if self.at is At.READING:
            self.table.add(event.findings)
            self._tell()

    @on(Scanned)
    def _scanned(self, event: Scanned) -> None:
        if self.at is At.READING:
            self.document = event.document
            self.table.show_findings(event.document.findings)
            self._go(At.DONE)
            self._tell()

    @on(ScanEnded)
    def _ended(self, event: ScanEnded) -> None:
        if self.at is At.PLANNING:
            self._go(At.REFUSED)
            self._say(((("Stopped. Nothing was read.", Tone.CAUTION),),))
        elif self.at is At.READING:
            self._go(At.PARTIAL)
            self._tell(event)

    def _tell(self, ended: ScanEnded | None = None) -> None:
        """Say what is known by now."""
        count = self.table.rows.row_count
        if self.document is not None:
            self._say(words.done(self.document, self.table.kinds))
        elif self.at is At.READING:
            self._say(words.reading(count))
        elif ended is not None:
            self._say(words.partial(count, self.progress, ended.blocker))
        self._tell_listed()

    # What the keys do

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now."""
        rest = self.at in (At.ASKING, At.REFUSED, At.PARTIAL, At.DONE)
        match action:
            case "start":
                return self.at is At.ASKING
            case "stop":
                return self.at in (At.PLANNING, At.READING) and not self.table.filter.on
            case "back":
                return rest or self.table.filter.on
            case "search" | "kind" | "least":
                return self.table.display and self.table.rows.row_count > 0
            case "tensors" | "shard_map" | "peek":
                return self.tensor is not None
            case "explain":
                return self.table.display and self.table.item is not None
            case "component":
                return self.at in (At.ASKING, At.REFUSED) and self.side is not None
            case "again":
                return rest and self.side is not None
            case "decode":
                return rest and bool(self._found.offered)
        return True

    def action_component(self) -> None:
        """Ask about the next component."""
        self.component = COMPONENTS[(COMPONENTS.index(self.component) + 1) % len(COMPONENTS)]
        self._plan()

    def action_again(self) -> None:
        """Forget what was found, and ask again."""
        self._plan()

    def action_tensors(self) -> None:
        """Show the tensor in the list of tensors."""
        if (tensor := self.tensor) is not None:
            self.dismiss(Place(tensor.name, glob(tensor.name)))

    def action_shard_map(self) -> None:
        """Draw the map of the tensor, in front of this screen."""
        from shardscope.app.explorer.shardmap.screen import ShardMap
        from shardscope.app.explorer.shardmap.subject import Subject

        if (tensor := self.tensor) is not None:
            found = self._found
            self.app.push_screen(
                ShardMap(Subject(self.target, found.inspection, tensor, is_decoded=True, asked=found.asked))
            )

    def action_peek(self) -> None:
        """Show the numbers of the tensor, at the finding, in front of this screen."""
        from shardscope.app.explorer.peek.opening import show
        from shardscope.app.explorer.peek.subject import Subject

        if (tensor := self.tensor) is not None:
            found = self._found
            subject = Subject(
                self.target,
                found.inspection,
                tensor.name,
                part_of=tensor.part_of,
                side=self.side,
                at=self.spot.index,
                asked=found.asked,
            )
            show(self.app, subject)

    def action_explain(self) -> None:
        """Explain the code of the finding."""
        if (item := self.table.item) is not None:
            self.post_message(BlockersPanel.ExplanationWanted(item.code))

    def action_copy(self) -> None:
        """Copy the command that says the same, and show it."""
        from shardscope.app.explorer.copying import Copy, copy, harmless, of_path

        command = scan_command(self.target, asked=self._found.asked, component=self.component)
        tensor = self.tensor
        name = () if tensor is None else (Copy("n", "name", harmless(tensor.name)),)
        copy(self.app, (Copy("y", "command", command), *name, of_path(self.target.path)[2]))

    def action_decode(self) -> None:
        """End, and ask whether to decode."""
        self.dismiss(DECODE)

    def action_stop(self) -> None:
        """Stop reading."""
        self._stop()

    def action_back(self) -> None:
        """List all again, then go back to the checkpoint."""
        if self.table.filter.on or self.query_one("#find").display:
            self._list_all()
        else:
            self.dismiss(None)
