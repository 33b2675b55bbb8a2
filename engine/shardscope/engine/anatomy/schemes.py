"""The schemes by which weights are packed: what the tensors of one module say of its weight.

Layouts are those of the libraries' own code: AutoGPTQ and GPTQModel (`qlinear`), AutoAWQ (`WQLinear_GEMM`), bitsandbytes (`Params4bit`,
`Linear8bitLt`), compressed-tensors (`compressors`), TensorRT Model Optimizer and vLLM (NVFP4), DeepSeek-V3 (`fp8_cast_bf16`), gpt-oss and
transformers (`integrations/mxfp4`), ggml. No payload is read: where a shape stands in payload it is unknown.
"""

import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.anatomy.items import Item
from shardscope.engine.model.anatomy import Packing, Shape
from shardscope.engine.model.ggml import BLOCK_TYPES

_WORD: Final = 32
"""Bits of the integers that weights are packed into."""
_POWERS: Final = frozenset({"U8", "F8_E8M0"})
"""Types of scales that are powers of two."""
FP8: Final = frozenset({"F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"})

Leaves = Mapping[str, Item]
"""The tensors of one module by the ends of their names."""


class Packed(Struct, frozen=True):
    """One module whose weight is packed."""

    scheme: str
    bits: int | None
    group: str
    group_size: int | None
    logical: Shape | None
    elements: int | None
    explanation: str
    weight: str
    """Name of the packed tensor's leaf."""
    needs: tuple[str, ...]
    fits: bool = True


def packed_of(leaves: Leaves, declared: Packing | None) -> Packed:
    """Return how the weight of a module is packed. It has one of the tensors that only packed weights have."""
    rules: tuple[tuple[str, Callable[[Leaves, Packing | None], Packed]], ...] = (
        (".qweight", _integers),
        (".weight_packed", _compressed),
        (".weight.absmax", _four_bits),
        (".SCB", _eight_bits),
        ("_blocks", _microscaled),
    )
    for mark, rule in rules:
        if mark in leaves:
            return rule(leaves, declared)
    return _scaled(leaves, declared)


def _unknown(scheme: str, weight: str, *needs: str) -> Packed:
    return Packed(scheme, None, "unknown", None, None, None, "its tensors are not all there", weight, needs)


def _integers(leaves: Leaves, declared: Packing | None) -> Packed:
    """GPTQ packs along the inputs, AWQ along the outputs; the scales have a column for each output in both."""
    weight, scales, zeros = leaves[".qweight"], leaves.get(".scales"), leaves.get(".qzeros")
    needs = (".scales", ".qzeros")
    method = (declared.method or "").upper() if declared is not None else ""
    if scales is None or len(weight.shape) != 2 or len(scales.shape) != 2 or 0 in scales.shape:
        return _unknown(method if method in ("GPTQ", "AWQ") else "GPTQ or AWQ", ".qweight", *needs)
    (rows, columns), (groups, outputs) = weight.shape, scales.shape
    if columns == outputs:
        bits = zeros.shape[1] * _WORD // outputs if zeros is not None and len(zeros.shape) == 2 else None
        bits = bits or (declared.bits if declared is not None else None)
        inputs = rows * _WORD // bits if bits else None
        scheme, along = "GPTQ", "inputs"
    else:
        bits = _WORD * columns // outputs if outputs > columns else None
        inputs = rows
        scheme, along = "AWQ", "outputs"
    size = inputs // groups if inputs and inputs % groups == 0 else None
    fits = size is not None and (
        zeros is None or not bits or zeros.shape == (groups, outputs * bits // _WORD)
    )
    words = f"{_WORD // bits} of" if bits and _WORD % bits == 0 else "several of"
    return Packed(
        scheme,
        bits,
        f"{size:,} inputs" if size else "unknown",
        size,
        (outputs, inputs) if inputs else None,
        outputs * inputs if inputs else None,
        f"each 32-bit integer holds {words} {along}; a scale and a zero point for each group of inputs and each output",
        ".qweight",
        needs,
        fits,
    )


def _compressed(leaves: Leaves, declared: Packing | None) -> Packed:
    weight, scale = leaves[".weight_packed"], leaves.get(".weight_scale")
    if scale is None or len(weight.shape) < 2:
        return _unknown("compressed-tensors", ".weight_packed", ".weight_scale")
    if weight.dtype == "U8":
        return _halves(leaves, ".weight_packed", ".weight_global_scale")
    bits = declared.bits if declared is not None else None
    *before, columns = weight.shape
    inputs = columns * _WORD // bits if bits else None
    groups = scale.shape[-1] if len(scale.shape) == len(weight.shape) else 1
    size = inputs // groups if inputs and groups and inputs % groups == 0 else None
    shared = "a row" if groups == 1 else f"{size:,} inputs" if size else "unknown"
    return Packed(
        "compressed-tensors integers",
        bits,
        shared,
        size if groups > 1 else None,
        None if inputs is None else (*before, inputs),
        None if inputs is None else prod(before) * inputs,
        "32-bit integers hold the inputs one after the other; how many bits one has the configuration says, and how many inputs there "
        "are exactly stands in weight_shape, which is payload",
        ".weight_packed",
        (".weight_scale", ".weight_shape"),
        size is not None or inputs is None,
    )


def _halves(leaves: Leaves, leaf: str, *globals_: str) -> Packed:
    """Floats of four bits (or six) in bytes, with a scale for each 16 (NVFP4) or 32 inputs (MXFP4, MXFP6)."""
    weight, scale = leaves[leaf], leaves[".weight_scale"]
    *before, columns = weight.shape
    groups = scale.shape[-1] if scale.shape else 0
    micro = scale.dtype in _POWERS
    bits = 6 if micro and groups and columns == 24 * groups else 4
    inputs = 8 * columns // bits
    size = inputs // groups if groups and inputs % groups == 0 else None
    scheme, usual = (f"MXFP{bits}", 32) if micro else ("NVFP4", 16)
    needs = (".weight_scale",) if micro else (".weight_scale", *globals_)
    scales = "a power of two" if micro else "an eight-bit float, itself scaled for the whole tensor,"
    held = "each byte holds two inputs as E2M1" if bits == 4 else "three bytes hold four inputs of six bits"
    return Packed(
        scheme,
        bits,
        f"{size:,} inputs" if size else "unknown",
        size,
        (*before, inputs),
        prod(before) * inputs,
        f"{held}; {scales} for each group",
        leaf,
        needs,
        size == usual,
    )


def _four_bits(leaves: Leaves, declared: Packing | None) -> Packed:  # noqa: ARG001 - as rules are called
    weight, absmax = leaves.get(".weight"), leaves[".weight.absmax"]
    state = next((leaf for leaf in leaves if leaf.startswith(".weight.quant_state.")), None)
    kind = "fp4" if state is not None and state.endswith("fp4") else "nf4"
    nested = any(leaf.startswith(".weight.nested_") for leaf in leaves)
    needs = (".weight", ".weight.quant_map", *(() if state else (".weight.quant_state",)))
    needs += (".weight.nested_absmax", ".weight.nested_quant_map") if nested else ()
    elements = 2 * weight.bytes if weight is not None else None
    blocks = absmax.elements
    size = elements // blocks if elements and blocks and elements % blocks == 0 else None
    double = "; the scales are quantised once more" if nested else ""
    return Packed(
        f"bitsandbytes {kind}",
        4,
        f"{size:,} weights" if size else "unknown",
        size,
        None,
        elements,
        f"each byte holds two weights, numbers of a table of 16 values{double}; the weight's shape stands in quant_state, which is payload",
        ".weight",
        needs,
        size is not None or weight is None,
    )


def _eight_bits(leaves: Leaves, declared: Packing | None) -> Packed:  # noqa: ARG001 - as rules are called
    weight, scale = leaves.get(".weight"), leaves[".SCB"]
    if weight is None:
        return _unknown("bitsandbytes int8", ".weight", ".weight")
    return Packed(
        "bitsandbytes int8",
        8,
        "a row",
        None,
        weight.shape,
        weight.elements,
        "whole numbers of eight bits; the largest value of each row in SCB",
        ".weight",
        (".SCB",),
        weight.shape[:1] == scale.shape[:1],
    )


def _microscaled(leaves: Leaves, declared: Packing | None) -> Packed:  # noqa: ARG001 - as rules are called
    blocks, scales = leaves["_blocks"], leaves.get("_scales")
    if len(blocks.shape) < 2:
        return _unknown("MXFP4", "_blocks", "_scales")
    *before, groups, width = blocks.shape
    inputs = groups * width * 2
    return Packed(
        "MXFP4",
        4,
        f"{2 * width:,} inputs",
        2 * width,
        (*before, inputs),
        prod(before) * inputs,
        "each byte holds two inputs as E2M1; a power of two for each group, in _scales",
        "_blocks",
        ("_scales",),
        width == 16 and (scales is None or scales.shape == blocks.shape[:-1]),
    )


def _scaled(leaves: Leaves, declared: Packing | None) -> Packed:
    """A weight of eight bits with scales, or of two four-bit floats a byte."""
    weight = leaves.get(".weight")
    leaf = ".weight_scale_inv" if ".weight_scale_inv" in leaves else ".weight_scale"
    scale = leaves[leaf]
    if weight is None or not weight.shape:
        return _unknown("fp8", ".weight", ".weight")
    if weight.dtype == "U8" and scale.dtype in ("F8_E4M3", *_POWERS):
        return _halves(leaves, ".weight", ".weight_scale_2")
    kind = "fp8" if weight.dtype in FP8 else "int8" if weight.dtype == "I8" else f"scaled {weight.dtype}"
    group, block, fits = _sharing(weight.shape, scale.shape, declared)
    scheme = f"{kind} blocks" if block else kind
    return Packed(
        "MXFP8" if kind == "fp8" and scale.dtype in _POWERS and block == 32 else scheme,
        8 if weight.dtype in FP8 or weight.dtype == "I8" else None,
        group,
        block,
        weight.shape,
        weight.elements,
        f"{weight.dtype} weights as they are, times the scale of {group}",
        ".weight",
        (leaf,),
        fits,
    )


def _sharing(weight: Shape, scale: Shape, declared: Packing | None) -> tuple[str, int | None, bool]:
    """Return what shares a scale, the side of a block, and whether the shapes fit each other."""
    if prod(scale) == 1:
        return "the tensor", None, True
    *experts, rows, columns = (1, *weight) if len(weight) == 1 else weight
    if scale in ((rows,), (rows, 1)) or scale in ((*experts, rows, 1), (*experts, 1, 1), (*experts,)):
        return ("a row" if rows in scale[-2:] else "an expert"), None, True
    if len(scale) < 2 or 0 in scale:
        return "unknown", None, False
    wanted = declared.block if declared is not None and declared.block else (128, 128)
    if scale[-2] == rows:
        size = columns // scale[-1] if columns % scale[-1] == 0 else None
        return (f"{size:,} inputs" if size else "unknown"), size, size is not None
    fits = (-(-rows // wanted[0]), -(-columns // wanted[1])) == scale[-2:]
    return f"{wanted[0]}x{wanted[1]}", wanted[1], fits


def of_block_type(item: Item) -> Packed:
    """Return how a tensor of a type of ggml is packed."""
    kind = BLOCK_TYPES[item.dtype]
    digits = re.search(r"\d+", kind.name)
    return Packed(
        f"GGUF {kind.name}",
        int(digits[0]) if digits else None,
        f"{kind.block} weights",
        None,
        item.shape,
        item.elements,
        f"blocks of {kind.block} weights in {kind.bytes} bytes, scales included: {kind.bits:g} bits a weight",
        "",
        (),
    )
