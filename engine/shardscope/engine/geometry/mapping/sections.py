"""A dimension seen as sections: sizes from declared facts, and the affine blocks of what is taken of it."""

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

from shardscope.engine.geometry.pieces.blocks import Block
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.mapping import ModelFacts, Size, View
from shardscope.engine.model.piece import Side, row_major

_WORDS = {
    "layers": "number of layers",
    "heads": "number of attention heads",
    "groups": "number of query groups",
    "heads_per_group": "number of attention heads in a query group",
    "head_size": "size of an attention head",
    "experts": "number of experts",
    "vocabulary": "size of the vocabulary without its padding",
    "gated": "kind of the feed-forward layer (gated or not)",
    "qkv": "order of query, key and value",
    "normalization": "normalization",
    "positions": "position embedding",
    "moe": "number of experts",
    "tied": "ties between embedding and output layer",
}


def in_words(fact: str) -> str:
    """Return what a fact is called."""
    return _WORDS.get(fact, fact)


def in_value(value: object) -> str:
    """Return the value of a fact as a person reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


class Asked(Struct, frozen=True):
    """On whose behalf a table is asked: for what a fault says."""

    table: str
    tensor: str

    def missing(self, fact: str) -> Fault:
        """Return the fault of a fact that is not declared."""
        return Fault("mapping.fact_missing", table=self.table, tensor=self.tensor, fact=in_words(fact))

    def unfit(self, fact: str, expected: str, found: str) -> Fault:
        """Return the fault of a fact that is another than the table is for."""
        return Fault("mapping.unfit", table=self.table, fact=fact, expected=expected, found=found)

    def shards(self, reason: str) -> Fault:
        """Return the fault of shards that are not as the table says."""
        return Fault("mapping.shards", table=self.table, tensor=self.tensor, reason=reason)

    def size(self, dim: int, found: int, reason: str) -> Fault:
        """Return the fault of an extent that does not divide."""
        return Fault(
            "mapping.size", table=self.table, tensor=self.tensor, dim=dim, found=found, reason=reason
        )


class Sectioned(Struct, frozen=True):
    """A dimension as [before, sections, after], in slices."""

    dim: int
    before: tuple[int, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    """Of the sections; one nameless section of size 1 where there are none."""
    after: tuple[int, ...]

    @property
    def outer(self) -> int:
        """Places before the sections."""
        return math.prod(self.before)

    @property
    def inner(self) -> int:
        """Slices of a unit of a section."""
        return math.prod(self.after)


def sectioned(view: View, extent: int, facts: ModelFacts, asked: Asked) -> Sectioned:
    """Return the factors of a dimension of `extent` slices.

    Raises `Fault`: `mapping.fact_missing`, `mapping.size`.
    """
    sections = [section.size for section in view.sections]
    before = [_size(size, facts, asked) for size in view.before]
    after = [_size(size, facts, asked) for size in view.after]
    sizes: Sequence[int | None] = [_size(size, facts, asked) for size in sections] or [1]
    factors = (*before, *after)
    if None in sizes:
        if None in factors:
            raise asked.size(view.dim, extent, "the table leaves more than one size open")
        sizes = _shared(sizes, extent, math.prod(f for f in factors if f is not None), view.dim, asked)
    total = sum(size for size in sizes if size is not None)
    known = math.prod(f for f in factors if f is not None) * total
    if factors.count(None) == 1 and known and extent % known == 0:
        before = [extent // known if f is None else f for f in before]
        after = [extent // known if f is None else f for f in after]
        known = extent
    if None in (*before, *after) or known != extent:
        raise asked.size(view.dim, extent, f"its sections come to {known:,}")
    return Sectioned(
        view.dim,
        tuple(f for f in before if f is not None),
        tuple(section.name for section in view.sections) or ("",),
        tuple(size for size in sizes if size is not None),
        tuple(f for f in after if f is not None),
    )


def whole_extent(view: View, facts: ModelFacts, asked: Asked) -> int:
    """Return the extent of a dimension all of whose sizes are given.

    Raises `Fault`: `mapping.fact_missing`, `mapping.size`.
    """
    sections = [_size(section.size, facts, asked) for section in view.sections]
    factors = [_size(size, facts, asked) for size in (*view.before, *view.after)]
    if None in sections or None in factors:
        raise asked.size(view.dim, 0, "the table leaves a size open that ranks share")
    total = sum(size for size in sections if size is not None)
    return total * math.prod(size for size in factors if size is not None)


def _shared(sizes: Sequence[int | None], extent: int, factors: int, dim: int, asked: Asked) -> list[int]:
    """Return the sizes with the open ones as equal shares of what is left."""
    known = sum(size for size in sizes if size is not None)
    open_ = sizes.count(None)
    left = extent // factors - known if factors and extent % factors == 0 else -1
    if left < 0 or left % open_:
        raise asked.size(dim, extent, f"{open_} equal sections are left, beside {known:,} known slices")
    return [left // open_ if size is None else size for size in sizes]


def _size(size: Size, facts: ModelFacts, asked: Asked) -> int | None:
    if size is None or isinstance(size, int):
        return size
    found = getattr(facts, size)
    if not isinstance(found, int) or found < 1:
        raise asked.missing(size)
    return found


class Taken(Struct, frozen=True):
    """A tensor that is made of a part of another one."""

    shape: tuple[int, ...]
    blocks: tuple[Block, ...]
    """From the other tensor's addresses (a) to its own (b)."""


def taken(
    shape: Sequence[int],
    offset: int,
    cut: Sectioned | None,
    take: Iterable[str] = (),
    order: Sequence[int] = (),
    *,
    transpose: bool = False,
) -> Taken:
    """Return what is made of a tensor of `shape` that begins at the address `offset` of a larger one.

    `take` names the sections of `cut` that it has, in this order: all of them, as they lie, where it names none. `order` is
    that of the factors [*before, sections, *after]. `transpose` exchanges the first and the last dimension of two.
    """
    names = tuple(take)
    if cut is None or not (names or order):
        strides = row_major(tuple(shape))
        made, to = tuple(shape), strides
        if transpose and len(shape) == 2:
            made, to = made[::-1], (1, shape[0])
        return Taken(made, (Block(tuple(shape), Side(offset, strides), Side(0, to)),))
    chosen = [cut.names.index(name) for name in names] or list(range(len(cut.sizes)))
    rows = [cut.outer * cut.sizes[place] * cut.inner for place in chosen]
    made = (*shape[: cut.dim], sum(rows), *shape[cut.dim + 1 :])
    strides = row_major(made)
    if transpose and len(made) == 2:
        strides, made = (1, made[0]), made[::-1]
    blocks = []
    start = 0
    for place, count in zip(chosen, rows, strict=True):
        blocks.append(_block(shape, offset, cut, place, order, strides, start))
        start += count
    return Taken(made, tuple(blocks))


def _block(
    shape: Sequence[int],
    offset: int,
    cut: Sectioned,
    place: int,
    order: Sequence[int],
    strides: tuple[int, ...],
    start: int,
) -> Block:
    """Return the block of one section: the dimension taken apart into its factors on both sides."""
    dim = cut.dim
    extents = (*cut.before, cut.sizes[place], *cut.after)
    here = row_major((*cut.before, sum(cut.sizes), *cut.after))
    middle = len(cut.before)
    step = row_major(tuple(shape))[dim]
    ordered = tuple(order) or tuple(range(len(extents)))
    there_in_order = row_major(tuple(extents[factor] for factor in ordered))
    there = [0] * len(extents)
    for position, factor in enumerate(ordered):
        there[factor] = there_in_order[position]
    a = [stride for k, stride in enumerate(row_major(tuple(shape))) if k != dim]
    b = [stride for k, stride in enumerate(strides) if k != dim]
    others = [extent for k, extent in enumerate(shape) if k != dim]
    begin = sum(cut.sizes[:place]) * here[middle]
    return Block(
        (*others, *extents),
        Side(offset + begin * step, (*a, *(stride * step for stride in here))),
        Side(start * strides[dim], (*b, *(stride * strides[dim] for stride in there))),
    )
