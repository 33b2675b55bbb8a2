"""The map of a tensor of the catalogue in normal form, whichever way its family said it."""

from functools import lru_cache

from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.piece import ONE, Lowered
from shardscope.engine.model.shardmap import DeviceMesh, TensorMap


def normal_form(tensor: LogicalTensor, budget: Budget | None = None) -> Lowered:
    """Return the pieces of a tensor's fragments, by their labels. They have not been checked.

    Raises `Fault`: `map.invalid`, `map.unproven`, `map.budget`.
    """
    return in_normal_form(tensor.map, tensor.mesh, budget)


def in_normal_form(
    layout: TensorMap | Lowered, mesh: DeviceMesh | None, budget: Budget | None = None
) -> Lowered:
    """Return the pieces of a map. Raises as `normal_form`."""
    if isinstance(layout, Lowered):
        return layout
    if mesh is None:
        raise ValueError("a map without its mesh")
    return _lowered(layout, mesh) if budget is None else lower(layout, mesh, budget)


@lru_cache(64)
def _lowered(layout: TensorMap, mesh: DeviceMesh) -> Lowered:
    """Lower once for all layers of a model that are laid out alike."""
    return lower(layout, mesh)


def is_plain(lowered: Lowered) -> bool:
    """Tell whether one shard is the tensor as it is."""
    if len(lowered.ranks) != 1 or len(lowered.ranks[0].pieces) != 1 or lowered.ranks[0].indexed:
        return False
    (shard,) = lowered.ranks
    (piece,) = shard.pieces
    same = piece.source == piece.dest and piece.scale == ONE
    return same and piece.elements == lowered.elements == shard.elements
