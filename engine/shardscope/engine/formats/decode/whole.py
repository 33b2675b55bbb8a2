"""Tensors that one stretch of one file holds whole: no geometry, or what stands for it."""

from functools import lru_cache
from typing import Final

from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Role, Shape
from shardscope.engine.model.decoded import Component
from shardscope.engine.model.shardmap import DeviceMesh, MeshAxis, Replicate, TensorMap

ALONE: Final = "file"
ONE: Final = DeviceMesh((MeshAxis(ALONE, 1),))
"""The mesh of what is not sharded: one place, 0."""


@lru_cache(8192)
def identity(shape: Shape) -> TensorMap:
    """Return the map of a tensor that its one fragment holds whole, on the mesh `ONE`."""
    return TensorMap(shape, Replicate(), mesh=ALONE)


def held_by(label: int) -> DeviceMesh:
    """Return the mesh of what a single rank holds."""
    return ONE if label == 0 else DeviceMesh((MeshAxis(ALONE, 1),), (label,))


def whole(
    name: str,
    dtype: str,
    shape: Shape,
    fragment: Fragment | None,
    *,
    component: Component = "model",
    role: Role = "parameter",
    alias_of: str | None = None,
    note: str | None = None,
) -> LogicalTensor:
    """Return a tensor that one fragment holds, or that none does."""
    return LogicalTensor(
        name=name,
        dtype=dtype,
        shape=shape,
        map=identity(shape),
        mesh=ONE if fragment is None else held_by(fragment.label),
        fragments=() if fragment is None else (fragment,),
        component=component,
        role=role,
        alias_of=alias_of,
        note=note,
    )
