"""What every rank of a DeepSpeed save keeps of every tensor, gathered by name: partitions cut, modules looked through.

Weights come from the fp32 masters of the partitions. What has none there (buffers, frozen parameters, everything in stage 0)
comes from the module, in its own precision. A name that stands for another tensor is an alias of it.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.decode.deepspeed_flat import (
    Column,
    Cut,
    Shard,
    cut_partitions,
    cut_sub_group,
    evenly,
    expert_ranks,
    whole,
)
from shardscope.engine.formats.decode.deepspeed_partitions import WEIGHT, Partition
from shardscope.engine.formats.decode.deepspeed_save import Held, Save, TensorFile
from shardscope.engine.formats.decode.deepspeed_states import ModelStates, Shape
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, Role

EXPERT: Final = re.compile(r"(.*\.deepspeed_moe\.experts\.deepspeed_experts\.)(\d{1,6})(\..+)", re.ASCII)
"""A parameter of a native expert (deepspeed `runtime/engine.py`, `moe_str_prefix`): its number is the rank's own in shapes, and
the layer's own in expert files.
"""

Place = tuple[int, int, int]
"""Pipeline stage, tensor-parallel rank, expert-parallel rank (0 where the tensor is no packed expert tensor)."""


class Item(Struct):
    """One tensor of the model, while it is gathered."""

    role: Role
    shards: dict[str, dict[Place, Shard]] = {}
    """By state (`fp32` is the tensor itself), then by place."""
    alias_of: str | None = None
    exact: bool = True
    """The weights are the fp32 masters, where there are any."""


class Gathered(Struct):
    """All of them, in the order in which the modules name them."""

    items: dict[str, Item] = {}
    modules: dict[tuple[int, int], dict[str, Held]] = {}
    """By stage and tensor-parallel rank: the tensors of the module by their global names, layers and experts included."""
    packed: dict[str, dict[tuple[int, int, int], Held]] = {}
    """Single experts of packed expert tensors, by the name of these: by stage, tensor-parallel rank and expert."""
    misplaced: list[str] = []
    """Parameters that a writer's own mapping puts elsewhere."""
    extra: list[str] = []
    """Names in modules that are no tensors."""


def gather(decoder: Decoder, save: Save, packed: Collection[str]) -> Gathered:
    """Return the tensors of a save. What cannot be cut is reported. `packed` are the names of packed expert tensors."""
    found = Gathered(packed={name: {} for name in packed})
    trained = {name for states in save.states.values() for name in states.names}
    _add_modules(save, found, trained)
    for names in found.modules.values():
        for name in names:
            found.items.setdefault(name, Item("parameter"))
    for mp in range(save.degrees.pp * save.degrees.tp):
        states = save.first(mp)
        if states is not None and states.groups is not None and save.partitions:
            _add_masters(decoder, save, states, mp, found)
    _add_frozen(decoder, save, found)
    _add_aliases(save, found)
    _add_module_only(decoder, save, found)
    return found


def _add_modules(save: Save, found: Gathered, trained: set[str]) -> None:
    for mp in range(save.degrees.pp * save.degrees.tp):
        stage, tp = save.degrees.place(mp)
        states = save.first(mp)
        held = found.modules.setdefault((stage, tp), {})
        if states is not None:
            held.update({name: Held(states.file, tensor) for name, tensor in states.module.items()})
            found.extra += states.others
        for expert in save.experts:
            for name, one in expert.tensors.items() if expert.at[-1] == mp else ():
                packed, _, number = name.rpartition(".")
                if packed in found.packed and number == str(expert.at[1]):
                    found.packed[packed][(stage, tp, expert.at[1])] = Held(expert.file, one)
                else:
                    held[name] = Held(expert.file, one)
    for layer in sorted(save.layers, key=lambda one: one.at):
        names = dict(_layer_names(layer, trained))
        stages = {
            stage
            for stage in range(save.degrees.pp)
            if (states := save.first(stage * save.degrees.tp + layer.at[1])) is not None
            and not set(states.names).isdisjoint(names)
        }
        for stage in stages or {0}:
            held = found.modules.setdefault((stage, layer.at[1]), {})
            held.update({name: Held(layer.file, layer.tensors[own]) for name, own in names.items()})


def _layer_names(layer: TensorFile, trained: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the names of a pipeline layer's tensors in the whole module, each with the name in its file.

    deepspeed `runtime/pipe/module.py` names layers by their number, and tied ones `tied_modules.<key>` wherever they stand.
    """
    for own, tensor in layer.tensors.items():
        name = f"{layer.at[0]}.{own}"
        if name not in trained:
            tied = [
                other
                for other in trained
                if other.startswith("tied_modules.") and other.endswith(f".{own}") and tensor.shape
            ]
            plain = any(other.startswith(f"{layer.at[0]}.") for other in trained)
            if len(tied) == 1 and not plain:
                name = tied[0]
        yield name, own


def _add_masters(decoder: Decoder, save: Save, states: ModelStates, mp: int, found: Gathered) -> None:
    groups = states.groups or ()
    parts = {dp: part for (at, dp), part in save.partitions.items() if at == mp}
    counts = {len(part.groups) for part in parts.values()}
    if parts and counts != {len(groups)}:
        shown = ", ".join(map(str, sorted(counts)))
        decoder.probe.report(
            "deepspeed.groups_differ", states.file.entry, shapes=len(groups), partitions=shown
        )
        return
    for number, shapes in enumerate(groups):
        try:
            for expert, column in _columns(save, parts, number, states, shapes):
                cut = (
                    cut_sub_group(column, shapes)
                    if save.degrees.stage == 3
                    else cut_partitions(column, shapes)
                )
                _add_cut(save, found, cut, shapes, mp, expert)
        except Fault as fault:
            decoder.probe.note(fault.finding, states.file.entry)


def _columns(
    save: Save, parts: Mapping[int, Partition], number: int, states: ModelStates, shapes: Mapping[str, Shape]
) -> Iterator[tuple[int | None, Column]]:
    """Yield the ranks that a group is partitioned among, with their expert-parallel rank where it is a group of experts."""
    dp = save.degrees.dp
    groups = [part.groups[number] for part in parts.values()]
    among = max((group.ranks for group in groups), default=0) or dp
    experts = any(group.experts for group in groups) or (bool(shapes) and all(map(EXPERT.fullmatch, shapes)))
    if among == dp and not experts:
        chosen = tuple(parts[rank].groups[number] if rank in parts else None for rank in range(dp))
        yield None, Column(tuple(range(dp)), chosen)
        return
    for expert, ranks in enumerate(expert_ranks(dp, among, data_first=states.data_before_experts)):
        held = tuple(parts[rank].groups[number] if rank in parts else None for rank in ranks)
        for position, group in enumerate(held):
            if group is not None and group.position not in (None, position):
                raise Fault("deepspeed.experts_indivisible", ranks=dp, among=among)
        if any(group is not None for group in held):
            yield expert, Column(ranks, held)


def _add_cut(
    save: Save, found: Gathered, cut: Cut, shapes: Mapping[str, Shape], mp: int, expert: int | None
) -> None:
    stage, tp = save.degrees.place(mp)
    names = _global_names(shapes, expert) if expert is not None else {}
    for state, shards in cut.shards.items():
        for name, shard in shards.items():
            item = found.items.setdefault(names.get(name, name), Item("parameter"))
            place = (stage, tp, expert or 0 if name not in names else 0)
            item.shards.setdefault(state, {})[place] = shard
    found.misplaced += [names.get(name, name) for name in cut.misplaced]


def _global_names(shapes: Iterable[str], expert: int) -> dict[str, str]:
    """Return the names of native experts by those that one expert-parallel rank gives them."""
    local: dict[str, int] = {}
    matches = [match for name in shapes if (match := EXPERT.fullmatch(name))]
    for match in matches:
        local[match[1]] = max(local.get(match[1], 0), int(match[2]) + 1)
    return {match[0]: f"{match[1]}{expert * local[match[1]] + int(match[2])}{match[3]}" for match in matches}


def _add_frozen(decoder: Decoder, save: Save, found: Gathered) -> None:
    """Add frozen parameters that are partitioned: those of stage 3. Below it they are in the module as they are."""
    if save.degrees.stage != 3:
        return
    for mp in range(save.degrees.pp * save.degrees.tp):
        by_rank = {dp: states for (at, dp), states in save.states.items() if at == mp}
        first = save.first(mp)
        for name, shape in (first.frozen if first is not None else {}).items():
            fragments: dict[int, Fragment] = {}
            dtype = "F32"
            for dp, states in by_rank.items():
                tensor = states.fragments.get(name)
                fragment = None if tensor is None else decoder.fragment(states.file, tensor)
                if tensor is not None and fragment is not None:
                    fragments[dp], dtype = fragment, tensor.dtype
            try:
                shard = evenly(fragments, shape, dtype, save.degrees.dp)
            except Fault as fault:
                decoder.probe.note(fault.finding, by_rank[min(by_rank)].file.entry)
                continue
            item = found.items.setdefault(name, Item("frozen"))
            item.role, item.exact = "frozen", False
            item.shards.setdefault(WEIGHT, {})[(*save.degrees.place(mp), 0)] = shard


def _add_aliases(save: Save, found: Gathered) -> None:
    """Mark names that stand for another tensor: as recorded, or because a module keeps both in the same bytes."""
    for states in save.states.values():
        for name, target in states.shared.items():
            item = found.items.setdefault(name, Item("parameter"))
            if not item.shards and target in found.items and target != name:
                item.alias_of = target
    for names in found.modules.values():
        seen: dict[tuple[bytes, int, int, Shape, Shape], str] = {}
        for name, held in sorted(names.items(), key=lambda pair: not found.items[pair[0]].shards):
            tensor, item = held.tensor, found.items[name]
            if tensor.storage is None or not prod(tensor.shape):
                continue
            key = (
                held.file.entry.path,
                tensor.storage,
                tensor.offset,
                tuple(tensor.shape),
                tuple(tensor.strides),
            )
            first = seen.setdefault(key, name)
            if first != name and not item.shards and item.alias_of is None:
                item.alias_of = first
    for item in found.items.values():
        other = found.items.get(item.alias_of) if item.alias_of else None
        if other is not None and other.alias_of is not None:
            item.alias_of = other.alias_of


def _add_module_only(decoder: Decoder, save: Save, found: Gathered) -> None:
    """Add what modules hold and partitions do not: in the module's own precision."""
    buffers = frozenset(name for states in save.states.values() for name in states.buffers)
    trains = any(states.groups is not None for states in save.states.values())
    for packed, experts in found.packed.items():
        if not experts:
            continue
        item = found.items.setdefault(packed, Item("parameter", exact=False))
        if not item.shards:
            for place, held in experts.items():
                _add_whole(decoder, item, place, held, (1, *held.tensor.shape))
    for (stage, tp), names in found.modules.items():
        for name, held in names.items():
            item = found.items[name]
            if item.alias_of is not None or (item.exact is False and save.degrees.stage == 3):
                continue
            place = (stage, tp, 0)
            if any(place[:2] == other[:2] for other in item.shards.get(WEIGHT, {})):
                continue
            if item.shards and item.exact and prod(held.tensor.shape):
                continue  # masters of other ranks, and here a tensor that no partition has: reported where it is placed
            if save.degrees.stage == 3 and name not in buffers:
                continue  # a placeholder without elements
            if not item.shards:
                item.role = "buffer" if name in buffers else "frozen" if trains else "parameter"
                item.exact = False
            _add_whole(decoder, item, place, held)


def _add_whole(decoder: Decoder, item: Item, place: Place, held: Held, shape: Shape | None = None) -> None:
    fragment = decoder.fragment(held.file, held.tensor)
    if fragment is not None:
        shape = tuple(held.tensor.shape) if shape is None else shape
        item.shards.setdefault(WEIGHT, {})[place] = whole(fragment, shape, held.tensor.dtype)
