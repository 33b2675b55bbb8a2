"""The page that stands where facts cannot: the source failed, or the person stopped the looking."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.progress import Progress
from shardscope.widgets.safe import Part, Tone, content


class Notice(Vertical):
    """A headline, a sentence of what is the matter, one of what to do, and a code."""

    def __init__(self, headline: Part, sentence: str, remedy: str, code: str = "") -> None:
        super().__init__(classes="notice")
        self.parts = (headline, sentence, remedy, code)

    @classmethod
    def fault(cls, blocker: Blocker) -> "Notice":
        """Return the page for a source that cannot be examined."""
        return cls(("Cannot look", Tone.STOP), blocker.message, blocker.remedy, blocker.code)

    @classmethod
    def broken(cls, blocker: Blocker) -> "Notice":
        """Return the page for an error of our own, under its dialog."""
        return cls(("Not examined", Tone.STOP), blocker.message, blocker.remedy, blocker.code)

    @classmethod
    def stopped(cls, progress: Progress | None) -> "Notice":
        """Return the page for an inspection that the person stopped where `progress` says."""
        reached = "before the first file"
        if progress is not None:
            of = "" if progress.total is None else f" of {progress.total:,}"
            reached = f"at {progress.stage}, {progress.done:,}{of} {progress.unit}"
        return cls(
            ("Stopped", Tone.CAUTION),
            f"The inspection was stopped {reached}. Nothing is said about this checkpoint: what was not examined is not fine.",
            "Press ctrl+r to look again.",
        )

    def compose(self) -> ComposeResult:
        """Draw the sentences under each other."""
        headline, sentence, remedy, code = self.parts
        yield Static(content(headline), classes="headline")
        yield Static(content(sentence), classes="sentence")
        yield Static(content(remedy), classes="remedy")
        if code:
            yield Static(content((code, Tone.MUTED)), classes="code")
