"""Where a person is on the way to an output."""

from enum import StrEnum


class Step(StrEnum):
    """One step; a screen has those that it needs."""

    READING = "read"
    """What there is to work on is not known yet, or could not be read."""
    WHAT = "what"
    CHANGES = "changes"
    WHERE = "where"
    OPTIONS = "options"
    PLAN = "plan"
    RUNNING = "run"
    ENDED = "end"
