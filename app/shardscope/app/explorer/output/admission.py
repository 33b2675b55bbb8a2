"""The dialog between a plan and its run: every figure against its limit, and a word to type."""

from collections.abc import Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from shardscope.engine.model.plan import Plan
from shardscope.widgets.admission_terms import terms
from shardscope.widgets.plan_words import PlanFacts
from shardscope.widgets.safe import Tone, content
from shardscope.widgets.told import Told

SHARE = 0.92
"""Of the screen, that a dialog takes at most."""
FOOT = 4
"""Lines of the dialog that are not terms."""


class Admission(ModalScreen[bool]):
    """Asks for the word. Ends with whether it was typed; a plan that is not admitted has no line to type it in."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape", "close", "Back", id="admission.close", tooltip="Back to the plan; nothing is written"
        ),
        Binding(
            "down", "scroll('down')", "Down", show=False, id="admission.down", tooltip="Scroll the terms"
        ),
        Binding("up", "scroll('up')", "Up", show=False, id="admission.up", tooltip="Scroll the terms"),
        Binding(
            "pagedown",
            "scroll('page_down')",
            "Page down",
            show=False,
            id="admission.page_down",
            tooltip="Scroll",
        ),
        Binding(
            "pageup", "scroll('page_up')", "Page up", show=False, id="admission.page_up", tooltip="Scroll"
        ),
    ]

    def __init__(
        self,
        plan: Plan,
        facts: PlanFacts,
        word: str,
        keys: Mapping[str, str],
        *,
        note: str = "",
        lost: str = "",
    ) -> None:
        """`keys` are what to press for options of the command line."""
        super().__init__()
        self.plan = plan
        self.word = word
        """What a person types to start."""
        self.note = note
        """What else has to be known, such as what an earlier run has left."""
        self.lost = lost
        """What no output will have."""
        self._terms = Told(lambda _, glyphs: terms(plan, facts, keys, glyphs))
        self._terms.can_focus = False

    @property
    def is_admitted(self) -> bool:
        """Whether the plan may start here and now."""
        return self.plan.admission is not None and self.plan.admission.verdict == "admitted"

    def compose(self) -> ComposeResult:
        """Draw the terms over the question."""
        with Vertical(classes="dialog -admission") as box:
            box.border_title = content("Admission")
            box.border_subtitle = content("esc: nothing is written")
            yield self._terms
            if self.lost:
                yield Static(content((self.lost, Tone.STOP)), classes="earlier")
            if self.note:
                yield Static(content((self.note, Tone.CAUTION)), classes="earlier")
            with Horizontal(classes="word"):
                if self.is_admitted:
                    yield Static(content("Type ", (self.word, Tone.HERE), " to start: "), id="ask")
                    yield Input(compact=True, max_length=16)
                else:
                    verdict = "unknown" if self.plan.admission is None else self.plan.admission.verdict
                    yield Static(
                        content(
                            (f"Admission is {verdict}: nothing starts.", Tone.STOP),
                            "  esc goes back to change it.",
                        ),
                        id="ask",
                    )

    def on_resize(self) -> None:
        """Give the terms the lines that they need, as far as there are any above the question."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        room = int(self.size.height * SHARE) - FOOT - 2 * (bool(self.note) + bool(self.lost))
        self._terms.styles.height = max(1, min(self._terms.lines, room))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip() == self.word:
            self.dismiss(result=True)
        else:
            event.input.value = ""

    def action_close(self) -> None:
        """Go back to the plan."""
        self.dismiss(result=False)

    def action_scroll(self, way: str) -> None:
        """Scroll the terms while the line keeps the keys."""
        getattr(self._terms, f"scroll_{way}")(animate=False)
