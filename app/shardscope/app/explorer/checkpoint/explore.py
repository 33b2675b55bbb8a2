"""The Explore screen: a frame that stands at once, and in it the progress, the workspace or a page of what went wrong."""

import os
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.events import Unmount
from textual.widget import Widget
from textual.widgets import Static

from shardscope.app.explorer.checkpoint.examination import Examination, State
from shardscope.app.explorer.checkpoint.kept import Kept
from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.messages import Chosen, FileChosen, LayoutWanted, PartChosen
from shardscope.app.explorer.target import Target, inspect_command
from shardscope.engine.model.progress import Progress
from shardscope.widgets.safe import Part, Tone, content
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine

if TYPE_CHECKING:
    from shardscope.app.explorer.checkpoint.panels import Found
    from shardscope.app.explorer.checkpoint.workspace import Workspace
    from shardscope.app.explorer.peek.messages import PeekWanted
    from shardscope.app.explorer.shardmap.messages import MapWanted
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.model.blocker import Blocker
    from shardscope.widgets.file_tree import InventoryTree, Marks

SAFE, NOT_DECODED = "safe plane", "nothing decoded"
DECODED, NOT_RUN = "decoded: examined", "nothing run"
NOTHING_READ: Part = ("decoded: nothing read", Tone.CAUTION)
"""The planes of trust, as the top line says them at every moment."""


def crumbs(path: str) -> tuple[str, ...]:
    """Return where we are, from the path as it was given; `.` and `..` go by their real names."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        parts = [os.path.basename(os.path.abspath(path)) or "/"]
    return ("shardscope", *parts)


class Explore(Examination):
    """One checkpoint."""

    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - no ClassVar in its base
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "y", "copy", "Copy command", id="explore.copy", tooltip="Copy the command that says the same"
        ),
        Binding(
            "C",
            "convert",
            "Convert",
            id="explore.convert",
            tooltip="Convert or reshard it, step by step; nothing is written before a typed word",
        ),
        Binding(
            "F",
            "fix",
            "Fix",
            show=False,
            id="explore.fix",
            tooltip="Mend safetensors, or change names, metadata and files, in a new folder; shows every change first",
        ),
        Binding(
            "d",
            "decode",
            "Decode",
            id="explore.decode",
            tooltip="Read pickles as data in a contained worker; asks first, each time",
        ),
        Binding(
            "r",
            "report",
            "Report",
            id="explore.report",
            tooltip="Make a report for a stranger; shows every line before anything is written",
        ),
        Binding(
            "equals_sign",
            "compare",
            "Compare",
            show=False,
            id="explore.compare",
            tooltip="Hold another checkpoint against this one: structure, and values on request",
        ),
        Binding(
            "M",
            "about('model')",
            "Model",
            show=False,
            id="explore.model",
            tooltip="What it is made of: parameters, layers, sizes against its configuration, packing, memory",
        ),
        Binding(
            "V",
            "about('scan')",
            "Scan values",
            show=False,
            id="explore.scan",
            tooltip="Read every number and say what stands out; says how much that is, and asks first",
        ),
        Binding(
            "number_sign",
            "digests",
            "Digest all",
            show=False,
            id="explore.digests",
            tooltip="Hash every file whatever its size, or stop hashing",
        ),
        Binding(
            "ctrl+r,f5",
            "again",
            "Look again",
            show=False,
            id="explore.again",
            tooltip="Inspect the checkpoint anew",
        ),
        Binding(
            "escape",
            "stop",
            "Stop",
            id="explore.stop",
            tooltip="Stop looking or decoding; nothing is said about the rest",
        ),
        Binding("escape", "back", "Back", id="explore.back", tooltip="One level up; never quits"),
    ]

    def __init__(self, target: Target, engine: Engine, *, nested: bool = False) -> None:
        super().__init__(target, engine)
        self.nested = nested
        """Whether another screen is below this one, to which esc goes back."""
        self.memory: int | None = None
        """The budget that a conversion starts with, where the person set one."""
        self.workspace: Workspace | None = None
        """What holds the facts; None until there are some."""
        self._kept = Kept()

    # What is drawn

    def compose(self) -> ComposeResult:
        """Draw the frame; what fills it comes from the workers."""
        with Horizontal(id="top"):
            yield Breadcrumbs(*crumbs(self.target.path))
            yield StatusLine(*self._planes())
        yield Container(self._loading(), id="main")
        yield Hints()

    def _planes(self, *words: str) -> tuple[Part, ...]:
        """Return the facts of the top line, with `words` about digests."""
        plane = None if self.found is None else self.found.decoded
        if plane is None:
            return (SAFE, *words, NOT_DECODED)
        return (DECODED if plane.streams else NOTHING_READ, *words, NOT_RUN)

    def _loading(self) -> Static:
        return Static(
            content("Looking", ("  names, JSON and headers only; nothing is run. esc stops.", Tone.MUTED)),
            id="loading",
        )

    async def _fill(self, widget: Widget) -> None:
        main = self.query_one("#main")
        with self.app.batch_update():
            await main.remove_children()
            await main.mount(widget)

    async def draw_loading(self) -> None:
        """Show that nothing is known yet."""
        await self._kept.forget(self.app)
        self.workspace = None
        self.query_one(StatusLine).facts = self._planes()
        await self._fill(self._loading())

    async def draw_progress(self, progress: Progress) -> None:
        """Show how far the inspection is."""
        from shardscope.widgets.progress_line import ProgressLine

        line = next(iter(self.query(ProgressLine)), None)
        if line is None:
            line = ProgressLine()
            await self.query_one("#main").mount(line)
        line.show(progress)

    def draw_digests(self, words: str) -> None:
        """Show how far the digests are."""
        self.query_one(StatusLine).facts = self._planes(words)

    async def draw_found(self, found: "Found", files: "InventoryTree") -> None:
        """Show a checkpoint for the first time, or once it was decoded: with the panel in front that was there before."""
        from shardscope.app.explorer.checkpoint.workspace import Workspace

        front = None if self.workspace is None else self.workspace.panels.active
        await self._kept.forget(self.app)
        self.workspace = Workspace(found, files)
        await self._fill(self.workspace)
        if front is not None:
            await self.workspace.panels.switch(front)

    async def draw_decoding(self) -> None:
        """Show that pickles are being decoded, in front of what is known."""
        said = "  pickles are read as data in a contained worker; nothing is run. esc stops."
        self.set_focus(None)
        if self.workspace is not None:
            self.workspace.display = False
        await self.query_one("#main").mount(Static(content("Decoding", (said, Tone.MUTED)), id="loading"))

    async def draw_not_decoded(self, blocker: "Blocker | None") -> None:
        """Show what was known before again, and what kept decoding from an end unless the person did."""
        from shardscope.widgets.progress_line import ProgressLine

        await self.query("#loading").remove()
        await self.query(ProgressLine).remove()
        if self.workspace is not None:
            self.workspace.display = True
            self.workspace.panels.focus_front()
        if blocker is not None:
            from shardscope.app.explorer.dialogs import NotDone

            self.app.push_screen(NotDone("Not decoded", blocker))

    def draw_news(self, found: "Found", marks: "Marks | None" = None) -> None:
        """Show what is known by now; `marks` are other letters for the files."""
        if self.workspace is not None:
            self.workspace.show(found, marks)

    async def draw_notice(self, notice: Widget) -> None:
        """Show a page in the place of the facts."""
        self.workspace = None
        await self._fill(notice)

    # What the keys do

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now."""
        if action == "stop":
            return self.state in (State.LOADING, State.DECODING)
        if action == "back":
            return self.state is not State.DECODING
        if action in ("convert", "fix", "compare", "about"):
            return self.state is State.READY
        if action == "decode":
            return (
                self.state is not State.DECODING and self.found is not None and self.found.offer is not None
            )
        return self.state is State.READY if action in ("digests", "report") else True

    @on(FileChosen)
    def _file_chosen(self, event: FileChosen) -> None:
        self.preview(event.path)

    @on(LayoutWanted)
    def _layout_wanted(self, event: LayoutWanted) -> None:
        self.lay_out(event.path)

    @on(PartChosen)
    def _part_chosen(self, event: PartChosen) -> None:
        self.post_message(Chosen(os.path.join(self.target.path, os.fsdecode(event.path))))

    def on_peek_wanted(self, event: "PeekWanted") -> None:
        """Show the numbers of a tensor."""
        from shardscope.app.explorer.peek.opening import open_peek

        event.stop()
        if self.found is not None:
            open_peek(self.app, self.target, self.found, event, self.action_decode)

    def on_map_wanted(self, event: "MapWanted") -> None:
        """Draw which rank holds what of a tensor."""
        from shardscope.app.explorer.shardmap.opening import open_map

        event.stop()
        if self.found is not None:
            open_map(self.app, self.target, self.found, event, self.action_decode)

    def action_copy(self) -> None:
        """Copy the command that says what the panel in front says, and show it."""
        from shardscope.app.explorer.copying import Copy, copy, under_cursor

        listing = None if self.workspace is None else self.workspace.command(self.target)
        asked = None if self.found is None else self.found.asked
        command, note = listing or (inspect_command(self.target, digest=self.digest_mode, asked=asked), "")
        copy(self.app, (Copy("y", "command", command), *under_cursor(self.workspace, self.target)), note)

    def action_decode(self) -> None:
        """Ask whether to decode, and do it when the person says so."""
        from shardscope.app.explorer.decode import Decode

        if self.found is None or self.found.offer is None or self.state is not State.READY:
            return

        async def answered(wish: "Decoding | None") -> None:
            if wish is not None:
                await self.decode(wish)

        self.app.push_screen(Decode(self.target, self.found.offer, self.engine), answered)

    def action_report(self) -> None:
        """Choose what goes into a report."""
        from shardscope.app.explorer.report.screen import ReportScreen

        if self.found is not None:
            self.app.push_screen(
                ReportScreen(
                    self.target,
                    self.found.descriptor,
                    crumbs=crumbs(self.target.path),
                    digest=self.digest_mode,
                    asked=self.found.asked,
                )
            )

    def action_convert(self) -> None:
        """Begin a guided conversion."""
        from shardscope.app.explorer.convert.screen import Convert

        if self.found is not None and self.state is State.READY:
            screen = Convert(self.target, self.found.offer, self.engine)
            if self.memory is not None:
                options = replace(screen.draft.options, memory_bytes=self.memory)
                screen.draft = replace(screen.draft, options=options)
            self.app.push_screen(screen)

    def action_fix(self) -> None:
        """Show what is wrong and what mends it."""
        from shardscope.app.explorer.fix.screen import Fix

        if self.found is not None and self.state is State.READY:
            screen = Fix(self.target, self.found.inspection, self.action_convert)
            if self.memory is not None:
                screen.draft = replace(screen.draft, memory_bytes=self.memory)
            self.app.push_screen(screen)

    def action_compare(self) -> None:
        """Hold another checkpoint against this one."""
        from shardscope.app.explorer.compare.screen import Compare

        if self.found is not None and self.state is State.READY:
            inspection = self.found.inspection
            self.app.push_screen(
                Compare(self.target, inspection, self.engine, crumbs=crumbs(self.target.path))
            )

    def action_about(self, name: str) -> None:
        """Show what the model is made of, or ask whether to read every number."""
        from shardscope.app.explorer.checkpoint.about import show_about

        if self.state is State.READY:
            show_about(self, self._kept, name, crumbs(self.target.path))

    @on(Unmount)
    async def _end_kept(self) -> None:
        await self._kept.forget(self.app)

    def action_digests(self) -> None:
        """Hash every file whatever its size, or stop hashing."""
        self.digest_all_or_stop()

    async def action_again(self) -> None:
        """Inspect the checkpoint anew."""
        await self.look_again()

    def action_stop(self) -> None:
        """Stop looking."""
        self.stop_looking()

    def action_back(self) -> None:
        """Go back to where this was chosen; never out of the app."""
        if self.nested:
            self.left = True
            self.dismiss(None)
