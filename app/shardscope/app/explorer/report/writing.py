"""The dialog that asks where something is written and does it, and the one that says that it was."""

import os
from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from shardscope.app.explorer.dialogs import Dialog
from shardscope.app.explorer.report import workers
from shardscope.app.explorer.report.messages import NotWritten, Written
from shardscope.widgets.safe import Tone, content
from shardscope.widgets.search_line import SearchLine


class WriteTo(ModalScreen[str | None]):
    """Asks for a path and writes there. Ends with the path, or with None where nothing was written."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Cancel", id="write.close", tooltip="Close this; nothing is written"),
    ]

    def __init__(self, title: str, path: str, says: str, write: Callable[[str], None]) -> None:
        """`write` blocks, and raises `Fault` where it cannot; it never replaces anything."""
        super().__init__()
        self._title = title
        self._path = path
        self._says = says
        self._write = write
        self._busy = False

    def compose(self) -> ComposeResult:
        """Draw the field."""
        with Vertical(classes="dialog") as box:
            box.border_title = content(self._title)
            box.border_subtitle = "enter writes, esc writes nothing"
            yield SearchLine(self._path, placeholder="path", id="path", compact=True, select_on_focus=False)
            yield Static(content((self._where(self._path), Tone.MUTED)), id="where")
            yield Static(content((self._says, Tone.MUTED)), classes="note")
            yield Static(id="said")

    @staticmethod
    def _where(path: str) -> str:
        """Say where a path that does not begin at the root leads."""
        whole = os.path.abspath(os.path.expanduser(path.strip()))
        return f"that is {whole}" if path.strip() and whole != path.strip() else ""

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.query_one("#where", Static).update(content((self._where(event.value), Tone.MUTED)))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        path = os.path.expanduser(event.value.strip())
        if not path or self._busy:
            return
        self._busy = True
        write = self._write
        self.app.run_worker(
            lambda: workers.write(write, path, self.post_message),
            group="report write",
            description="writing what was shown",
            thread=True,
            exit_on_error=False,
        )

    @on(NotWritten)
    def _not_written(self, event: NotWritten) -> None:
        event.stop()
        self._busy = False
        said = event.blocker
        self.query_one("#said", Static).update(
            content((said.message, Tone.STOP), " ", said.remedy, " ", (said.code, Tone.MUTED))
        )

    @on(Written)
    def _written(self, event: Written) -> None:
        event.stop()
        self.dismiss(event.path)

    def action_close(self) -> None:
        """Close the dialog; nothing is written, unless it is being written right now."""
        if not self._busy:
            self.dismiss(None)


class Wrote(Dialog):
    """What was written, where, and the command that would do it again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "close", "Close", show=False, id="wrote.close", tooltip="Close this dialog"),
    ]

    def __init__(self, path: str, says: str, command: str = "") -> None:
        super().__init__()
        self.path = path
        self._says = says
        self._command = command

    def compose(self) -> ComposeResult:
        """Draw the sentences."""
        with Vertical(classes="dialog") as box:
            box.border_title = "Written"
            box.border_subtitle = "esc closes"
            yield Static(content((self.path, Tone.STRONG)), id="written")
            yield Static(content(self._says), classes="note")
            if self._command:
                yield Static(content(("the same again  ", Tone.MUTED), self._command), classes="note")
