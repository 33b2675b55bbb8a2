"""What decoding a Megatron save tells beyond its tensors: topology by declared sizes, state, producer, decisions taken."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Final

import msgspec

from shardscope.engine.formats.decode.megatron_args import Args
from shardscope.engine.formats.decode.megatron_ranks import Place, Ranks
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.fitting import fitting_tables, in_words
from shardscope.engine.geometry.mapping.tables import LayoutTable
from shardscope.engine.mappings import MEGATRON, table
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.descriptor import Component, ProducerFact
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import counted
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology
from shardscope.engine.parse.pickled.tree import Tree

_SCHEDULERS: Final = ("opt_param_scheduler", "lr_scheduler", "scheduler")
_RANDOM: Final = (
    "rng_state",
    "random_rng_state",
    "np_rng_state",
    "torch_rng_state",
    "cuda_rng_state",
    "rng_tracker_states",
)


def rank_topology(ranks: Ranks) -> Topology:
    """Return the meshes that the arguments declare, with the rank files that are here."""
    args = ranks.args
    says = "args.{}".format
    dense = (
        _axis("tp", ranks.tp, args.tp, says("tensor_model_parallel_size")),
        _axis("pp", ranks.pp, args.pp, says("pipeline_model_parallel_size")),
    )
    expert = (
        _axis("ep", ranks.ep, args.ep, says("expert_model_parallel_size")),
        Axis("etp", args.etp, Basis.DECLARED, says("expert_tensor_parallel_size"))
        if args.etp
        else Axis("etp", ranks.tp, Basis.DERIVED, "as tp, where nothing else is declared"),
        dense[1],
    )
    places = sorted(ranks.files)
    meshes = [_mesh("dense", (*_world(args), *dense), [(place.tp, place.pp) for place in places])]
    held: list[RankFiles] = []
    if ranks.ep > 1:
        own = args.etp or ranks.tp
        meshes.append(_mesh("expert", expert, [(place.ep, place.tp % own, place.pp) for place in places]))
    for place in places:
        folder = ranks.files[place].folder
        files = tuple(entry.text for entry in folder.files)
        if ranks.ep > 1:
            held.append(RankFiles("expert", _expert(place, args, ranks), files))
        else:
            held.append(RankFiles("dense", (place.tp, place.pp), files))
    return Topology((*meshes, *_replicas(args)), tuple(held), _stages(args))


def _expert(place: Place, args: Args, ranks: Ranks) -> tuple[int, int, int]:
    return place.ep, place.tp % (args.etp or ranks.tp), place.pp


def _mesh(name: str, axes: tuple[Axis, ...], seen: Iterable[tuple[int, ...]]) -> Mesh:
    here = sorted(set(seen))
    sizes = Mesh(name, axes).extents
    every: list[tuple[int, ...]] = [()]
    if len(here) < prod(sizes) <= 1 << 16:
        for size in sizes:
            every = [(*place, at) for place in every for at in range(size)]
        missing = tuple(sorted(set(every) - set(here))[:64])
    else:
        missing = ()
    return Mesh(name, axes, tuple(here), missing)


def declared_topology(args: Args) -> Topology:
    """Return the meshes that the arguments of a distributed save declare."""
    says = "args.{} in common.pt".format
    axes = [
        _declared("tp", args.tp, says("tensor_model_parallel_size")),
        _declared("pp", args.pp, says("pipeline_model_parallel_size")),
    ]
    meshes = [Mesh("dense", (*_world(args), *axes))]
    if (args.ep or 1) > 1:
        expert = (
            _declared("ep", args.ep, says("expert_model_parallel_size")),
            _declared("etp", args.etp, says("expert_tensor_parallel_size"))
            if args.etp or not args.tp
            else Axis("etp", args.tp, Basis.DERIVED, "as tp, where nothing else is declared"),
            axes[1],
        )
        meshes.append(Mesh("expert", expert))
    return Topology((*meshes, *_replicas(args)), note=_stages(args))


def _declared(name: str, size: int | None, says: str) -> Axis:
    return Axis(name, size, Basis.DECLARED if size is not None else Basis.UNKNOWN, says if size else None)


def _axis(name: str, size: int, declared: int | None, says: str) -> Axis:
    if declared == size:
        return Axis(name, size, Basis.DECLARED, says)
    return Axis(name, size, Basis.INFERRED, "the numbers of the mp_rank_* folders")


def _world(args: Args) -> tuple[Axis, ...]:
    return (Axis("world", args.world, Basis.DECLARED, "args.world_size"),) if args.world is not None else ()


def _replicas(args: Args) -> tuple[Mesh, ...]:
    """Return the axes along which weights are copies, of which one is saved: no place in the files is on them."""
    axes = [
        Axis(name, size, Basis.DECLARED, f"args.{field}; one of these ranks writes the weights")
        for name, size, field in (
            ("dp", args.dp, "data_parallel_size"),
            ("cp", args.cp, "context_parallel_size"),
        )
        if size is not None
    ]
    return (Mesh("replica", tuple(axes)),) if axes else ()


def _stages(args: Args) -> str | None:
    if (args.vpp or 1) < 2:
        return None
    return (
        f"Each pipeline stage holds {args.vpp:,} runs of layers, one for each virtual stage."
        if args.vpp
        else None
    )


def decoded_components(
    components: Sequence[Component], opaque: Sequence[Entry], tensors: int
) -> tuple[Component, ...]:
    """Return the parts of a checkpoint, those that were decoded with what came of it."""
    left = {entry.text for entry in opaque}
    return tuple(
        item
        if left.intersection(item.files)
        else msgspec.structs.replace(
            item, note="decoded" if item.kind in _BESIDE else f"decoded: {counted(tensors, 'tensor')}"
        )
        for item in components
    )


_BESIDE: Final = ("common state", "optimizer")
"""Parts without tensors that are listed."""


def producer(args: Args | None, version: float | None, file: str) -> tuple[ProducerFact, ...]:
    """Return what tells that Megatron-LM wrote a file."""
    if args is None:
        return ()
    form = f", checkpoint version {version:g}" if version is not None else ""
    of = f"; {args.implementation} layers" if args.implementation else ""
    says = f"{file} holds the arguments of Megatron-LM{form}{of}"
    return (ProducerFact("megatron-lm", None, Basis.DECLARED, says),)


def held_state(tree: Tree, args: Args | None) -> dict[str, StatePart]:
    """Return the parts of the state that the keys of a decoded file tell: scheduler, random state, progress, place in the data."""
    root = tree.root
    scheduler = [key for key in _SCHEDULERS if tree.has(root, key)]
    random = [key for key in _RANDOM if tree.has(root, key)]
    iteration = tree.integer(root, "iteration")
    samples = args.samples if args is not None else None
    return {
        "scheduler": _part(scheduler, "a scheduler"),
        "rng": _part(random, "a random state"),
        "progress": _known(None if iteration is None else f"iteration {iteration:,}", "an iteration"),
        "data_position": _known(
            None if samples is None else f"{samples:,} samples consumed, by the arguments", "consumed samples"
        ),
    }


def _part(keys: Sequence[str], what: str) -> StatePart:
    return _known(f"under the key {keys[0]}" if keys else None, what)


def _known(says: str | None, what: str) -> StatePart:
    if says is None:
        return StatePart(Presence.ABSENT, Basis.DECLARED, f"{what} is under none of the known keys")
    return StatePart(Presence.PRESENT, Basis.DECLARED, says)


def weights_part(tensors: Sequence[LogicalTensor], files: Sequence[str]) -> StatePart:
    """Return the weights, as counted."""
    model = [tensor for tensor in tensors if tensor.component == "model"]
    if not model:
        return StatePart(Presence.UNKNOWN, Basis.UNKNOWN, "no tensor of the model could be put together")
    return StatePart(Presence.PRESENT, Basis.OBSERVED, counted(len(model), "tensor"), tuple(files[:8]))


def weight_bytes(tensors: Sequence[LogicalTensor]) -> int | None:
    """Return the bytes of the model's tensors, each counted once; null for a type of unknown size."""
    total = 0
    for tensor in tensors:
        if tensor.component != "model" or tensor.alias_of is not None:
            continue
        known = DTYPES.get(tensor.dtype)
        if known is None:
            return None
        total += prod(tensor.shape) * known.bits // 8
    return total


def layout_table() -> LayoutTable:
    """Return the layout of Megatron's tensors."""
    return LayoutTable(table(MEGATRON))


def report_layout(decoder: Decoder, subject: str, layout: LayoutTable, facts: ModelFacts, count: int) -> None:
    """Say by which table tensors were put together, and because of what."""
    said = [
        "a gated feed-forward layer" if facts.gated else "a feed-forward layer without a gate",
        _QKV.get(facts.qkv or "", "query, key and value in an unknown order"),
    ]
    if facts.heads:
        said.append(f"{counted(facts.heads, 'head')} in {counted(facts.groups or facts.heads, 'group')}")
    if facts.experts:
        said.append(counted(facts.experts, "expert"))
    decoder.probe.report(
        "megatron.layout_chosen", subject, count=count, table=layout.name, facts=", ".join(said)
    )


_QKV: Final = {
    "grouped": "query, key and value by group",
    "parts_first": "all queries, all keys and all values of a rank, as before version 1",
    "parts_last": "query, key and value row by row, as of version 1",
}


def report_names(decoder: Decoder, subject: str, format_name: str, facts: ModelFacts) -> None:
    """Say that names are Megatron's, and which packaged tables would fit."""
    says = in_words(fitting_tables(format_name, facts))
    decoder.probe.report("megatron.names_kept", subject, fitting=says)
