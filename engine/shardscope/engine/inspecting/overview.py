"""The tensors of an inspection in figures: how many, of which dtypes, how large, and which are the largest."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import chain, islice
from math import prod
from typing import Final

from shardscope.engine.model.descriptor import TensorsOverview
from shardscope.engine.model.ggml import BLOCK_TYPES
from shardscope.engine.model.tensors import DTYPES, DTypeShare, TensorTable

_LARGEST: Final = 5
_FEW: Final = 16
"""Kinds of tensors that are searched for one by one: each search is a pass over a column of numbers."""

_Kinds = Mapping[tuple[int, int], int]
"""How many tensors there are of each dtype and shape, both by their number in the table."""


def overview(table: TensorTable, headers_read: int, opaque: int) -> TensorsOverview:
    """Return the figures of `table`; `opaque` files hold tensors that it does not list."""
    if not headers_read and not len(table):
        return TensorsOverview(
            count=None if opaque else 0, elements=None, logical_bytes=None, files_opaque=opaque
        )
    kinds = _kinds(table)
    sizes = None if table.regular else table.sizes()
    shares = _shares(table, kinds, sizes)
    elements = [share.elements for share in shares if share.elements is not None]
    return TensorsOverview(
        count=len(table),
        elements=sum(elements) if len(elements) == len(shares) else None,
        logical_bytes=sum(share.bytes for share in shares) if sizes is None else sum(sizes),
        dtypes=tuple(sorted(shares, key=lambda share: (-share.bytes, share.dtype))),
        largest=tuple(table[row] for row in _largest(table, kinds, sizes)),
        files_examined=headers_read,
        files_opaque=opaque,
    )


def _kinds(table: TensorTable) -> _Kinds:
    dtypes, shapes = table.column("dtype"), table.column("shape")
    if len(table.dtypes) == 1:  # pairs of numbers take twice the time of numbers
        return {(0, shape): count for shape, count in Counter(shapes).items()}
    return Counter(zip(dtypes, shapes, strict=True))


def _shares(table: TensorTable, kinds: _Kinds, sizes: Sequence[int] | None) -> list[DTypeShare]:
    elements_of = [prod(shape) for shape in table.shapes]
    counts: Counter[int] = Counter()
    elements: Counter[int] = Counter()
    for (dtype, shape), count in kinds.items():
        counts[dtype] += count
        elements[dtype] += count * elements_of[shape]
    shares = []
    for number, count in counts.items():
        name = table.dtypes[number]
        if (known := DTYPES.get(name)) is not None:
            total = elements[number]
            shares.append(DTypeShare(name, count, total, total * known.bits // 8))
        else:
            rows = zip(table.column("dtype"), sizes or (), strict=True)
            size = sum(size for dtype, size in rows if dtype == number)
            shares.append(DTypeShare(name, count, elements[number] if name in BLOCK_TYPES else None, size))
    return shares


def _largest(table: TensorTable, kinds: _Kinds, sizes: Sequence[int] | None) -> list[int]:
    """Return the rows of the largest tensors, the earlier first among equals (a model has thousands of equals)."""
    if sizes is None:
        shapes, dtypes = table.shapes, [DTYPES[name].bits for name in table.dtypes]
        shapes_of: defaultdict[int, list[int]] = defaultdict(list)
        for dtype, shape in kinds:
            shapes_of[prod(shapes[shape]) * dtypes[dtype]].append(shape)
        wanted = [shapes_of[size] for size in nlargest(_LARGEST, shapes_of)]
        if sum(map(len, wanted)) <= _FEW and len(kinds) == len(shapes):  # no shape has two dtypes
            column = table.column("shape")
            found = (
                sorted(chain.from_iterable(islice(_places(column, n), _LARGEST) for n in each))
                for each in wanted
            )
            return list(islice(chain.from_iterable(found), _LARGEST))
        sizes = table.sizes()
    places = (_places(sizes, size) for size in nlargest(_LARGEST, set(sizes)))
    return list(islice(chain.from_iterable(places), _LARGEST))


def _places(column: Sequence[int], value: int) -> Iterator[int]:
    """Yield where `value` stands in `column`, first to last."""
    place = -1
    while True:
        try:
            place = column.index(value, place + 1)
        except ValueError:
            return
        yield place
