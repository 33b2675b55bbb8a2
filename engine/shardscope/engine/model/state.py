"""Which parts of a training state are in the checkpoint."""

from enum import StrEnum

from msgspec import Struct

from shardscope.engine.model.evidence import Basis


class Presence(StrEnum):
    """Whether a part is there. Not examined is its own answer and never reads as absent."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"
    OPAQUE = "opaque"
    """Files that usually hold it are there, but their content is not examined in the safe plane."""


class StatePart(Struct, frozen=True):
    """One part of the state, why we say so, and the files that hold it."""

    presence: Presence
    basis: Basis = Basis.UNKNOWN
    reason: str = "not examined"
    files: tuple[str, ...] = ()


class StateScope(Struct, frozen=True):
    """The seven parts of a training state."""

    weights: StatePart = StatePart(Presence.UNKNOWN)
    optimizer: StatePart = StatePart(Presence.UNKNOWN)
    scheduler: StatePart = StatePart(Presence.UNKNOWN)
    rng: StatePart = StatePart(Presence.UNKNOWN)
    scaler: StatePart = StatePart(Presence.UNKNOWN)
    progress: StatePart = StatePart(Presence.UNKNOWN)
    data_position: StatePart = StatePart(Presence.UNKNOWN)
