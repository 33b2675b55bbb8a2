"""The Report screen: what goes in. Nothing is made before the person asks for the preview."""

import re
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Input, Static

from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.report.calls import CALLS, Calls
from shardscope.app.explorer.report.choices import changed, choices, is_decoded
from shardscope.app.explorer.report.wanted import Wanted, report_command
from shardscope.app.explorer.target import Asked, Target
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.reports import MODEL_ID, REVISION
from shardscope.widgets.report_form import ReportForm
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Tone, content
from shardscope.widgets.search_line import SearchLine
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import DigestMode

FIELDS: Final = {
    "model": (
        MODEL_ID,
        "NAME or ORGANISATION/NAME; empty says nothing",
        "A model id is NAME or ORGANISATION/NAME.",
    ),
    "revision": (
        REVISION,
        "its full commit; empty says nothing",
        "An immutable revision is a full commit: 40 hexadecimal digits, or 64.",
    ),
}
"""Fields that only a person fills: what they look like, what stands in an empty one, what is wrong with another."""


class ReportScreen(Screen[None]):
    """Asks what goes into a report about one checkpoint."""

    AUTO_FOCUS = "ReportForm"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "p",
            "preview",
            "Preview",
            id="report.preview",
            tooltip="See every line before anything is written",
        ),
        Binding(
            "y",
            "copy",
            "Copy command",
            id="report.copy",
            tooltip="Copy the command that makes the same report",
        ),
        Binding("tab", "app.focus_next", "Next field", id="report.field", tooltip="Go to the next field"),
        Binding(
            "shift+tab",
            "app.focus_previous",
            "Field before",
            show=False,
            id="report.field_before",
            tooltip="Go to the field before",
        ),
        Binding(
            "escape", "back", "Back", id="report.back", tooltip="Back to the checkpoint; nothing is written"
        ),
    ]

    def __init__(
        self,
        target: Target,
        descriptor: Descriptor,
        *,
        crumbs: tuple[str, ...],
        digest: "DigestMode" = "auto",
        asked: Asked | None = None,
        calls: Calls = CALLS,
    ) -> None:
        """`descriptor` is what is known; `digest` is what hashing was asked for, `asked` what decoding was."""
        super().__init__()
        self.target = target
        self.descriptor = descriptor
        self.wanted = Wanted(decoded=is_decoded(descriptor))
        self._crumbs = crumbs
        self._digest = digest
        self._asked = asked
        self._calls = calls

    def compose(self) -> ComposeResult:
        """Draw the list over the two fields."""
        with Horizontal(id="top"):
            yield Breadcrumbs(*self._crumbs, "report")
            yield StatusLine("what goes in", "nothing written")
        with Vertical(id="report"):
            yield Static(
                content(
                    "For a stranger: uncommon words, paths and secrets are replaced, free texts left out. ",
                    ("You see every line before it is written.", Tone.STRONG),
                ),
                id="purpose",
            )
            yield ReportForm(choices(self.wanted, self.descriptor))
            for name, (_, empty, _) in FIELDS.items():
                with Horizontal(classes="field"):
                    yield Static(content((name if name == "revision" else "model id", Tone.PLAIN)))
                    yield SearchLine(placeholder=empty, id=name, compact=True, select_on_focus=False)
            yield Static(id="said")
            yield Static(id="same")
        yield Hints()

    def on_mount(self) -> None:
        """Say which command makes the same."""
        self._show()

    def _show(self) -> None:
        rows = choices(self.wanted, self.descriptor)
        self.query_one(ReportForm).show(rows)
        self.query_one(ReportForm).styles.height = len(rows)
        self.query_one("#same", Static).update(content((self.command, Tone.MUTED)))

    @property
    def command(self) -> str:
        """The command that makes the same report."""
        return report_command(self.target, self.wanted, self._mode, self._asked)

    @property
    def _known(self) -> Descriptor | None:
        """What need not be found out again: null where the report wants another plane, or digests that are not there."""
        if is_decoded(self.descriptor):
            return self.descriptor if self.wanted.decoded else None
        return None if self.descriptor.source.digest_mode == "none" else self.descriptor

    @property
    def _mode(self) -> "DigestMode":
        found = self.descriptor.source.digest_mode
        return "all" if "all" in (found, self._digest) else "auto"

    @on(ReportForm.Changed)
    def _changed(self, event: ReportForm.Changed) -> None:
        event.stop()
        self.wanted = changed(self.wanted, event.choice, event.by)
        self._show()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        model, revision = (self.query_one(f"#{name}", Input).value.strip() for name in FIELDS)
        self.wanted = replace(self.wanted, model=model, revision=revision)
        self._say("")
        self._show()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_preview()

    @on(VirtualRows.RowSelected)
    def _entered(self, event: VirtualRows.RowSelected) -> None:
        event.stop()
        self.action_preview()

    @on(VirtualRows.RowHighlighted)
    def _highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()

    def _say(self, words: str) -> None:
        self.query_one("#said", Static).update(content((words, Tone.STOP)))

    def action_preview(self) -> None:
        """Make the report and show every line of it."""
        from shardscope.app.explorer.report.preview import Preview

        for name, value in (("model", self.wanted.model), ("revision", self.wanted.revision)):
            pattern, _, wrong = FIELDS[name]
            if value and re.fullmatch(pattern, value) is None:
                self._say(wrong)
                self.query_one(f"#{name}", Input).focus()
                return
        request = self.wanted.request(self.target, self._mode)
        self.app.push_screen(
            Preview(
                self.target,
                request,
                self._known,
                crumbs=(*self._crumbs, "report", "preview"),
                command=lambda output: report_command(
                    self.target, self.wanted, self._mode, self._asked, output
                ),
                calls=self._calls,
            )
        )

    def action_copy(self) -> None:
        """Copy the command that makes the same report, and show it."""
        from shardscope.app.explorer.dialogs import CopiedCommand

        self.app.copy_to_clipboard(self.command)
        self.app.push_screen(CopiedCommand(self.command, NOTE))

    def action_back(self) -> None:
        """Back to the checkpoint."""
        self.dismiss(None)


NOTE: Final = "The command names this path: the report does not."
