"""Checkpoints made up for the panels: one with a rank missing, and its parts."""

from dataclasses import dataclass

from shardscope.engine.model.blocker import Blocker, Blocks, Severity, Stage
from shardscope.engine.model.descriptor import (
    AdapterMatch,
    AdapterStatus,
    Component,
    Descriptor,
    Planes,
    PlaneState,
    ProducerFact,
    Source,
    TensorsOverview,
    Tool,
    Trust,
)
from shardscope.engine.model.evidence import (
    Alternative,
    Basis,
    Classification,
    Confidence,
    Evidence,
    EvidenceKind,
    Status,
)
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.resources import Estimate, Resources
from shardscope.engine.model.source import Entry, Identity, Inventory, Kind
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.tensors import TensorTable
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology
from shardscope.engine.model.workflow import Workflow

GIB = 1 << 30


@dataclass(frozen=True)
class Host:
    """Figures of a machine."""

    disk_free: int | None = 412 * GIB
    ram_total: int | None = 96 * GIB
    ram_available: int | None = 90 * GIB
    cgroup_limit: int | None = 64 * GIB
    cgroup_used: int | None = 2 * GIB


CLASSIFICATION = Classification(
    format="deepspeed_zero",
    status=Status.CONDITIONAL,
    confidence=Confidence.LOW,
    evidence=(
        Evidence(
            EvidenceKind.NAME,
            "zero_pp_rank_*_mp_rank_00_model_states.pt",
            "8 files named as ZeRO stage 3 names them",
            Basis.INFERRED,
        ),
        Evidence(EvidenceKind.TRACKER, "latest", "points at the folder global_step1200", Basis.DECLARED),
        Evidence(
            EvidenceKind.CONTAINER,
            "zero_pp_rank_0_mp_rank_00_model_states.pt",
            "a zip as torch.save writes it, with 3 records",
            Basis.OBSERVED,
        ),
    ),
    alternatives=(
        Alternative(
            "megatron_legacy",
            "the folder has no mp_rank_* folders",
            (Evidence(EvidenceKind.NAME, "mp_rank_*", "no folder has such a name", Basis.OBSERVED),),
        ),
    ),
)
MISSING_RANK = Blocker(
    code="layout.rank_missing",
    severity=Severity.ERROR,
    stage=Stage.DESCRIBE,
    subject="global_step1200/bf16_zero_pp_rank_5_mp_rank_00_optim_states.pt",
    message="Rank 5 of 8 has no optimizer partition; its parameters cannot be rebuilt.",
    remedy="Copy the file from the node that wrote it, or report the checkpoint as incomplete.",
    blocks=(Blocks.CONVERT, Blocks.LOAD),
)
OPAQUE = Blocker(
    code="trust.opaque_pickle",
    severity=Severity.WARNING,
    stage=Stage.CLASSIFY,
    subject="global_step1200/zero_pp_rank_0_mp_rank_00_model_states.pt",
    message="16 files hold pickles, which are not read in the safe plane.",
    remedy="Decode their structure (nothing runs) to list the tensors.",
    blocks=(Blocks.CONVERT,),
)
CODE_FILE = Blocker(
    code="trust.code_file",
    severity=Severity.INFO,
    stage=Stage.CLASSIFY,
    subject="zero_to_fp32.py",
    message="1 Python file lies in the checkpoint. It is reported and never run.",
    remedy="Nothing is needed.",
    blocks=(),
)
BLOCKERS = (CODE_FILE, MISSING_RANK, OPAQUE)
TOPOLOGY = Topology(
    meshes=(
        Mesh(
            "dense",
            (
                Axis("world", 16, Basis.DERIVED, "product of the axes"),
                Axis("tp", 2, Basis.INFERRED, "mp_rank_00 to mp_rank_01"),
                Axis("dp", 8, Basis.INFERRED, "zero_pp_rank_0 to zero_pp_rank_7"),
                Axis("pp", None, Basis.UNKNOWN),
            ),
            ranks_seen=tuple((tp, dp) for tp in range(2) for dp in range(8) if (tp, dp) != (0, 5)),
            ranks_missing=((0, 5),),
            ranks_duplicate=((1, 3),),
        ),
    ),
    rank_files=(
        RankFiles("dense", (0, 0), ("model-00001-of-00003.safetensors",)),
        RankFiles("dense", (1, 0), ("model-00002-of-00003.safetensors",)),
    ),
)
RESOURCES = Resources(
    source_bytes=Estimate(19_756_849_561, Basis.OBSERVED, "what the files hold"),
    logical_bytes=Estimate(None, Basis.UNKNOWN, "opaque until decoded"),
    output_bytes=Estimate(4_939_212_390, Basis.DERIVED, "a quarter of the optimizer partitions"),
    temporary_bytes=Estimate(2 << 20, Basis.DERIVED, "one tile for each task"),
    peak_ram_bytes=Estimate(448 << 20, Basis.DERIVED, "four tasks of 112 MiB"),
)
DESCRIPTOR = Descriptor(
    schema="shardscope.descriptor/1",
    tool=Tool("shardscope", "0.1.0"),
    limits=Limits(),
    planes=Planes(PlaneState.EXAMINED, PlaneState.NOT_EXAMINED, PlaneState.NOT_EXAMINED),
    source=Source("folder", 17, 1, 19_756_849_561, 19_756_900_000, "auto", False, ()),
    classification=CLASSIFICATION,
    components=(Component("weights", "global_step1200", "deepspeed_zero", (), 19_756_849_561),),
    producer=(ProducerFact("DeepSpeed", None, Basis.INFERRED, "the names of its files"),),
    topology=TOPOLOGY,
    state_scope=StateScope(
        weights=StatePart(Presence.OPAQUE, Basis.INFERRED, "16 files usually hold them"),
        optimizer=StatePart(Presence.OPAQUE, Basis.INFERRED, "15 files usually hold it"),
        scheduler=StatePart(Presence.UNKNOWN),
        rng=StatePart(Presence.ABSENT, Basis.INFERRED, "no file has such a name"),
    ),
    tensors=TensorsOverview(count=None, elements=None, logical_bytes=None, files_opaque=16),
    trust=Trust(
        ("zero_pp_rank_0_mp_rank_00_model_states.pt",) * 16,
        ("zero_to_fp32.py",),
        (),
        "Decoding reads structure only.",
    ),
    resources=RESOURCES,
    adapter=AdapterMatch(AdapterStatus.NONE),
    workflow=Workflow(steps=(), stops_at=None),
    blockers=BLOCKERS,
)
"""A DeepSpeed ZeRO checkpoint without one of its partitions."""


def entry(path: bytes, kind: Kind = Kind.FILE, size: int = 1_000, *, links: int = 1) -> Entry:
    """Return an entry of an inventory."""
    return Entry(path, kind, Identity(1, hash(path) & 0xFFFF, size, 0, 0), size, links)


FILES = (
    entry(b"global_step1200", Kind.DIRECTORY, 4_096),
    *(
        entry(b"global_step1200/bf16_zero_pp_rank_%d_mp_rank_00_optim_states.pt" % rank, size=2_362_232_012)
        for rank in range(8)
        if rank != 5
    ),
    *(
        entry(b"global_step1200/zero_pp_rank_%d_mp_rank_00_model_states.pt" % rank, size=1_153_433)
        for rank in range(8)
    ),
    entry(b"huggingface", Kind.DIRECTORY, 4_096),
    entry(b"huggingface/config.json", size=651),
    entry(b"huggingface/tokenizer.json", size=3_249_152),
    entry(b"latest", size=16),
    entry(b"pipe", Kind.FIFO, 0),
    entry(b"weights.pt", Kind.LINK, 41),
    entry(b"zero_to_fp32.py", size=31_948),
)
INVENTORY = Inventory(root_is_file=False, entries=FILES, blockers=())


def tensors(count: int, *, files: int = 3) -> TensorTable:
    """Return a catalogue of a transformer with `count` tensors."""
    table = TensorTable()
    kinds = (
        ("self_attn.q_proj.weight", (4_096, 4_096)),
        ("self_attn.k_proj.weight", (1_024, 4_096)),
        ("mlp.gate_proj.weight", (14_336, 4_096)),
        ("input_layernorm.weight", (4_096,)),
    )
    begin = 4_096
    for number in range(count):
        suffix, shape = kinds[number % len(kinds)]
        elements = shape[0] * (shape[1] if len(shape) > 1 else 1)
        dtype, width = ("F32", 4) if len(shape) == 1 else ("BF16", 2)
        file = f"model-{number * files // count + 1:05}-of-{files:05}.safetensors"
        name = f"model.layers.{number // len(kinds)}.{suffix}"
        table.append(file, name, dtype, shape, begin, begin + elements * width)
        begin += elements * width
    return table
