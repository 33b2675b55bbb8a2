"""PyTorch distributed checkpoints, decoded: the metadata lists every tensor, and every chunk is found in its data file."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.formats import dcp_save
from shardscope.engine.formats.decode.dcp_facts import evidence_of, producer_of, scope_of_keys, topology_of
from shardscope.engine.formats.decode.dcp_metadata import (
    KNOWN_VERSION,
    Metadata,
    Saved,
    folder_name,
    read_saved,
)
from shardscope.engine.formats.decode.dcp_objects import tensors_in_objects
from shardscope.engine.formats.decode.dcp_tensors import chunked_tensors
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.torch_files import report_opaque
from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Confidence
from shardscope.engine.model.pickled import Number
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted
from shardscope.engine.parse.pickled.tree import Tree

ANSWERED: Final = (
    "trust.opaque_pickle",
    "dcp.set_unproven",
    "dcp.rank_gap",
    "dcp.rank_metadata",
    "dcp.payload_compressed",
)
"""What the safe plane says of a save that its metadata answers."""


class DecodedSave(Struct, frozen=True):
    """One distributed save, decoded."""

    saved: Saved
    tensors: tuple[LogicalTensor, ...]
    opaque: tuple[Entry, ...]
    """Files of it that were not decoded."""


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """List the tensors of a claimed save."""
    before = _errors(decoder.probe)
    save = decode_save(decoder, decoder.probe.folder(claim.folder))
    if save is None:
        return facts
    decoder.settle(claim, *ANSWERED)
    for tensor in save.tensors:
        decoder.add(tensor)
    report_opaque(decoder.probe, save.opaque)
    clean = _errors(decoder.probe) == before
    keys = [*save.saved.tensors, *save.saved.objects]
    source = save.saved.metadata[0].entry.text
    return replace(
        facts,
        confidence=Confidence.HIGH if clean else Confidence.MEDIUM,
        evidence=(*facts.evidence, evidence_of(save.saved)),
        components=tuple(decoded_component(item, save) for item in facts.components),
        producer=(*facts.producer, producer_of(save.saved)),
        topology=topology_of(save.saved),
        state=scope_of_keys(facts.state, keys, save.tensors, source),
        opaque=save.opaque,
    )


def decode_save(decoder: Decoder, folder: Folder) -> DecodedSave | None:
    """Return the save in a folder, its tensors with their fragments; null where its metadata cannot be read, which is reported.

    Nothing is added to the decoder's catalogue.
    """
    names = dcp_save.names_in(folder)
    saved = read_saved(decoder, folder, names)
    if saved is None:
        return None
    _check(decoder.probe, folder, saved)
    stale = _stale(decoder.probe, folder, names, saved)
    tensors = (*chunked_tensors(decoder, saved), *tensors_in_objects(decoder, saved))
    read = {entry.path for entry in saved.files.values()} | {item.entry.path for item in saved.metadata}
    skipped = read | {entry.path for entry in stale}
    opaque = tuple(entry for entry in names.files if entry.path not in skipped)
    return DecodedSave(saved, tensors, opaque)


def decoded_component(item: Component, save: DecodedSave) -> Component:
    """Return a part of a checkpoint with what its metadata lists."""
    chunks = sum(len(tensor.chunks) for tensor in save.saved.tensors.values())
    note = f"decoded: {counted(len(save.tensors), 'tensor')} in {counted(chunks, 'chunk')}"
    return replace(item, note=note)


def _check(probe: Probe, folder: Folder, saved: Saved) -> None:
    version = saved.version
    if version is not None and version != KNOWN_VERSION:
        probe.report("dcp.metadata_version", saved.metadata[0].entry, version=version, known=KNOWN_VERSION)
    if len(saved.metadata) > 1:
        probe.report(
            "dcp.ranks_united", folder_name(folder), folder=folder_name(folder), count=len(saved.metadata)
        )
    for item, planner in saved.planner():
        _check_planner(probe, item, planner)


def _check_planner(probe: Probe, item: Metadata, planner: Number) -> None:
    """Compare the original places that the planner records with the keys: `optimizer.state.w.step`, path by path."""
    differ, absent = [], []
    known = set(item.columns.names)
    for key, path in item.tree.entries(planner):
        name = str(key)
        if name not in known:
            absent.append(name)
        if (spelled := _spelled(item.tree, path)) is not None and spelled != name:
            differ.append(name)
    for code, found in (("dcp.names_disagree", differ), ("dcp.names_absent", absent)):
        if found:
            probe.report(code, item.entry, count=len(found), tensor=found[0])


def _spelled(tree: Tree, path: Number) -> str | None:
    """Return the key that the parts of a path make up; null where a part is neither text nor a number."""
    parts = [tree.value(part) for part in tree.items(path)]
    if not parts or not all(isinstance(part, str | int) for part in parts):
        return None
    return ".".join(map(str, parts))


def _stale(probe: Probe, folder: Folder, names: dcp_save.Names, saved: Saved) -> Sequence[Entry]:
    """Return data files of the folder that the metadata does not name, and report them."""
    stale = [entry for entry in names.payload if entry.name not in saved.files]
    if stale:
        shown = folder_name(folder)
        probe.report("dcp.stale_file", stale[0], folder=shown, count=len(stale), first=stale[0].text)
    return stale


def _errors(probe: Probe) -> int:
    return sum(item.severity is Severity.ERROR for item in probe.blockers)
