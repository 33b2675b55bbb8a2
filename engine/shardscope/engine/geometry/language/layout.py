"""The map of a tensor of the catalogue in normal form, whichever way its family said it."""

from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.piece import Lowered


def normal_form(tensor: LogicalTensor, budget: Budget | None = None) -> Lowered:
    """Return the pieces of a tensor's fragments, by their labels. They have not been checked.

    Raises `Fault`: `map.invalid`, `map.unproven`, `map.budget`.
    """
    if isinstance(tensor.map, Lowered):
        return tensor.map
    if tensor.mesh is None:
        raise ValueError(f"a map without its mesh: {tensor.name!r}")
    return lower(tensor.map, tensor.mesh, budget)
