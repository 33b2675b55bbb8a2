"""The first rows of a tensor: a vocabulary without its padding."""

from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.catalogue import Shape
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import Block, Box, DeviceMesh, MeshAxis, TensorMap


def first_rows(whole: Shape, shape: Shape) -> Lowered | None:
    """Return the layout of one rank that has the first rows of a tensor; null where it has all of them."""
    if shape == whole:
        return None
    box = Block(("out",), (Box((0,) * len(shape), shape),))
    return lower(TensorMap(whole, box), DeviceMesh((MeshAxis("out", 1),)))
