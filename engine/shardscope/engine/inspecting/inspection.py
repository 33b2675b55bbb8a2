"""Inspection, the first of the six steps: what a checkpoint is, without a byte of it being executed.

`inspect` walks, classifies, describes, hashes and looks again for changes; `with_digests` adds the digests later, for a
screen that shows everything else first.
"""

import copy
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec import UNSET

from shardscope.engine.capabilities.workflow import workflow_of
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.survey import survey
from shardscope.engine.inspecting import assemble
from shardscope.engine.inspecting.classify import Verdict, format_named, weigh
from shardscope.engine.model.blocker import Blocker, Blocks, Fault, Severity, blocker
from shardscope.engine.model.capability import Capability
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.descriptor import Descriptor, Digest
from shardscope.engine.model.evidence import Status
from shardscope.engine.model.exits import ExitCode, most_specific
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.source import Entry, Inventory
from shardscope.engine.model.tensors import TensorTable
from shardscope.engine.model.text import path_text
from shardscope.engine.source.digest import choose
from shardscope.engine.source.source import Source

if TYPE_CHECKING:  # decoding is loaded where it is asked for
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.model.catalogue import Catalogue
    from shardscope.engine.model.outline import Outline

DigestMode = Literal["auto", "all", "none"]
_UNREADABLE: Final = "it could not be read"


class Inspection:
    """What one inspection found, and what a screen needs to go on from there."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        hf_cache: bool,
        descriptor: Descriptor,
        tensors: TensorTable,
        inventory: Inventory,
        read_whole: frozenset[bytes],
        catalogue: "Catalogue | None" = None,
        model: ModelFacts | None = None,
        outlines: "tuple[Outline, ...]" = (),
    ) -> None:
        self.path = path
        """As it was given."""
        self.hf_cache = hf_cache
        self.descriptor = descriptor
        self.tensors = tensors
        self.inventory = inventory
        self.read_whole = read_whole
        """Files of which every byte was read."""
        self.catalogue = catalogue
        """Every tensor with its fragments and its map; null unless decoding or the catalogue was asked for."""
        self.model = model
        """What the checkpoint declares of its model, for mapping tables; null where no family knows it."""
        self.outlines = outlines
        """What the pickles say, where decoding was asked to keep it."""

    def exit_code(self, fail_on: Severity | None = None) -> ExitCode:
        """Return how a process that made this inspection ends."""
        return exit_code(self.descriptor.blockers, fail_on)


def exit_code(blockers: Sequence[Blocker], fail_on: Severity | None = None) -> ExitCode:
    """Return the exit code that some blockers call for.

    A blocker that blocks inspection gives its own code, or 1; so does any at or above `fail_on`. A layout that is
    ambiguous gives 8 although every fact about it was read.
    """
    codes = []
    for item in blockers:
        specific = CODES[item.code].exit
        if specific is not None and item.severity is Severity.ERROR:
            codes.append(specific)
        elif Blocks.INSPECT in item.blocks or (fail_on is not None and item.severity.rank >= fail_on.rank):
            codes.append(ExitCode.BLOCKED)
    return most_specific(codes)


def inspect(
    path: str | os.PathLike[str],
    *,
    limits: Limits | None = None,
    digest: DigestMode = "auto",
    hf_cache: bool = False,
    capabilities: Sequence[Capability] = (),
    decoding: "Decoding | None" = None,
    with_catalogue: bool = False,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Inspection:
    """Return what the file or folder at `path` is, as far as the safe plane can tell.

    `digest` says which files to hash: `auto` all of them up to `Limits.digest_bytes` in total and otherwise those that
    are read whole anyway, `all`, or `none` (headers only). `hf_cache` admits the links of a Hugging Face cache snapshot.
    `capabilities` are looked up for this one call (`capabilities.reading.read_capability`): a diagnosis that changes nothing
    about what is found. `decoding` is a person's wish to have pickles read as data, for this one call; without it not a byte of
    them is interpreted. `with_catalogue` gathers the tensors of headers with their places, as decoding does with all.

    Raises `Fault` where nothing at all can be examined (`source.missing`, ...), `Cancelled` once `cancel` is set.
    """
    limits = limits or Limits()
    with Source(path, limits=limits, hf_cache=hf_cache) as source:
        inventory = source.walk(cancel=cancel, progress=progress)
        probe = Probe(source, inventory, limits, cancel, progress)
        verdict = weigh(probe)
        facts = [(claim, format_named(claim.format).describe(probe, claim)) for claim in verdict.claims]
        tensors, decoded, catalogue = probe.tensors, None, None
        if decoding is not None:
            from shardscope.engine.inspecting.decoding import decode

            decoded = decode(probe, facts, decoding, cancel)
            facts, tensors, catalogue = decoded.facts, decoded.table, decoded.catalogue
        elif with_catalogue:
            from shardscope.engine.inspecting.decoding import catalogue_of_headers

            catalogue = catalogue_of_headers(probe, facts)
        survey(probe, {entry.path for claim in verdict.claims for entry in claim.files})
        digests, unhashed = _digests(source, inventory, probe.read_whole, digest, limits, cancel, progress)
        changes = source.recheck(inventory, cancel=cancel)
    blockers = assemble.ordered([*inventory.blockers, *probe.blockers, *unhashed, *changes])
    descriptor = assemble.descriptor(
        inventory=inventory,
        limits=limits,
        digest_mode=digest,
        digests=digests,
        hf_cache=hf_cache,
        verdict=verdict,
        status=_status(verdict, blockers),
        facts=facts,
        tensors=tensors,
        headers_read=probe.headers_read,
        blockers=blockers,
        capabilities=capabilities,
        decoded=None if decoded is None else decoded.plane,
    )
    model = next((found.model for _, found in facts if found.model is not None), None)
    read_whole = frozenset(probe.read_whole)
    outlines = () if decoded is None else decoded.outlines
    return Inspection(path, hf_cache, descriptor, tensors, inventory, read_whole, catalogue, model, outlines)


def with_digests(
    inspection: Inspection,
    mode: DigestMode = "auto",
    *,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Inspection:
    """Return `inspection` with digests: the pass that a screen runs after every other fact is shown.

    A file that is no longer what the walk saw becomes a blocker. Raises `Fault` where the root is gone, `Cancelled`
    once `cancel` is set.
    """
    descriptor = inspection.descriptor
    inventory = inspection.inventory
    with Source(inspection.path, limits=descriptor.limits, hf_cache=inspection.hf_cache) as source:
        digests, unhashed = _digests(
            source, inventory, inspection.read_whole, mode, descriptor.limits, cancel, progress
        )
    entries = tuple(
        msgspec.structs.replace(record, digest=digests.get(entry.path, record.digest))
        for record, entry in zip(descriptor.source.entries, inventory.entries, strict=True)
    )
    source_record = msgspec.structs.replace(descriptor.source, digest_mode=mode, entries=entries)
    blockers = assemble.ordered([*descriptor.blockers, *unhashed])
    digested = copy.copy(inspection)
    digested.descriptor = msgspec.structs.replace(
        descriptor,
        source=source_record,
        workflow=workflow_of(
            descriptor.classification,
            descriptor.state_scope,
            descriptor.tensors,
            descriptor.trust,
            descriptor.adapter,
            blockers,
            decoded=None if descriptor.decoded is UNSET else descriptor.decoded,
        ),
        blockers=blockers,
    )
    return digested


def carry_digests(inspection: Inspection, earlier: Inspection) -> Inspection | None:
    """Return `inspection` with the digests of an `earlier` one, so that nothing is hashed twice.

    None where the files are not all the same by their identities, or where some of them could not be hashed.
    """
    before, after = earlier.descriptor.source, inspection.descriptor.source
    same = earlier.inventory.entries == inspection.inventory.entries
    if not same or any(record.digest.reason == _UNREADABLE for record in before.entries):
        return None
    entries = tuple(
        msgspec.structs.replace(record, digest=known.digest)
        for record, known in zip(after.entries, before.entries, strict=True)
    )
    source = msgspec.structs.replace(after, digest_mode=before.digest_mode, entries=entries)
    carried = copy.copy(inspection)
    carried.descriptor = msgspec.structs.replace(inspection.descriptor, source=source)
    return carried


def _digests(
    source: Source,
    inventory: Inventory,
    read_whole: set[bytes] | frozenset[bytes],
    mode: DigestMode,
    limits: Limits,
    cancel: threading.Event | None,
    progress: OnProgress | None,
) -> tuple[Mapping[bytes, Digest], list[Blocker]]:
    """Return for every file its digest or the reason why it has none, and what stood in the way."""
    chosen = choose(inventory.files, mode, limits.digest_bytes, read_whole)
    wanted = [entry for entry in inventory.files if chosen[entry.path].hashed]
    faults: dict[bytes, Blocker] = {}

    def on_fault(entry: Entry, fault: Fault) -> None:
        faults[entry.path] = blocker(fault.finding, path_text(entry.path))

    hashes = source.digests(wanted, cancel=cancel, progress=progress, on_fault=on_fault)
    digests = {
        path: Digest(hashes.get(path), _UNREADABLE if path in faults else choice.reason)
        for path, choice in chosen.items()
    }
    return digests, list(faults.values())


def _status(verdict: Verdict, blockers: Sequence[Blocker]) -> Status:
    if any(Blocks.INSPECT in item.blocks for item in blockers):
        return Status.REFUSED
    match verdict.format:
        case "ambiguous":
            return Status.AMBIGUOUS
        case "unknown" | "empty":
            return Status.UNKNOWN
    return Status.CONDITIONAL
