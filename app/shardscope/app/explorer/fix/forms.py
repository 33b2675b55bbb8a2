"""The first step of a fix: operations, and under each that was chosen what it takes."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from shardscope.app.explorer.fix.draft import Draft, with_operation
from shardscope.app.explorer.fix.fields import FIELDS, Known, fields_of, repair_of
from shardscope.app.explorer.output.destination import Destination
from shardscope.app.explorer.output.fields import Known as AnyKnown
from shardscope.app.explorer.output.forms import Form, bindings_of
from shardscope.widgets.plan_settings import Setting, SettingRows
from shardscope.widgets.told import Telling


class FixChoices(SettingRows):
    """Operations and what they take. The place of the cursor says what the page beside them is about."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_of(FIELDS, "mend"),
        Binding(
            "space", "turn(1)", "Choose", id="mend.turn", tooltip="Choose an operation, or take a key away"
        ),
    ]

    class Moved(Message):
        """The cursor came to another choice."""

    def watch_cursor(self, before: int, after: int) -> None:
        """Say that the page beside is about something else."""
        super().watch_cursor(before, after)
        self.post_message(self.Moved())

    def __init__(self) -> None:
        super().__init__()
        self._wanted = ""
        """A choice that is gone to as soon as it is there."""

    @property
    def here(self) -> str:
        """The name of the choice under the cursor."""
        return self.settings[self.cursor].name if self.cursor < len(self.settings) else ""

    def show(self, settings: Sequence[Setting]) -> None:
        """Show other choices; the cursor goes to the one that was asked for, or stays on its own."""
        super().show(settings)
        names = [item.name for item in settings]
        if self._wanted in names:
            self.cursor, self._wanted = names.index(self._wanted), ""

    def action_pick(self, name: str) -> None:
        """Ask to change a choice, also one of an operation that was not chosen yet: keys come faster than rows."""
        if any(item.name == name for item in self.settings):
            super().action_pick(name)
        else:
            self._wanted = name
            self.post_message(self.Picked(self, name))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tell which keys work: all of them at any time."""
        return action == "pick" or super().check_action(action, parameters)


class FixForm(Form):
    """The choices of a fix, which are as many as operations and keys of metadata ask for."""

    def __init__(self) -> None:
        self.choices = FixChoices()
        super().__init__("what", FIELDS, self.choices)

    def show(self, draft: Destination, known: AnyKnown, telling: Telling | None) -> None:
        """Show a draft and what it comes to."""
        if isinstance(draft, Draft) and isinstance(known, Known):
            self.fields = dict(fields_of(draft, known))
        super().show(draft, known, telling)

    def pick(self, name: str) -> None:
        """Choose the operation that a choice belongs to, then change the choice."""
        repair = repair_of(name)
        if repair is not None and repair != name:
            self.post_message(self.Chosen(lambda draft: with_operation(draft, repair, on=True)))
        super().pick(name)
