"""What the workers of the Scan screen tell it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.model.scan import ScanDocument
    from shardscope.engine.peeking.scanning import Reading


class ReadingPlanned(Message):
    """It is known what would be read."""

    def __init__(self, side: "Side", reading: "Reading", owners: dict[str, str]) -> None:
        super().__init__()
        self.side = side
        self.reading = reading
        self.owners = owners
        """By file, the rank whose it is."""


class FindingsHeard(Message):
    """Something was found. None of these messages may be lost."""

    def __init__(self, findings: "Sequence[Blocker]") -> None:
        super().__init__()
        self.findings = findings


class Scanned(Message):
    """Everything was read."""

    def __init__(self, document: "ScanDocument") -> None:
        super().__init__()
        self.document = document


class ScanEnded(Message):
    """Reading ended before its end: by the person, or for a reason."""

    def __init__(self, blocker: "Blocker | None" = None) -> None:
        super().__init__()
        self.blocker = blocker


class NotPlanned(Message):
    """There is nothing to read, and why."""

    def __init__(self, blocker: "Blocker", side: "Side | None" = None) -> None:
        super().__init__()
        self.blocker = blocker
        self.side = side
        """What is known, where another component may have something to read."""
