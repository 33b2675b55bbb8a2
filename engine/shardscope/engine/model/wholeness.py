"""Whether a checkpoint is whole: the answer that every report and screen gives, from the descriptor alone."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Blocks, Severity
from shardscope.engine.model.descriptor import Descriptor, PlaneState
from shardscope.engine.model.evidence import Status
from shardscope.engine.model.text import counted

_ELSEWHERE: Final = ("trust", "limit", "resource")
"""Areas of codes that say nothing about whether the checkpoint is whole."""
_UNDECIDED: Final = ("layout.ambiguous", "layout.several_candidates", "layout.unknown")
"""Codes that say that there is no one layout to be whole."""
_HARM: Final = frozenset({Blocks.INSPECT, Blocks.LOAD, Blocks.CONVERT})


class Whole(StrEnum):
    """The answer in a word."""

    YES = "yes"
    NO = "no"
    NOT_KNOWN = "not known"


class Wholeness(Struct, frozen=True):
    """The answer, and the clause that says why; never more than was examined."""

    answer: Whole
    why: str


def wholeness(descriptor: Descriptor) -> Wholeness:
    """Answer whether anything is missing or broken, as far as it was examined."""
    harmed = sum(
        item.severity is Severity.ERROR
        and item.code.partition(".")[0] not in _ELSEWHERE
        and item.code not in _UNDECIDED
        and not _HARM.isdisjoint(item.blocks)
        for item in descriptor.blockers
    )
    if harmed:
        return Wholeness(Whole.NO, f"{counted(harmed, 'error')} in what was examined")
    if absent := sum(mesh.missing_count for mesh in descriptor.topology.meshes):
        return Wholeness(Whole.NO, f"{counted(absent, 'rank')} missing")
    if any(item.code.startswith("limit.") for item in descriptor.blockers):
        return Wholeness(Whole.NOT_KNOWN, "a limit was reached before everything was read")
    status = descriptor.classification.status
    if status in (Status.UNKNOWN, Status.AMBIGUOUS):
        return Wholeness(Whole.NOT_KNOWN, f"the layout is {status.value}")
    if opaque := len(descriptor.trust.opaque_files):
        why = f"{counted(opaque, 'opaque file')} not examined; nothing is missing by name"
        return Wholeness(Whole.NOT_KNOWN, why)
    decoded = descriptor.planes.decoded is PlaneState.EXAMINED
    return Wholeness(
        Whole.YES, f"as far as names{', headers and pickles' if decoded else ' and headers'} tell"
    )
