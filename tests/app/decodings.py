"""A checkpoint before and after it was decoded, made by hand: two ranks, three tensors, one foreign name."""

from typing import Any, Final

from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.model.catalogue import Catalogue, Fragment, LogicalTensor, Record
from shardscope.engine.model.decoded import (
    ComponentFigures,
    DecodedPlane,
    DecodedStream,
    Listed,
    Reference,
)
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Confidence
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.outline import Outline, OutlineNode
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import Contiguous, DeviceMesh, MeshAxis, TensorMap
from tests.app.explorers import PROFILE
from tests.app.fakes import entry, inspection, tensor_table

FILES: Final = ("rank_0.pt", "rank_1.pt")
REFERENCES: Final = (
    Reference("os", "system", "called", 1, False, 1, "rank_1.pt"),
    Reference("evil\u202e.payload\x1b[2J", "boom", "named", 2, False, 1, "rank_0.pt"),
    Reference("collections", "OrderedDict", "called", 59, True, 2, "rank_0.pt"),
    Reference("torch._utils", "_rebuild_tensor_v2", "called", 50, True, 2, "rank_0.pt"),
)


OUTLINES: Final = tuple(
    Outline(
        file,
        0,
        (
            OutlineNode(-1, "object", "mapping", "dict of 4 keys"),
            OutlineNode(0, "model", "mapping", "OrderedDict of 2 keys"),
            OutlineNode(0, "args", "record", "Namespace of 2 fields"),
            OutlineNode(0, "iteration", "value", "1200"),
            OutlineNode(0, "hook", "name", "os.system (called)", foreign=True),
            OutlineNode(1, "embed.weight", "tensor", "F32 [4, 4]  storage 0, saved from cuda:0"),
            OutlineNode(1, "lm_head.weight", "shared", "the same as embed.weight"),
            OutlineNode(2, "hidden_size", "value", "4096"),
            OutlineNode(2, "history", "sequence", "list of 9000 items", left_out=9_000),
        ),
        left_out=True,
    )
    for file in FILES
)


def opaque(**facts: Any) -> Inspection:
    """Return the checkpoint as the safe plane sees it."""
    return inspection(
        [*(entry(file, 3 << 20) for file in FILES), entry("notes.bin", 10)],
        format="torch_dcp",
        confidence=Confidence.LOW,
        components=(Component("weights", "ranks", "torch_dcp", FILES, 6 << 20),),
        opaque=(*FILES, "notes.bin"),
        **facts,
    )


def fragments(count: int, shape: tuple[int, ...]) -> tuple[Fragment, ...]:
    """Return fragments of `count` ranks, in a file each."""
    return tuple(
        Fragment(label, shape, Record(f"rank_{label}.pt", 4096, 1 << 20, 1 << 20), 64 * label)
        for label in range(count)
    )


def tensors() -> tuple[LogicalTensor, ...]:
    """Return what the checkpoint holds."""
    mesh = DeviceMesh((MeshAxis("dp", 1), MeshAxis("tp", 2)))
    split = TensorMap((8, 4), Contiguous("tp", 0, (4, 4)))
    parts = fragments(2, (4, 4))
    whole = Lowered((8, 4), ())
    embed = LogicalTensor("embed.weight", "F32", (8, 4), split, mesh, parts, replicas=parts[:1])
    return (
        embed,
        LogicalTensor("lm_head.weight", "F32", (8, 4), split, mesh, parts, alias_of="embed.weight"),
        LogicalTensor(
            "norm.weight",
            "BF16",
            (8, 4),
            whole,
            None,
            fragments(1, (8, 4)),
            role="frozen",
            stored_shape=(16, 4),
            note="Rows beyond 8 are padding.",
        ),
        LogicalTensor(
            "exp_avg.embed", "F32", (8, 4), split, mesh, parts, component="optimizer", role="state"
        ),
    )


def a_plane(listed: Listed = "model") -> DecodedPlane:
    """Return what decoding did."""
    return DecodedPlane(
        listed=listed,
        isolation=PROFILE,
        limits=DecodeLimits(),
        streams=tuple(DecodedStream(file, 0, 2, 1_200 + n) for n, file in enumerate(FILES)),
        references=REFERENCES,
        components=(
            ComponentFigures("model", 3, 5, 1, 1, 192),
            ComponentFigures("optimizer", 1, 2, 0, 0, 128),
        ),
        payload_bytes=0,
    )


def decoded(listed: Listed = "model") -> Inspection:
    """Return the checkpoint decoded."""
    catalogue = Catalogue(tensors())
    rows = (
        (each.name, each.dtype, each.shape, 128, f"{each.fragments[0].record.file} + 1")
        for each in catalogue.listed(listed)
    )
    found = inspection(
        [*(entry(file, 3 << 20) for file in FILES), entry("notes.bin", 10)],
        table=tensor_table(rows),
        format="torch_dcp",
        components=(Component("weights", "ranks", "torch_dcp", FILES, 6 << 20),),
        opaque=("notes.bin",),
        plane=a_plane(listed),
        catalogue=catalogue,
    )
    found.outlines = OUTLINES
    return found
