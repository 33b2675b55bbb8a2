"""The model states that a converter copied beside a Universal checkpoint: what every tensor's whole shape and value is."""

from math import prod

from msgspec import Struct

from shardscope.engine.formats.decode.deepspeed_flat import Shard
from shardscope.engine.formats.decode.deepspeed_gather import Gathered, Place, gather
from shardscope.engine.formats.decode.deepspeed_partitions import WEIGHT
from shardscope.engine.formats.decode.deepspeed_place import CutUnknown, Layout, Placed, place
from shardscope.engine.formats.decode.deepspeed_said import read_infos, read_placements
from shardscope.engine.formats.decode.deepspeed_save import Save, read_save
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.deepspeed_names import sorted_files
from shardscope.engine.formats.deepspeed_universal import TREE
from shardscope.engine.formats.protocol import Claim
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Role


class Copies(Struct, frozen=True):
    """What the copies say, by name."""

    save: Save | None = None
    names: tuple[str, ...] = ()
    """In the order of the module."""
    shapes: dict[str, tuple[int, ...]] = {}
    """Of whole tensors, where it is known how their shards make them up."""
    placed: dict[str, Placed] = {}
    """Tensors that modules hold, in their precision: nothing of what stage 3 trained."""
    aliases: dict[str, str] = {}
    roles: dict[str, Role] = {}


def read_copies(decoder: Decoder, claim: Claim) -> Copies:
    """Return what the copied model states of a Universal checkpoint say; nothing where there are none that can be read."""
    inside = (claim.folder + b"/" if claim.folder else b"") + TREE.encode() + b"/"
    files = sorted_files(entry for entry in claim.files if not entry.path.startswith(inside))
    if not files.states or (files.model and files.partitioned):
        return Copies()
    save = read_save(decoder, files)
    if save is None:
        return Copies()
    placements = read_placements(decoder, save.any)
    stages = {
        stage: [
            states
            for tp in range(save.degrees.tp)
            if (states := save.first(stage * save.degrees.tp + tp)) is not None
        ]
        for stage in range(save.degrees.pp)
    }
    infos = read_infos(decoder, stages)
    found = gather(decoder, save, placements)
    layout = Layout(save.degrees, infos, placements)
    trained = {name for states in save.states.values() for name in states.names}
    placed: dict[str, Placed] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, shards in _shards(save, found).items():
        if name in placements:
            inner = next(iter(shards.values())).shape[1:]
            shapes[name] = (placements[name].experts, *inner)
            continue
        try:
            where = place(
                name, layout, shards, copies=name in found.items and found.items[name].role == "buffer"
            )
        except (Fault, CutUnknown):
            continue  # the whole tensors of the tree need no map of their shards
        shapes[name] = where.shape
        if where.fragments and all(run.fragment for shard in shards.values() for run in shard.runs):
            placed[name] = where
    names = tuple(dict.fromkeys([*found.items, *trained]))
    return Copies(
        save=save,
        names=names,
        shapes=shapes,
        placed=placed,
        aliases={name: item.alias_of for name, item in found.items.items() if item.alias_of is not None},
        roles={
            name: "parameter"
            if name in trained
            else found.items[name].role
            if name in found.items
            else "parameter"
            for name in names
        },
    )


def _shards(save: Save, found: Gathered) -> dict[str, dict[Place, Shard]]:
    """Return the shards of every tensor: those of the modules, and of trained parameters without any the shapes alone."""
    shards = {
        name: dict(item.shards[WEIGHT])
        for name, item in found.items.items()
        if item.shards.get(WEIGHT) and item.alias_of is None
    }
    for mp in range(save.degrees.pp * save.degrees.tp):
        states = save.first(mp)
        at = (*save.degrees.place(mp), 0)
        for group in (states.groups if states is not None else None) or ():
            for name, shape in group.items():
                own = shards.setdefault(name, {})
                if at not in own or prod(own[at].shape) != prod(shape):
                    own[at] = Shard(shape, "F32", ())
    return shards
