"""Megatron-LM's rank files, decoded: `mp_rank_*/model_optim_rng.pt` (`megatron/training/checkpointing.py`).

A file holds the arguments of the run, the model of one rank (of each virtual stage, `model0`, `model1`, ...) and the rest of
its state. Neither says how slices were cut: that is looked up by name in a layout table. Layers and experts are counted anew in
each file, and get their numbers in the model here.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from shardscope.engine.formats.decode.megatron_args import facts_of, order_of
from shardscope.engine.formats.decode.megatron_ranks import RankFile, Ranks, decoded_files, placed
from shardscope.engine.formats.decode.megatron_said import (
    decoded_components,
    held_state,
    layout_table,
    producer,
    rank_topology,
    report_layout,
    report_names,
    weight_bytes,
    weights_part,
)
from shardscope.engine.formats.decode.megatron_shards import Shards
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.megatron_legacy import MODEL, OPTIMIZER, RankFolder, rank_folders
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.torch_files import report_opaque
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.descriptor import ProducerFact
from shardscope.engine.model.evidence import Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.pickled import PickledTensor
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import counted, display_name, path_text

_SETTLED: Final = ("trust.opaque_pickle", "megatron.model_mapping")
_GRAND: Final = ("grad_scaler", "scaler")


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """Return what the rank files tell; their tensors go to the decoder, put together."""
    probe = decoder.probe
    folders = rank_folders(probe, probe.folder(claim.folder))
    files = decoded_files(decoder, folders)
    if not files:
        return facts
    decoder.settle(claim, *_SETTLED)
    read = {file.entry.path for file in files}
    opaque = tuple(entry for entry in facts.opaque if entry.path not in read)
    report_opaque(probe, [entry for entry in opaque if entry.name == MODEL])
    facts = msgspec.structs.replace(facts, opaque=opaque, producer=_producer(files[0]))
    ranks = placed(probe, files)
    if ranks is None:
        return facts
    if ranks.on_diagonal:
        decoder.settle(claim, "megatron.rank_missing")
    shown = display_name(path_text(claim.folder)) or "."
    shards = _shards(decoder, ranks)
    tensors = shards.tensors() if shards is not None and shards.gather() else []
    for tensor in tensors:
        decoder.add(tensor)
    if shards is not None:
        _report(decoder, shown, shards, len(tensors))
    numbered = _report_optimizer(decoder, folders, files)
    return msgspec.structs.replace(
        facts,
        confidence=Confidence.HIGH if tensors and ranks.files[min(ranks.files)].args else facts.confidence,
        evidence=(*facts.evidence, *_evidence(ranks, len(tensors))),
        components=decoded_components(facts.components, opaque, len(tensors)),
        topology=rank_topology(ranks),
        state=_state(facts, files, folders, numbered, [file.entry.text for file in files], tensors),
        weight_bytes=weight_bytes(tensors) if tensors else None,
        weight_reason=None if tensors else "no tensor could be put together",
        model=shards.facts if shards is not None else None,
    )


def _shards(decoder: Decoder, ranks: Ranks) -> Shards | None:
    """Return the shards to gather; null for a version whose order of rows is not known."""
    file = ranks.files[min(ranks.files)]
    qkv = "grouped" if ranks.version is None and _is_core(file) else order_of(ranks.version)
    if qkv is None:
        decoder.probe.report("megatron.version_unknown", file.entry, found=f"{ranks.version:g}")
        return None
    return Shards(decoder, ranks, layout_table(), facts_of(ranks.args, qkv))


def _is_core(file: RankFile) -> bool:
    """Tell whether a model has Megatron Core's names: it is younger than any other order of rows."""
    return any(
        isinstance(key, str) and key.startswith(("decoder.", "embedding.", "output_layer."))
        for model in file.models()
        for key, _ in file.tree.entries(model)
    )


def _report(decoder: Decoder, shown: str, shards: Shards, count: int) -> None:
    probe = decoder.probe
    if shards.unknown:
        name, file = next(iter(shards.unknown.items()))
        probe.report(
            "megatron.name_unknown",
            file.entry,
            count=len(shards.unknown),
            table=shards.layout.name,
            tensor=name,
        )
    if not shards.met:
        files = list(shards.ranks.files.values())
        probe.report("megatron.model_empty", files[0].entry, count=len(files))
    for finding in list(shards.unclear.values())[:1]:
        probe.note(finding, shown)
    if shards.extra:
        probe.report("megatron.extra_state", shown, count=shards.extra)
    if count:
        report_layout(decoder, shown, shards.layout, shards.facts, count)
        report_names(decoder, shown, "megatron_legacy", shards.facts)
    _report_layers(decoder, shown, shards)


def _report_layers(decoder: Decoder, shown: str, shards: Shards) -> None:
    """Report declared layers without a tensor."""
    layers = shards.ranks.args.layers
    if layers is None or layers > 1 << 20:
        return
    found = shards.layers
    missing = [layer for layer in range(layers) if layer not in found]
    if missing and found:
        decoder.probe.report(
            "megatron.layer_missing", shown, count=len(missing), layers=layers, first=missing[0]
        )


def _report_optimizer(
    decoder: Decoder, folders: Sequence[RankFolder], files: Sequence[RankFile]
) -> list[RankFile]:
    """Report optimizer state that has no names; return the files that keep it by number."""
    probe = decoder.probe
    buckets = [entry for folder in folders for entry in folder.optimizer if entry.name == OPTIMIZER]
    if buckets:
        probe.report("megatron.optimizer_buckets", buckets[0], kind=OPTIMIZER)
    numbered = [file for file in files if _has_tensors(file)]
    if numbered:
        first = numbered[0].entry
        probe.report("megatron.optimizer_numbered", first, count=len(numbered), first=first.text)
    return numbered


def _has_tensors(file: RankFile) -> bool:
    tree = file.tree
    optimizer = tree.get(tree.root, "optimizer")
    return optimizer is not None and any(
        isinstance(tree.node(number), PickledTensor) for _, number in tree.leaves(optimizer)
    )


def _state(
    facts: Facts,
    files: Sequence[RankFile],
    folders: Sequence[RankFolder],
    numbered: Sequence[RankFile],
    names: Sequence[str],
    tensors: Sequence[LogicalTensor],
) -> StateScope:
    first = files[0]
    tree = first.tree
    parts = held_state(tree, first.args)
    optimizer = [entry.text for folder in folders for entry in folder.optimizer]
    if numbered:
        optimizer = [file.entry.text for file in numbered]
        parts["optimizer"] = StatePart(
            Presence.PRESENT, Basis.OBSERVED, "by number instead of by name", tuple(optimizer[:8])
        )
    elif optimizer:
        parts["optimizer"] = facts.state.optimizer
    else:
        parts["optimizer"] = StatePart(Presence.ABSENT, Basis.DECLARED, "no optimizer beside the model")
    scaler = any(tree.has(tree.root, "optimizer", key) for key in _GRAND)
    parts["scaler"] = (
        StatePart(Presence.PRESENT, Basis.DECLARED, "inside the optimizer's state")
        if scaler
        else StatePart(Presence.ABSENT, Basis.DECLARED, "no scaler in the optimizer's state")
    )
    return msgspec.structs.replace(
        facts.state,
        weights=weights_part(tensors, names),
        **parts,
    )


def _producer(file: RankFile) -> tuple[ProducerFact, ...]:
    return producer(file.args, file.version, file.entry.text)


def _evidence(ranks: Ranks, count: int) -> tuple[Evidence, ...]:
    file = ranks.files[min(ranks.files)]
    if file.args is None:
        return ()
    says = f"arguments of Megatron-LM beside {counted(count, 'tensor')}"
    return (Evidence(EvidenceKind.PICKLE, file.entry.text, says, Basis.DECLARED),)
