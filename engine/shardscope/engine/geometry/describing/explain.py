"""Shard maps in words: trees in a line for each node, pieces as rows and columns, checks as sentences."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.describing.picture import picture, shard_picture
from shardscope.engine.geometry.describing.regions import described
from shardscope.engine.geometry.language.document import groups
from shardscope.engine.geometry.pieces.budget import DEFAULT, Budget, Budgets
from shardscope.engine.geometry.pieces.wellformed import named
from shardscope.engine.model import shardmap as nodes
from shardscope.engine.model.blocker import Fault, blocker
from shardscope.engine.model.explanation import Explanation, PieceInWords, ShardInWords
from shardscope.engine.model.lowered import ShardGroup
from shardscope.engine.model.mapcheck import Checked
from shardscope.engine.model.picture import Picture
from shardscope.engine.model.piece import ONE, Lowered, Piece, Side
from shardscope.engine.model.shardmap import DeviceMesh, Node, TensorMap
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import counted

DRAWABLE = frozenset(
    {
        "map.uncovered",
        "map.shard_hole",
        "map.destination_collision",
        "map.holders_differ",
        "map.holders_wrong",
    }
)
"""Findings about the whole: the pieces themselves are sound, so that they can be drawn."""

WIDTHS = 12
"""Widths that are written out, beyond which they are counted."""

TEXT = 48
"""Characters of a name in a document that are shown."""


def explain(
    name: str,
    lowered: Lowered,
    tensor: TensorMap | None = None,
    mesh: DeviceMesh | None = None,
    *,
    dtype: str | None = None,
    rank: int | None = None,
    width: int = 64,
    height: int = 16,
    budgets: Budgets = DEFAULT,
) -> Explanation:
    """Return a map in words. `tensor` and `mesh` are what it was lowered from; `rank` asks for a picture of its shard.

    Raises `Fault` `map.budget`.
    """
    dtype = dtype or (tensor.dtype if tensor is not None else None)
    bits = DTYPES[dtype].bits if dtype in DTYPES else None
    checked = check(lowered, Budget(budgets))
    drawn = in_shard = None
    if all(finding.code in DRAWABLE for finding in checked.findings):
        drawn = _drawn(lowered, None, width, height, budgets)
        if rank is not None:
            in_shard = _drawn(lowered, rank, width, height, budgets)
    return Explanation(
        name=name,
        shape=lowered.shape,
        dtype=dtype,
        mesh=None if mesh is None or tensor is None else f"{tensor.mesh}: {axes(mesh)}",
        tree=() if tensor is None else tuple(tree(tensor.map)),
        shards=tuple(_shard(group, lowered, bits) for group in groups(lowered.ranks)),
        says=tuple(sentences(lowered, checked)),
        blockers=tuple(blocker(finding, name) for finding in checked.findings),
        picture=drawn,
        shard_picture=in_shard,
    )


def _drawn(lowered: Lowered, rank: int | None, width: int, height: int, budgets: Budgets) -> Picture | None:
    try:
        if rank is None:
            return picture(lowered, width, height, Budget(budgets))
        return shard_picture(lowered, rank, width, height, Budget(budgets))
    except Fault as fault:
        if fault.finding.code != "map.unproven":
            raise
        return None


def axes(mesh: DeviceMesh) -> str:
    """Return the axes of a mesh, the slowest first: `dp 2 x tp 4`."""
    return " x ".join(f"{axis.name} {axis.size:,}" for axis in mesh.axes) or "one rank"


def tree(node: Node) -> Iterator[str]:
    """Yield a line for each node of a tree in the order in which they apply, parts of a concatenation indented."""
    chain: list[Node] = []
    below: Node | None = node
    while below is not None:
        chain.append(below)
        below = None if isinstance(below, nodes.Replicate) else below.of
    if len(chain) > 1 and isinstance(chain[-1], nodes.Replicate):
        chain.pop()  # the identity, below something that says more
    for each in reversed(chain):
        yield line(each)
        if isinstance(each, nodes.SubParamConcat):
            for number, part in enumerate(each.parts):
                label = part.name or f"part {number}"
                first, *rest = tree(part.map)
                yield f"  {label}, {part.size:,}: {first}"
                yield from (f"    {text}" for text in rest)


def line(node: Node) -> str:
    """Return what one node does."""
    match node:
        case nodes.Replicate():
            return "replicate: every rank holds all of it"
        case nodes.Contiguous():
            return f"contiguous over {node.axis}: dimension {node.dim} into {_widths(node.widths)}"
        case nodes.SubParamConcat():
            return f"sub-parameters along dimension {node.dim}, each cut by itself and put together again:"
        case nodes.Interleave():
            return (
                f"interleave over {node.axis}: dimension {node.dim} as {node.head_grouping:,} x {node.parts:,} parts x units x "
                f"{node.stride:,}, units dealt in equal runs"
            )
        case nodes.Trim():
            return f"trim: dimension {node.dim} has {node.logical_size:,} of {node.padded_size:,}, the rest is padding"
        case nodes.Explicit():
            total = sum(map(len, node.indices))
            return f"explicit over {node.axis}: {total:,} addresses"
        case nodes.Block():
            held = sum(box is not None for box in node.boxes)
            return f"blocks over {' x '.join(node.axes)}: {held:,} of {counted(len(node.boxes), 'rank')} {'has' if held == 1 else 'have'} a box"
        case nodes.FlatRange():
            return f"flat range over {node.axis}: the flattened input into {_ranges(node.start, node.stop)}"
    return f"scale: the shard holds the values times {node.numerator}/{node.denominator}"


def _widths(widths: Sequence[int]) -> str:
    runs = [(width, len(list(same))) for width, same in groupby(widths)]
    if len(runs) == 1 and len(widths) > 1:
        return f"{len(widths):,} x {widths[0]:,}"
    if len(widths) <= WIDTHS:
        return ", ".join(f"{width:,}" for width in widths)
    shown = ", ".join(
        f"{times:,} x {width:,}" if times > 1 else f"{width:,}" for width, times in runs[:WIDTHS]
    )
    return shown if len(runs) <= WIDTHS else f"{shown}, ... ({len(widths):,} widths)"


def _ranges(start: Sequence[int], stop: Sequence[int]) -> str:
    widths = [high - low for low, high in zip(start, stop, strict=False)]
    if len(set(widths)) == 1 and all(low == number * widths[0] for number, low in enumerate(start)):
        return f"{len(widths):,} x {widths[0]:,}"
    shown = [
        f"{low:,}-{high - 1:,}" if high > low else "nothing" for low, high in zip(start, stop, strict=False)
    ]
    more = f", ... ({len(shown):,} ranges)" if len(shown) > WIDTHS else ""
    return ", ".join(shown[:WIDTHS]) + more


def _shard(group: ShardGroup, lowered: Lowered, bits: int | None) -> ShardInWords:
    elements = math.prod(group.shape)
    pieces = [_piece(piece, group, lowered, bits) for piece in group.pieces]
    pieces += [
        PieceInWords(
            f"{counted(len(index.dest), 'element')} by an index",
            f"{counted(len(index.dest), 'element')} by an index",
            len(index.dest),
            None,
            None,
            named(index.holders) if index.holders else "no rank",
            _factor(index.scale),
        )
        for index in group.indexed
    ]
    return ShardInWords(
        group.ranks,
        group.shape,
        elements,
        None if bits is None else -(-elements * bits // 8),
        group.padding,
        tuple(pieces),
    )


def _piece(piece: Piece, group: ShardGroup, lowered: Lowered, bits: int | None) -> PieceInWords:
    return PieceInWords(
        _described(lowered.shape, piece.source, piece.dest, piece.shape),
        _described(group.shape, piece.dest, piece.source, piece.shape, rising=True),
        piece.elements,
        _bytes(piece.source, piece.shape, bits),
        _bytes(piece.dest, piece.shape, bits),
        named(piece.holders) if piece.holders else "no rank",
        _factor(piece.scale),
    )


def _described(
    shape: tuple[int, ...], side: Side, other: Side, extents: tuple[int, ...], *, rising: bool = False
) -> str:
    sound = (
        len(extents) == len(side.strides) == len(other.strides)
        and side.offset >= 0
        and all(stride > 0 for stride in side.strides)
        and all(extent > 0 for extent in (*extents, *shape))
    )
    if not sound:
        return f"offset {side.offset:,}, strides {list(side.strides)}, extents {list(extents)}"
    return described(shape, side, other, extents, rising=rising)


def _bytes(side: Side, extents: tuple[int, ...], bits: int | None) -> tuple[int, int] | None:
    if bits is None or 0 in extents:
        return None
    last = side.offset + sum((n - 1) * step for n, step in zip(extents, side.strides, strict=False))
    return side.offset * bits // 8, -(-(last + 1) * bits // 8)


def _factor(scale: tuple[int, int]) -> str | None:
    return None if scale == ONE else f"{scale[0]}/{scale[1]}"


def sentences(lowered: Lowered, checked: Checked) -> Iterator[str]:
    """Yield what the checks of a map proved, a sentence each. What they found wrong is in the findings."""
    if checked.uncovered == 0:
        ranks = len(lowered.ranks)
        by = "the one rank" if ranks == 1 else f"at least one of {counted(ranks, 'rank')}"
        yield f"Every one of {counted(checked.elements, 'element')} is held by {by}."
    if checked.ok:
        yield "Every element of every shard has one place in the full tensor, or is declared padding."
    if checked.replicas is not None:
        every = len(lowered.ranks)
        alone = sum(one.elements for one in checked.replicas if len(one.holders) == 1)
        everywhere = sum(one.elements for one in checked.replicas if len(one.holders) == every > 1)
        some = sum(one.elements for one in checked.replicas) - alone - everywhere
        parts = [
            f"{words} {count:,}"
            for count, words in (
                (alone, "by one rank alone"),
                (some, "by several ranks"),
                (everywhere, f"by all {every:,} ranks"),
            )
            if count
        ]
        if parts:
            yield f"Elements held {', '.join(parts)}."
    if checked.padding:
        total = sum(one.elements for one in checked.padding)
        yield f"{counted(total, 'element')} of {counted(len(checked.padding), 'shard')} {'is' if total == 1 else 'are'} padding."
    if checked.scaled:
        yield "Some shards hold values times a factor: fit for weights, refused for optimizer states."
    if checked.indexed_elements:
        yield (
            f"{counted(checked.indexed_elements, 'element')} could not be said in pieces and cost 16 bytes each in every plan."
        )
