"""From the tensors of a packed module to the recipe of its weight. What does not fit together is refused, never guessed."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final

from shardscope.engine.anatomy.schemes import FP8, Packed
from shardscope.engine.looking.packed.recipe import Recipe
from shardscope.engine.model.anatomy import Packing
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor, Shape

Leaves = Mapping[str, LogicalTensor]
"""The tensors of a module by the ends of their names, as `anatomy.packing` has them."""
Integers = Callable[[LogicalTensor], tuple[int, ...]]
"""Reads a short tensor of integers."""
Fields = Callable[[LogicalTensor], Mapping[str, Any]]
"""Reads a tensor that holds JSON."""

_WORD: Final = 32
_POWERS: Final = frozenset({"U8", "F8_E8M0"})
_BLOCK: Final = (128, 128)
MOST: Final = 8
"""Dimensions of a weight."""
SECOND: Final = "gptq_v2"
"""The form of GPTQ whose zero points are stored as they are."""


class Finder:
    """Recipes of one checkpoint."""

    def __init__(self, declared: Packing | None, integers: Integers, fields: Fields) -> None:
        self._declared = declared
        self._integers = integers
        self._fields = fields

    def recipe(self, name: str, leaves: Leaves, packed: Packed) -> Recipe:
        """Return the recipe of a module's weight. Raises `Fault` `peek.packing`."""
        fit = _Fit(name, packed.scheme)
        lost = [leaf for leaf in (packed.weight, *packed.needs) if leaf not in leaves]
        if packed.scheme == "GPTQ":
            lost = [leaf for leaf in lost if leaf != ".qzeros"]
        if lost:
            raise fit.refusal(f"{lost[0].lstrip('._')} is not there")
        rules = (
            (".qweight", self._words),
            (".weight_packed", self._compressed),
            (".weight.absmax", self._four_bits),
            (".SCB", self._eight_bits),
            ("_blocks", self._blocks),
        )
        rule = next((rule for mark, rule in rules if mark in leaves), self._scaled)
        return rule(leaves, packed, fit)

    def _words(self, leaves: Leaves, packed: Packed, fit: "_Fit") -> Recipe:
        bits, weight, scale = packed.bits, leaves[".qweight"], leaves[".scales"]
        awq = packed.scheme == "AWQ"
        if (
            bits is None
            or packed.logical is None
            or not 1 <= bits <= (4 if awq else 8)
            or (awq and bits != 4)
        ):
            raise fit.refusal("how many bits a number has is not known")
        outputs, inputs = packed.logical
        order, zeros = leaves.get(".g_idx"), leaves.get(".qzeros")
        groups = scale.shape[0]
        fit.check(weight, inputs * outputs * bits // _WORD)
        fit.check(scale, groups * outputs)
        if zeros is not None:
            fit.check(zeros, groups * outputs * bits // _WORD)
        if order is not None and order.shape != (inputs,):
            order = None
        if order is None and inputs % groups:
            raise fit.refusal("its groups are not of one size")
        first = self._declared is None or self._declared.form != SECOND
        zero = (1 << bits - 1) if zeros is None else int(first and not awq)
        return Recipe(
            "columns of words",
            packed.scheme,
            f"(q - z{' - 1' if zeros is not None and zero else ''}) * scale of the output and the group",
            (outputs, inputs),
            weight,
            scale,
            zeros,
            order,
            bits=bits,
            group=(1, -(-inputs // groups)),
            zero=zero,
            interleaved=awq,
        )

    def _compressed(self, leaves: Leaves, packed: Packed, fit: "_Fit") -> Recipe:
        weight, scale = leaves[".weight_packed"], leaves[".weight_scale"]
        if weight.dtype == "U8":
            return self._floats(leaves, packed, fit, leaves.get(".weight_global_scale"), divided=True)
        if packed.bits is None or not 1 <= packed.bits <= 8:
            raise fit.refusal("how many bits a number has stands in the configuration, which does not say it")
        bits, shape = packed.bits, self._integers(leaves[".weight_shape"])
        if not 2 <= len(shape) <= MOST or min(shape) < 1:
            raise fit.refusal("weight_shape is no shape")
        *before, rows, inputs = shape
        fit.check(weight, prod(before) * rows * -(-inputs * bits // _WORD))
        groups = prod(scale.shape) // (prod(before) * rows) or 1
        if prod(scale.shape) != 1:
            fit.check(scale, prod(before) * rows * groups)
        zeros, order = leaves.get(".weight_zero_point"), leaves.get(".weight_g_idx")
        if zeros is not None:
            if before:
                raise fit.refusal("zero points of several experts are not taken apart")
            fit.check(zeros, -(-rows * bits // _WORD) * groups)
        return Recipe(
            "rows of words",
            packed.scheme,
            f"(q - {'z' if zeros is not None else 1 << bits - 1}) * scale of the row and the group",
            shape,
            weight,
            scale,
            zeros,
            order if order is not None and order.shape == (inputs,) else None,
            bits=bits,
            group=(1, -(-inputs // groups)),
            zero=1 << bits - 1,
        )

    def _floats(
        self,
        leaves: Leaves,
        packed: Packed,
        fit: "_Fit",
        whole: LogicalTensor | None,
        *,
        divided: bool = False,
    ) -> Recipe:
        """Floats of four or six bits in bytes, with scales of groups."""
        weight, scale = leaves[packed.weight], leaves[".weight_scale"]
        if packed.logical is None or not packed.group_size or packed.bits not in (4, 6):
            raise fit.refusal("its groups are not of one size")
        size, powers = packed.group_size, scale.dtype in _POWERS
        count = prod(packed.logical)
        fit.check(weight, count * packed.bits // 8)
        fit.check(scale, count // size)
        experts = prod(packed.logical[:-2])
        if whole is not None and prod(whole.shape) not in (1, experts):
            raise fit.refusal("the scale of the whole is not one number")
        rest = "" if whole is None else " / global scale" if divided else " * global scale"
        return Recipe(
            "floats",
            packed.scheme,
            f"E2M{packed.bits // 2 - 1} * {'2^(e - 127)' if powers else 'scale'} of the group{rest}",
            packed.logical,
            weight,
            scale,
            whole=whole,
            bits=packed.bits,
            group=(1, size),
            powers=powers,
            divided=divided,
        )

    def _four_bits(self, leaves: Leaves, packed: Packed, fit: "_Fit") -> Recipe:
        weight, sizes = leaves[".weight"], leaves[".weight.absmax"]
        states = [each for leaf, each in leaves.items() if leaf.startswith(".weight.quant_state.")]
        if not states:
            raise fit.refusal("quant_state is not there")
        state = self._fields(states[0])
        shape, block = state.get("shape"), state.get("blocksize")
        if not isinstance(shape, list) or not 0 < len(shape) <= MOST or not all(map(_counts, shape)):
            raise fit.refusal("quant_state has no shape")
        if not isinstance(block, int) or not _counts(block):
            raise fit.refusal("quant_state has no size of blocks")
        count, nested = prod(shape), None
        fit.check(weight, -(-count // 2))
        blocks = -(-count // block)
        fit.check(sizes, blocks)
        fit.check(leaves[".weight.quant_map"], 16)
        outer, offset = state.get("nested_blocksize", 256), state.get("nested_offset", 0.0)
        if ".weight.nested_absmax" in leaves:
            if not _counts(outer) or not isinstance(offset, (int, float)) or sizes.dtype != "U8":
                raise fit.refusal("quant_state does not say how scales are packed")
            nested = (leaves[".weight.nested_absmax"], leaves[".weight.nested_quant_map"])
            fit.check(nested[0], -(-blocks // outer))
            fit.check(nested[1], 256)
        return Recipe(
            "bitsandbytes",
            packed.scheme,
            "table[q] * largest number of the block",
            tuple(shape),
            weight,
            sizes,
            table=leaves[".weight.quant_map"],
            nested=nested,
            bits=4,
            block=block,
            nested_block=outer if nested is not None else 256,
            offset=float(offset) if nested is not None else 0.0,
        )

    def _eight_bits(self, leaves: Leaves, packed: Packed, fit: "_Fit") -> Recipe:
        weight, scale = leaves[".weight"], leaves[".SCB"]
        if len(weight.shape) < 2 or weight.dtype != "I8":
            raise fit.refusal("its weight is no matrix of I8")
        fit.check(scale, weight.shape[0])
        return Recipe(
            "scaled",
            packed.scheme,
            "q * largest number of the row / 127",
            (weight.shape[0], prod(weight.shape[1:])),
            weight,
            scale,
            group=(1, prod(weight.shape[1:])),
            factor=7.874015718698502e-3,
        )

    def _blocks(self, leaves: Leaves, packed: Packed, fit: "_Fit") -> Recipe:
        weight, scale = leaves["_blocks"], leaves["_scales"]
        if packed.logical is None or not packed.group_size or weight.dtype != "U8":
            raise fit.refusal("its blocks are not of one size")
        fit.check(scale, prod(weight.shape[:-1]))
        return Recipe(
            "floats",
            packed.scheme,
            "E2M1 * 2^(e - 127) of the group",
            packed.logical,
            weight,
            scale,
            bits=4,
            group=(1, packed.group_size),
            powers=True,
        )

    def _scaled(self, leaves: Leaves, packed: Packed, fit: "_Fit") -> Recipe:
        """Numbers of eight bits as they are, with scales."""
        weight = leaves[".weight"]
        if packed.weight == ".weight" and weight.dtype == "U8":
            return self._floats(leaves, packed, fit, leaves.get(".weight_scale_2"))
        scale = leaves.get(".weight_scale_inv") or leaves[".weight_scale"]
        if weight.dtype not in (*FP8, "I8"):
            raise fit.refusal(f"weights of type {weight.dtype} with scales are not known")
        shape = weight.shape if len(weight.shape) > 1 else (1, *weight.shape)
        group = self._sharing(shape, scale.shape)
        if group is None:
            raise fit.refusal("the shapes of weight and scale do not fit")
        alone = prod(scale.shape) == 1 and prod(shape[:-2]) > 1
        zeros = leaves.get(".weight_zero_point")
        if zeros is not None:
            fit.check(zeros, prod(scale.shape))
            if alone:
                raise fit.refusal("one zero point for several experts is not known")
        return Recipe(
            "scaled",
            packed.scheme,
            f"({'q - z' if zeros is not None else 'q'}) * scale of {packed.group}",
            weight.shape,
            weight,
            None if alone else scale,
            zeros,
            whole=scale if alone else None,
            group=group,
            powers=scale.dtype in _POWERS,
        )

    def _sharing(self, shape: Shape, scale: Shape) -> tuple[int, int] | None:
        """Return how many rows and inputs share a scale; null where shapes do not fit."""
        *before, rows, inputs = shape
        experts, count = prod(before), prod(scale)
        if count in (1, experts):
            return rows, inputs
        if count == experts * rows:
            return 1, inputs
        if len(scale) < 2 or 0 in scale or count != experts * scale[-2] * scale[-1]:
            return None
        tall, wide = scale[-2:]
        declared = self._declared.block if self._declared is not None else None
        for block in (declared, _BLOCK, (-(-rows // tall), -(-inputs // wide))):
            if block is not None and (-(-rows // block[0]), -(-inputs // block[1])) == (tall, wide):
                return block[0], block[1]
        return None


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 48


class _Fit:
    """What has to fit together of one module."""

    def __init__(self, name: str, scheme: str) -> None:
        self._name = name
        self._scheme = scheme

    def check(self, tensor: LogicalTensor, elements: int) -> None:
        """Raise where a tensor has not so many elements, or none that can be read."""
        if tensor.unwritable is not None:
            raise self.refusal(tensor.unwritable)
        if prod(tensor.shape) != elements:
            raise self.refusal(f"a tensor of {prod(tensor.shape):,} elements should have {elements:,}")

    def refusal(self, why: str) -> Fault:
        """Return what says why it is not taken apart."""
        return Fault("peek.packing", tensor=self._name, scheme=self._scheme, why=why)
