"""The Explore screen: files on the left, what they mean on the right, and the keys."""

import os
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input, Static

from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.examination import Examination, State
from shardscope.app.explorer.hints import Hints
from shardscope.app.explorer.notice import Notice
from shardscope.app.explorer.panels import PANELS, Found, Panels
from shardscope.app.explorer.search import SearchBar, places
from shardscope.app.explorer.target import Target, inspect_command, tensors_command
from shardscope.engine.model.progress import Progress
from shardscope.widgets.blockers_panel import BlockersPanel
from shardscope.widgets.file_tree import FileTree, InventoryTree, Legend, Marks
from shardscope.widgets.paragraphs import Paragraphs
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.safe import Tone, content
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine

NEEDS_FACTS = frozenset({"step", "panel", "files", "search", "digests"})
"""Actions that only work on facts."""


def crumbs(path: str) -> tuple[str, ...]:
    """Return where we are, from the path as it was given; `.` and `..` go by their real names."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        parts = [os.path.basename(os.path.abspath(path)) or "/"]
    return ("shardscope", *parts)


class Explore(Examination):
    """One checkpoint."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - no ClassVar in its base
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", id="explore.search", tooltip="Search in the panel in front"),
        Binding("f", "files", "Files", id="explore.files", tooltip="Go to the file tree and back"),
        Binding("tab", "step(1)", "Panel", id="explore.next_panel", tooltip="Go to the next panel"),
        Binding(
            "shift+tab",
            "step(-1)",
            "Panel before",
            show=False,
            id="explore.previous_panel",
            tooltip="Go to the panel before",
        ),
        *(
            Binding(
                str(number),
                f"panel('{panel.id}')",
                panel.title,
                show=False,
                id=f"explore.{panel.id}",
                tooltip=panel.tooltip,
            )
            for number, panel in enumerate(PANELS, start=1)
        ),
        Binding(
            "n", "match(1)", "Next match", show=False, id="explore.next_match", tooltip="Go to the next match"
        ),
        Binding(
            "N",
            "match(-1)",
            "Match before",
            show=False,
            id="explore.previous_match",
            tooltip="Go to the match before",
        ),
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
            "back",
            "Back",
            id="explore.back",
            tooltip="One level up; while loading, stop. Never quits",
        ),
    ]

    def __init__(self, target: Target, engine: Engine, *, nested: bool = False) -> None:
        super().__init__(target, engine)
        self.nested = nested
        """Whether the Open screen is below this one."""
        self._searched: Widget | None = None
        """What the search line searches in."""
        self._from_files = False
        """Whether the preview was opened from the file tree, so that esc goes back there."""

    # What is drawn

    def compose(self) -> ComposeResult:
        """Draw the frame; what fills it comes from the workers."""
        with Horizontal(id="top"):
            yield Breadcrumbs(*crumbs(self.target.path))
            yield StatusLine("safe plane", "nothing decoded")
        with Horizontal(id="body"):
            yield Container(id="files")
            yield Container(self._loading(), id="main")
        yield SearchBar()
        yield Hints()

    def _loading(self) -> Vertical:
        promise = content(("Names, JSON and headers only; nothing is run. esc stops.", Tone.MUTED))
        return Vertical(ProgressLine(), Static(promise), id="loading")

    def draw_progress(self, progress: Progress) -> None:
        """Show how far the inspection is."""
        self.query_one(ProgressLine).show(progress)

    def draw_digests(self, words: str) -> None:
        """Show how far the digests are."""
        self.query_one(StatusLine).facts = ("safe plane", words, "nothing decoded")

    async def _clear(self) -> None:
        await self.query_one("#files").remove_children()
        await self.query_one("#main").remove_children()
        self._close_drawer()

    async def draw_loading(self) -> None:
        """Show that nothing is known yet."""
        await self._clear()
        await self.query_one("#main").mount(self._loading())
        self.query_one(StatusLine).facts = ("safe plane", "nothing decoded")

    async def draw_found(self, found: Found, files: InventoryTree) -> None:
        """Show a checkpoint for the first time: the files and the first panel."""
        with self.app.batch_update():
            await self._clear()
            tree, legend, panels = FileTree(), Legend(), Panels(found)
            await self.query_one("#files").mount(tree, legend)
            await self.query_one("#main").mount(panels)
            tree.show_files(files)
            legend.show_legend(files)
            panels.focus_front()

    def draw_news(self, found: Found, marks: Marks | None = None) -> None:
        """Show what is known by now; `marks` are other letters for the files."""
        self.panels.show(found)
        if marks is not None:
            self.query_one(FileTree).show_marks(marks)

    async def draw_notice(self, notice: Notice) -> None:
        """Show a page in the place of the facts."""
        with self.app.batch_update():
            await self._clear()
            await self.query_one("#main").mount(notice)

    # What the keys do

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now."""
        if action == "match":
            return self.state is State.READY and self.query_one(SearchBar).is_open
        return self.state is State.READY if action in NEEDS_FACTS else True

    @property
    def panels(self) -> Panels:
        """The panels on the right; there are some once facts are known."""
        return self.query_one(Panels)

    def action_step(self, by: int) -> None:
        """Go some panels to the right."""
        self._close_drawer()
        self.panels.step(by)

    def action_panel(self, name: str) -> None:
        """Bring a panel to the front and give it the keys."""
        self._close_drawer()
        self.panels.switch(name)

    def action_files(self) -> None:
        """Go to the files, or back to the panel from them."""
        tree = self.query_one(FileTree)
        if tree.has_focus:
            self._close_drawer()
            self.panels.focus_front()
        else:
            self.add_class("-drawer")
            tree.focus()

    def _close_drawer(self) -> None:
        self.remove_class("-drawer")

    @on(FileTree.FileSelected)
    def _file_selected(self, event: FileTree.FileSelected) -> None:
        self.preview(event.entry.path)
        self.action_panel("preview")
        self._from_files = True

    @on(BlockersPanel.BlockerChosen)
    def _blocker_chosen(self, event: BlockersPanel.BlockerChosen) -> None:
        tree = self.query_one(FileTree)
        if event.subject is not None and tree.reveal_subject(event.subject):
            self.add_class("-drawer")
            tree.focus()

    def action_search(self) -> None:
        """Search in the files where they have the keys, otherwise in the panel in front."""
        from shardscope.widgets.tensor_table import TensorPanel

        tree, front = self.query_one(FileTree), self.panels.front
        self._searched = tree if tree.has_focus else front
        if isinstance(self._searched, TensorPanel):
            self._searched.search()
        elif self.found is not None and self._searched is not None:
            where = places(self._searched, self.found)
            if where is not None:
                self.query_one(SearchBar).open(where)

    def action_match(self, by: int) -> None:
        """Go to the next match, or to one before."""
        self.query_one(SearchBar).step(by)

    @on(SearchBar.Left)
    def _search_left(self) -> None:
        if self._searched is not None:
            self._searched.focus()

    def _close_search(self) -> None:
        self.query_one(SearchBar).close()
        for panel in self.query(Paragraphs):
            panel.show_line(None)

    @on(Panels.Switched)
    def _panel_switched(self) -> None:
        self._close_search()

    def action_copy(self) -> None:
        """Copy the command that says what the panel in front says, and show it."""
        from shardscope.app.explorer.dialogs import CopiedCommand

        command, note = inspect_command(self.target, digest=self.digest_mode), ""
        if self.state is State.READY and self.panels.active == "tensors":
            command, note = self._tensors_command()
        self.app.copy_to_clipboard(command)
        self.app.push_screen(CopiedCommand(command, note))

    def _tensors_command(self) -> tuple[str, str]:
        from shardscope.app.explorer.listing import as_glob, as_order
        from shardscope.widgets.tensor_table import TensorPanel

        panel = self.query_one(TensorPanel)
        query, rows = panel.query_one(Input).value.strip(), panel.rows
        names = self.found.inspection.tensors.names if self.found is not None else []
        pattern = as_glob(query, (names[row] for row in rows.order)) if query else None
        order = as_order(rows.sort_column, descending=rows.descending)
        lost = [
            word
            for word, is_lost in (
                ("search", bool(query) and pattern is None),
                ("order", rows.sort_column is not None and order is None),
            )
            if is_lost
        ]
        note = f"The command has no words for the {' and the '.join(lost)} of the panel." if lost else ""
        return tensors_command(self.target, pattern, order), note

    def action_digests(self) -> None:
        """Hash every file whatever its size, or stop hashing."""
        self.digest_all_or_stop()

    async def action_again(self) -> None:
        """Inspect the checkpoint anew."""
        await self.look_again()

    def action_back(self) -> None:
        """Go one level up: out of the drawer, the preview, the panel, the checkpoint; never out of the app."""
        if self.state is State.LOADING:
            self.stop_looking()
        elif self.state is State.READY and self.query_one(SearchBar).is_open:
            self._close_search()
            self._search_left()
        elif self.state is State.READY and self.has_class("-drawer"):
            self._close_drawer()
            self.panels.focus_front()
        elif self.state is State.READY and self.panels.active == "preview" and self._from_files:
            self._from_files = False
            self.action_files()
        elif self.state is State.READY and self.panels.active != PANELS[0].id:
            self.action_panel(PANELS[0].id)
        elif self.nested:
            self.left = True
            self.dismiss(None)
