"""How the numbers of one packed weight are worked out: from which tensors, by which arithmetic. No payload, no arrays."""

from math import prod
from typing import Literal

from msgspec import Struct

from shardscope.engine.model.catalogue import LogicalTensor, Shape

Method = Literal["scaled", "floats", "rows of words", "columns of words", "bitsandbytes", "ggml"]


class Recipe(Struct, frozen=True):
    """Of one weight. Its logical numbers are rows of inputs: all dimensions before the last counted as one."""

    method: Method
    scheme: str
    """In the words of `shardscope model`."""
    formula: str
    """For a person."""
    shape: Shape
    weight: LogicalTensor
    """The packed tensor."""
    scale: LogicalTensor | None = None
    zeros: LogicalTensor | None = None
    order: LogicalTensor | None = None
    """The group of each input, where they do not follow each other."""
    table: LogicalTensor | None = None
    """What each code stands for."""
    whole: LogicalTensor | None = None
    """One scale for the whole tensor (or each expert), beside those of groups."""
    nested: tuple[LogicalTensor, LogicalTensor] | None = None
    """Scales of scales, and the table of these."""
    bits: int = 8
    group: tuple[int, int] = (1, 1)
    """Rows and inputs that share a scale."""
    powers: bool = False
    """Scales are powers of two, stored as their exponents and 127."""
    divided: bool = False
    """The scale of the whole is divided by."""
    factor: float = 1.0
    """Every number is multiplied by it."""
    zero: int = 0
    """What every zero point is off by; without zero points, the zero point."""
    interleaved: bool = False
    """Words hold outputs in the order of AWQ."""
    block: int = 1
    """Numbers in a block, and that share a scale in bitsandbytes."""
    nested_block: int = 256
    offset: float = 0.0
    """Added to scales that are themselves packed."""

    @property
    def inputs(self) -> int:
        """Numbers of a row."""
        return self.shape[-1]

    @property
    def rows(self) -> int:
        """Rows of one expert, or of all there is."""
        return self.shape[-2] if len(self.shape) > 1 else 1

    @property
    def every_row(self) -> int:
        """Rows of all experts."""
        return prod(self.shape[:-1])

    @property
    def companions(self) -> tuple[LogicalTensor, ...]:
        """The tensors beside the packed one."""
        found = (self.scale, self.zeros, self.order, self.table, self.whole, *(self.nested or ()))
        return tuple(each for each in found if each is not None)


class Unpacked(LogicalTensor, frozen=True):
    """A packed weight as the numbers that it stands for. It is read with `reading.Unpacking`; its fragments are those of the packed
    tensor, and say no more than where that is.
    """

    recipe: Recipe | None = None
