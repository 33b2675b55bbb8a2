"""The six steps from an unfamiliar folder to a loaded model, and how far this one can go today."""

from enum import StrEnum
from typing import Final

from msgspec import Struct


class StepName(StrEnum):
    """The six steps, in the order in which they stand."""

    INSPECT = "inspect"
    ESCALATE = "escalate"
    ADAPT = "adapt"
    VALIDATE = "validate"
    MATERIALIZE = "materialize"
    LOAD = "load"


class StepState(StrEnum):
    """How a step stands for one checkpoint."""

    CURRENT = "current"
    """Open: done, or nothing that was found stands before it. The last step is the stock loader's own."""
    STOPPED = "stopped"
    """Something that was found stands before it."""
    NOT_NEEDED = "not needed"
    """Nothing in this checkpoint calls for it."""
    EXPERIMENTAL = "experimental"
    """Open, and not qualified for any producer: what comes of it is to be checked."""
    ON_REQUEST = "on request"
    """Open to whoever asks for it, in one invocation at a time."""
    NOT_AVAILABLE = "not available"
    """This release does not do it."""


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """One step."""

    name: StepName
    state: StepState
    stopped_by: str | None
    """The code of what stands before it, where a code says it."""
    says: str
    """One clause."""


PROMISE: Final = "None of the steps promises that a checkpoint loads or that its tensors are right."


class Workflow(Struct, frozen=True, forbid_unknown_fields=True):
    """The six steps for one checkpoint."""

    steps: tuple[Step, ...]
    stops_at: StepName | None
    """The first step that cannot be taken; null where none is in the way."""
    note: str = PROMISE
