"""Fused attention projections. The facts are head counts and widths; which tensor they belong to is for the caller to know.

The orders of rows are those of deepspeed 0.19.8 (`deepspeed/module_inject/fusedqkv_utils.py`) and of Megatron-LM's
`linear_qkv`.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from shardscope.engine.geometry.constructors.cuts import even, extent_of, fused, refuse, unproven
from shardscope.engine.geometry.language.holders import with_holders
from shardscope.engine.geometry.language.nodes import Local, box
from shardscope.engine.geometry.pieces.blocks import Block, meet
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.fold import folded
from shardscope.engine.model.piece import Lowered, Side
from shardscope.engine.model.shardmap import (
    Contiguous,
    Interleave,
    Part,
    Replicate,
    SubParamConcat,
    TensorMap,
)

CODEGEN_GROUPS = 4
"""CodeGen keeps its rows in four groups, each query, value and key of a quarter of the heads."""


def head_interleaved(
    shape: Sequence[int], ranks: int, heads: int, *, parts: int = 3, axis: str = "tp", dim: int = 0
) -> TensorMap:
    """Return the map of a tensor [part, head, rows of a head] of which a rank holds [its heads, part, rows of a head].

    So BLOOM and Falcon keep query, key and value of a head together. Raises `Fault` `map.invalid`.
    """
    extent = extent_of(shape, dim)
    if heads < 1 or parts < 1 or extent % (heads * parts):
        refuse(f"{extent:,} slices are not {parts} parts of {heads:,} heads")
    if heads % ranks:
        refuse(f"{heads:,} heads do not divide among {ranks:,} ranks")
    return TensorMap(tuple(shape), Interleave(axis, dim, 1, extent // (heads * parts), parts))


def codegen(shape: Sequence[int], ranks: int, heads: int, *, axis: str = "tp", dim: int = 0) -> TensorMap:
    """Return the map of CodeGen's fused projection: four groups of three parts, dealt to the ranks in blocks.

    Raises `Fault` `map.unproven` where DeepSpeed does not cut this way (`heads` has to be a multiple of 4 x `ranks`, and
    there are at least two ranks), `map.invalid` where the rows are not 12 x `ranks` blocks.
    """
    if ranks < 2 or heads < 1 or heads % (CODEGEN_GROUPS * ranks):
        unproven(f"{heads:,} heads in four groups among {ranks:,} ranks")
    extent = extent_of(shape, dim)
    blocks = 3 * CODEGEN_GROUPS * ranks
    if extent == 0 or extent % blocks:
        refuse(f"{extent:,} slices are not {blocks:,} equal blocks")
    return TensorMap(tuple(shape), Interleave(axis, dim, CODEGEN_GROUPS, extent // blocks, 3))


def multi_query(shape: Sequence[int], widths: Sequence[int], *, axis: str = "tp", dim: int = 0) -> TensorMap:
    """Return the map of query slices cut into `widths`, with the key and value slices after them whole on every rank.

    So GPTBigCode shares one key and value head. Raises `Fault` `map.invalid`.
    """
    extent, query = extent_of(shape, dim), sum(widths)
    if query > extent:
        refuse(f"{query:,} query slices of {extent:,}")
    parts = (
        Part(query, Contiguous(axis, dim, tuple(widths)), "query"),
        Part(extent - query, Replicate(), "key and value"),
    )
    return TensorMap(tuple(shape), SubParamConcat(dim, parts))


def shared_query_key(
    shape: Sequence[int], ranks: int, heads: int, *, axis: str = "tp", dim: int = 0
) -> TensorMap:
    """Return the map of a tensor by heads of which a rank holds two runs: one of the first half of the heads, one of the second.

    So Yuan pairs its value heads (dim 0) and the columns of its output projection (dim 1). Raises `Fault` `map.unproven`
    where a rank would have an odd number of heads: two ranks then claim the same head.
    """
    extent = extent_of(shape, dim)
    if heads < 1 or extent % heads:
        refuse(f"{extent:,} slices are not {heads:,} heads")
    if ranks < 1 or heads % (2 * ranks):
        unproven(f"{heads:,} heads in two halves among {ranks:,} ranks: two ranks would share a head")
    return TensorMap(tuple(shape), fused(axis, dim, [even(extent // 2, ranks)] * 2))


def grouped_query(
    columns: Sequence[int],
    ranks: Sequence[int],
    heads: int,
    groups: int,
    head_size: int,
    budget: Budget | None = None,
) -> Lowered:
    """Return the map of a tensor [all queries, all keys, all values] whose shards keep each group together.

    Megatron-LM orders `linear_qkv` by group, [its query heads, its key, its value], and cuts that evenly along dimension 0;
    with fewer groups than ranks a rank holds an arbitrary part of a group. `columns` are the extents after the first
    dimension, `ranks` the labels in order of the cut. No node of the language regroups parts of different sizes, so
    this is the normal form itself. Raises `Fault`: `map.invalid`, `map.unproven`, `map.budget`.
    """
    budget = budget or Budget()
    if groups < 1 or heads < 1 or heads % groups or head_size < 1 or min(columns, default=1) < 0:
        refuse(f"{heads:,} heads of {head_size:,} in {groups:,} groups")
    inner = tuple(columns)
    below = 1
    for extent in inner:
        below *= extent
    share = heads // groups
    rows = (heads + 2 * groups) * head_size
    step, group = head_size * below, (share + 2) * head_size * below
    whole = [  # from the order by groups (a) to that of the full tensor (b)
        Block((groups, share * step), Side(0, (group, 1)), Side(0, (share * step, 1))),
        Block((groups, step), Side(share * step, (group, 1)), Side(heads * step, (step, 1))),
        Block(
            (groups, step), Side(share * step + step, (group, 1)), Side((heads + groups) * step, (step, 1))
        ),
    ]
    widths = even(rows, len(ranks))
    shape = (rows, *inner)
    shards = []
    for position, rank in enumerate(ranks):
        start = (position * widths[0], *(0 for _ in inner))
        cut = box(shape, start, (widths[position], *inner))
        met = meet(cut.blocks, whole, rows * below, budget) if below else []
        blocks = folded([Block(m.shape, m.a, m.b) for m in met])
        shards.append(((rank,), Local(cut.shape, tuple(blocks))))
    found = with_holders(shape, shards, budget)
    return Lowered(shape, tuple(sorted(found, key=lambda shard: shard.rank)))


class HeadFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """What a checkpoint does not say of a fused projection, and a model's configuration does."""

    layout: Literal["codegen", "multi_query", "shared_query_key"]
    heads: int = 0
    """For `codegen` and `shared_query_key`."""
    shared: int = 0
    """Slices that every rank holds, for `multi_query`: two heads' rows."""
    dim: int = 0
    """Dimension that is cut."""


def from_heads(facts: HeadFacts, shards: Sequence[tuple[int, ...]], *, axis: str = "tp") -> TensorMap:
    """Return the map whose shards have these shapes, rank by rank.

    Raises `Fault`: `map.invalid`, `map.unproven`.
    """
    dim = facts.dim
    widths = [extent_of(shard, dim) for shard in shards]
    if not shards or len({(*shard[:dim], *shard[dim + 1 :]) for shard in shards}) != 1:
        refuse("the shards differ in another dimension than the one that is cut")
    if facts.layout == "multi_query":
        if facts.shared < 0 or min(widths) < facts.shared:
            refuse(f"a shard has fewer than the {facts.shared:,} slices that every rank holds")
        queries = [width - facts.shared for width in widths]
        return multi_query(_with(shards[0], dim, sum(queries) + facts.shared), queries, axis=axis, dim=dim)
    if len(set(widths)) != 1:
        refuse("the shards are of different sizes")
    shape = _with(shards[0], dim, sum(widths))
    make = codegen if facts.layout == "codegen" else shared_query_key
    return make(shape, len(shards), facts.heads, axis=axis, dim=dim)


def _with(shape: tuple[int, ...], dim: int, extent: int) -> tuple[int, ...]:
    return (*shape[:dim], extent, *shape[dim + 1 :])
