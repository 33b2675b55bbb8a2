"""Tensors for the shard map, made by hand: a fused projection, an embedding without end, partitions, gaps, names that bite."""

from math import prod
from typing import Any, Final

from shardscope.app.explorer.shardmap.engine import CALLS, Calls
from shardscope.app.explorer.shardmap.screen import ShardMap
from shardscope.app.explorer.shardmap.subject import Subject
from shardscope.app.explorer.target import Asked, Target
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.model.catalogue import Catalogue, Fragment, LogicalTensor, Record
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side
from shardscope.engine.model.shardmap import (
    Contiguous,
    DeviceMesh,
    FlatRange,
    MeshAxis,
    Node,
    Part,
    Scale,
    SubParamConcat,
    TensorMap,
    Trim,
)
from shardscope.engine.model.tensors import DTYPES
from tests.app.decodings import decoded

MESH: Final = DeviceMesh((MeshAxis("dp", 2), MeshAxis("tp", 4)))
WIDE: Final = DeviceMesh((MeshAxis("tp", 64),))
QKV: Final = "layers.0.attn.qkv.weight"


def tensor(
    name: str, shape: tuple[int, ...], node: Node, mesh: DeviceMesh = MESH, dtype: str = "BF16", **facts: Any
) -> LogicalTensor:
    """Return a tensor whose shards lie in a file of each rank."""
    made = TensorMap(shape, node)
    size = DTYPES[dtype].bits // 8
    parts = tuple(
        Fragment(
            shard.rank,
            shard.shape,
            Record(
                f"mp_rank_{shard.rank:02}_model_states.pt",
                4_096,
                prod(shard.shape) * size,
                prod(shard.shape) * size,
            ),
            0,
        )
        for shard in lower(made, mesh).ranks
    )
    return LogicalTensor(name, dtype, shape, made, mesh, parts, **facts)


def _each(size: int) -> Node:
    return Contiguous("tp", 0, (size // 4,) * 4)


def qkv() -> LogicalTensor:
    """Return a fused projection: queries, and fewer keys and values."""
    parts = tuple(Part(size, _each(size), name) for name, size in (("q", 2048), ("k", 512), ("v", 512)))
    return tensor(QKV, (3072, 2048), SubParamConcat(0, parts))


def embedding() -> LogicalTensor:
    """Return an embedding of a thousand million rows over 64 ranks."""
    return tensor("embed.weight", (1_000_000_000, 4096), Contiguous("tp", 0, (15_625_000,) * 64), WIDE)


def padded() -> LogicalTensor:
    """Return a vocabulary whose last rank has rows that do not exist."""
    node = Contiguous("tp", 0, (8_016,) * 4, Trim(0, 32_003, 32_064))
    return tensor("lm_head.weight", (32_003, 512), node, stored_shape=(32_064, 512))


def replicated() -> LogicalTensor:
    """Return a bias that every rank has, with further copies in other files, tied and averaged."""
    found = tensor(
        "norm.bias", (4096,), Scale(1, 8), alias_of="final.bias", note="in the precision of the module"
    )
    return LogicalTensor(
        **{name: getattr(found, name) for name in found.__struct_fields__}
        | {"replicas": found.fragments[1:3]}
    )


def gap() -> LogicalTensor:
    """Return a tensor of which a rank's rows are in no file."""
    whole = lower(TensorMap((64, 32), Contiguous("tp", 0, (16,) * 4)), DeviceMesh((MeshAxis("tp", 4),)))
    found = Lowered((64, 32), tuple(shard for shard in whole.ranks if shard.rank != 2))
    record = Record("rank.pt", 0, 2_048, 2_048)
    parts = tuple(Fragment(shard.rank, shard.shape, record, 0) for shard in found.ranks)
    return LogicalTensor("holed.weight", "F32", (64, 32), found, None, parts, part_of=None)


def broken() -> LogicalTensor:
    """Return a tensor whose map reaches beyond its end."""
    piece = Piece((99,), Side(0, (1,)), Side(0, (1,)), (0,))
    return LogicalTensor(
        "broken", "F32", (4, 4), Lowered((4, 4), (RankShard(0, (4, 4), (piece,)),)), None, ()
    )


def partition() -> tuple[LogicalTensor, ...]:
    """Return parameters in one flattened buffer among three ranks, padded at the end: the second is on all of them."""
    mesh = DeviceMesh((MeshAxis("dp", 3),))
    records = [Record(f"zero_pp_rank_{rank}_optim_states.pt", 1_024, 4_000, 4_000) for rank in range(3)]
    made = []
    begin = 0
    for name, shape in (
        ("embed.weight", (30, 20)),
        ("blocks.0.mlp.weight", (54, 36)),
        ("norm.weight", (20, 12)),
    ):
        count = prod(shape)
        ranges = [
            (min(max(rank * 1_000 - begin, 0), count), min(max(rank * 1_000 + 1_000 - begin, 0), count))
            for rank in range(3)
        ]
        parts = tuple(
            Fragment(rank, (high - low,), records[rank], 4 * max(0, begin - rank * 1_000))
            for rank, (low, high) in enumerate(ranges)
            if high > low
        )
        node = FlatRange("dp", tuple(low for low, _ in ranges), tuple(high for _, high in ranges))
        made.append(LogicalTensor(name, "F32", shape, TensorMap(shape, node), mesh, parts))
        begin += count
    return tuple(made)


def inspection(*tensors: LogicalTensor) -> Inspection:
    """Return a decoded checkpoint of some tensors."""
    found = decoded()
    found.catalogue = Catalogue(tensors)
    found.model = ModelFacts()
    return found


def subject(*tensors: LogicalTensor, at: int = 0, is_decoded: bool = True, offer: str = "") -> Subject:
    """Return one of some tensors of a checkpoint, to be looked at."""
    asked = Asked() if is_decoded else None
    return Subject(Target("run42/llama"), inspection(*tensors), tensors[at], is_decoded, asked, offer)


def a_map(*tensors: LogicalTensor, at: int = 0, calls: Calls = CALLS, **facts: Any) -> ShardMap:
    """Return the screen of one of some tensors."""
    return ShardMap(subject(*tensors, at=at, **facts), calls)
