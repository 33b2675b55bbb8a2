"""Dialogs that show a text in full: one line of the preview, and a page that was copied."""

from collections.abc import Iterable
from typing import Final

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from shardscope.app.explorer.dialogs import Dialog
from shardscope.engine.model.report_lines import ReportLine, Span
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, heading
from shardscope.widgets.safe import Part, Tone, content

EXPLAINED: Final = {
    "name": "a word that not every copy of shardscope has: it could tell of a person or a project",
    "path": "an absolute path",
    "host or user": "the name of this machine or its user",
    "free text": "a text of the checkpoint that can say anything",
    "digest": "what a file below 1 MiB holds could be guessed, and the guess tried against its digest",
    "left out": "no part of what a report repeats, or left out by you",
    "added": "about the report itself",
}
"""What a reason means; any other is a kind of secret."""


def explained(why: Iterable[str]) -> str:
    """Return the reasons of a line with what they mean."""
    return "; ".join(
        f"{each}: {EXPLAINED.get(each, 'it looks like a secret or a private place')}" for each in why
    )


class Page(Paragraphs):
    """The lines of a text, and nothing else."""

    BINDING_GROUP_TITLE = "Page"

    def __init__(self, text: str, *, id: str | None = None) -> None:  # noqa: A002 - the word of Textual
        """Show `text`."""
        self._text = text
        super().__init__(id=id)

    def paragraphs(self, width: int) -> Iterable[Paragraph]:  # noqa: ARG002 - wrapped by the panel
        """Return one paragraph a line."""
        for line in self._text.splitlines():
            margin = len(line) - len(line.lstrip())
            yield Paragraph((line,), hang=margin + 2)


class Sides(Paragraphs):
    """Both sides of one line of a preview."""

    BINDING_GROUP_TITLE = "One line"

    def __init__(self, line: ReportLine) -> None:
        """Show `line`."""
        self._line = line
        super().__init__()

    def paragraphs(self, width: int) -> Iterable[Paragraph]:  # noqa: ARG002 - wrapped by the panel
        """Return the sides, and why they differ."""
        line = self._line
        if not line.why:
            yield Paragraph((("Written as it is", Tone.STRONG),))
            yield Paragraph(((line.after or "").strip(),))
            return
        yield Paragraph((("As it is", Tone.STRONG),))
        yield Paragraph(_parts(line.before, line.removed))
        yield from heading("What is written")
        yield Paragraph(_parts(line.after, line.put))
        yield from heading("Because")
        yield Paragraph((explained(line.why),))


def _parts(text: str | None, spans: tuple[Span, ...]) -> tuple[Part, ...]:
    if text is None:
        return (("nothing", Tone.MUTED),)
    parts: list[Part] = []
    end = len(text) - len(text.lstrip())
    for begin, stop in spans:
        if begin >= end:
            parts += [text[end:begin], (text[begin:stop], Tone.CAUTION)]
            end = stop
    return (*parts, text[end:])


class OneLine(Dialog):
    """One line of the preview in full."""

    AUTO_FOCUS = "Sides"

    def __init__(self, line: ReportLine) -> None:
        super().__init__()
        self._line = line

    def compose(self) -> ComposeResult:
        """Draw both sides."""
        with Vertical(classes="dialog -page") as box:
            box.border_title = "One line of the report"
            box.border_subtitle = "esc closes"
            yield Sides(self._line)


class CopiedPage(Dialog):
    """A page that was sent to the clipboard, to be read and selected where the terminal refused it."""

    AUTO_FOCUS = "Page"

    def __init__(self, title: str, page: str) -> None:
        super().__init__()
        self._title = title
        self.page = page

    def compose(self) -> ComposeResult:
        """Draw the page."""
        with Vertical(classes="dialog -page") as box:
            box.border_title = content(self._title)
            box.border_subtitle = "esc closes"
            yield Page(self.page)
            yield Static(
                content(
                    (
                        "Sent to the clipboard (OSC 52). A terminal may refuse that without saying so.",
                        Tone.MUTED,
                    )
                ),
                classes="note",
            )
