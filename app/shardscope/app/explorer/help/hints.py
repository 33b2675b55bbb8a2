"""The line at the foot of a screen: the few keys that matter here, as many as fit."""

from typing import Final

from textual.app import RenderResult
from textual.content import Content
from textual.events import Click
from textual.screen import Screen
from textual.widget import Widget

from shardscope.app.explorer.help.keys import KeyRow, key_rows
from shardscope.widgets.safe import Tone, content

ORDER: Final = (
    "explore.stop",
    "compare.stop",
    "compare.values",
    "compare.decode",
    "compare.all",
    "compare.back",
    "peek.stop",
    "peek.gather",
    "peek.decode",
    "peek.next_view",
    "peek.go_to",
    "peek.next",
    "peek.axis",
    "peek.notation",
    "peek.largest",
    "peek.strange",
    "peek.back",
    "model.context",
    "model.batch",
    "model.dtype",
    "model.devices",
    "model.base",
    "model.decode",
    "model.back",
    "scan.start",
    "scan.stop",
    "scan.tensors",
    "scan.shard_map",
    "scan.peek",
    "scan.kind",
    "scan.search",
    "scan.decode",
    "scan.component",
    "scan.back",
    "convert.stop",
    "convert.next",
    "convert.again",
    "convert.look_at",
    "convert.back",
    "convert.copy",
    "fix.stop",
    "fix.next",
    "fix.convert",
    "fix.again",
    "fix.look_at",
    "fix.back",
    "mend.turn",
    "fix.copy",
    "explore.again",
    "explore.part",
    "explore.decode",
    "explore.convert",
    "report.preview",
    "form.change",
    "preview.write",
    "lines.next",
    "lines.changes",
    "shardmap.view",
    "shardmap.next",
    "shardmap.zoom",
    "shardmap.target",
    "shardmap.back",
    "explore.search",
    "explore.shard_map",
    "ranks.next",
    "open.path",
    "open.cache",
    "open.recent",
    "cache.search",
    "cache.back",
    "reference.search",
    "reference.back",
    "app.palette",
    "app.help",
    "explore.peek",
    "explore.files",
    "app.quit",
    "tensors.sort",
    "explore.next_panel",
    "explore.copy",
    "explore.report",
    "explore.back",
)
"""Which hints come first where there is no room for all, by the ids of bindings; the rest follow."""

GAP: Final = 3
"""Columns between two hints."""


class Hints(Widget):
    """Keys with one word each; a click does what the key does."""

    ALLOW_SELECT = False

    def on_mount(self) -> None:
        """Follow the bindings of the screen."""
        self.screen.bindings_updated_signal.subscribe(self, self._refresh)

    def _refresh(self, _: Screen[object]) -> None:
        self.refresh()

    def on_resize(self) -> None:
        """Choose again what fits."""
        self.refresh()

    def fitting(self, width: int) -> list[KeyRow]:
        """Return the hints that fit into `width` columns, most useful first."""
        rows = [row for row in key_rows(self.screen) if row.show and row.enabled]
        rows.sort(key=lambda row: ORDER.index(row.id) if row.id in ORDER else len(ORDER))
        fitting: list[KeyRow] = []
        for row in rows:
            width -= _hint(row).cell_length + GAP
            if width < 0:
                break
            fitting.append(row)
        return fitting

    def render(self) -> RenderResult:
        """Draw the hints that fit."""
        return Content(" " * GAP).join([_hint(row) for row in self.fitting(self.size.width)])

    async def on_click(self, event: Click) -> None:
        """Do what the clicked key does."""
        offset = event.get_content_offset(self)
        end = 0
        for row in self.fitting(self.size.width):
            end += _hint(row).cell_length
            if offset is not None and offset.x < end:
                await row.run()
                return
            end += GAP


def _hint(row: KeyRow) -> Content:
    return content((row.keys[0], Tone.STRONG), (f" {row.description.lower()}", Tone.MUTED))
