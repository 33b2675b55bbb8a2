"""How every screen of the explorer looks, on a small and on a usual terminal."""

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.examination import Examination
from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.model.blocker import Fault, Severity
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind, Status
from shardscope.engine.model.source import Kind
from shardscope.engine.model.topology import Axis, Mesh, Topology
from shardscope.engine.previewing import Preview
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.fakes import a_blocker, entry, inspection, tensor_table
from tests.conftest import SIZES, Snap, settle
from tests.hostile import HOSTILE

JSON = Preview(
    "config.json",
    "json",
    (
        "{",
        '  "architectures": [',
        '    "LlamaForCausalLM"',
        "  ],",
        '  "hidden_size": 4096,',
        '  "num_hidden_layers": 32,',
        '  "vocab_size": 128256',
        "}",
    ),
    "6 values, 654 bytes",
)


def broken() -> Inspection:
    """A checkpoint with a hole in it, and more than one thing in the way."""
    return llama(
        blockers=(
            a_blocker("index.shard_missing", "model-00002-of-00003.safetensors"),
            a_blocker("header.gap", "model-00001-of-00003.safetensors"),
            a_blocker("trust.code_file", "modeling.py", severity=Severity.WARNING),
        )
    )


def sharded_ranks() -> Inspection:
    """A training state of many ranks, one of them missing."""
    axes = (
        Axis("world", 8, Basis.INFERRED, "names count to 8"),
        Axis("tp", 2, Basis.DECLARED, "mp_rank_00 and mp_rank_01"),
        Axis("dp", 4, Basis.INFERRED, "zero_pp_rank_0 to 3"),
        Axis("zero_stage", 3, Basis.INFERRED, "file names"),
    )
    seen = tuple((tp, dp) for tp in range(2) for dp in range(4) if (tp, dp) != (1, 2))
    mesh = Mesh("dense", axes, seen, ((1, 2),))
    files = tuple(f"global_step1200/zero_pp_rank_{dp}_mp_rank_{tp:02}_model_states.pt" for tp, dp in seen)
    return inspection(
        [entry("global_step1200", kind=Kind.DIRECTORY)] + [entry(file, 2 << 30) for file in files],
        format="deepspeed_zero",
        confidence=Confidence.LOW,
        topology=Topology((mesh,)),
        components=(Component("weights", "model states", "deepspeed_zero", files, 14 << 30),),
        opaque=files,
        blockers=(a_blocker("trust.opaque_pickle", "global_step1200", severity=Severity.WARNING),),
    )


def ambiguous() -> Inspection:
    """Evidence for two formats."""
    names = Evidence(EvidenceKind.NAME, "pytorch_model.bin", "a Hugging Face name", Basis.INFERRED)
    ranks = Evidence(EvidenceKind.NAME, "mp_rank_*", "names of model-parallel ranks", Basis.INFERRED)
    return inspection(
        [entry("pytorch_model.bin", 3 << 30), entry("mp_rank_00_model_states.pt", 2 << 30)],
        format="ambiguous",
        status=Status.AMBIGUOUS,
        confidence=Confidence.NONE,
        evidence=(names, ranks),
        alternatives=(
            Alternative("hf_torch", "its name fits, and nothing says that it is whole", (names,)),
            Alternative("deepspeed_zero", "one rank of an unknown number", (ranks,)),
        ),
        blockers=(a_blocker("layout.ambiguous", None),),
        opaque=("pytorch_model.bin", "mp_rank_00_model_states.pt"),
    )


def hostile() -> Inspection:
    """Names that want to act on the terminal."""
    names = [
        raw for raw, _ in HOSTILE.values() if "\x00" not in raw and "\ud800" not in raw and "/" not in raw
    ]
    table = tensor_table((name, "F32", (2, 2), 16, "model.safetensors") for name in names)
    return inspection([entry("model.safetensors", 4096), *(entry(name, 1) for name in names)], table=table)


def empty() -> Inspection:
    """Nothing at all."""
    return inspection(
        [],
        format="empty",
        status=Status.UNKNOWN,
        confidence=Confidence.NONE,
        blockers=(a_blocker("layout.empty", None),),
    )


FILE = ("f", "down", "enter")
SCREENS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "summary": (llama, ()),
    "evidence": (llama, ("2",)),
    "blockers": (broken, ("3", "j")),
    "topology": (sharded_ranks, ("4",)),
    "resources": (llama, ("5",)),
    "tensors": (llama, ("6", "j")),
    "tensors searched": (llama, ("6", "slash", *"q_proj")),
    "tensors sorted": (llama, ("6", "s", "S")),
    "preview": (llama, FILE),
    "nothing to preview": (llama, ("8",)),
    "files": (broken, ("f", "enter", "j")),
    "search": (broken, ("slash", *"missing")),
    "broken": (broken, ()),
    "ranks": (sharded_ranks, ()),
    "ambiguous": (ambiguous, ()),
    "ambiguous evidence": (ambiguous, ("2",)),
    "empty": (empty, ()),
    "hostile files": (hostile, ("f",)),
    "hostile tensors": (hostile, ("6",)),
    "help": (llama, ("question_mark",)),
    "palette": (llama, ("colon",)),
    "copied": (llama, ("y",)),
}


@pytest.mark.parametrize("screen", SCREENS)
async def test_screen(screen: str, snap: Snap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getcwd", lambda: "/runs")  # whole paths are the same wherever tests run
    found, keys = SCREENS[screen]
    app = explorer(FakeEngine(found(), shown=JSON))
    app.animation_level = "none"
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        for key in keys:
            await pilot.press(key)
            await settle(pilot)
        for field in app.screen.query(Input):
            field.cursor_blink = False
        while app.screen.query("LoadingIndicator.--visible"):  # the palette still gathers its commands
            await pilot.pause()
        await settle(pilot)
        await snap.both(pilot)


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
async def test_loading_and_stopped(size: tuple[int, int], snap: Snap) -> None:
    app = explorer(FakeEngine(llama(), held=True))
    async with app.run_test(size=size) as pilot:
        assert isinstance(app.screen, Examination)
        while app.screen.progress is None:
            await pilot.pause()
        await pilot.pause()
        snap(app, "loading")
        await pilot.press("escape")
        await settle(pilot)
        snap(app, "stopped")


async def test_failed(snap: Snap) -> None:
    await snap.run(explorer(FakeEngine(Fault("source.missing")), path="no/such/place"), size=None)


async def test_an_error_of_our_own(snap: Snap) -> None:
    await snap.run(explorer(FakeEngine(ZeroDivisionError())), size=None)


async def test_open(snap: Snap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("run-1", "run-2", "notes"):
        (tmp_path / name).mkdir()
    (tmp_path / "run-1" / "model.safetensors").write_bytes(bytes(3000))
    (tmp_path / "run-2" / "pytorch_model.bin").write_bytes(bytes(2000))
    (tmp_path / "adapter.safetensors").write_bytes(bytes(1000))
    monkeypatch.chdir(tmp_path)
    await snap.run(explorer(FakeEngine(llama()), path=None), size=None)


@pytest.mark.parametrize(
    ("size", "theme"),
    [((200, 60), "shardscope-light"), (SIZES[0], "no colour")],
    ids=["200x60 light", "no colour"],
)
async def test_open_on_other_terminals(
    size: tuple[int, int], theme: str, snap: Snap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("run-1", "run-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(bytes(3000))
    monkeypatch.chdir(tmp_path)
    await snap.run(themed(FakeEngine(llama()), theme, monkeypatch, path=None), size=size)


@pytest.mark.parametrize(
    ("found", "size", "theme"),
    [
        (broken, (200, 60), "shardscope-dark"),
        (empty, SIZES[0], "no colour"),
        (ambiguous, SIZES[1], "shardscope-light"),
    ],
    ids=["broken 200x60", "empty no colour", "ambiguous light"],
)
async def test_summary_on_other_terminals(
    found: Any, size: tuple[int, int], theme: str, snap: Snap, monkeypatch: pytest.MonkeyPatch
) -> None:
    await snap.run(themed(FakeEngine(found()), theme, monkeypatch), size=size)


def themed(engine: FakeEngine, theme: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Explorer:
    """Return the explorer in a theme, or without any colour."""
    if theme == "no colour":
        monkeypatch.setenv("NO_COLOR", "1")
        theme = "ansi-dark"
    app = explorer(engine, **options)
    app.theme = theme
    return app


async def test_a_million_tensors(snap: Snap) -> None:
    await snap.run(explorer(FakeEngine(million())), "6", "G", size=None)


def million() -> Inspection:
    """A million tensors in ten files."""
    rows = (
        (
            f"model.layers.{n // 100}.experts.{n % 100}.weight",
            "BF16",
            (16, 16),
            512,
            f"part-{n // 100_000}.safetensors",
        )
        for n in range(1_000_000)
    )
    return inspection(
        [entry(f"part-{n}.safetensors", 52_000_000) for n in range(10)], table=tensor_table(rows)
    )


@pytest.mark.parametrize("theme", ["shardscope-light", "ansi-dark", "ansi-light", "nord"])
async def test_themes(theme: str, snap: Snap) -> None:
    app = explorer(FakeEngine(broken()))
    app.theme = theme
    await snap.run(app, "3", size=SIZES[1])
