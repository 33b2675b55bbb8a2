"""The dialog that asks whether to decode: what would be read, in what containment, and what that does not mean.

The wish that it ends with is made here, of a person's own key or click, and serves once.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult, RenderResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Click
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Static

from shardscope.app.explorer import workers
from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.messages import Preflighted
from shardscope.app.explorer.offer import Offer
from shardscope.app.explorer.target import Asked, Target, convert_words, inspect_command
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.decoded import Listed
from shardscope.widgets.decode_terms import DecodeTerms, Terms
from shardscope.widgets.safe import Part, Tone, content

if TYPE_CHECKING:
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.model.escalation import Operation

COMPONENTS: Final[tuple[tuple[str, Listed], ...]] = (
    ("m", "model"),
    ("o", "optimizer"),
    ("t", "other"),
    ("a", "all"),
)
"""Keys, and what they have listed."""
GAP: Final = 3
"""Cells between two choices."""
SHARE: Final = 0.92
"""Of the screen, that a dialog takes at most."""
FOOT: Final = 7
"""Lines of the dialog that are not terms."""

Wish: TypeAlias = "Decoding | None"


class Choices(Widget):
    """One line of choices, each with its key; a click does what the key does."""

    DEFAULT_CSS = "Choices { height: 1; width: 1fr; pointer: pointer; }"
    ALLOW_SELECT = False

    def __init__(self, label: str, choices: Sequence[tuple[str, str, str]], signs: str, chosen: str) -> None:
        """`choices` are key, words and action; `signs` stand around the mark of what is chosen: `()` or `[]`."""
        super().__init__()
        self._label = label
        self._choices = tuple(choices)
        self._signs = signs
        self.chosen = chosen
        """The words of what is chosen."""

    def choose(self, words: str) -> None:
        """Mark another choice."""
        self.chosen = words
        self.refresh()

    def _parts(self) -> list[Content]:
        left, right = self._signs[0], self._signs[1]
        drawn = []
        for key, words, _ in self._choices:
            here = words == self.chosen
            tone = Tone.STRONG if here else Tone.PLAIN
            sign: Part = (f"{left}{'x' if here else ' '}{right} ", Tone.HERE if here else Tone.MUTED)
            drawn.append(content(sign, (key, Tone.HERE), f" {words}" if not here else (f" {words}", tone)))
        return drawn

    def render(self) -> RenderResult:
        """Draw the line."""
        return content((f"{self._label:<12}", Tone.MUTED)) + Content(" " * GAP).join(self._parts())

    async def on_click(self, event: Click) -> None:
        """Do what was clicked."""
        offset = event.get_content_offset(self)
        end = 12
        for part, (_, _, action) in zip(self._parts(), self._choices, strict=True):
            end += part.cell_length
            if offset is not None and 12 <= offset.x < end:
                await self.run_action(action)
                return
            end += GAP


class Decode(ModalScreen[Wish]):
    """Asks. Ends with a wish that serves once, or with None."""

    AUTO_FOCUS = "#cancel"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Cancel", id="decode.close", tooltip="Close this; nothing is decoded"),
        Binding(
            "D",
            "confirm",
            "Decode",
            id="decode.confirm",
            tooltip="Decode, this once: a capital letter, so that no slip of a finger does it",
        ),
        *(
            Binding(
                key,
                f"list('{component}')",
                f"List {component}",
                show=False,
                id=f"decode.{component}",
                tooltip="Which tensors are listed",
            )
            for key, component in COMPONENTS
        ),
        Binding(
            "c",
            "checksums",
            "Checksums",
            show=False,
            id="decode.checksums",
            tooltip="Read every byte of the tensors to compare the checksums that archives record, or not",
        ),
        Binding("down", "scroll('down')", "Down", show=False, id="decode.down", tooltip="Scroll the terms"),
        Binding("up", "scroll('up')", "Up", show=False, id="decode.up", tooltip="Scroll the terms"),
        Binding(
            "pagedown",
            "scroll('page_down')",
            "Page down",
            show=False,
            id="decode.page_down",
            tooltip="Scroll",
        ),
        Binding("pageup", "scroll('page_up')", "Page up", show=False, id="decode.page_up", tooltip="Scroll"),
        Binding("right", "app.focus_next", "Next", show=False, id="decode.next", tooltip="The next button"),
        Binding(
            "left",
            "app.focus_previous",
            "Before",
            show=False,
            id="decode.before",
            tooltip="The button before",
        ),
    ]

    def __init__(
        self, target: Target, offer: Offer, engine: Engine, operation: "Operation" = "inspect"
    ) -> None:
        """`operation` is what is done with what is decoded; a conversion decodes everything."""
        super().__init__()
        self._operation = operation
        self._target = target
        self._engine = engine
        self._asked = Asked()
        self.terms = Terms(offer.title, offer.files, target.decode_limits, self._command())
        self._text = DecodeTerms(self.terms)
        self._text.can_focus = False
        self._components = Choices(
            "list",
            [(key, component, f"screen.list('{component}')") for key, component in COMPONENTS],
            "()",
            "model",
        )
        words = "compare checksums: reads every byte of the tensors"
        self._checksums = Choices("", [("c", words, "screen.checksums")], "[]", "")
        self._checksums_words = words

    @property
    def _looks(self) -> bool:
        """Whether a person chooses what is listed: what is converted is chosen later."""
        return self._operation == "inspect"

    @property
    def heading(self) -> str:
        """What is asked."""
        return "Decode pickles as data" if self._looks else "Decode pickles as data, for this conversion"

    def _command(self) -> str:
        if not self._looks:
            return f"{' '.join(convert_words(self._target))} OUT --decode"
        return inspect_command(self._target, asked=self._asked)

    def compose(self) -> ComposeResult:
        """Draw the terms, the choices and the two buttons."""
        with Vertical(classes="dialog -decode") as box:
            box.border_title = Content(self.heading)
            box.border_subtitle = "esc: nothing is decoded"
            yield self._text
            if self._looks:
                yield self._components
                yield self._checksums
            with Horizontal(id="answers"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button("Decode", id="confirm", compact=True, disabled=True)
                yield Static(id="said")

    def on_mount(self) -> None:
        """Ask this machine what it can deny a worker."""
        engine, limits = self._engine, self._target.decode_limits
        self._say("asking", Tone.MUTED)
        self.app.run_worker(
            lambda: workers.preflight(engine, limits, self.post_message),
            group="preflight",
            description="asking for containment",
            thread=True,
            exit_on_error=False,
        )

    def on_resize(self) -> None:
        """Give the terms the lines that they need, as far as there are any beside the answers."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        room = int(self.size.height * SHARE) - FOOT
        self._text.styles.height = max(1, min(self._text.lines, room))

    def _say(self, words: str, tone: Tone) -> None:
        self.query_one("#said", Static).update(content((words, tone)))

    @on(Preflighted)
    def _preflighted(self, event: Preflighted) -> None:
        event.stop()
        self._show(replace(self.terms, containment=event.containment))
        refused = isinstance(event.containment, Blocker)
        self.query_one("#confirm", Button).disabled = refused
        if refused:
            self._say("refused: nothing can be decoded here", Tone.STOP)
        else:
            self._say("a capital D decodes, this once", Tone.MUTED)
        self.refresh_bindings()

    def _show(self, terms: Terms) -> None:
        self.terms = terms
        self._text.show(terms)
        self._fit()

    @property
    def is_contained(self) -> bool:
        """Whether this machine gave the containment that decoding needs."""
        return self.terms.containment is not None and not isinstance(self.terms.containment, Blocker)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now: nothing decodes before the containment is known."""
        if action in ("list", "checksums"):
            return self._looks
        return action != "confirm" or self.is_contained

    # What the keys do

    def action_close(self) -> None:
        """Close the dialog; nothing is decoded."""
        self.dismiss(None)

    def action_confirm(self) -> None:
        """End with a wish."""
        self.dismiss(self._wish())

    def _wish(self) -> "Decoding":
        """Return a wish that serves once, of the key or the click that confirms."""
        from shardscope.engine.inspecting.decoding import Decoding
        from shardscope.engine.model.escalation import Intent

        asked = self._asked
        limits = self._target.decode_limits
        intent = Intent(self._operation, "dialog")
        if self._looks:
            return Decoding(intent, asked.listed, limits, asked.checksums)
        return Decoding(intent, "all", limits, compares_all=True)

    def action_list(self, component: Listed) -> None:
        """Choose what is listed."""
        self._components.choose(component)
        self._ask(Asked(component, self._asked.checksums))

    def action_checksums(self) -> None:
        """Have checksums compared, or not."""
        wanted = not self._asked.checksums
        self._checksums.choose(self._checksums_words if wanted else "")
        self._ask(Asked(self._asked.listed, wanted))

    def _ask(self, asked: Asked) -> None:
        self._asked = asked
        self._show(replace(self.terms, command=self._command()))

    def action_scroll(self, way: str) -> None:
        """Scroll the terms while the buttons keep the keys."""
        getattr(self._text, f"scroll_{way}")(animate=False, force=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "confirm" and self.is_contained:
            self.action_confirm()
        else:
            self.action_close()
