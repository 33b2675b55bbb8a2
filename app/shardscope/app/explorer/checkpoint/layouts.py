"""How the Layout panel comes to its file: from the file tree, from a tensor, from the file beside; and back to a tensor."""

from typing import TYPE_CHECKING

from textual.containers import Vertical

from shardscope.app.explorer.checkpoint.panels import Found
from shardscope.app.explorer.checkpoint.tabs import Panels
from shardscope.app.explorer.messages import LayoutWanted
from shardscope.app.explorer.target import Target, layout_command, pickles_command
from shardscope.engine.model.source import Kind
from shardscope.widgets.file_tree import FileTree

if TYPE_CHECKING:
    from shardscope.widgets.layout_panel import LayoutPanel


class Layouts(Vertical):
    """Files and panels of one checkpoint, as far as the bytes of a file are concerned."""

    def __init__(self, found: Found) -> None:
        super().__init__(id="workspace")
        self.file_tree = FileTree()
        self.panels = Panels(found)
        self._found = found
        self._laid_out: bytes | None = None
        """The file that the Layout panel shows, or will."""
        self._offset: int | None = None
        """Where its cursor goes once the file is laid out."""

    async def action_panel(self, name: str) -> None:
        """Bring a panel to the front and give it the keys."""
        raise NotImplementedError

    async def action_bytes(self) -> None:
        """Lay out the file of the cursor, of a tensor the one that it begins in."""
        from shardscope.app.explorer.checkpoint.bytes_of import file_called, place_of
        from shardscope.widgets.tensor_table import TensorPanel

        entry, offset = self.file_tree.entry if self.file_tree.has_focus else None, 0
        panel = self.panels.front
        if not self.file_tree.has_focus and isinstance(panel, TensorPanel) and panel.tensor is not None:
            file, offset = place_of(panel.tensor, panel.whole(panel.row or 0))
            entry = file_called(self._found.inspection, file)
        if entry is not None and entry.kind is Kind.FILE:
            self.lay_out(entry.path, offset)
        await self.action_panel("layout")

    def lay_out(self, path: bytes, offset: int | None = None) -> None:
        """Show the bytes of a file, the cursor at `offset`."""
        self._offset = offset
        if path == self._laid_out and self._found.layout is not None:
            self.go_to_offset()
        else:
            self._laid_out = path
            self.post_message(LayoutWanted(path))

    def lay_out_something(self) -> None:
        """Show the bytes of the file that was chosen; of some file where none was, or where they are not known any more."""
        from shardscope.app.explorer.checkpoint.bytes_of import default_file

        if self._laid_out is None:
            entry = default_file(self._found.inspection)
            if entry is not None:
                self.lay_out(entry.path)
        else:
            self.go_to_offset()

    def go_to_offset(self) -> None:
        """Put the cursor of the Layout panel where it was wanted, once the file is there."""
        from shardscope.widgets.layout_panel import LayoutPanel

        panel, layout = self.panels.panel("layout"), self._found.layout
        if self._offset is None or layout is None or not isinstance(panel, LayoutPanel):
            return
        if panel.file_layout is layout:
            panel.go_to(self._offset)
            self._offset = None

    def on_layout_panel_other_file_wanted(self, event: "LayoutPanel.OtherFileWanted") -> None:
        """Lay out the next file, or the one before."""
        event.stop()
        from shardscope.app.explorer.checkpoint.bytes_of import file_beside

        entry = file_beside(self._found.inspection, event.panel.file_layout.file, event.by)
        if entry is not None:
            self.lay_out(entry.path)

    async def on_layout_panel_range_chosen(self, event: "LayoutPanel.RangeChosen") -> None:
        """Go to the tensor that was chosen by its bytes."""
        event.stop()
        from shardscope.app.explorer.checkpoint.bytes_of import tensor_in
        from shardscope.widgets.tensor_table import TensorPanel

        name = tensor_in(self._found.inspection, event.file, event.chosen)
        if name is None or name not in self._found.inspection.tensors.names:
            return
        await self.action_panel("tensors")
        if isinstance(self.panels.front, TensorPanel):
            self.panels.front.find(name)

    def command_for_bytes(self, target: Target) -> str | None:
        """Return the command that says what the Layout or the Pickles panel says, None where neither is in front."""
        from shardscope.widgets.layout_panel import LayoutPanel
        from shardscope.widgets.pickle_panel import PicklePanel

        panel, asked = self.panels.front, self._found.asked
        if isinstance(panel, LayoutPanel) and panel.file_layout.file:
            return layout_command(target, panel.file_layout.file, asked)
        return pickles_command(target, asked) if isinstance(panel, PicklePanel) else None
