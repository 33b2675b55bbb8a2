"""The decoded plane: every claim's pickles read as data by a contained worker, and the tensors that they describe.

It is entered for one invocation, by a person's intent, and never remembered.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.formats.decode import decode_of
from shardscope.engine.formats.decoder import Decoder, PickleUse, ReadPickles
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.isolation.containment import Containment
from shardscope.engine.model.blocker import Fault, Severity
from shardscope.engine.model.catalogue import Catalogue, LogicalTensor
from shardscope.engine.model.decoded import ComponentFigures, DecodedPlane, DecodedStream, Listed, Reference
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.format_names import HEADERS_ONLY, NOT_CONVERTED
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.oracle import Oracle
from shardscope.engine.model.outline import Outline
from shardscope.engine.model.pickled import Pickled
from shardscope.engine.model.progress import Pace, Progress
from shardscope.engine.model.tensors import TensorTable, array_bytes
from shardscope.engine.model.text import display_name, path_text
from shardscope.engine.parse.pickled.outline import NODES, outline

_REFERENCES = 4_096
"""References that a descriptor lists; foreign ones come first."""

_OUTLINED: Final = 100_000
"""Nodes of all outlines together."""

Described = list[tuple[Claim, Facts]]


class Decoding(Struct, frozen=True):
    """A person's wish to decode, for one invocation."""

    intent: Intent
    listed: Listed = "model"
    limits: DecodeLimits = DecodeLimits()
    checksums: bool = False
    """Whether every byte of the records of tensors is read to compare the checksums that archives record."""
    compares_all: bool = False
    """Whether numbers that a checkpoint holds twice are all compared, and not a bounded part of them."""
    outlines: bool = False
    """Whether what the pickles say is kept as bounded trees to look at."""


class Decoded(Struct, frozen=True):
    """What decoding found."""

    facts: Described
    catalogue: Catalogue
    plane: DecodedPlane
    table: TensorTable
    """The tensors of the component that is listed, and those of families that have no catalogue."""
    oracles: tuple[Oracle, ...] = ()
    """Numbers that files hold twice. A part of them was compared."""
    outlines: tuple[Outline, ...] = ()
    """What the streams say, where that was wished for."""


def decode(
    probe: Probe, facts: Sequence[tuple[Claim, Facts]], wish: Decoding, cancel: threading.Event | None
) -> Decoded:
    """Return what decoding makes of claims that were described. Blockers go to the probe.

    A pickle that cannot be read, and a worker that cannot be had, become blockers: whatever else was found stays. Raises
    `Cancelled`.
    """
    with Containment(wish.intent, wish.limits, cancel=cancel) as worker:
        decoder = Decoder(probe, _told(worker.read, probe), wish.limits)
        decoder.compares_all = wish.compares_all
        found, rest = _families(decoder, facts)
        profile = worker.profile
    catalogue = Catalogue(tuple(decoder.tensors))
    if wish.checksums:
        decoder.payload_bytes += _checked(probe, catalogue)
    table = table_of(tensor for tensor in catalogue.listed(wish.listed) if not _is_in(tensor, rest))
    for tensor in probe.tensors:
        if tensor.file in rest:
            table.append(tensor.file, tensor.name, tensor.dtype, tensor.shape, tensor.begin, tensor.end)
    plane = DecodedPlane(
        listed=wish.listed,
        isolation=profile,
        limits=wish.limits,
        streams=tuple(
            DecodedStream(use.entry.text, use.begin, use.pickled.protocol, use.pickled.opcodes)
            for use in decoder.used
        ),
        references=references_of(decoder.used),
        components=components_of(catalogue),
        payload_bytes=decoder.payload_bytes,
    )
    outlines = outlines_of(decoder.used) if wish.outlines else ()
    return Decoded(found, catalogue, plane, table, tuple(decoder.oracles), outlines)


def _is_in(tensor: LogicalTensor, files: Set[str]) -> bool:
    return bool(tensor.fragments) and tensor.fragments[0].record.file in files


def catalogue_of_headers(probe: Probe, facts: Sequence[tuple[Claim, Facts]]) -> Catalogue:
    """Return the catalogue of those claims that need no pickle. Nothing else about them changes.

    What is only listed from headers is left out beside what can be converted: the two are not one set of tensors.
    """
    decoder = Decoder(probe, _refuse)
    converted = any(claim.format not in NOT_CONVERTED for claim, _ in facts)
    _families(
        decoder,
        [
            (claim, described)
            for claim, described in facts
            if (claim.format in HEADERS_ONLY and not converted)
            or (claim.format not in HEADERS_ONLY and not described.opaque)
        ],
    )
    return Catalogue(tuple(decoder.tensors))


def _checked(probe: Probe, catalogue: Catalogue) -> int:
    """Compare the checksums of all records, say what that came to, and return the bytes read for it."""
    from shardscope.engine.formats.decode.record_checks import check_records

    found = check_records(probe, catalogue.tensors)
    probe.report(
        "torch.records_checked",
        None,
        count=found.records - len(found.damaged),
        size=found.bytes,
        unrecorded=found.unrecorded,
    )
    return found.bytes


def _told(read: ReadPickles, probe: Probe) -> ReadPickles:
    """Return `read`, telling the probe's listener how many streams of pickles were read. How many there are nobody knows."""
    pace, done = Pace(probe.progress), 0

    def reading(data: bytes, pickles: int) -> Pickled:
        nonlocal done
        if pace.due():
            pace.report(Progress("decode", done, None, "pickles", f"one of {len(data):,} bytes"))
        done += 1
        return read(data, pickles)

    return reading


def _refuse(data: bytes, pickles: int) -> Pickled:  # noqa: ARG001 - as a reader of pickles is called
    raise Fault("trust.not_asked")


def _families(decoder: Decoder, facts: Sequence[tuple[Claim, Facts]]) -> tuple[Described, set[str]]:
    """Let every claim's family add its tensors; return the facts, and the files of claims whose rows the safe plane has listed.

    These are those of families without a catalogue, and of those that are listed from headers: a catalogue leaves out types that
    safetensors does not have. Arrays of chunks stand under the names of their folders.
    """
    found: Described = []
    rest: set[str] = set()
    blockers = decoder.probe.blockers
    for claim, described in facts:
        family = decode_of(claim.format)
        if family is None or claim.format in HEADERS_ONLY:
            rest.update(entry.text for entry in claim.files)
            rest.update(path_text(entry.path.rpartition(b"/")[0]) or "." for entry in claim.files)
        if family is None:
            found.append((claim, described))
            continue
        before, reported = len(decoder.tensors), {id(item) for item in blockers}
        known = family(decoder, claim, described)
        added = decoder.tensors[before:]
        broken = any(item.severity is Severity.ERROR and id(item) not in reported for item in blockers)
        found.append((claim, _weighed(known, added, broken=broken)))
    return found, rest


def bytes_of(tensor: LogicalTensor) -> int | None:
    """Return the bytes of the whole tensor; null where its type has no known size."""
    return array_bytes(tensor.dtype, tensor.shape)


def table_of(tensors: Iterable[LogicalTensor]) -> TensorTable:
    """Return tensors as rows of a table: of several files the first one is named, and how many more there are."""
    table = TensorTable()
    for tensor in tensors:
        table.append(_files(tensor), tensor.name, tensor.dtype, tensor.shape, *_range(tensor))
    return table


def _range(tensor: LogicalTensor) -> tuple[int, int]:
    """Return where a tensor of one fragment lies in its file; of several, its size alone."""
    size = bytes_of(tensor) or 0
    if len(tensor.fragments) == 1 and tensor.fragments[0].record.coding == "plain":
        begin = tensor.fragments[0].record.begin + tensor.fragments[0].offset
        return begin, begin + size
    return 0, size


def _files(tensor: LogicalTensor) -> str:
    files = dict.fromkeys(fragment.record.file for fragment in tensor.fragments)
    if not files:
        return ""
    first, *more = files
    return f"{first} + {len(more):,}" if more else first


def _weighed(facts: Facts, added: Sequence[LogicalTensor], *, broken: bool) -> Facts:
    """Return facts with the bytes of the model's weights, where decoding made them known."""
    if facts.weight_bytes is not None or not added:
        return facts
    if broken or facts.opaque:
        return replace(facts, weight_reason="not every tensor could be decoded, see the blockers")
    sizes = [bytes_of(t) for t in added if t.component == "model" and t.alias_of is None]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return replace(facts, weight_reason="a tensor is of a type that safetensors does not have")
    return replace(facts, weight_bytes=sum(known), weight_reason=None)


def outlines_of(used: Sequence[PickleUse]) -> tuple[Outline, ...]:
    """Return what streams say as trees to look at, until there are as many nodes as a person could ever look at."""
    found: list[Outline] = []
    left = _OUTLINED
    for use in used:
        nodes = outline(use.pickled, min(NODES, left)) if left else ()
        if not nodes:
            break
        left -= len(nodes)
        cut = any(node.left_out for node in nodes)
        found.append(Outline(use.entry.text, use.begin, nodes, cut))
    return tuple(found)


def references_of(used: Sequence[PickleUse]) -> tuple[Reference, ...]:
    """Return what pickles refer to, foreign references first, then the most frequent."""
    counts: Counter[tuple[str, str, str]] = Counter()
    streams: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], tuple[str, bool]] = {}
    for use in used:
        for item in use.pickled.references:
            key = (item.module, item.name, item.use)
            counts[key] += item.count
            streams[key] += 1
            first.setdefault(key, (use.entry.text, item.known))
    order = sorted(counts, key=lambda key: (first[key][1], -counts[key], key))
    return tuple(
        Reference(
            module=display_name(key[0], 160),
            name=display_name(key[1], 160),
            use="called" if key[2] == "called" else "named",
            count=counts[key],
            known=first[key][1],
            streams=streams[key],
            first=first[key][0],
        )
        for key in order[:_REFERENCES]
    )


def components_of(catalogue: Catalogue) -> tuple[ComponentFigures, ...]:
    """Return how many tensors and bytes each component has."""
    found = []
    for component in ("model", "optimizer", "other"):
        tensors = [tensor for tensor in catalogue.of(component) if tensor.unwritable is None]
        if not tensors:
            continue
        sizes = [bytes_of(tensor) for tensor in tensors if tensor.alias_of is None]
        known = [size for size in sizes if size is not None]
        found.append(
            ComponentFigures(
                component=tensors[0].component,
                tensors=len(tensors),
                fragments=sum(len(tensor.fragments) for tensor in tensors),
                replicas=sum(len(tensor.replicas) for tensor in tensors),
                aliases=sum(tensor.alias_of is not None for tensor in tensors),
                bytes=sum(known) if len(known) == len(sizes) else None,
            )
        )
    return tuple(found)
