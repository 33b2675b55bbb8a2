"""The preview: every line that would be written beside what it was made of. What is written is what was shown here."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import get_current_worker

from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.messages import Progressed
from shardscope.app.explorer.report import workers
from shardscope.app.explorer.report.calls import Calls, Made
from shardscope.app.explorer.report.line import explained
from shardscope.app.explorer.report.messages import NotMade, ReportMade
from shardscope.app.explorer.report.screen import NOTE
from shardscope.app.explorer.report.wanted import OUTPUT
from shardscope.app.explorer.target import Target
from shardscope.engine.model.report_lines import ReportLine, Span
from shardscope.widgets.figures import plural
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.report_rows import ReportRows
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, content
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine

if TYPE_CHECKING:
    from shardscope.engine.model.descriptor import Descriptor
    from shardscope.engine.reporting import Request

WORDS: Final = {
    "name": ("word", "words"),
    "path": ("path", "paths"),
    "this machine": ("name of host or user", "names of host or user"),
    "free text": ("free text left out", "free texts left out"),
    "digest of a small file": ("digest left out", "digests left out"),
}
"""What a count is of, by its reason; a kind of secret stands for itself."""
LABEL: Final = 10


class Preview(Screen[None]):
    """Shows a report that was made and not written."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "w", "write", "Write", id="preview.write", tooltip="Write exactly what is shown; asks where to"
        ),
        Binding(
            "y",
            "copy",
            "Copy command",
            id="preview.copy",
            tooltip="Copy the command that makes the same report",
        ),
        Binding(
            "s",
            "summary",
            "Copy summary",
            id="preview.summary",
            tooltip="Copy the README of the report, sanitised as it is written, for an issue or a mail",
        ),
        Binding(
            "escape", "back", "Back", id="preview.back", tooltip="Back to what goes in; nothing is written"
        ),
    ]

    def __init__(
        self,
        target: Target,
        request: "Request",
        known: "Descriptor | None",
        *,
        crumbs: tuple[str, ...],
        command: Callable[[str], str],
        calls: Calls,
    ) -> None:
        """`command` returns what writes the same report to a path."""
        super().__init__()
        self.target = target
        self.made: Made | None = None
        self._request = request
        self._known = known
        self._crumbs = crumbs
        self._command = command
        self._calls = calls
        self._output = OUTPUT
        """Where it was written, or would be."""

    def compose(self) -> ComposeResult:
        """Draw the frame; the lines come from a worker."""
        with Horizontal(id="top"):
            yield Breadcrumbs(*self._crumbs)
            yield StatusLine("making the report", "nothing written")
        with Container(id="preview"):
            yield ProgressLine()
        yield Hints()

    def on_mount(self) -> None:
        """Make the report."""
        calls, target, request, known = self._calls, self.target, self._request, self._known
        self.app.run_worker(
            lambda: workers.make(
                calls, target, request, known, get_current_worker().cancelled_event, self.post_message
            ),
            group="report",
            description="making a report",
            thread=True,
            exclusive=True,
            exit_on_error=False,
        )

    def on_unmount(self) -> None:
        """Stop what still runs for this screen."""
        self.app.workers.cancel_group(self.app, "report")

    @on(Progressed)
    def _progressed(self, event: Progressed) -> None:
        event.stop()
        for line in self.query(ProgressLine):
            line.show(event.progress)

    async def _fill(self, *widgets: Widget) -> None:
        frame = self.query_one("#preview")
        with self.app.batch_update():
            await frame.remove_children()
            await frame.mount(*widgets)

    @on(NotMade)
    async def _not_made(self, event: NotMade) -> None:
        event.stop()
        from shardscope.app.explorer.notice import Notice

        said = event.blocker
        self.query_one(StatusLine).facts = (("no report", Tone.STOP), "nothing written")
        await self._fill(Notice(("No report", Tone.STOP), said.message, said.remedy, said.code))

    @on(ReportMade)
    async def _made(self, event: ReportMade) -> None:
        event.stop()
        self.made = event.made
        rows = ReportRows(event.made.preview)
        await self._fill(
            rows,
            Static(_whole(event.made.preview.line(0)), id="line"),
            Static(content(*self._counted()), id="counts"),
        )
        self.query_one(StatusLine).facts = (("searched: clean", Tone.OK), "nothing written")
        self.set_focus(rows)
        self.refresh_bindings()

    def _counted(self) -> Iterator[Part]:
        assert self.made is not None  # noqa: S101 - asked for once it is
        preview = self.made.preview
        yield f"{plural(len(preview.changed), 'line')} of {preview.row_count:,} differ", Tone.STRONG
        for reason, count in sorted(preview.counts.items(), key=lambda item: -item[1]):
            yield " · ", Tone.MUTED
            yield plural(count, *WORDS.get(reason, (reason, f"{reason}s")))

    @on(VirtualRows.RowHighlighted)
    def _highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()
        if self.made is not None:
            self.query_one("#line", Static).update(_whole(self.made.preview.line(event.row)))

    @on(VirtualRows.RowSelected)
    def _selected(self, event: VirtualRows.RowSelected) -> None:
        event.stop()
        from shardscope.app.explorer.report.line import OneLine

        if self.made is not None:
            self.app.push_screen(OneLine(self.made.preview.line(event.row)))

    # What the keys do

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now: nothing is written that was not shown."""
        return self.made is not None if action in ("write", "summary") else True

    def action_write(self) -> None:
        """Ask where to, and write what is shown."""
        from shardscope.app.explorer.report.writing import WriteTo

        if self.made is None:
            return
        made, calls, target = self.made, self._calls, self.target
        question = WriteTo(
            "Write the report",
            self._output,
            "A name that ends in .zip gives one zip, any other a folder. Nothing that is there is replaced, and nothing is "
            "written into the checkpoint.",
            lambda path: calls.write(path, target, made.prepared),
        )
        self.app.push_screen(question, self._wrote)

    def _wrote(self, path: str | None) -> None:
        if path is None or self.made is None:
            return
        from shardscope.app.explorer.report.writing import Wrote

        self._output = path
        members = self.made.prepared.built.members
        self.query_one(StatusLine).facts = (("searched: clean", Tone.OK), ("written", Tone.OK))
        total = sum(map(len, members.values()))
        self.app.push_screen(
            Wrote(
                path,
                f"{plural(len(members), 'file')}, {total:,} bytes: exactly what was shown.",
                self._command(path),
            )
        )

    def action_copy(self) -> None:
        """Copy the command that makes the same report, and show it."""
        from shardscope.app.explorer.dialogs import CopiedCommand

        command = self._command(self._output)
        self.app.copy_to_clipboard(command)
        self.app.push_screen(CopiedCommand(command, NOTE))

    def action_summary(self) -> None:
        """Copy the README of the report as it is written, and show it."""
        from shardscope.app.explorer.report.line import CopiedPage
        from shardscope.engine.report.building import README

        if self.made is not None:
            page = self.made.prepared.built.members[README].decode()
            self.app.copy_to_clipboard(page)
            self.app.push_screen(CopiedPage("The README of the report", page))

    def action_back(self) -> None:
        """Back to what goes in."""
        self.dismiss(None)


def _whole(line: ReportLine) -> Content:
    """Return both sides of a line in full, with what was removed, as the foot shows them."""
    if line.kind == "file":
        return content((f"{line.after}: one file of the report", Tone.MUTED))
    if not line.why:
        return _labelled("written", line.after or "", ())
    sides = [
        _labelled(label, text.strip(), _shifted(text, spans))
        for label, text, spans in (("as it is", line.before, line.removed), ("written", line.after, line.put))
        if text is not None
    ]
    return Content("\n").join([*sides, _labelled("because", explained(line.why), ())])


def _shifted(text: str, spans: tuple[Span, ...]) -> tuple[Span, ...]:
    margin = len(text) - len(text.lstrip())
    return tuple((begin - margin, end - margin) for begin, end in spans if begin >= margin)


def _labelled(label: str, text: str, spans: tuple[Span, ...]) -> Content:
    parts: list[Part] = [(f"{label:<{LABEL}}", Tone.MUTED)]
    end = 0
    for begin, stop in spans:
        if begin >= end:
            parts += [text[end:begin], (text[begin:stop], Tone.CAUTION)]
            end = stop
    return content(*parts, text[end:])
