"""Tensors as single ranks stored them, where nothing tells how the parts make a whole."""

from functools import lru_cache
from typing import Final

from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Role, Shape
from shardscope.engine.model.shardmap import DeviceMesh, MeshAxis, Replicate, TensorMap

RANK: Final = "rank"


@lru_cache(8192)
def _map(shape: Shape) -> TensorMap:
    return TensorMap(shape, Replicate(), mesh=RANK)


@lru_cache(8192)
def _mesh(rank: int) -> DeviceMesh:
    return DeviceMesh((MeshAxis(RANK, 1),), (rank,))


def part_of_rank(
    name: str,
    dtype: str,
    shape: Shape,
    fragment: Fragment | None,
    rank: int,
    *,
    role: Role = "parameter",
    why: str = "",
) -> LogicalTensor:
    """Return what one rank holds under a name: a part of a whole, or a copy of it.

    It is listed as it is stored. Every rank has such a tensor of that name, so that nothing takes one of them for the whole.
    """
    note = f"as rank {rank:,} stored it: {why or 'how the ranks make a whole is not recorded'}"
    return LogicalTensor(
        name=name,
        dtype=dtype,
        shape=shape,
        map=_map(shape),
        mesh=_mesh(rank),
        fragments=() if fragment is None else (fragment,),
        role=role,
        part_of=rank,
        note=note,
    )
