"""One line of a report beside what it was made of: what a person looks at before anything is written."""

from typing import Literal

from msgspec import Struct

Span = tuple[int, int]
"""Begin and end of a stretch of a text, in characters."""


class ReportLine(Struct, frozen=True):
    """One line of the preview of a report."""

    kind: Literal["file", "line"]
    """`file` is the title above the lines of one file of the bundle; it is not written."""
    before: str | None
    """As it is in the checkpoint, its secrets redacted. Null where only the report has such a line."""
    after: str | None
    """Exactly as it is written. Null where nothing is."""
    why: tuple[str, ...] = ()
    """Why they differ, in a word or two each; empty where the line is repeated as it is."""
    removed: tuple[Span, ...] = ()
    """What of `before` is not repeated, as far as it can be found in it."""
    put: tuple[Span, ...] = ()
    """What stands for it in `after`."""
