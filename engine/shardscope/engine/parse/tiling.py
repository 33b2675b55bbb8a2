"""The rule that makes a safetensors file trustworthy: ordered by offset, its tensors tile the data without a gap.

Sizes are checked as the reference library does it, dimension by dimension in 64 bits.
"""

import re
from itertools import accumulate
from math import prod
from operator import sub
from typing import Final, NoReturn

from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.parse.header_text import Columns

_BITS: Final = {name: dtype.bits for name, dtype in DTYPES.items()}
_LARGE_RANK: Final = 16
_SHOWN_DIMENSIONS: Final = 8
_QUOTABLE: Final = re.compile(r"[A-Za-z0-9_.]{1,16}")


def tile(columns: Columns, available: int, limits: Limits) -> list[Finding]:
    """Put `columns` in the order of the data, and check that they tile `available` bytes.

    Raises `Fault` `limit.tensors`, `limit.tensor_rank`, `header.shape_type`, `header.offsets_type`, `header.reversed`, then, for the
    first wrong tensor in the order of the data, `header.overlap`, `gap`, `shape_overflow`, `subbyte_unaligned` or
    `size_mismatch`. Returns the notes `header.truncated`, `header.overlong`, `header.dtype_unknown` and `header.rank_large`.
    """
    tensors = len(columns.names)
    if tensors > limits.tensors:
        raise Fault("limit.tensors", limit=limits.tensors, found=tensors)
    ordered = _is_ordered(columns)
    if not ordered:
        _sort(columns)
        ordered = _is_ordered(columns)
    rank = max((len(shape) for _, shape in columns.kinds), default=0)
    if rank > limits.tensor_rank:
        raise Fault("limit.tensor_rank", limit=limits.tensor_rank, found=rank)
    if not (ordered and _sizes_agree(columns)):
        _name_fault(columns)
    notes = _end_notes(columns.ends[-1] if tensors else 0, available)
    if any(dtype not in _BITS for dtype, _ in columns.kinds):
        unknown = [dtype for dtype in columns.dtypes if dtype not in _BITS]
        first = unknown[0] if _QUOTABLE.fullmatch(unknown[0]) else "not shown"
        notes.append(Finding("header.dtype_unknown", {"count": len(unknown), "dtype": first}))
    if rank > _LARGE_RANK:
        large = sum(len(shape) > _LARGE_RANK for shape in columns.shapes)
        notes.append(Finding("header.rank_large", {"count": large, "rank": rank}))
    return notes


def _is_ordered(columns: Columns) -> bool:
    """Whether each tensor begins where the one before it ended, in three comparisons of whole columns."""
    begins, ends = columns.begins, columns.ends
    return not begins or (begins[0] == 0 and begins[1:] == ends[:-1])


def _sort(columns: Columns) -> None:
    begins, ends = columns.begins, columns.ends
    order = sorted(range(len(begins)), key=lambda i: (begins[i], ends[i]))
    columns.names = [columns.names[i] for i in order]
    columns.dtypes = [columns.dtypes[i] for i in order]
    columns.shapes = [columns.shapes[i] for i in order]
    columns.begins = [begins[i] for i in order]
    columns.ends = [ends[i] for i in order]
    columns.kind_of = [columns.kind_of[i] for i in order]


def _sizes_agree(columns: Columns) -> bool:
    """Whether every range is as long as its shape and dtype ask, and not negative where that is not known.

    The columns are ordered, so that the ends are the sizes added up. Whole columns take a third of the time of a loop.
    """
    sizes = [_size(*kind) for kind in columns.kinds]
    if -1 in sizes:
        return False
    wanted = map(sizes.__getitem__, columns.kind_of)
    if None not in sizes:
        return list(accumulate(wanted)) == columns.ends
    found = map(sub, columns.ends, columns.begins)
    return all(size >= 0 and need in (None, size) for need, size in zip(wanted, found, strict=True))


def _size(dtype: str, shape: tuple[int, ...]) -> int | None:
    """Bytes of a tensor; -1 where they are no whole number or do not fit 64 bits, null where the dtype is unknown."""
    if _overflows(shape):
        return -1
    bits = _BITS.get(dtype)
    if bits is None:
        return None
    total = prod(shape) * bits
    return -1 if total % 8 or total >> 64 else total // 8


def _overflows(shape: tuple[int, ...]) -> bool:
    """Whether a dimension, or the product of them taken from left to right, leaves 64 bits."""
    product = 1
    for dimension in shape:
        product *= dimension
        if product >> 64 or dimension >> 64:
            return True
    return False


def _name_fault(columns: Columns) -> NoReturn:
    """Raise the fault of the first tensor, in the order of the data, that does not fit."""
    names, dtypes, shapes, begins, ends = (
        columns.names,
        columns.dtypes,
        columns.shapes,
        columns.begins,
        columns.ends,
    )
    for name, shape, begin, end in zip(names, shapes, begins, ends, strict=True):
        if any(dimension >> 64 for dimension in shape):
            raise Fault("header.shape_type", tensor=name, found="a number beyond 64 bits")
        if begin >> 64 or end >> 64:
            raise Fault("header.offsets_type", tensor=name, found="a number beyond 64 bits")
        if begin > end:
            raise Fault("header.reversed", tensor=name, begin=begin, end=end)
    reached, before = 0, ""
    for name, dtype, shape, begin, end in zip(names, dtypes, shapes, begins, ends, strict=True):
        if begin > reached:
            raise Fault("header.gap", tensor=name, missing=begin - reached)
        if begin < reached:
            raise Fault("header.overlap", tensor=name, other=before, early=reached - begin)
        _check_size(name, dtype, shape, end - begin)
        reached, before = end, name
    raise AssertionError("the columns fit after all")


def _check_size(name: str, dtype: str, shape: tuple[int, ...], found: int) -> None:
    if _overflows(shape):
        raise Fault("header.shape_overflow", tensor=name, shape=_shown(shape))
    bits = _BITS.get(dtype)
    if bits is None:
        return
    total = prod(shape) * bits
    if total >> 64:
        raise Fault("header.shape_overflow", tensor=name, shape=_shown(shape))
    if total % 8:
        raise Fault("header.subbyte_unaligned", tensor=name, bits=total, dtype=dtype, shape=_shown(shape))
    if total // 8 != found:
        raise Fault(
            "header.size_mismatch",
            tensor=name,
            found=found,
            expected=total // 8,
            dtype=dtype,
            shape=_shown(shape),
        )


def _end_notes(declared: int, available: int) -> list[Finding]:
    if declared > available:
        missing = declared - available
        return [Finding("header.truncated", {"missing": missing, "expected": declared, "found": available})]
    if declared < available:
        return [Finding("header.overlong", {"extra": available - declared})]
    return []


def _shown(shape: tuple[int, ...]) -> str:
    more = ["..."] if len(shape) > _SHOWN_DIMENSIONS else []
    return f"[{', '.join([*map(str, shape[:_SHOWN_DIMENSIONS]), *more])}]"
