"""The rows of the report: one question and one answer each, from the descriptor and the figures of this host."""

from collections import Counter
from collections.abc import Iterator

from msgspec import UNSET
from rich.text import Text

from shardscope.engine.host import Host
from shardscope.engine.model.decoded import DecodedPlane
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.escalation import IsolationProfile
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.resources import Estimate
from shardscope.engine.model.secrets import redact, shown
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.topology import Mesh
from shardscope.engine.model.wholeness import Whole, wholeness
from shardscope.widgets.figures import memory_left, number, plural, size

OK, CAUTION, STOP, QUIET = "green", "yellow", "bold red", "dim"
WHOLE_STYLE = {Whole.YES: OK, Whole.NO: STOP, Whole.NOT_KNOWN: CAUTION}
RANKS_SHOWN = 6
PARTS_SHOWN = 20
DTYPE_SHOWN = 40
"""Characters of a dtype: an unknown one can be any text."""


def facts(
    descriptor: Descriptor, host: Host | None, *, everything: bool = False
) -> Iterator[tuple[str, Text]]:
    """Yield label and answer, the most wanted first."""
    yield "whole?", _whole(descriptor)
    yield "holds", _holds(descriptor)
    yield "tensors", _tensors(descriptor)
    yield "size", _size(descriptor)
    for mesh in descriptor.topology.meshes:
        yield "topology" if mesh.name == "dense" else f"{mesh.name} mesh", _mesh(mesh)
    if not descriptor.topology.meshes:
        yield "topology", Text(descriptor.topology.note or "no rank is named anywhere that was examined")
    if descriptor.producer:
        yield "producer", _producer(descriptor)
    if len(descriptor.components) > 1:
        yield "parts", _components(descriptor, None if everything else PARTS_SHOWN)
    if descriptor.trust.opaque_files or descriptor.trust.code_files or descriptor.trust.code_references:
        yield "trust", _trust(descriptor)
    if descriptor.decoded is not UNSET:
        yield "decoded", _decoded(descriptor.decoded)
    yield "to convert", _conversion(descriptor)
    if host is not None:
        yield "this host", _host(descriptor, host)


def _decoded(plane: DecodedPlane) -> Text:
    answer = Text(f"{plural(len(plane.streams), 'pickle stream')} read as data")
    if not plane.streams:
        answer = Text("no pickle was read")
    if plane.isolation is not None:
        answer.append(f" ({isolation_words(plane.isolation)})", QUIET)
    for figures in plane.components:
        answer.append(
            f" · {figures.component} {figures.tensors:,} in {plural(figures.fragments, 'fragment')}"
        )
    foreign = [item for item in plane.references if not item.known]
    if foreign:
        answer.append(f" · {plural(len(foreign), 'foreign reference')}, ", CAUTION)
        answer.append(shown(f"{foreign[0].module}.{foreign[0].name}", DTYPE_SHOWN), CAUTION)
    return answer


def isolation_words(profile: IsolationProfile) -> str:
    """Return what contained the worker, in a few words."""
    landlock = "no Landlock" if profile.landlock is None else f"Landlock {profile.landlock.abi}"
    return f"contained: seccomp, {landlock}"


def _whole(descriptor: Descriptor) -> Text:
    found = wholeness(descriptor)
    return Text.assemble((found.answer.value, WHOLE_STYLE[found.answer]), f", {found.why}")


def _holds(descriptor: Descriptor) -> Text:
    scope = descriptor.state_scope
    parts: dict[str, StatePart] = {
        name.replace("_", " "): getattr(scope, name) for name in scope.__struct_fields__
    }
    answer = Text()
    for presence, style, before in (
        (Presence.PRESENT, OK, ""),
        (Presence.OPAQUE, CAUTION, "opaque: "),
        (Presence.UNKNOWN, QUIET, "not known: "),
        (Presence.ABSENT, QUIET, "absent: "),
    ):
        names = [name for name, part in parts.items() if part.presence is presence]
        if names:
            answer.append(" · " if answer else "", QUIET)
            answer.append(before + ", ".join(names), style)
    return answer


def _tensors(descriptor: Descriptor) -> Text:
    found = descriptor.tensors
    if not found.count:
        reason = "none could be listed without decoding" if found.files_opaque else "none"
        return Text(reason, CAUTION if found.files_opaque else "")
    answer = Text(f"{found.count:,}, {size(found.logical_bytes)} · ")
    shares = sorted(found.dtypes, key=lambda share: -share.bytes)
    if len(shares) == 1:
        answer.append(f"all {shown(shares[0].dtype, DTYPE_SHOWN)}")
    else:
        answer.append(", ".join(f"{shown(share.dtype, DTYPE_SHOWN)} {size(share.bytes)}" for share in shares))
    if found.files_opaque:
        answer.append(f" · {plural(found.files_opaque, 'opaque file')} not listed", CAUTION)
    return answer


def _size(descriptor: Descriptor) -> Text:
    source = descriptor.source
    answer = Text(size(source.bytes))
    if source.kind != "file":
        answer.append(f" in {plural(source.files, 'file')}")
        roles = Counter(entry.role for entry in source.entries if entry.kind == "file")
        if len(roles) > 1:
            answer.append(f": {', '.join(f'{count:,} {role}' for role, count in roles.most_common())}")
        if source.folders:
            answer.append(f" · {plural(source.folders, 'folder')}")
    if source.allocated_bytes < source.bytes - (source.bytes >> 3):
        answer.append(f" · only {size(source.allocated_bytes)} of it on disk: files have holes", CAUTION)
    return answer


def _mesh(mesh: Mesh) -> Text:
    answer = Text(" · ").join(
        Text.assemble(
            f"{axis.name.replace('_', ' ')} {number(axis.size)}",
            (f" ({axis.basis.value})" if axis.size is not None else "", QUIET),
        )
        for axis in mesh.axes
    )
    if mesh.ranks_seen:
        answer.append(f" · {plural(len(mesh.ranks_seen), 'rank')} seen", QUIET)
    for ranks, count, word in (
        (mesh.ranks_missing, mesh.missing_count, "missing"),
        (mesh.ranks_duplicate, len(mesh.ranks_duplicate), "twice"),
    ):
        if ranks:
            named = ", ".join(map(mesh.rank_name, ranks[:RANKS_SHOWN]))
            more = f" and {count - RANKS_SHOWN:,} more" if count > RANKS_SHOWN else ""
            answer.append(f" · {word}: {named}{more}", STOP)
    return answer


def _producer(descriptor: Descriptor) -> Text:
    return Text(", ").join(
        Text.assemble(
            redact(f"{fact.name} {fact.version or '(version unknown)'}"), (f" {fact.basis.value}", QUIET)
        )
        for fact in descriptor.producer
    )


def _components(descriptor: Descriptor, most: int | None) -> Text:
    lines = [
        Text.assemble(
            part.kind if part.name in ("", part.kind) else f"{part.kind} {redact(part.name)}",
            (f"  {size(part.bytes)}", QUIET),
        )
        for part in descriptor.components[:most]
    ]
    left = len(descriptor.components) - len(lines)
    if left:
        lines.append(Text(f"… and {left:,} more (-v)", QUIET))
    return Text("\n").join(lines)


def _trust(descriptor: Descriptor) -> Text:
    trust = descriptor.trust
    counts = [
        plural(len(files), noun)
        for files, noun in (
            (trust.opaque_files, "opaque file"),
            (trust.code_files, "code file"),
            (trust.code_references, "code reference"),
        )
        if files
    ]
    return Text.assemble((", ".join(counts), CAUTION), f"; nothing was executed. {trust.requirement}")


def _conversion(descriptor: Descriptor) -> Text:
    needs = descriptor.resources
    known, unknown = [], []
    for word, need in (
        ("output", needs.output_bytes),
        ("staging", needs.temporary_bytes),
        ("memory", needs.peak_ram_bytes),
    ):
        if need.bytes is None or need.basis is Basis.UNKNOWN:
            unknown.append(word)
        else:
            known.append(f"{word} {size(need.bytes)}")
    answer = Text(" · ".join(known))
    if known:
        answer.append(" (estimate)", QUIET)
    if unknown:
        answer.append((" · " if known else "") + f"not known: {', '.join(unknown)}", QUIET)
    return answer


def _host(descriptor: Descriptor, host: Host) -> Text:
    needs = descriptor.resources
    answer = Text(f"{size(host.disk_free)} free on disk")
    answer.append(_short(needs.output_bytes, host.disk_free), STOP)
    answer.append(f" · {size(host.ram_available)} of {size(host.ram_total)} memory free")
    if host.cgroup_limit is not None:
        answer.append(f", limited to {size(host.cgroup_limit)}")
    answer.append(_short(needs.peak_ram_bytes, memory_left(host)), STOP)
    return answer


def _short(need: Estimate, room: int | None) -> str:
    """Say by how much a need exceeds the room there is, or nothing."""
    if need.bytes is None or room is None or need.bytes <= room:
        return ""
    return f" ({size(need.bytes - room)} too little)"
