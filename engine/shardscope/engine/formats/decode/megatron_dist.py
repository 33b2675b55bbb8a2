"""Distributed saves of Megatron Core, decoded: `common.pt`, and the tensors of a DCP (`torch_dist`) or of zarr arrays.

Keys are Megatron's own: layers that are alike share a key and a leading axis, experts have a second one, and what is no tensor is
stored under `<key>/shard_<place>_<grid>` (`megatron/core/dist_checkpointing/mapping.py`, `ShardedObject`).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from shardscope.engine.formats.dcp_save import names_in, sharded_backend
from shardscope.engine.formats.decode.dcp import ANSWERED, DecodedSave, decode_save
from shardscope.engine.formats.decode.dcp_facts import evidence_of, scope_of_keys, topology_of
from shardscope.engine.formats.decode.megatron_args import Args, facts_of, read_args
from shardscope.engine.formats.decode.megatron_flat import original_shapes, unflattened
from shardscope.engine.formats.decode.megatron_said import (
    declared_topology,
    decoded_components,
    held_state,
    producer,
    report_names,
    weight_bytes,
    weights_part,
)
from shardscope.engine.formats.decode.megatron_zarr import zarr_tensors
from shardscope.engine.formats.decoder import Decoder, TorchFile
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.megatron_dist import COMMON, METADATA, ZARR
from shardscope.engine.formats.megatron_zarr import Key, is_optimizer, keys_in
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.torch_files import report_opaque
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.descriptor import ProducerFact
from shardscope.engine.model.evidence import Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.shardmap import Block, TensorMap
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import counted, display_name, path_text
from shardscope.engine.model.topology import Axis, Mesh, Topology

_SETTLED: Final = (*ANSWERED, "megatron.model_mapping", "megatron.writer_uneven")
_OBJECT: Final = re.compile(r"(?P<key>.*)/shard_[0-9.]+_(?P<grid>[0-9.]+)")
_EXTRA: Final = "_extra_state"
_RANDOM: Final = "rng_state"
_BUCKETS: Final = frozenset({"dp_reshardable", "dp_zero_gather_scatter", "fully_sharded_bucket_space"})
"""Kinds of optimizer state by bucket (`content_metadata`, `distrib_optim_sharding_type`)."""
_MOST_OBJECTS: Final = 4_096
"""Pickled objects of a zarr save that are decoded."""
_ROW_PARALLEL: Final = ".linear_proj.weight"


class Common(Struct, frozen=True):
    """What `common.pt` says."""

    file: TorchFile
    args: Args | None
    version: float | None
    sharding: str | None
    """How the optimizer's state is laid out."""


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """Return what a distributed save tells; its tensors go to the decoder."""
    probe = decoder.probe
    folder = probe.folder(claim.folder)
    common = _common(decoder, folder)
    backend = sharded_backend(probe, folder) if METADATA in folder.files else None
    arrays = backend == ZARR or (backend is None and not names_in(folder).files)
    save = None if arrays else decode_save(decoder, folder)
    if save is not None:
        read, tensors = _stored(decoder, save), _contents(decoder, save)
        objects: Sequence[str] = tuple(save.saved.objects)
    elif arrays:
        keys = keys_in(probe, folder)
        read, tensors = _objects(decoder, keys), zarr_tensors(decoder, keys)
        objects = tuple(
            f"{key.name}/{entry.name.removesuffix('.pt')}" for key in keys for entry in key.objects
        )
    else:
        return msgspec.structs.replace(facts, producer=(*facts.producer, *_producer(common)))
    if common is not None:
        read.add(common.file.entry.path)
    decoder.settle(claim, *_SETTLED)
    opaque = tuple(entry for entry in facts.opaque if entry.path not in read)
    report_opaque(probe, opaque)
    for tensor in tensors:
        decoder.add(tensor)
    args = common.args if common is not None else None
    model = facts_of(args or Args(), "grouped")
    _report(decoder, display_name(path_text(claim.folder)) or ".", common, model, tensors, objects)
    return msgspec.structs.replace(
        facts,
        confidence=Confidence.HIGH if tensors and args is not None else facts.confidence,
        evidence=(*facts.evidence, *_evidence(common, save)),
        components=decoded_components(facts.components, opaque, len(tensors)),
        producer=(*facts.producer, *_producer(common)),
        topology=_topology(facts, args, save, objects),
        state=_state(facts, common, save, tensors, objects),
        opaque=opaque,
        weight_bytes=weight_bytes(tensors) if tensors else facts.weight_bytes,
        weight_reason=None if tensors else facts.weight_reason,
        model=model,
    )


def _common(decoder: Decoder, folder: Folder) -> Common | None:
    entry = folder.files.get(COMMON)
    file = decoder.torch(entry) if entry is not None else None
    if file is None:
        return None
    tree = file.tree
    version = tree.value(tree.root, "checkpoint_version")
    return Common(
        file,
        read_args(tree, tree.get(tree.root, "args")),
        version if isinstance(version, int | float) and not isinstance(version, bool) else None,
        tree.text(tree.root, "content_metadata", "distrib_optim_sharding_type"),
    )


def _stored(decoder: Decoder, save: DecodedSave) -> set[bytes]:
    """Return the paths of the files of a save whose content its metadata tells."""
    entry = save.saved.metadata[0].entry
    files = names_in(decoder.probe.folder(entry.path.rpartition(b"/")[0])).files
    return {item.path for item in files} - {item.path for item in save.opaque}


def _contents(decoder: Decoder, save: DecodedSave) -> list[LogicalTensor]:
    """Return the tensors of a save with torch_dist; those inside objects are of single ranks and have no whole."""
    kept = [_component(tensor) for tensor in save.tensors if tensor.name in save.saved.tensors]
    return unflattened(decoder, kept, original_shapes(save.saved), save.saved.metadata[0].entry.text)


def _objects(decoder: Decoder, keys: Sequence[Key]) -> set[bytes]:
    """Decode what is no array, for the names that its pickles mention; return the paths."""
    entries = [entry for key in keys for entry in key.objects][:_MOST_OBJECTS]
    return {entry.path for entry in entries if decoder.torch(entry) is not None}


def _component(tensor: LogicalTensor) -> LogicalTensor:
    if is_optimizer(tensor.name):
        return msgspec.structs.replace(tensor, component="optimizer", role="state")
    return tensor


def _report(
    decoder: Decoder,
    shown: str,
    common: Common | None,
    model: ModelFacts,
    tensors: Sequence[LogicalTensor],
    objects: Iterable[str],
) -> None:
    probe = decoder.probe
    args = common.args if common is not None else None
    if common is not None and args is None:
        probe.report("megatron.common_args", common.file.entry)
    extra = sum(_key(name).endswith(_EXTRA) for name in objects)
    if extra:
        probe.report("megatron.extra_state", shown, count=extra)
    if any(tensor.component == "model" for tensor in tensors):
        report_names(decoder, shown, "megatron_dist", model)
    optimizer = [tensor for tensor in tensors if tensor.component == "optimizer"]
    if optimizer and common is not None and common.sharding in _BUCKETS:
        probe.report("megatron.optimizer_buckets", shown, kind=common.sharding)
    _check_cut(decoder, args, tensors)


def _check_cut(decoder: Decoder, args: Args | None, tensors: Sequence[LogicalTensor]) -> None:
    """Hold the declared tensor parallelism against the cut of a weight that ranks cut along its last dimension."""
    if args is None or args.tp is None:
        return
    for tensor in tensors:
        if tensor.component != "model" or not tensor.name.endswith(_ROW_PARALLEL):
            continue
        found = _cuts(tensor)
        if found is not None and found != args.tp:
            probe = decoder.probe
            probe.report(
                "megatron.tensor_parallel_differs", COMMON, expected=args.tp, tensor=tensor.name, found=found
            )
            return


def _cuts(tensor: LogicalTensor) -> int | None:
    """Return into how many chunks a tensor is cut along its last dimension."""
    mapped = tensor.map
    if not isinstance(mapped, TensorMap) or not isinstance(mapped.map, Block):
        return None
    return len({box.offsets[-1] for box in mapped.map.boxes if box is not None and box.offsets}) or None


def _evidence(common: Common | None, save: DecodedSave | None) -> tuple[Evidence, ...]:
    found = []
    if common is not None and common.args is not None:
        says = "arguments of Megatron-LM"
        found.append(Evidence(EvidenceKind.PICKLE, common.file.entry.text, says, Basis.DECLARED))
    if save is not None:
        found.append(evidence_of(save.saved))
    return tuple(found)


def _producer(common: Common | None) -> tuple[ProducerFact, ...]:
    return producer(common.args, common.version, common.file.entry.text) if common is not None else ()


def _topology(facts: Facts, args: Args | None, save: DecodedSave | None, objects: Sequence[str]) -> Topology:
    stored = topology_of(save.saved) if save is not None else facts.topology
    declared = declared_topology(args).meshes if args is not None else _grid_of(objects)
    if save is None:
        return msgspec.structs.replace(stored, meshes=declared or stored.meshes)
    return msgspec.structs.replace(stored, meshes=(*declared, *stored.meshes))


def _grid_of(objects: Sequence[str]) -> tuple[Mesh, ...]:
    """Return pp and tp as the grid of the random states has them: the first two numbers behind the key."""
    for name in objects:
        match = _OBJECT.fullmatch(name)
        sizes = match["grid"].split(".") if match and match["key"].endswith(_RANDOM) else []
        if len(sizes) >= 2 and all(size.isdigit() and len(size) <= 9 for size in sizes):
            says = "the random states form a grid of pp x tp"
            tp, pp = int(sizes[1]), int(sizes[0])
            axes = (Axis("tp", tp, Basis.INFERRED, says), Axis("pp", pp, Basis.INFERRED, says))
            return (Mesh("dense", axes),)
    return ()


def _state(
    facts: Facts,
    common: Common | None,
    save: DecodedSave | None,
    tensors: Sequence[LogicalTensor],
    objects: Sequence[str],
) -> StateScope:
    state = facts.state
    if save is not None:
        keys = [*save.saved.tensors, *map(_key, objects)]
        state = scope_of_keys(state, keys, tensors, save.saved.metadata[0].entry.text)
    elif tensors:
        state = msgspec.structs.replace(state, weights=weights_part(tensors, ()))
    parts = held_state(common.file.tree, common.args) if common is not None else {}
    random = sum(_key(name).endswith(_RANDOM) for name in objects)
    if random:
        parts["rng"] = StatePart(
            Presence.PRESENT, Basis.DECLARED, f"{counted(random, 'object')} of {_RANDOM}"
        )
    return msgspec.structs.replace(state, **parts)


def _key(name: str) -> str:
    match = _OBJECT.fullmatch(name)
    return match["key"] if match else name
