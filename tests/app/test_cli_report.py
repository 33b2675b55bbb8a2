"""The report of inspect: golden texts, and what it must and must not say."""

from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from shardscope.app.cli.report import render
from shardscope.engine.capabilities.workflow import workflow_of
from shardscope.engine.host import Host
from shardscope.engine.model.blocker import Blocker, Blocks, Severity, Stage
from shardscope.engine.model.descriptor import Component, Descriptor, ProducerFact, TensorsOverview, Trust
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind, Status
from shardscope.engine.model.resources import Estimate
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import UNSAFE, display_name
from shardscope.engine.model.topology import Axis, Mesh, Topology
from tests.app.fakes import FakeInspection, a_blocker, entry, inspection, llama_rows, tensor_table
from tests.conftest import SvgSnapshots
from tests.hostile import HOSTILE

GIB = 1 << 30
HOST = Host(412 * GIB, 96 * GIB, 80 * GIB, 64 * GIB, 2 * GIB)
EVIDENCE = (
    Evidence(
        EvidenceKind.JSON,
        "model.safetensors.index.json",
        "its weight_map names 291 tensors in 3 files",
        Basis.DECLARED,
    ),
    Evidence(
        EvidenceKind.HEADER,
        "model-*-of-00003.safetensors",
        "2 files start with a valid safetensors header",
        Basis.OBSERVED,
    ),
)


class TextSnapshots(SvgSnapshots):
    """One text file a snapshot."""

    file_extension = "txt"


@pytest.fixture
def golden(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(TextSnapshots)


def sharded(**changes: Any) -> FakeInspection:
    """Return a sharded save."""
    entries = [entry(f"model-{number:05}-of-00003.safetensors", 5 * GIB) for number in (1, 2, 3)]
    return inspection(
        [*entries, entry("config.json", 700), entry("model.safetensors.index.json", 30_000)],
        **{
            "table": tensor_table(llama_rows(32)),
            "evidence": EVIDENCE,
            "producer": (ProducerFact("transformers", "4.40.0", Basis.DECLARED, "config.json"),),
            **changes,
        },
    )


def rank_files() -> Descriptor:
    """Return ZeRO files of which one is missing, opaque as they are."""
    mesh = Mesh(
        "dense",
        (Axis("dp", 8, Basis.INFERRED), Axis("tp", 1, Basis.INFERRED), Axis("pp", None, Basis.UNKNOWN)),
        tuple((rank, 0) for rank in range(8) if rank != 5),
        ((5, 0),),
    )
    found = inspection(
        [entry(f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt", GIB) for rank in range(7)],
        format="deepspeed_zero",
        confidence=Confidence.LOW,
        topology=Topology((mesh,)),
    ).descriptor
    tensors = TensorsOverview(None, None, None, files_opaque=7)
    trust = Trust(tuple("abcdefg"), ("zero_to_fp32.py",), (), "Reading them needs the inert decoder.")
    state = StateScope(StatePart(Presence.OPAQUE), StatePart(Presence.OPAQUE))
    blockers = (a_blocker("trust.opaque_pickle", None, severity=Severity.WARNING),)
    steps = workflow_of(found.classification, state, tensors, trust, found.adapter, blockers)
    return msgspec.structs.replace(found, tensors=tensors, trust=trust, state_scope=state, workflow=steps)


# R022 R023 R024 R037
def test_a_whole_save(golden: SnapshotAssertion) -> None:
    assert render(sharded().descriptor, "./ckpt", HOST) == golden


def test_a_broken_save(golden: SnapshotAssertion) -> None:
    warnings = [
        a_blocker("index.not_in_index", f"model.layers.{layer}.mlp.up_proj.weight", severity=Severity.WARNING)
        for layer in range(5)
    ]
    alternatives = (
        Alternative("hf_torch", "there is no torch file"),
        Alternative("vllm_sharded_state", "no rank"),
    )
    note = a_blocker("header.unaligned", "model-00001-of-00003.safetensors", severity=Severity.INFO)
    found = sharded(blockers=(*warnings, note, a_blocker()), alternatives=alternatives)

    assert render(found.descriptor, "./ckpt", HOST) == golden


def test_rank_files_that_stay_opaque(golden: SnapshotAssertion) -> None:
    assert render(rank_files(), "./run42/global_step1200", HOST) == golden


def test_nothing_recognised(golden: SnapshotAssertion) -> None:
    found = inspection(
        [entry("notes.txt", 12)], format="unknown", status=Status.UNKNOWN, confidence=Confidence.NONE
    )

    assert render(found.descriptor, "./notes", None) == golden


def test_verbose_leaves_nothing_out() -> None:
    warnings = tuple(
        a_blocker("index.not_in_index", f"tensor {number}", severity=Severity.WARNING) for number in range(50)
    )
    found = sharded(blockers=warnings).descriptor

    short, full = (render(found, "x", HOST, everything=everything) for everything in (False, True))

    assert "… and 47 more like this (-v)" in short
    assert "tensor 3," not in short
    assert all(f"tensor {number}," in full for number in range(50))


def test_very_many_parts_are_counted_until_all_is_asked_for() -> None:
    found = sharded().descriptor
    parts = tuple(Component("weights", f"set{number:03}", None, (), 80) for number in range(90))
    found = msgspec.structs.replace(found, components=parts)

    short, full = (render(found, "x", HOST, everything=everything) for everything in (False, True))

    assert "set019" in short
    assert "set020" not in short.partition("In the way")[0]
    assert "… and 70 more (-v)" in short
    assert all(f"set{number:03}" in full for number in range(90))


@pytest.mark.parametrize(
    ("blockers", "opaque", "answer"),
    [
        ((), (), "yes, as far as names and headers tell"),
        ((), ("a.bin",), "not known, 1 opaque file not examined"),
        ((a_blocker(),), (), "no, 1 error"),
        ((a_blocker(severity=Severity.WARNING),), (), "yes"),
        ((a_blocker("trust.opaque_pickle"),), ("a.bin",), "not known"),
        ((a_blocker("limit.tensors"),), (), "not known, a limit was reached"),
    ],
)
def test_could_not_look_is_never_fine(
    blockers: tuple[Blocker, ...], opaque: tuple[str, ...], answer: str
) -> None:
    text = render(sharded(blockers=blockers, opaque=opaque).descriptor, "x", HOST)

    (line,) = [line for line in text.splitlines() if "whole?" in line]
    assert answer in line


def test_a_missing_rank_is_not_whole() -> None:
    assert "no, 1 rank missing" in render(rank_files(), "x", HOST)


def test_too_little_room_is_said_in_words() -> None:
    found = sharded().descriptor
    needs = msgspec.structs.replace(
        found.resources, peak_ram_bytes=Estimate(63 * GIB, Basis.DERIVED, "one tile")
    )
    small = Host(GIB, 96 * GIB, 80 * GIB, 64 * GIB, 2 * GIB)

    text = render(msgspec.structs.replace(found, resources=needs), "x", small)

    assert "1.0 GiB free on disk (12.0 GiB too little)" in text
    assert "limited to 64.0 GiB (1.0 GiB too little)" in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    name = "a_folder_with_a_name_that_never_ends_" * 6
    found = sharded(
        blockers=(a_blocker(subject=name),),
        components=(Component("weights", name, None, (), 1), Component("tokenizer", "b", None, (), 1)),
    )

    lines = render(found.descriptor, name, HOST, width=width).partition("Next\n")[0].splitlines()

    assert max(map(len, lines)) <= min(width, 100)


@pytest.mark.parametrize("raw", [raw for raw, _ in HOSTILE.values()], ids=list(HOSTILE))
@pytest.mark.parametrize("color", [False, True])
def test_no_name_acts_on_the_terminal(raw: str, color: bool) -> None:
    name = display_name(raw)
    hostile = Blocker("layout.shard_missing", Severity.ERROR, Stage.SOURCE, name, name, name, (Blocks.LOAD,))
    found = sharded(
        blockers=(hostile,),
        evidence=(Evidence(EvidenceKind.NAME, name, name, Basis.INFERRED),),
        alternatives=(Alternative("hf_torch", name),),
        producer=(ProducerFact(name, name, Basis.DECLARED, name),),
    )

    text = render(found.descriptor, raw, HOST, color=color)
    if color:  # only the colours of Rich may be there
        import re

        text = re.sub(r"\x1b\[[0-9;]*m", "", text)

    assert not UNSAFE.search(text.replace("\n", ""))
    assert text.count(name) >= 5


def test_without_colour_the_text_is_the_same() -> None:
    import re

    found = sharded(blockers=(a_blocker(),)).descriptor
    plain, colored = (render(found, "x", HOST, color=color) for color in (False, True))

    assert "\x1b" not in plain
    assert [
        line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", colored).splitlines()
    ] == plain.splitlines()
