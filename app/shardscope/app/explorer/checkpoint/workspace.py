"""What the Explore screen holds once something is known: the files on the left, the panels on the right, the search below."""

from collections.abc import Sequence
from itertools import islice
from operator import lt
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input

from shardscope.app.explorer.checkpoint.layouts import Layouts
from shardscope.app.explorer.checkpoint.listing import as_glob, as_order
from shardscope.app.explorer.checkpoint.panels import PANELS, PICKLES, Found
from shardscope.app.explorer.checkpoint.search import SearchBar, places
from shardscope.app.explorer.checkpoint.tabs import Panels
from shardscope.app.explorer.messages import FileChosen, PartChosen
from shardscope.app.explorer.shardmap.messages import MapWanted
from shardscope.app.explorer.target import Target, tensors_command
from shardscope.widgets.blockers_panel import BlockersPanel
from shardscope.widgets.file_tree import FileTree, InventoryTree, Legend, Marks
from shardscope.widgets.paragraphs import Paragraphs
from shardscope.widgets.topology_panel import TopologyPanel

if TYPE_CHECKING:
    from shardscope.widgets.pickle_panel import PicklePanel
    from shardscope.widgets.tensor_table import TensorPanel
    from shardscope.widgets.tensor_views import TensorViews


class Workspace(Layouts):
    """Everything about one checkpoint. Where the terminal is narrow, the files are a drawer over the panels."""

    BINDING_GROUP_TITLE = "This checkpoint"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", id="explore.search", tooltip="Search in what has the keys"),
        Binding("f", "files", "Files", id="explore.files", tooltip="Go to the file tree and back"),
        Binding(
            "o",
            "open_part",
            "Open one",
            id="explore.part",
            tooltip="Choose one of several saves, or a part of a composite, and look at it alone",
        ),
        Binding(
            "m",
            "shard_map",
            "Shard map",
            id="explore.shard_map",
            tooltip="Draw which rank holds what of the tensor under the cursor",
        ),
        Binding(
            "p",
            "peek",
            "Numbers",
            id="explore.peek",
            tooltip="Look at the numbers of the tensor under the cursor: values, statistics, histogram, heat map",
        ),
        Binding(
            "b",
            "bytes",
            "Bytes",
            show=False,
            id="explore.bytes",
            tooltip="Show what stands where in the file of the cursor, at its tensor",
        ),
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
            for number, panel in enumerate((*PANELS, PICKLES), start=1)
        ),
        Binding(
            "n",
            "match(1)",
            "Next match",
            id="explore.next_match",
            tooltip="Go to the next match of the search",
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
            "escape",
            "back",
            "Back",
            show=False,
            id="explore.up",
            tooltip="Out of the search, the drawer, the panel",
        ),
    ]

    def __init__(self, found: Found, files: InventoryTree) -> None:
        super().__init__(found)
        self._files = files
        self._searched: Widget | None = None
        """What the search line searches in."""
        self._from_files = False
        """Whether the preview was opened from the file tree, so that esc goes back there."""

    def compose(self) -> ComposeResult:
        """Draw files and panels side by side."""
        with Horizontal():
            with Vertical(id="files"):
                yield self.file_tree
                yield Legend()
            yield self.panels
        yield SearchBar()

    def on_mount(self) -> None:
        """Fill the tree and give the keys to the first panel."""
        self.file_tree.show_files(self._files)
        self.query_one(Legend).show_legend(self._files)
        self.panels.focus_front()

    def show(self, found: Found, marks: Marks | None = None) -> None:
        """Draw what is known by now; `marks` are other letters for the files."""
        self._found = found
        self.panels.show(found)
        self.go_to_offset()
        if marks is not None:
            self.file_tree.show_marks(marks)

    # Going about

    async def action_step(self, by: int) -> None:
        """Go some panels to the right."""
        self._close_drawer()
        await self.panels.step(by)

    async def action_panel(self, name: str) -> None:
        """Bring a panel to the front and give it the keys."""
        self._close_drawer()
        await self.panels.switch(name)

    def action_files(self) -> None:
        """Go to the files, or back to the panel from them."""
        if self.file_tree.has_focus:
            self._leave_files()
        else:
            self._go_to_files()

    def _go_to_files(self) -> None:
        self.add_class("-drawer")
        self.screen.set_focus(self.file_tree)

    def _leave_files(self) -> None:
        self._close_drawer()
        self.panels.focus_front()

    def _close_drawer(self) -> None:
        self.remove_class("-drawer")

    @on(FileTree.FileSelected)
    async def _file_selected(self, event: FileTree.FileSelected) -> None:
        event.stop()
        self.post_message(FileChosen(event.entry.path))
        await self.action_panel("preview")
        self._from_files = True

    @on(BlockersPanel.BlockerChosen)
    def _blocker_chosen(self, event: BlockersPanel.BlockerChosen) -> None:
        event.stop()
        if event.subject is not None and self.file_tree.reveal_subject(event.subject):
            self._go_to_files()

    @on(TopologyPanel.FilesChosen)
    def _rank_chosen(self, event: TopologyPanel.FilesChosen) -> None:
        event.stop()
        if self.file_tree.reveal_subject(event.held.files[0]):
            self._go_to_files()

    def on_pickle_panel_file_chosen(self, event: "PicklePanel.FileChosen") -> None:
        """Show where the file is whose pickle was chosen."""
        event.stop()
        if self.file_tree.reveal_subject(event.file):
            self._go_to_files()

    def on_tensor_panel_tensor_selected(self, event: "TensorPanel.TensorSelected") -> None:
        """Show what a decoded tensor is made of; of others the foot of the table says everything."""
        event.stop()
        if event.whole is None:
            return
        from shardscope.app.explorer.checkpoint.detail import Detail

        def chosen(file: str | None) -> None:
            if file is not None and self.file_tree.reveal_subject(file):
                self._go_to_files()

        from shardscope.app.explorer.peek.messages import PeekWanted

        tensor, whole = event.tensor, event.whole
        detail = Detail(
            whole,
            lambda: self.post_message(MapWanted(tensor, whole)),
            lambda: self.post_message(PeekWanted(tensor, whole)),
        )
        self.app.push_screen(detail, chosen)

    def on_tensor_views_names_wanted(self, event: "TensorViews.NamesWanted") -> None:
        """Copy names of tensors, and show them."""
        event.stop()
        from shardscope.app.explorer.checkpoint.copied import CopiedNames, names_text

        text, count = names_text(event.names)
        self.app.copy_to_clipboard(text)
        self.app.push_screen(CopiedNames(text, count, len(event.names)))

    def action_shard_map(self) -> None:
        """Draw the map of the tensor under the cursor."""
        from shardscope.widgets.tensor_table import TensorPanel

        panel = self.panels.front
        if not isinstance(panel, TensorPanel):
            return
        if panel.tensor is not None and panel.row is not None:
            self.post_message(MapWanted(panel.tensor, panel.whole(panel.row)))
        else:
            self.notify("A map is of one tensor: open the module, and choose one in it.", markup=False)

    async def action_peek(self) -> None:
        """Look at the numbers of the tensor under the cursor; where none is listed, ask whether to decode."""
        from shardscope.app.explorer.peek.messages import PeekWanted
        from shardscope.widgets.tensor_table import TensorPanel

        panel = self.panels.front
        if not isinstance(panel, TensorPanel):
            return
        if panel.tensor is not None and panel.row is not None:
            self.post_message(PeekWanted(panel.tensor, panel.whole(panel.row)))
        elif not self._found.descriptor.tensors.count:
            await self.run_action("screen.decode")
        else:
            self.notify("Numbers are of one tensor: open the module, and choose one in it.", markup=False)

    async def action_back(self) -> None:
        """Go one level up: out of the search, the files, the preview, the panel; further up is the screen's."""
        if self.query_one(SearchBar).is_open:
            self._close_search()
            self._take_keys_back()
        elif self.file_tree.has_focus:
            self._leave_files()
        elif self.panels.active == "preview" and self._from_files:
            self._from_files = False
            self._go_to_files()
        elif self.panels.active != PANELS[0].id:
            await self.action_panel(PANELS[0].id)
        else:
            raise SkipAction

    def action_open_part(self) -> None:
        """Offer the saves or the parts, and open the one that is chosen."""
        from shardscope.app.explorer.checkpoint.choose import Choose

        def chosen(path: bytes | None) -> None:
            if path is not None:
                self.post_message(PartChosen(path))

        self.app.push_screen(Choose(self._found.parts), chosen)

    # Searching

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tell which keys work now: matches are gone through while there is a search."""
        if action == "peek":
            listed = self.panels.active == "tensors" and self._found.descriptor.tensors.count
            return bool(listed) or (self.panels.active == "tensors" and bool(self._found.offered))
        if action == "shard_map":
            return self.panels.active == "tensors" and bool(self._found.descriptor.tensors.count)
        if action == "open_part":
            return bool(self._found.parts)
        if action == "panel":
            return any(panel.id == parameters[0] for panel in self.panels.all)
        return action != "match" or (self.is_mounted and self.query_one(SearchBar).is_open)

    def action_search(self) -> None:
        """Search in the files where they have the keys, otherwise in the panel in front."""
        from shardscope.widgets.tensor_table import TensorPanel

        self._searched = self.file_tree if self.file_tree.has_focus else self.panels.front_keys
        if isinstance(self.panels.front, TensorPanel) and self._searched is not self.file_tree:
            self.panels.front.search()
        elif self._searched is not None and (where := places(self._searched, self._found)) is not None:
            self.query_one(SearchBar).open(where)
            self.refresh_bindings()

    def action_match(self, by: int) -> None:
        """Go to the next match, or to one before."""
        self.query_one(SearchBar).step(by)

    @on(SearchBar.Left)
    def _take_keys_back(self) -> None:
        if self._searched is not None:
            self.screen.set_focus(self._searched)

    @on(Panels.Switched)
    def _switched(self, event: Panels.Switched) -> None:
        self._close_search()
        if event.panel == "layout":
            self.lay_out_something()
        elif event.panel == "tensors" and self._found.descriptor.tensors.count:
            from shardscope.app.explorer.peek.warming import warm

            self.app.run_worker(
                warm, group="warm", description="loading what shows numbers", thread=True, exit_on_error=False
            )

    def _close_search(self) -> None:
        self.query_one(SearchBar).close()
        for panel in self.query(Paragraphs):
            panel.show_line(None)
        self.refresh_bindings()

    # Saying the same on the command line

    def command(self, target: Target) -> tuple[str, str] | None:
        """Return the command that lists what the panel in front lists, and what it leaves out; None for other panels."""
        from shardscope.widgets.tensor_table import TensorPanel

        panel = self.panels.front
        if not isinstance(panel, TensorPanel):
            command = self.command_for_bytes(target)
            return None if command is None else (command, "")
        query, rows, names = (
            panel.query_one(Input).value.strip(),
            panel.rows,
            self._found.inspection.tensors.names,
        )
        pattern = as_glob(query, (names[row] for row in rows.order)) if query else None
        order = as_order(rows.sort_column, descending=rows.descending)
        lost = ["search"] if query and pattern is None else []
        if order is None and (rows.sort_column is not None or not _ascends(rows.order)):
            lost.append("order")
        note = f"The command has no words for the {' and the '.join(lost)} of the panel." if lost else ""
        return tensors_command(target, pattern, order, asked=self._found.asked), note


def _ascends(rows: Sequence[int]) -> bool:
    return isinstance(rows, range) or all(map(lt, rows, islice(rows, 1, None)))
