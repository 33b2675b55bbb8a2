"""What a person leaves out of a report: whole parts, each of which the report then names."""

from msgspec.structs import replace

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.reports import ReportPart
from shardscope.engine.model.topology import Topology
from shardscope.engine.report.findings import LEFT_OUT


def without(descriptor: Descriptor, parts: frozenset[ReportPart]) -> Descriptor:
    """Return a sanitised descriptor without some of its parts.

    Of blockers the codes stay, with severity and stage: a report without them would look better than the checkpoint is.
    """
    if "tree" in parts:
        descriptor = replace(descriptor, source=replace(descriptor.source, entries=()))
    if "topology" in parts:
        descriptor = replace(descriptor, topology=Topology(note=LEFT_OUT))
    if "blockers" in parts:
        descriptor = replace(descriptor, blockers=tuple(map(_code_alone, descriptor.blockers)))
    return descriptor


def _code_alone(item: Blocker) -> Blocker:
    return Blocker(item.code, item.severity, item.stage, None, LEFT_OUT, LEFT_OUT, item.blocks, {})
