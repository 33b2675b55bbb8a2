"""States that Accelerate saves, decoded part by part: distributed saves, rank files, single files, Hugging Face weights.

Single files are those of `accelerate/checkpointing.py` and `utils/fsdp_utils.py`. Their tensors are listed under the keys that lead
to them, those of an optimizer under the name of its file as well (`optimizer.state.l1.weight.exp_avg`), as a distributed save
of the same optimizer names them.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.formats.accelerate_state import Parts, part_of, parts_in
from shardscope.engine.formats.dcp_save import names_in
from shardscope.engine.formats.decode import dcp, fsdp, hf_torch
from shardscope.engine.formats.decode.dcp_facts import evidence_of, topology_of
from shardscope.engine.formats.decode.torch_components import parts_of
from shardscope.engine.formats.decode.torch_listing import Listing, list_file
from shardscope.engine.formats.decode.whole_safetensors import listed
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.hf_torch import HF_TORCH
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.roles import role_of
from shardscope.engine.formats.torch_files import report_opaque
from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.decoded import Component
from shardscope.engine.model.descriptor import Component as Part
from shardscope.engine.model.evidence import Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import counted
from shardscope.engine.model.topology import Topology

_RANDOM_READ: Final = 256
"""Random states that are decoded: each process writes one, and one is like the other."""
_SCOPES: Final = {
    "optimizer": "optimizer",
    "scheduler": "scheduler",
    "rng": "rng",
    "scaler": "scaler",
    "progress": "progress",
    "data position": "data_position",
}


class _Reading(Struct):
    """What decoding came to so far."""

    read: set[bytes]
    tensors: list[LogicalTensor]
    evidence: list[Evidence]
    saves: list[tuple[Folder, dcp.DecodedSave]]
    sets: list[fsdp.DecodedSet]
    singles: list[Entry]
    top: dict[str, str]
    """Parts of a state scope that keys of single files name, each with the file."""


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """List the tensors of every part of a state."""
    before = _errors(decoder)
    folder = decoder.probe.folder(claim.folder)
    parts = parts_in(decoder.probe, folder)
    reading = _Reading(set(), [], [], [], [], [], {})
    pickled = {entry.path for entry in facts.opaque}
    for found in parts.folders:
        if names_in(found).files:
            _save(decoder, found, reading)
    for each in fsdp.readable(parts.ranks, facts.opaque):
        decoded = fsdp.decode_set(decoder, each)
        reading.sets.append(decoded)
        reading.read |= {entry.path for entry in decoded.state.read}
        reading.tensors += decoded.tensors
    for entry in parts.full:
        if entry.path in pickled:
            _single(decoder, entry, reading, "model", "")
    for entry in (*parts.random[:_RANDOM_READ], *parts.rest):
        if entry.path in pickled:
            _companion(decoder, entry, reading)
    for tensor in reading.tensors:
        decoder.add(tensor)
    _weights(decoder, folder, parts, reading, facts)
    if not reading.read:
        return facts
    return _facts(decoder, claim, facts, reading, parts, clean=_errors(decoder) == before)


def _save(decoder: Decoder, folder: Folder, reading: _Reading) -> None:
    save = dcp.decode_save(decoder, folder)
    if save is None:
        return
    optimizer = part_of(folder) == "optimizer"
    reading.saves.append((folder, save))
    reading.read |= {entry.path for entry in names_in(folder).files} - {entry.path for entry in save.opaque}
    reading.tensors += [_of_optimizer(tensor) for tensor in save.tensors] if optimizer else save.tensors
    reading.evidence.append(evidence_of(save.saved))


def _of_optimizer(tensor: LogicalTensor) -> LogicalTensor:
    """Return a tensor of a save that holds an optimizer and nothing else, whatever its keys begin with."""
    return replace(tensor, component="optimizer", role="state", apart=True)


def _companion(decoder: Decoder, entry: Entry, reading: _Reading) -> None:
    """Decode a file beside the weights. Random states, schedulers and the like are looked at for their keys alone."""
    role = role_of(entry.name)
    if role == "optimizer":
        _single(decoder, entry, reading, "optimizer", f"{_stem(entry)}.")
    elif role in _SCOPES:
        _single(decoder, entry, reading, None, "")
    else:
        _single(decoder, entry, reading, "other", f"{_stem(entry)}.")


def _single(
    decoder: Decoder, entry: Entry, reading: _Reading, component: Component | None, prefix: str
) -> None:
    """Decode one file, and list its tensors where they are of a component."""
    file = decoder.torch(entry)
    if file is None:
        return
    reading.read.add(entry.path)
    reading.singles.append(entry)
    if component is None:
        keys = [str(key) for key, _ in file.tree.entries(file.tree.root)]
    else:
        found = list_file(decoder, file, component=component)
        keys = list(found.top)
        reading.tensors += _prefixed(found, prefix)
    for part in parts_of(keys):
        reading.top.setdefault(part, entry.text)


def _prefixed(found: Listing, prefix: str) -> list[LogicalTensor]:
    return [
        replace(
            tensor,
            name=prefix + tensor.name,
            alias_of=None if tensor.alias_of is None else prefix + tensor.alias_of,
            apart=bool(prefix),
        )
        for tensor in found.tensors
    ]


def _stem(entry: Entry) -> str:
    return entry.name.rpartition(".")[0]


def _weights(decoder: Decoder, folder: Folder, parts: Parts, reading: _Reading, facts: Facts) -> None:
    """List Hugging Face weights in the state, of either form."""
    if not parts.weights:
        return
    found = listed(decoder.probe.tensors, parts.weights)
    for tensor in found:
        decoder.add(tensor)
    reading.tensors += found
    claim = HF_TORCH.recognise(decoder.probe, folder.only(parts.weights))
    if not isinstance(claim, Claim):
        return
    mine = {entry.path for entry in claim.files}
    opaque = tuple(entry for entry in facts.opaque if entry.path in mine)
    before = len(decoder.tensors)
    inner = hf_torch.decode(decoder, claim, Facts(Confidence.LOW, opaque=opaque))
    reading.tensors += decoder.tensors[before:]
    reading.evidence += inner.evidence
    reading.read |= {entry.path for entry in opaque} - {entry.path for entry in inner.opaque}


def _facts(
    decoder: Decoder, claim: Claim, facts: Facts, reading: _Reading, parts: Parts, *, clean: bool
) -> Facts:
    decoder.settle(claim, *dcp.ANSWERED, *fsdp.ANSWERED)
    for folder, _ in reading.saves:
        decoder.settle(replace(claim, folder=folder.path), *dcp.ANSWERED)
    opaque = tuple(entry for entry in facts.opaque if entry.path not in reading.read)
    skipped = [entry for entry in opaque if entry in parts.random[_RANDOM_READ:]]
    report_opaque(decoder.probe, opaque)
    evidence = [*facts.evidence, *reading.evidence]
    evidence += [fsdp.evidence_of(each) for each in reading.sets if each.state.read]
    if reading.singles:
        says = f"{counted(len(reading.singles), 'file')} of torch.save read as data"
        evidence.append(Evidence(EvidenceKind.PICKLE, reading.singles[0].text, says, Basis.OBSERVED))
    unread = {entry.text for entry in opaque}
    return replace(
        facts,
        confidence=Confidence.HIGH if clean and len(skipped) == len(opaque) else Confidence.MEDIUM,
        evidence=tuple(evidence),
        components=tuple(_seen(item, reading, unread) for item in facts.components),
        topology=_topology(facts.topology, reading),
        state=_state(facts.state, reading),
        opaque=opaque,
    )


def _seen(item: Part, reading: _Reading, unread: set[str]) -> Part:
    for _, save in reading.saves:
        if save.saved.metadata[0].entry.text in item.files:
            return dcp.decoded_component(item, save)
    opaque = item.note is not None and item.note.startswith("opaque")
    return replace(item, note=None) if opaque and not unread.intersection(item.files) else item


def _topology(topology: Topology, reading: _Reading) -> Topology:
    for folder, save in reading.saves:
        if part_of(folder) == "weights":
            return topology_of(save.saved)
    return fsdp.topology_of(reading.sets, topology) if reading.sets else topology


def _state(state: StateScope, reading: _Reading) -> StateScope:
    """Return the state scope with what was read: tensors by component, keys of single files, keys of saves."""
    found: dict[str, StatePart] = {}
    for part, file in reading.top.items():
        says = f"{file} names it"
        found[part] = StatePart(Presence.PRESENT, Basis.OBSERVED, says, (file,))
    for entry in reading.singles:
        scope = _SCOPES.get(role_of(entry.name))
        if scope is not None:
            found[scope] = StatePart(
                Presence.PRESENT, Basis.OBSERVED, f"{entry.text} was decoded", (entry.text,)
            )
    for part, component in (("weights", "model"), ("optimizer", "optimizer")):
        count = sum(tensor.component == component for tensor in reading.tensors)
        if count:
            found[part] = StatePart(Presence.PRESENT, Basis.OBSERVED, counted(count, "tensor"))
    return replace(state, **found)


def _errors(decoder: Decoder) -> int:
    return sum(item.severity is Severity.ERROR for item in decoder.probe.blockers)
