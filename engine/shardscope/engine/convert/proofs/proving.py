"""What is proven of a source before a byte is written: that maps hold, and that what is stored more than once is the same."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.convert.copies.contents import Opener
from shardscope.engine.convert.plans.renaming import Renaming
from shardscope.engine.convert.proofs.comparing import compare, compare_copies, replicas
from shardscope.engine.geometry.checking.check import check as check_map
from shardscope.engine.geometry.language.layout import normal_form
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.manifest import Validation
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.plan import Plan, PlannedTensor
from shardscope.engine.model.progress import OnProgress, Progress, check
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import counted

EXTENT: Final = "dcp.extent_unproven"
"""The files do not tell how far a tensor reaches: its cover is proven within what they have."""


class Proven(Struct, frozen=True):
    """What was proven, with the maps that it was proven of."""

    lowered: dict[str, Lowered]
    """By the tensors' names in the source."""
    validation: tuple[Validation, ...]


def prove(
    plan: Plan,
    planned: Sequence[PlannedTensor],
    tensors: Mapping[str, LogicalTensor],
    opener: Opener,
    *,
    cancel: threading.Event | None,
    progress: OnProgress,
) -> Proven:
    """Check the map of every tensor that is written, and compare everything of it that is stored more than once, ties included.

    Raises `Fault`: `convert.unsound`, `convert.copies_differ`, `map.replicas_disagree`, those of maps and of reading; `Cancelled`.
    """
    lowered: dict[str, Lowered] = {}
    compared = 0
    budget = plan.options.memory_bytes
    for number, item in enumerate(planned):
        check(cancel)
        progress(Progress("prove", number, len(planned), "tensors", item.name))
        tensor = tensors[item.source]
        found = normal_form(tensor)
        for finding in check_map(found).findings:
            reason = ", ".join(f"{name} {value}" for name, value in finding.params.items())
            raise Fault("convert.unsound", tensor=tensor.name, check=finding.code, reason=reason)
        lowered[tensor.name] = found
        compared += sum(1 for _ in replicas(tensor))
        compared += sum(len(piece.holders) > 1 for shard in found.ranks for piece in shard.held)
        compare_copies(tensor, opener=opener, budget_bytes=budget, cancel=cancel)
    for one, other in _ties(plan, tensors):
        compared += _compare_tie(one, other, opener, budget, cancel)
    says = f"{counted(len(planned), 'tensor')}: every element held once or by equal copies"
    if any(note.code == EXTENT for note in plan.notes):
        says += "; how far they reach is what the files have, and not declared"
    copies = (
        f"{compared:,} stored more than once, compared byte for byte"
        if compared
        else "nothing is stored twice"
    )
    return Proven(lowered, (Validation("coverage", "held", says), Validation("copies", "held", copies)))


def _ties(plan: Plan, tensors: Mapping[str, LogicalTensor]) -> Iterator[tuple[LogicalTensor, LogicalTensor]]:
    """Yield the ties of a plan, which has them under their names in the output."""
    renaming = Renaming(plan.options.renames)
    aliases = {alias.name for alias in plan.aliases}
    for tensor in tensors.values() if aliases else ():
        other = tensors.get(tensor.alias_of) if tensor.alias_of is not None else None
        if other is not None and renaming(tensor.name) in aliases:
            yield tensor, other


def _compare_tie(
    one: LogicalTensor, two: LogicalTensor, opener: Opener, budget: int, cancel: threading.Event | None
) -> int:
    """Compare a tie that is stored in places of its own; one in the same bytes needs no comparison."""
    if one.fragments == two.fragments:
        return 0
    at = compare(one, two, opener=opener, budget_bytes=budget, cancel=cancel)
    if at is not None:
        raise Fault(
            "convert.copies_differ",
            tensor=one.name,
            offset=at * DTYPES[one.dtype].bits // 8,
            first=one.fragments[0].record.file,
            second=two.fragments[0].record.file,
        )
    return 1
