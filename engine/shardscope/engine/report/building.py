"""A report out of what was found: the documents of a bundle, as the bytes that are written."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Struct

from shardscope.engine.model import schemas
from shardscope.engine.model.blocker import Blocker, Severity, Stage
from shardscope.engine.model.descriptor import Descriptor, ProducerFact, to_json
from shardscope.engine.model.reports import (
    Degrees,
    Desired,
    ModelReference,
    Report,
    ReportEnvironment,
    ReportFailure,
    ReportFile,
    ReportManifest,
    ReportOptions,
    ReportTool,
)
from shardscope.engine.model.text import json_escape
from shardscope.engine.report import findings
from shardscope.engine.report.names import Names
from shardscope.engine.report.offsets import OFFSETS
from shardscope.engine.report.omitting import without
from shardscope.engine.report.readme import readme
from shardscope.engine.report.sanitising import sanitised

if TYPE_CHECKING:
    from shardscope.engine.model.documents import ErrorBody

README: Final = "README.txt"
REPORT: Final = "report.json"
DESCRIPTOR: Final = "descriptor.json"
MANIFEST: Final = "manifest.json"
MEMBERS: Final = (README, REPORT, DESCRIPTOR, MANIFEST)
"""Every file that a bundle can have, in order. The descriptor is absent where nothing could be examined."""


class Given(Struct, frozen=True):
    """What goes into a report beside the descriptor: from the person, and from this installation."""

    tool: ReportTool
    command: tuple[str, ...]
    options: ReportOptions
    desired: Desired | None
    model: ModelReference
    environment: ReportEnvironment | None


class Built(Struct, frozen=True):
    """A report that was made and not yet written."""

    report: Report
    descriptor: Descriptor | None
    members: Mapping[str, bytes]
    """The files of the bundle by their names, in the order in which they are written."""


def build(
    given: Given, descriptor: Descriptor | None, failed: "Blocker | ErrorBody | None", names: Names
) -> Built:
    """Return the report of a checkpoint. `failed` is why a command ended, or why there is no descriptor."""
    left_out = frozenset(given.options.without)
    clean = None if descriptor is None else without(sanitised(descriptor, names), left_out)
    failure = None if failed is None else _failure(failed, names)
    found = None if clean is None else clean.classification
    report = Report(
        schema=schemas.REPORT,
        tool=given.tool,
        command=given.command,
        options=given.options,
        desired=given.desired,
        model=given.model,
        environment=given.environment,
        format=None if found is None else found.format,
        status=None if found is None else found.status,
        confidence=None if found is None else found.confidence,
        producer=_producer(clean),
        topology=Degrees() if clean is None else degrees(clean),
        offsets=() if found is None else OFFSETS.get(found.format, ()),
        first_failing_stage=first_stage(() if clean is None else clean.blockers, failure),
        failure=failure,
        replaced=dict(
            sorted((names.dropped + Counter(each.reason for each in names.replaced.values())).items())
        ),
    )
    if "descriptor" in left_out:
        clean = None
    members = {README: json_escape(readme(report, clean)).encode(), REPORT: to_json(report).encode()}
    if clean is not None:
        members[DESCRIPTOR] = to_json(clean).encode()
    files = tuple(
        ReportFile(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in members.items()
    )
    members[MANIFEST] = to_json(ReportManifest(schemas.REPORT_MANIFEST, files)).encode()
    return Built(report, clean, members)


def degrees(descriptor: Descriptor) -> Degrees:
    """Return the figures of the topology; of meshes that both have an axis, the first one counts."""
    sizes: dict[str, int] = {}
    for mesh in descriptor.topology.meshes:
        for axis in mesh.axes:
            if axis.size is not None and axis.name in (*Degrees.__struct_fields__, "nodes"):
                sizes.setdefault(axis.name, axis.size)
    return Degrees(**sizes)


def first_stage(blockers: tuple[Blocker, ...], failure: ReportFailure | None) -> Stage | None:
    """Return the earliest stage, in the order of the work, at which an error was found."""
    stages = {item.stage for item in blockers if item.severity is Severity.ERROR}
    if failure is not None and failure.stage in set(Stage):
        stages.add(Stage(failure.stage))
    return next((stage for stage in Stage if stage in stages), None)


def _producer(descriptor: Descriptor | None) -> tuple[ProducerFact, ...]:
    return () if descriptor is None else descriptor.producer


def _failure(failed: "Blocker | ErrorBody", names: Names) -> ReportFailure:
    if not isinstance(failed, Blocker):
        return findings.failure(failed, names)
    said = findings.blocker(failed, names)
    return ReportFailure(said.code, said.message, said.remedy, said.subject, said.params, said.stage.value)


def was_decoded(descriptor: Descriptor | None) -> bool:
    """Tell whether a descriptor was made by decoding."""
    return descriptor is not None and descriptor.decoded is not UNSET
