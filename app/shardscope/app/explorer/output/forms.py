"""One step of choices: the choices on the left, what they come to on the right, and a line to type in below."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static

from shardscope.app.explorer.open.completing import PathCompleted, complete_path
from shardscope.app.explorer.output.destination import Destination
from shardscope.app.explorer.output.fields import Field, Known, UntakenError, settings
from shardscope.app.explorer.output.where_fields import WHERE
from shardscope.engine.model.text import UNSAFE
from shardscope.widgets.plan_settings import SettingRows
from shardscope.widgets.safe import Tone, content
from shardscope.widgets.told import Telling, Told


def bindings_of(fields: Sequence[Field[Any, Any]], step: str) -> list[BindingType]:
    """Return the keys of the choices of a step."""
    return [
        Binding(
            item.key,
            f"pick('{item.name}')",
            item.label,
            show=False,
            id=f"{step}.{item.name}",
            tooltip=item.tooltip,
        )
        for item in fields
    ]


Change = Callable[[Any], Any]
"""From whatever the draft of the screen is."""


class WhereRows(SettingRows):
    """Where it appears."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of(WHERE, "where")


class TypedInput(Input):
    """The line that a choice is typed in."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "drop", "Drop", show=False, id="typed.drop", tooltip="Leave the choice as it was"),
        Binding("tab", "complete", "Complete", show=False, id="typed.complete", tooltip="Complete the path"),
    ]

    class Dropped(Message):
        """The person does not want to change it."""

    class Completing(Message):
        """The person wants a path completed."""

    def action_complete(self) -> None:
        """Ask for the path to be completed."""
        self.post_message(self.Completing())

    def validate_value(self, value: str) -> str:
        """Return what was typed or pasted, without what must never reach a terminal."""
        return UNSAFE.sub("", value)

    def action_drop(self) -> None:
        """Leave the choice as it was."""
        self.post_message(self.Dropped())


class Form(Vertical):
    """A step of choices. It holds no draft of its own: it says which one a choice comes to."""

    class Chosen(Message):
        """A choice was made, or typed as far as it can be taken."""

        def __init__(self, change: Change) -> None:
            super().__init__()
            self.change = change
            """From whatever the draft is when this is heard: keys come faster than it is drawn."""

    class FileNamed(Message):
        """A file of renaming rules was named."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(self, step: str, fields: Sequence[Field[Any, Any]], rows: SettingRows) -> None:
        super().__init__(classes="form", id=f"form-{step}")
        self.fields = {item.name: item for item in fields}
        self.rows = rows
        self.page = Told()
        self.draft = Destination()
        self.known = Known()
        self._typing: str | None = None
        self._before = ""
        """What stood there before it was typed over."""

    def compose(self) -> ComposeResult:
        """Draw choices and page side by side, the line below them."""
        with Horizontal():
            yield self.rows
            yield self.page
        with Horizontal(classes="typed"):
            yield Static(id="label")
            yield TypedInput(compact=True, select_on_focus=False)
            yield Static(id="said")

    def on_mount(self) -> None:
        """Give the keys to the choices."""
        self.rows.focus()

    def show(self, draft: Destination, known: Known, telling: Telling | None) -> None:
        """Show a draft and what it comes to."""
        self.draft, self.known = draft, known
        self.rows.show(settings(tuple(self.fields.values()), draft, known))
        self.page.show(telling)

    @property
    def is_typing(self) -> bool:
        """Whether the line has the keys."""
        return self._typing is not None

    @on(SettingRows.Turned)
    def _turned(self, event: SettingRows.Turned) -> None:
        event.stop()
        self._turn(event.name, event.by)

    @on(SettingRows.Picked)
    def _picked(self, event: SettingRows.Picked) -> None:
        event.stop()
        self.pick(event.name)

    def pick(self, name: str) -> None:
        """Change a choice: ask what is typed for it, or take its next value."""
        if self.fields[name].typed is not None or not self._turn(name, 1):
            self.type_in(name)

    def _turn(self, name: str, by: int) -> bool:
        turned = self.fields[name].turned
        if turned is None:
            return False
        self.post_message(self.Chosen(lambda draft: turned(draft, by)))
        return True

    def type_in(self, name: str) -> None:
        """Give the keys to the line, for one choice."""
        field = self.fields[name]
        self._typing, self._before = name, field.text(self.draft)
        self.add_class("-typing")
        self.query_one("#label", Static).update(content((f"{field.label} ", Tone.HERE)))
        self._say(self._words, Tone.MUTED)
        line = self.query_one(TypedInput)
        with self.prevent(Input.Changed):
            line.value = field.text(self.draft)
        line.cursor_position = len(line.value)
        line.focus()

    @property
    def _takes_at_once(self) -> bool:
        return self._typing is not None and self.fields[self._typing].live

    @property
    def _words(self) -> str:
        is_path = self._typing is not None and self.fields[self._typing].is_path
        return f"{'tab completes, ' if is_path else ''}enter takes it, esc leaves it"

    def _say(self, words: str, tone: Tone) -> None:
        self.query_one("#said", Static).update(content((words, tone)))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._take(event.value, live=True)

    def _take(self, text: str, *, live: bool = False) -> bool:
        typed = self._typed_field
        if typed is None:
            return True
        try:
            typed(self.draft, text)
        except UntakenError as error:
            self._say(f"wanted: {error}", Tone.CAUTION)
            return False
        self._say(self._words, Tone.MUTED)
        if not live or self._takes_at_once:
            self.post_message(self.Chosen(lambda draft: typed(draft, text)))
        return True

    @property
    def _typed_field(self) -> Callable[[Any, str], Any] | None:
        """What takes what is typed; null for the name of a file, which has to be read first."""
        return None if self._typing is None else self.fields[self._typing].typed

    @on(TypedInput.Completing)
    def _complete(self, event: TypedInput.Completing) -> None:
        """Complete the path, where one is typed."""
        event.stop()
        if self._typing is not None and self.fields[self._typing].is_path:
            complete_path(self, self.query_one(TypedInput).value)

    @on(PathCompleted)
    def _completed(self, event: PathCompleted) -> None:
        event.stop()
        if self.is_typing:
            event.fill(self.query_one(TypedInput))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._typed_field is None:
            self.post_message(self.FileNamed(event.value.strip()))
        elif not self._take(event.value):
            return
        self._close()

    @on(TypedInput.Dropped)
    def _dropped(self, event: TypedInput.Dropped) -> None:
        event.stop()
        self._take(self._before)
        self._close()

    def _close(self) -> None:
        self._typing = None
        self.remove_class("-typing")
        self.rows.focus()


def where_form() -> Form:
    """Return the form of the target."""
    return Form("where", WHERE, WhereRows())
