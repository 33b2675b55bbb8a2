"""The question whether a run should stop: asked once, with what would be left."""

from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from shardscope.widgets.safe import Tone, content

Answer = Literal["remove", "keep"]


class Stop(ModalScreen[Answer | None]):
    """Asks. Ends with what becomes of finished files, or with None: it goes on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer('')", "Go on", id="stop.close", tooltip="Close this; it goes on"),
        Binding(
            "c", "answer('remove')", "Stop", id="stop.remove", tooltip="Stop; what was staged is removed"
        ),
        Binding(
            "k",
            "answer('keep')",
            "Stop and keep",
            id="stop.keep",
            tooltip="Stop; finished files stay, to be gone on with",
        ),
    ]

    def __init__(self, what: str, finished: str, out: str, *, keeps: bool) -> None:
        """`what` is made; `finished` says how much is finished; `keeps` is whether finished files stay in any case."""
        super().__init__()
        self._what = what
        self._finished = finished
        self._out = out
        self._keeps = keeps

    def compose(self) -> ComposeResult:
        """Draw the question."""
        with Vertical(classes="dialog") as box:
            box.border_title = content(f"Stop the {self._what}?")
            box.border_subtitle = content("esc: it goes on meanwhile")
            yield Static(
                content(self._finished, " beside the target. Nothing of it is visible at ", self._out, ".")
            )
            yield Static(
                content(
                    ("c", Tone.HERE),
                    "  stop; "
                    + (
                        "finished files stay: --resume was chosen"
                        if self._keeps
                        else "what was staged is removed"
                    ),
                ),
                classes="note",
            )
            yield Static(content(("k", Tone.HERE), "  stop, and keep finished files, to be gone on with"))
            yield Static(content(("esc", Tone.HERE), "  go on"))

    def action_answer(self, answer: str) -> None:
        """End with an answer."""
        match answer:
            case "remove":
                self.dismiss("remove")
            case "keep":
                self.dismiss("keep")
            case _:
                self.dismiss(None)
