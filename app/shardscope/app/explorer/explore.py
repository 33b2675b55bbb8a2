"""The Explore screen: a frame that stands at once, and in it the progress, the workspace or a page of what went wrong."""

import os
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.widget import Widget
from textual.widgets import Static

from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.examination import Examination, State
from shardscope.app.explorer.hints import Hints
from shardscope.app.explorer.messages import Chosen, FileChosen, PartChosen
from shardscope.app.explorer.target import Target, inspect_command
from shardscope.engine.model.progress import Progress
from shardscope.widgets.safe import Tone, content
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine

if TYPE_CHECKING:
    from shardscope.app.explorer.panels import Found
    from shardscope.app.explorer.workspace import Workspace
    from shardscope.widgets.file_tree import InventoryTree, Marks

SAFE, DECODED = "safe plane", "nothing decoded"
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
            tooltip="Stop looking; nothing is said about the rest",
        ),
        Binding("escape", "back", "Back", id="explore.back", tooltip="One level up; never quits"),
    ]

    def __init__(self, target: Target, engine: Engine, *, nested: bool = False) -> None:
        super().__init__(target, engine)
        self.nested = nested
        """Whether another screen is below this one, to which esc goes back."""
        self.workspace: Workspace | None = None
        """What holds the facts; None until there are some."""

    # What is drawn

    def compose(self) -> ComposeResult:
        """Draw the frame; what fills it comes from the workers."""
        with Horizontal(id="top"):
            yield Breadcrumbs(*crumbs(self.target.path))
            yield StatusLine(SAFE, DECODED)
        yield Container(self._loading(), id="main")
        yield Hints()

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
        self.workspace = None
        self.query_one(StatusLine).facts = (SAFE, DECODED)
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
        self.query_one(StatusLine).facts = (SAFE, words, DECODED)

    async def draw_found(self, found: "Found", files: "InventoryTree") -> None:
        """Show a checkpoint for the first time."""
        from shardscope.app.explorer.workspace import Workspace

        self.workspace = Workspace(found, files)
        await self._fill(self.workspace)

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
            return self.state is State.LOADING
        return self.state is State.READY if action == "digests" else True

    @on(FileChosen)
    def _file_chosen(self, event: FileChosen) -> None:
        self.preview(event.path)

    @on(PartChosen)
    def _part_chosen(self, event: PartChosen) -> None:
        self.post_message(Chosen(os.path.join(self.target.path, os.fsdecode(event.path))))

    def action_copy(self) -> None:
        """Copy the command that says what the panel in front says, and show it."""
        from shardscope.app.explorer.dialogs import CopiedCommand

        listing = None if self.workspace is None else self.workspace.command(self.target)
        command, note = listing or (inspect_command(self.target, digest=self.digest_mode), "")
        self.app.copy_to_clipboard(command)
        self.app.push_screen(CopiedCommand(command, note))

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
