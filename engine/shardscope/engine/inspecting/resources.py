"""How many bytes a checkpoint holds and how many a conversion would need: a number with its basis, or null and why."""

from collections.abc import Sequence

from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.format_names import NOT_CONVERTED, RECOGNISED_ONLY
from shardscope.engine.model.resources import Estimate, Resources
from shardscope.engine.model.source import Inventory
from shardscope.engine.model.tensors import TensorTable

Described = Sequence[tuple[Claim, Facts]]


def resources_of(
    inventory: Inventory, facts: Described, table: TensorTable, blockers: Sequence[Blocker]
) -> Resources:
    """Return the five figures of one inspection."""
    source = sum(entry.size for entry in inventory.files)
    known = [found.weight_bytes for _, found in facts if found.weight_bytes is not None]
    logical = sum(known) if facts and len(known) == len(facts) else None
    several = any(item.code == "layout.weight_sets" for item in blockers)
    headers = 8 + sum(map(len, table.names)) + 100 * len(table)
    return Resources(
        source_bytes=Estimate(source, Basis.OBSERVED, "sizes of the regular files"),
        logical_bytes=_unknown(_why_unknown(facts))
        if logical is None
        else Estimate(logical, Basis.DERIVED, "shapes times element sizes of the weights"),
        output_bytes=_unknown(_why_unknown(facts))
        if logical is None
        else _unknown("several weight sets stand side by side, and which of them is meant was not said")
        if several
        else _unknown(_why_not_planned(facts))
        if all(claim.format in NOT_CONVERTED for claim, _ in facts)
        else Estimate(
            logical + headers, Basis.DERIVED, "an estimate: weights as they are stored, with headers"
        ),
        temporary_bytes=_unknown(_why_not_planned(facts)),
        peak_ram_bytes=_unknown(_why_not_planned(facts)),
    )


def _unknown(why: str) -> Estimate:
    return Estimate(None, Basis.UNKNOWN, why)


def _why_unknown(facts: Described) -> str:
    if not facts:
        return "no format was decided"
    reasons = [
        found.weight_reason for _, found in facts if found.weight_bytes is None and found.weight_reason
    ]
    if reasons:
        return reasons[0]
    if not any(found.opaque for _, found in facts):
        return "some tensors are missing or cannot be read"
    some = any(found.weight_bytes is not None for _, found in facts)
    return "some tensors are opaque or missing" if some else "no tensor is known without decoding"


def _why_not_planned(facts: Described) -> str:
    if not facts:
        return "no format was decided, so no conversion can be planned"
    if all(claim.format in RECOGNISED_ONLY for claim, _ in facts):
        return "the format is recognised only: nothing here converts it"
    if all(claim.format in NOT_CONVERTED for claim, _ in facts):
        return "the format is listed from headers: nothing here converts it"
    return "a conversion plan computes it; none was made"
