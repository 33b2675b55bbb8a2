"""An error of our own, and the page about it that can be sent: shown first, then copied or written where the person says."""

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from shardscope.app.explorer.dialogs import Dialog, OwnError
from shardscope.app.explorer.report import workers
from shardscope.app.explorer.report.calls import CALLS, Calls
from shardscope.app.explorer.report.line import Page
from shardscope.app.explorer.report.messages import NotMade, PageMade
from shardscope.engine.model.blocker import Blocker
from shardscope.widgets.safe import Tone, content

OUTPUT: Final = "shardscope-error.txt"


class ReportedError(OwnError):
    """An error of our own, with the offer of a page about it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "r",
            "report",
            "Report",
            id="own_error.report",
            tooltip="See what can be sent about it: its kind, lines of ours and versions",
        ),
    ]

    def __init__(self, blocker: Blocker, error: BaseException, doing: str, calls: Calls = CALLS) -> None:
        """`doing` is in words of ours."""
        super().__init__(blocker)
        self._error = error
        self._doing = doing
        self._calls = calls

    async def on_mount(self) -> None:
        """Add the offer to the sentences."""
        said = "  see the page that can be sent about it; nothing leaves this machine"
        await self.query_one(".dialog").mount(
            Static(content(("r", Tone.HERE), (said, Tone.MUTED)), classes="note")
        )

    def action_report(self) -> None:
        """Show the page."""
        self.app.push_screen(ErrorPage(self._error, self._doing, self._calls))


class ErrorPage(Dialog):
    """The page, exactly as it is copied or written."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "write", "Write", id="error_page.write", tooltip="Write the page to a file; asks which"),
        Binding("y", "copy", "Copy", id="error_page.copy", tooltip="Copy the page"),
    ]

    def __init__(self, error: BaseException, doing: str, calls: Calls = CALLS) -> None:
        super().__init__()
        self.page: str | None = None
        """What is shown; None while it is made, and where there is none."""
        self._error = error
        self._doing = doing
        self._calls = calls

    def compose(self) -> ComposeResult:
        """Draw the frame."""
        with Vertical(classes="dialog -page") as box:
            box.border_title = "What can be sent about the error"
            box.border_subtitle = "w writes it, y copies it, esc closes"
            yield Static(
                content(
                    (
                        "No message of the error, no path, no name and no value. It was searched for this machine.",
                        Tone.MUTED,
                    )
                ),
                id="said",
            )

    def on_mount(self) -> None:
        """Make the page."""
        calls, error, doing = self._calls, self._error, self._doing
        self.app.run_worker(
            lambda: workers.page(calls, error, doing, self.post_message),
            group="error page",
            description="making a page about an error",
            thread=True,
            exit_on_error=False,
        )

    @on(PageMade)
    async def _made(self, event: PageMade) -> None:
        event.stop()
        self.page = event.page
        shown = Page(event.page)
        await self.query_one(".dialog").mount(shown)
        self.set_focus(shown)

    @on(NotMade)
    def _not_made(self, event: NotMade) -> None:
        event.stop()
        self.query_one("#said", Static).update(content((event.blocker.message, Tone.STOP)))

    def action_copy(self) -> None:
        """Copy the page."""
        if self.page is not None:
            self.app.copy_to_clipboard(self.page)
            self._say(
                "Sent to the clipboard (OSC 52). A terminal may refuse that without saying so: then write it."
            )

    def action_write(self) -> None:
        """Ask where to, and write the page."""
        from shardscope.app.explorer.report.writing import WriteTo

        page, calls = self.page, self._calls
        if page is not None:
            question = WriteTo(
                "Write the page",
                OUTPUT,
                "A new file that only you may read. Nothing that is there is replaced.",
                lambda path: calls.write_page(path, page),
            )
            self.app.push_screen(question, self._wrote)

    def _wrote(self, path: str | None) -> None:
        if path is not None:
            self._say(f"Written to {path}: exactly what is shown.")

    def _say(self, words: str) -> None:
        self.query_one("#said", Static).update(content((words, Tone.OK)))
