"""The dialog about one tensor of two checkpoints, and its values on request."""

from collections.abc import Callable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from shardscope.app.explorer.dialogs import Dialog
from shardscope.engine.model.difference import TensorDifference
from shardscope.widgets.compare_detail import CompareDetail

SHARE: Final = 0.92
"""Of the screen, that a dialog takes at most."""
FRAME: Final = 2
SUBTITLE: Final = "v: compare its values   esc: back"


class TensorDetail(Dialog):
    """One tensor in full."""

    AUTO_FOCUS = "CompareDetail"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "close", "Close", show=False, id="difference.close", tooltip="Close this dialog"),
        Binding("v", "values", "Values", id="difference.values", tooltip="Compare the values of this tensor"),
    ]

    def __init__(self, number: int, item: TensorDifference, values: Callable[[], bool]) -> None:
        """`number` is that of the tensor; `values` begins to compare its values, and tells whether it did."""
        super().__init__()
        self.number = number
        self.text = CompareDetail([item])
        self._values = values

    def compose(self) -> ComposeResult:
        """Draw the sentences."""
        with Vertical(classes="dialog -wide") as box:
            box.border_title = "Tensor"
            box.border_subtitle = Content(SUBTITLE)
            yield self.text

    def show(self, item: TensorDifference) -> None:
        """Show what is known by now."""
        self.query_one(Vertical).border_subtitle = Content(SUBTITLE)
        self.text.show([item])
        self._fit()

    def on_resize(self) -> None:
        """Give the text the lines that it needs, as far as there are any."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        self.text.styles.height = max(1, min(self.text.row_count(), int(self.size.height * SHARE) - FRAME))

    def action_values(self) -> None:
        """Compare the values."""
        if self._values():
            self.query_one(Vertical).border_subtitle = "comparing its values   esc: back"
