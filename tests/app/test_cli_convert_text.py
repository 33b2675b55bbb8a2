"""What plan and convert say to a person: in every width, without colour, harmless, and complete at every end."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shardscope.app.cli import progress
from shardscope.app.cli.interrupt import Interrupt
from shardscope.app.cli.plan_text import render
from shardscope.engine.model.blocker import Finding, blocker
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.plan import (
    Admission,
    AdmissionCheck,
    CarriedFile,
    Decision,
    LeftOut,
    Plan,
    PlanEstimates,
    PlannedFile,
    PlannedTensor,
    PlanOptions,
    PlanSource,
)
from shardscope.engine.model.progress import Progress
from shardscope.engine.model.resources import Estimate
from shardscope.engine.model.text import UNSAFE
from tests.app.terminal import Command, environment, process, run
from tests.checkpoints import write_json, write_sharded
from tests.convert.large import MIB, safetensors
from tests.hostile import HOSTILE

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
ZERO = str(FIXTURES / "deepspeed/zero2-w4-bf16/checkpoint")
GIB = 1 << 30


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def plan(name: str = "model.layers.0.mlp.experts.0.gate_proj.weight", **changes: Any) -> Plan:
    """Return a plan in which `name` stands everywhere that a checkpoint, or whoever edited it, can put one."""

    def figure(count: int) -> Estimate:
        return Estimate(count, Basis.DERIVED, "")

    tensor = PlannedTensor(name, name, "BF16", (4096, 4096), 1 << 25, "F32")
    checks = (
        AdmissionCheck("disk", 14 * GIB, 75 * GIB, "admitted", "statvfs: blocks that a user without privileges can have"),
        AdmissionCheck("files", 40, None, "admitted", "statvfs: the file system does not count files"),
        AdmissionCheck("RAM", 90 * MIB, 17 * MIB, "denied", "MemAvailable of /proc/meminfo"),
        AdmissionCheck("control group", 90 * MIB, None, "unknown", "the control group does not tell how much is used"),
    )  # fmt: skip
    found = Plan(
        schema="shardscope.plan/1",
        tool="shardscope",
        source=PlanSource("torch_dcp", "", 9, 28 * GIB, decoded=True),
        options=PlanOptions(),
        files=tuple(
            PlannedFile(f"model-{n:05d}-of-00020.safetensors", 5 * GIB, (tensor,)) for n in range(1, 21)
        ),
        aliases=(),
        carried=(CarriedFile(name, name, 700),),
        decisions=(
            Decision(
                "ties", f"written once, as {name}", f"the same bytes: {name}", "--ties", 3, (name, name)
            ),
        ),
        left_out=(LeftOut("optimizer", 2, 56 * GIB, f"not asked for: {name}"),),
        estimates=PlanEstimates(*map(figure, (28 * GIB, 14 * GIB, 14 * GIB, 14 * GIB, 90 * MIB, MIB))),
        blockers=(blocker(Finding("convert.tensor", {"tensor": name, "reason": "it is sparse"})),),
        notes=(blocker(Finding("convert.load_names", {"first": name, "known": "gpt2, llama"})),),
        admission=Admission("denied", checks),
    )
    return msgspec.structs.replace(found, **changes)


# R105 R109
@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_line_of_a_plan_is_wider_than_the_terminal(width: int) -> None:
    text = render(plan(), width=width)

    assert max(map(len, text.splitlines())) <= width
    assert all(line == line.rstrip() for line in text.splitlines())


def test_a_plan_has_its_figures_in_columns() -> None:
    lines = render(plan(), width=80).splitlines()
    rows = lines[lines.index("Admission  denied") + 1 :][:7]

    labels = [row[2:15].strip() for row in rows if row[2] != " "]
    assert labels == ["disk", "files", "RAM", "control group"]
    assert len({row.index(" of ") for row in rows if " of " in row[:30]}) == 1
    joined = " ".join(" ".join(rows).split())
    assert "14.0 GiB of 75.0 GiB admitted statvfs: blocks that" in joined
    assert "40 of no limit admitted" in joined
    assert "of unknown unknown the control group" in joined


def test_a_long_plan_counts_what_it_does_not_list() -> None:
    assert "... and 8 more (-v)" in render(plan())
    assert "model-00020-of-00020" in render(plan(), everything=True)


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize(("raw", "seen"), HOSTILE.values(), ids=HOSTILE)
def test_names_in_a_plan_are_shown_and_do_nothing(raw: str, seen: str, color: bool) -> None:
    text = render(plan(raw), width=200, color=color)
    bare = re.sub(r"\x1b\[[0-9;]*m", "", text)

    assert not UNSAFE.findall(bare.replace("\n", ""))
    assert bare.count(seen) >= 6
    assert (bare == text) is not color


def test_a_plan_without_colour_is_the_same_text() -> None:
    colored = render(plan(), color=True)

    assert "\x1b[" in colored
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", colored).splitlines()]
    assert lines == render(plan()).splitlines()


def test_a_plan_in_a_pipe_is_plain_and_80_columns_wide(tmp_path: Path) -> None:
    said = run("plan", ZERO, "--decode", env=environment(LC_ALL="C"))

    assert said.code == 0
    assert said.out.isascii()
    assert "\x1b" not in said.out
    assert max(map(len, said.out.splitlines())) <= 80


# R088 R091 R107
def test_the_end_says_what_was_verified_what_is_left_out_and_what_comes_next(tmp_path: Path) -> None:
    out = tmp_path / "the output"
    said = run("convert", ZERO, str(out), "--decode", "--yes", "--quiet")

    assert said.code == 0, said.err
    assert said.err == ""
    assert f"output      {out}\n" in said.out
    assert f"manifest    {out}/shardscope-manifest.json\n" in said.out
    assert re.search(r"took +\d+\.\d s, peak memory \d+\.\d MiB of \d+\.\d MiB planned", said.out)
    assert "values     held: " in said.out
    assert "optimizer  56 tensors (53.2 KiB), not asked for: --component names it" in said.out
    (line,) = (line for line in said.out.splitlines() if "shardscope verify" in line)
    assert shlex.split(line) == ["shardscope", "verify", str(out), "--against", ZERO, "--decode"]
    assert run(*shlex.split(line)[1:]).code == 0


def test_the_end_names_the_old_output_that_is_kept(tmp_path: Path) -> None:
    source = write_sharded(tmp_path / "source")
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious").write_text("old")
    said = run("convert", str(source), str(out), "--yes", "--quiet", "--replace")

    (line,) = (line for line in said.out.splitlines() if "old output" in line)
    assert (Path(line.split(None, 2)[2]) / "precious").read_text() == "old"
    assert "promoted by exchange" in said.out


# R102
def test_a_failure_names_its_stage_and_what_is_left(command: Command, tmp_path: Path) -> None:
    source = write_sharded(tmp_path / "source")
    (tmp_path / "out").mkdir()
    refused = command("convert", str(source), str(tmp_path / "out"), "--yes", "--json")
    failed = json.loads(refused.out)["error"]

    assert refused.code == ExitCode.OUTPUT
    assert failed["code"] == "stage.target_exists"
    assert failed["stage"] == "target"
    assert failed["notes"] == []
    said = command("convert", str(source), str(tmp_path / "out"), "--yes", "--quiet")
    assert "It failed while" not in said.err  # nothing had begun
    assert "Nothing was promoted" not in said.err


# R102 R110
def test_a_source_that_changes_is_told_with_its_stage(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shardscope.engine.model.course import Course

    source = write_sharded(tmp_path / "source")
    begin = Course.begin

    def change(course: Course, stage: str) -> None:
        begin(course, stage)
        if stage == "verify":
            write_json(source / "config.json", {"changed": True})

    monkeypatch.setattr(Course, "begin", change)
    for document in (False, True):
        said = command(
            "convert", str(source), str(tmp_path / "out"), "--yes", "--quiet", *["--json"][: int(document)]
        )
        assert said.code == ExitCode.CHANGED
        if document:
            failed = json.loads(said.out)["error"]
            assert failed["stage"] == "verify"
            assert failed["notes"] == [
                "Nothing was promoted: out is as it was, and what was staged is removed."
            ]
        else:
            lines = said.err.splitlines()
            assert lines[0].startswith("shardscope: ")
            assert lines[1].endswith("[source.changed]")
            assert lines[2:] == [
                "It failed while verifying what was staged.",
                "Nothing was promoted: out is as it was, and what was staged is removed.",
            ]
        write_sharded(source)


# R113
def test_a_log_gets_bytes_rate_time_file_and_measured_memory(tmp_path: Path) -> None:
    seconds = [0.0]
    lines: list[str] = []
    log = progress.Log(lines.append, lambda: seconds[0], memory=True)
    for done in range(9):
        seconds[0] = 2.0 * done
        log.update(Progress("copy", done << 28, 1 << 31, "bytes", "a\x1b[2J\n.safetensors"))

    assert len(lines) == 2
    assert re.fullmatch(
        r"shardscope: 0:06 copy: 768\.0 MiB of 2\.0 GiB, 128\.0 MiB/s, 0:10 left; a␛\[2J⏎\.safetensors; "
        r"peak memory \d+\.\d MiB",
        lines[0],
    )


def test_a_conversion_in_a_log_says_how_far_it_is(tmp_path: Path) -> None:
    source = safetensors(tmp_path / "source", 64 * MIB)
    script = (
        "import sys; from shardscope.app.cli import progress; progress.LOG_EVERY = 0.0; "
        "from shardscope.app.main import main; sys.exit(main(sys.argv[1:]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, "convert", str(source), str(tmp_path / "out"), "--yes"],
        capture_output=True, text=True, check=False, env=environment(), stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert re.search(
        r"^shardscope: 0:\d\d copy: .* of 64\.0 MiB.*; model\.safetensors; peak memory",
        ran.stderr,
        re.MULTILINE,
    )
    assert "\x1b" not in ran.stderr


def test_a_signal_at_the_question_ends_it_at_once(tmp_path: Path) -> None:
    """A question waits for a person, and no engine looks whether to stop."""
    source = write_sharded(tmp_path / "source")
    leader, follower = os.openpty()
    with process(
        "convert", str(source), str(tmp_path / "out"), stdin=follower, stdout=follower, stderr=follower
    ) as running:
        os.close(follower)
        seen = b""
        while b"anything else" not in seen:
            seen += os.read(leader, 4096)
        running.send_signal(signal.SIGTERM)
        assert running.wait(20) == ExitCode.CANCELLED
        seen += os.read(leader, 4096)
    os.close(leader)
    assert b"\nshardscope: Stopped by SIGTERM; nothing was written." in seen.replace(b"\r", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_signal_just_before_a_question_is_not_lost() -> None:
    interrupt = Interrupt()
    with interrupt.cooperative() as event:
        event.set()
        with pytest.raises(KeyboardInterrupt), interrupt.abrupt():
            pytest.fail("nobody is asked any more")
