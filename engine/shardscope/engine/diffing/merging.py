"""A tensor held against another one plus the updates of adapters, tile by tile, with what rounding may have done taken into account.

Libraries add updates in different ways: products in 32 bits or more, rounded to the type of the factors, of the weight, or not at
all, and the sum rounded to the type of the weight. Each element is given the most that any of these may be off by. That is far less than an
update that was forgotten, or scaled wrongly, is off by, wherever the update can be seen at all.
"""

import threading
from collections.abc import Iterator, Sequence
from math import isfinite, prod, sqrt
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from shardscope.engine.convert.copies.work import Written
from shardscope.engine.convert.proofs.comparing import Tiles
from shardscope.engine.diffing.measuring import First
from shardscope.engine.diffing.numbers import Values, in_words, values
from shardscope.engine.diffing.updates import Target, Update
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.difference import Figures, Merge, Merged
from shardscope.engine.model.tensors import DTYPES

BLOCK: Final = 64 << 10
"""Elements that are worked out at one time, but for a row that has more."""
SCRATCH: Final = 12 * 8 * BLOCK
"""Bytes that it takes beside tiles and factors, at most."""
_DIGITS: Final = {"BF16": 8, "F16": 11, "F32": 24, "F64": 53}
"""Binary digits of a number."""
ROUNDING: Final = {dtype: 2.0**-digits for dtype, digits in _DIGITS.items()}
"""How far off rounding to a type may be, relative to the number."""
_LOWEST: Final = {"BF16": -125, "F16": -13, "F32": -125, "F64": -1021}
"""The exponent of the smallest numbers that have all digits, as `frexp` counts: below, numbers lie evenly."""
_LARGEST: Final = {
    "BF16": 3.3895313892515355e38,
    "F16": 65504.0,
    "F32": 3.4028234663852886e38,
    "F64": np.inf,
}
_ONE_THREAD: Final = 1 << 18
"""Multiplications up to which OpenBLAS starts no thread."""
_SUMMED: Final = 2.0**-24
"""Products are added up in 32 bits, or in more."""

Bytes = NDArray[np.uint8]
Numbers = Values


class Product(NamedTuple):
    """An update with its factors in memory."""

    outer: Numbers
    inner: Numbers
    scale: float
    rounding: float
    """Of the type that its factors have."""
    rows: Numbers
    """The length of each row of `outer`, and in `columns` of each column of `inner`: their product bounds what a sum is made of."""
    columns: Numbers


class Block(NamedTuple):
    """Elements of a matrix that lie one behind the other, and are a matrix themselves."""

    row: int
    end_row: int
    column: int
    end_column: int


def refusal(one: LogicalTensor, other: LogicalTensor, target: Target, budget_bytes: int) -> str | None:
    """Return in one clause why nobody can say whether one tensor is another one plus an update; null where one can."""
    if target.refused is not None:
        return target.refused
    if one.shape != other.shape:
        return "their shapes differ"
    factors = [factor for item in target.updates for factor in (item.outer, item.inner) if factor is not None]
    for tensor in (one, other, *factors):
        if tensor.unwritable is not None:
            return tensor.unwritable
        if tensor.dtype not in ROUNDING:
            return f"nothing is added up in {tensor.dtype}"
    needed = bytes_of_factors(target)
    if needed > budget_bytes:
        return f"its factors take {needed:,} bytes, and --memory allows {budget_bytes:,}"
    return None


def width_of(target: Target, shape: tuple[int, ...]) -> int:
    """Return the columns of a tensor as the factors see it: the elements of a row, and one of a bias."""
    is_bias = any(update.inner is None for update in target.updates)
    return 1 if is_bias or not shape else prod(shape[1:])


def bytes_of_factors(target: Target) -> int:
    """Return the bytes that the factors of a target take in memory, with their lengths."""
    sizes = (prod(factor.shape) for item in target.updates for factor in (item.outer, item.inner) if factor)
    return 2 * 8 * sum(sizes)


def loaded(update: Update, tiles: Tiles, cancel: threading.Event | None) -> Product:
    """Read the factors of an update. Raises `Fault`: those of reading; `Cancelled`."""
    outer = _matrix(update.outer, tiles, cancel)
    inner = np.ones((1, 1)) if update.inner is None else _matrix(update.inner, tiles, cancel)
    if update.turned:
        outer, inner = np.ascontiguousarray(outer.T), np.ascontiguousarray(inner.T)
    dtypes = [update.outer.dtype, *([] if update.inner is None else [update.inner.dtype])]
    with np.errstate(all="ignore"):
        rows, columns = (
            np.sqrt(np.einsum("ij,ij->i", outer, outer)),
            np.sqrt(np.einsum("ij,ij->j", inner, inner)),
        )
    return Product(outer, inner, update.scale, max(ROUNDING[dtype] for dtype in dtypes), rows, columns)


def _matrix(tensor: LogicalTensor, tiles: Tiles, cancel: threading.Event | None) -> Numbers:
    """Read a factor, a row for each entry of its first dimension."""
    found: Numbers = np.empty(prod(tensor.shape))
    for part in tiles.stretches((Written(tensor, tensor.dtype, 0),), cancel):
        found[part.element : part.element + part.elements] = values(part.data[0], tensor.dtype)
    return found.reshape(tensor.shape[0], -1)


def blocks(low: int, high: int, width: int, most: int = BLOCK) -> Iterator[Block]:
    """Yield the elements `low` to `high` of a matrix of `width` columns as blocks: whole rows, or a part of one."""
    while low < high:
        row, column = divmod(low, width)
        if column or high - low < width or width > most:
            end = min(high, (row + 1) * width, low + most)
            yield Block(row, row + 1, column, end - row * width)
        else:
            count = min((high - low) // width, most // width)
            end = low + count * width
            yield Block(row, row + count, 0, width)
        low = end


class MergeMeasure:
    """What B comes to beside A plus products. Tiles come in order."""

    def __init__(self, first: str, second: str, products: Sequence[Product], width: int) -> None:
        """`first` and `second` are the types of A and of B, which are matrices of `width` columns."""
        self._dtypes = first, second
        self._products = products
        self._width = width
        self.first: First | None = None
        self._is_base = True
        self._elements = self._beyond = self._not_finite = self._visible = 0
        self._update = self._strain = 0.0
        self._max_abs = self._max_rel = -1.0
        self._along = self._squared = 0.0
        self._dot = self._one = self._other = 0.0

    def add(self, element: int, first: Bytes, second: Bytes) -> None:
        """Take the elements from `element` on in."""
        size, other_size = (DTYPES[dtype].bits // 8 for dtype in self._dtypes)
        at = 0
        for block in blocks(element, element + len(first) // size, self._width):
            end = at + (block.end_row - block.row) * (block.end_column - block.column)
            base = values(first[at * size : end * size], self._dtypes[0])
            found = second[at * other_size : end * other_size]
            with np.errstate(all="ignore"):
                self._add(element + at, block, base, found)
            self._elements += end - at
            at = end

    def _add(self, element: int, block: Block, base: Numbers, data: Bytes) -> None:
        found = values(data, self._dtypes[1])
        update, summed = self._products_of(block)
        want = base + update
        off = np.abs(found - want)
        room = self._room(base, update, want, summed)
        good = (off <= room) | (found == want) | (np.isnan(found) & np.isnan(want))
        good |= (
            np.isinf(found) & (np.sign(found) == np.sign(want)) & (np.abs(want) > _LARGEST[self._dtypes[1]])
        )
        finite = np.isfinite(found) & np.isfinite(want)
        self._beyond += int(np.count_nonzero(~good))
        self._not_finite += int(np.count_nonzero(~good & ~finite))
        self._visible += int(np.count_nonzero(np.abs(update) > room))
        self._is_base = self._is_base and bool(np.array_equal(found, base, equal_nan=True))
        if self.first is None and not good.all():
            at = int(np.argmin(good))
            size = DTYPES[self._dtypes[1]].bits // 8
            words = in_words(data[at * size : (at + 1) * size], self._dtypes[1])
            self.first = First(element + at, f"{want[at]:.9g}", words)
        kept: list[Numbers] = [found, want, base, update, off, room]
        if not finite.all():
            kept = [each[finite] for each in kept]
        if len(kept[0]):
            self._sums(*kept)

    def _products_of(self, block: Block) -> tuple[Numbers, Numbers]:
        """Return the update of a block, and what its rounding in between may come to."""
        shape = block.end_row - block.row, block.end_column - block.column
        update: Numbers = np.zeros(shape)
        summed: Numbers = np.zeros(shape)
        coarsest = ROUNDING[self._dtypes[1]]
        for product in self._products:
            outer = product.outer[block.row : block.end_row]
            inner = product.inner[:, block.column : block.end_column]
            made = _multiplied(outer, inner) * product.scale
            lengths = np.multiply.outer(
                product.rows[block.row : block.end_row], product.columns[block.column : block.end_column]
            )
            update = update + made
            steps = (inner.shape[0] + 2) * _SUMMED * abs(product.scale)
            summed = summed + lengths * steps + np.abs(made) * (2 * max(coarsest, product.rounding))
        return update.reshape(-1), summed.reshape(-1)

    def _room(self, base: Numbers, update: Numbers, want: Numbers, summed: Numbers) -> Numbers:
        """Return how far off each element may be."""
        if not self._products and self._dtypes[0] == self._dtypes[1]:
            return np.zeros_like(want)
        rounding = ROUNDING[self._dtypes[1]]
        room = summed + _half_steps(np.abs(want) + summed, self._dtypes[1])
        if len(self._products) > 1:  # rounded after each of them
            room += (np.abs(base) + np.abs(update)) * (rounding * len(self._products))
        if self._dtypes[0] != self._dtypes[1]:
            room += np.abs(base) * rounding
        return room * (1 + 2.0**-10)

    def _sums(
        self, found: Numbers, want: Numbers, base: Numbers, update: Numbers, off: Numbers, room: Numbers
    ) -> None:
        self._update = max(self._update, float(np.abs(update).max()))
        strain = np.divide(off, room, out=np.where(off > 0, np.inf, 0.0), where=room > 0)
        self._strain = max(self._strain, float(strain.max()))
        self._max_abs = max(self._max_abs, float(off.max()))
        size = np.maximum(np.abs(found), np.abs(want))
        relative = np.divide(off, size, out=np.zeros_like(off), where=size > 0)
        self._max_rel = max(self._max_rel, float(relative.max()))
        self._along += float(np.einsum("i,i->", update, found - base))
        self._squared += float(np.einsum("i,i->", update, update))
        self._dot += float(np.einsum("i,i->", found, want))
        self._one += float(np.einsum("i,i->", found, found))
        self._other += float(np.einsum("i,i->", want, want))

    @property
    def beyond(self) -> int:
        """Elements that are further off than rounding explains."""
        return self._beyond

    @property
    def verdict(self) -> Merged:
        """What became of the update."""
        if self._beyond:
            return "unmerged" if self._is_base else "differs"
        return "lost" if self._update > 0 and not self._visible else "merged"

    def merge(self, known: Merge) -> Merge:
        """Return what was found of the update; `known` has its ranks and scales."""
        return replace(
            known,
            verdict=self.verdict,
            update=_known(self._update),
            visible=self._visible,
            beyond=self._beyond,
            strain=_known(self._strain),
            share=_known_share(self._along, self._squared),
        )

    def figures(self) -> Figures:
        """Return B held against A plus the update."""
        size = sqrt(self._one) * sqrt(self._other)
        cosine = self._dot / size if size and isfinite(size) else None
        return Figures(
            verdict="differs" if self._beyond else "numbers",
            elements=self._elements,
            differing=self._beyond,
            bits_only=0,
            not_finite=self._not_finite,
            max_abs=_known(self._max_abs),
            max_rel=_known(self._max_rel),
            cosine=None if cosine is None or not isfinite(cosine) else max(-1.0, min(1.0, cosine)),
        )


def _half_steps(sizes: Numbers, dtype: str) -> Numbers:
    """Return half of the distance between neighbours in a type, at each of some sizes."""
    _, exponents = np.frexp(sizes)
    steps: Numbers = np.ldexp(0.5, np.maximum(exponents, _LOWEST[dtype]) - _DIGITS[dtype])
    return steps


def _multiplied(outer: Numbers, inner: Numbers) -> Numbers:
    """Return a product, made in parts that are each too small for more than one thread.

    What is multiplied here takes microseconds. Threads of a library that wait for each other took five times the time of all of it.
    """
    rows, depth = outer.shape
    step = max(1, _ONE_THREAD // max(1, rows * depth))
    found: Numbers = np.empty((rows, inner.shape[1]))
    for low in range(0, inner.shape[1], step):
        np.matmul(outer, inner[:, low : low + step], out=found[:, low : low + step])
    return found


def _known(value: float) -> float | None:
    return value if value >= 0 and isfinite(value) else None


def _known_share(along: float, squared: float) -> float | None:
    if not squared or not isfinite(along / squared):
        return None
    return along / squared
