"""The dialog about one finding, where the pane below the table has too few lines for it."""

from typing import Final

from textual.app import ComposeResult
from textual.containers import Vertical

from shardscope.app.explorer.dialogs import Dialog
from shardscope.engine.model.blocker import Blocker
from shardscope.widgets.scan_detail import FindingText, Spot

SHARE: Final = 0.92
"""Of the screen, that a dialog takes at most."""
FRAME: Final = 2


class FindingDetail(Dialog):
    """One finding in full."""

    AUTO_FOCUS = "FindingText"

    def __init__(self, item: Blocker, spot: Spot) -> None:
        super().__init__()
        self.text = FindingText()
        self._item = item
        self._spot = spot

    def compose(self) -> ComposeResult:
        """Draw the sentences."""
        with Vertical(classes="dialog -wide") as box:
            box.border_title = "Finding"
            box.border_subtitle = "esc: back"
            yield self.text

    def on_mount(self) -> None:
        """Fill it."""
        self.text.show(self._item, self._spot)

    def on_resize(self) -> None:
        """Give the text the lines that it needs, as far as there are any."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        self.text.styles.height = max(1, min(self.text.row_count(), int(self.size.height * SHARE) - FRAME))
