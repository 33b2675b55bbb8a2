"""The dialogs of the explorer: help, the equivalent command, and an error of our own. Esc closes each of them."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from shardscope.app.explorer.keys import KeyRow
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.text import display_name


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


class Help(Dialog):
    """What every key does on the screen below, searchable."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "close", "Close", show=False, id="help.close", tooltip="Close this dialog"),
        Binding("down", "scroll('down')", "Down", show=False, id="help.down", tooltip="Scroll the list"),
        Binding("up", "scroll('up')", "Up", show=False, id="help.up", tooltip="Scroll the list"),
        Binding(
            "pagedown", "scroll('page_down')", "Page down", show=False, id="help.page_down", tooltip="Scroll"
        ),
        Binding(
            "pageup", "scroll('page_up')", "Page up", show=False, id="help.page_up", tooltip="Scroll the list"
        ),
    ]

    def __init__(self, rows: list[KeyRow]) -> None:
        super().__init__()
        self.rows = rows

    def compose(self) -> ComposeResult:
        """Draw the search field over the list."""
        with Vertical(classes="dialog") as box:
            box.border_title = "Keys"
            box.border_subtitle = "esc closes"
            yield Input(placeholder="search the keys", compact=True, select_on_focus=False)
            with VerticalScroll(can_focus=False):
                yield Static(self.listing(""), id="keys")

    def listing(self, query: str) -> Content:
        """Return the rows that match `query`, by group."""
        rows = [row for row in self.rows if row.matches(query)]
        if not rows:
            return Content.styled("No key does that here.", "$text-muted")
        width = max(len(row.shown_keys) for row in rows)
        names = max(len(row.description) for row in rows)
        lines: list[Content] = []
        for group in dict.fromkeys(row.group for row in rows):
            if lines:
                lines.append(Content(""))
            lines.append(Content.styled(group, "bold $text-primary"))
            lines += [
                Content.assemble(
                    "  ",
                    (row.shown_keys.ljust(width), "bold" if row.enabled else "$text-muted"),
                    f"  {row.description:<{names}}  ",
                    (row.tooltip, "$text-muted"),
                )
                for row in rows
                if row.group == group
            ]
        return Content("\n").join(lines)

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        self.query_one("#keys", Static).update(self.listing(event.value))
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_scroll(self, way: str) -> None:
        """Scroll the list while the search field keeps the focus."""
        scroll = self.query_one(VerticalScroll)
        getattr(scroll, f"scroll_{way}")(animate=False)


class CopiedCommand(Dialog):
    """The command that was sent to the clipboard, to be read and selected where the terminal refused it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "close", "Close", show=False, id="copied.close", tooltip="Close this dialog"),
    ]

    def __init__(self, command: str, note: str = "") -> None:
        super().__init__()
        self.command = command
        self.note = note
        """What the command does not say."""

    def compose(self) -> ComposeResult:
        """Draw the command."""
        with Vertical(classes="dialog") as box:
            box.border_title = "The same without a screen"
            box.border_subtitle = "esc closes"
            yield Static(Content(display_name(self.command)), id="command")
            if self.note:
                yield Static(Content(self.note), classes="note -caution")
            yield Static(
                Content.styled(
                    "Sent to the clipboard (OSC 52). A terminal may refuse that without saying so: then select the line "
                    "above, with Shift held down where the mouse belongs to the explorer.",
                    "$text-muted",
                ),
                classes="note",
            )


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
