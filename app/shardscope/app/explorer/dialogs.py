"""The dialogs of the explorer that say something: what was copied, what could not be done, an error of our own. Esc closes each."""

import os
from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from shardscope.app.explorer.copying import Copy, save
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.text import display_name
from shardscope.widgets.safe import Part, Tone, content
from shardscope.widgets.search_line import SearchLine


class Dialog(ModalScreen[None]):
    """A dialog that says something and is closed by esc."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape", "close", "Close", id="dialog.close", tooltip="Close this dialog; nothing else happens"
        ),
    ]

    def action_close(self) -> None:
        """Close the dialog."""
        self.dismiss(None)


class CopiedCommand(Dialog):
    """What was sent to the clipboard, to be read and selected where the terminal refused it; and what else can be."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "close", "Close", show=False, id="copied.close", tooltip="Close this dialog"),
        Binding("y", "again('y')", "Command", show=False, id="copied.command", tooltip="Copy the command"),
        Binding(
            "n", "again('n')", "Name", show=False, id="copied.name", tooltip="Copy the name under the cursor"
        ),
        Binding("p", "again('p')", "Path", show=False, id="copied.path", tooltip="Copy the path"),
        Binding(
            "s", "save", "Save", show=False, id="copied.save", tooltip="Write it to a new file; asks which"
        ),
    ]

    def __init__(self, command: str, note: str = "", more: Sequence[Copy] = ()) -> None:
        """`more` are other texts that can be copied from here, each by its own key."""
        super().__init__()
        self.command = command
        self.note = note
        """What the command does not say."""
        self.copies = (Copy("y", "command", command), *more)
        self.sent = self.copies[0]
        """What was sent last."""

    def compose(self) -> ComposeResult:
        """Draw the texts."""
        with Vertical(classes="dialog") as box:
            box.border_title = "The same without a screen"
            box.border_subtitle = "esc closes"
            yield Static(Content(display_name(self.command)), id="command")
            if self.note:
                yield Static(Content(self.note), classes="note -caution")
            if len(self.copies) > 1:
                yield Static(self._others(), id="others", classes="note")
            yield SearchLine(
                placeholder="a new file to write it to", id="file", select_on_focus=False, compact=True
            )
            yield Static(self._said(), id="said", classes="note")

    def on_mount(self) -> None:
        """Ask for no file before one is wanted."""
        self.query_one("#file").display = False

    def _others(self) -> Content:
        lines = []
        for each in self.copies:
            tone = Tone.HERE if each is self.sent else Tone.PLAIN
            lines.append(
                content((f"{each.key}  ", Tone.STRONG), (f"{each.what:<8}", Tone.MUTED), (each.text, tone))
            )
        return Content("\n").join(lines)

    def _said(self) -> Content:
        return Content.styled(
            f"The {self.sent.what} was sent to the clipboard (OSC 52). A terminal may refuse that without saying so: then "
            "select the text above, with Shift held down where the mouse belongs to the explorer, or press s to save it.",
            "$text-muted",
        )

    def action_again(self, key: str) -> None:
        """Copy another of the texts."""
        found = next((each for each in self.copies if each.key == key), None)
        if found is not None:
            self.sent = found
            self.app.copy_to_clipboard(found.text)
            self.query_one("#said", Static).update(self._said())
            for others in self.query("#others").results(Static):
                others.update(self._others())

    def action_save(self) -> None:
        """Ask for the file."""
        field = self.query_one("#file", SearchLine)
        field.display = True
        field.focus()

    def action_close(self) -> None:
        """Ask for no file any more, or close the dialog."""
        field = self.query_one("#file", SearchLine)
        if field.display:
            field.display = False
            self.set_focus(None)
        else:
            super().action_close()

    @on(Input.Submitted)
    def _save(self, event: Input.Submitted) -> None:
        event.stop()
        path = os.path.expanduser(event.value.strip())
        if not path:
            return
        refused = save(path, self.sent.text)
        words: Part = (f"Saved the {self.sent.what} to {path}.", Tone.OK)
        if refused is not None:
            words = (f"Not saved: {refused}. Nothing was written.", Tone.CAUTION)
        self.query_one("#said", Static).update(content(words))
        if refused is None:
            self.query_one("#file").display = False
            self.set_focus(None)


class NotDone(Dialog):
    """Something that was asked for and could not be done: why, what to do, and the code."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "close", "Close", show=False, id="not_done.close", tooltip="Close this dialog"),
    ]

    def __init__(self, title: str, blocker: Blocker) -> None:
        super().__init__()
        self.heading = title
        self.blocker = blocker

    def compose(self) -> ComposeResult:
        """Draw the sentences."""
        with Vertical(classes="dialog -error") as box:
            box.border_title = Content(self.heading)
            box.border_subtitle = "esc closes"
            yield Static(Content(self.blocker.message), id="message")
            yield Static(Content(self.blocker.remedy), classes="note")
            yield Static(Content.styled(self.blocker.code, "$text-muted"), id="code")


class OwnError(NotDone):
    """An error of shardscope itself: what it was doing, a code, and never a traceback."""

    def __init__(self, blocker: Blocker) -> None:
        super().__init__("An error of shardscope", blocker)


class SettingsNote(Dialog):
    """What is wrong with the settings, and that the defaults hold in their place."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "close", "Close", show=False, id="settings.close", tooltip="Close this dialog"),
    ]

    def __init__(self, blockers: Sequence[Blocker]) -> None:
        super().__init__()
        self.blockers = blockers

    def compose(self) -> ComposeResult:
        """Draw the sentences."""
        with Vertical(classes="dialog -error") as box:
            box.border_title = "Settings"
            box.border_subtitle = "esc closes"
            for each in self.blockers[:8]:
                yield Static(content((each.message, Tone.PLAIN), (f"  {each.code}", Tone.MUTED)))
            if len(self.blockers) > 8:
                yield Static(content((f"and {len(self.blockers) - 8:,} more", Tone.MUTED)))
            words = "The defaults hold in their place. shardscope config validate says what to do about each."
            yield Static(content((words, Tone.MUTED)), classes="note")
