"""`shardscope watch`: lines for people and programs, and how it ends."""

import json
import os
import signal
from pathlib import Path

import pytest

from shardscope.app.cli.watch import line
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import WATCH
from shardscope.engine.model.text import UNSAFE
from shardscope.engine.model.watch import WatchEvent, WatchWord
from shardscope.engine.model.wholeness import Whole
from tests.app.terminal import Command, process
from tests.checkpoints import write_sharded
from tests.hostile import HOSTILE
from tests.schemas import validate

SOON = ("--settle", "0", "--interval", "0.05")


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_sharded(tmp_path / "run/checkpoint-5")
    return tmp_path / "run"


def test_once_says_each_in_a_line_and_ends_by_what_it_found(command: Command, run: Path) -> None:
    said = command("watch", str(run), "--once", *SOON)

    assert (said.code, said.err) == (ExitCode.OK, "")
    told, ended = said.out.splitlines()
    assert "  complete    checkpoint-5  Hugging Face safetensors; " in told
    assert ended.endswith("  ended       1 complete, 0 incomplete, 0 others")
    next(run.glob("*/*-00001-*")).unlink()
    said = command("watch", str(run), "--once", *SOON)
    assert said.code == ExitCode.BLOCKED
    assert "  incomplete  checkpoint-5  " in said.out
    assert "index.shard_missing" in said.out


def test_a_program_gets_one_compact_object_a_line_and_none_twice(
    command: Command, run: Path, tmp_path: Path
) -> None:
    log = tmp_path / "events.jsonl"
    for again in range(2):
        said = command("watch", str(run), "--once", "--json", "--known", str(log), *SOON)
        events = [json.loads(text) for text in said.out.splitlines()]
        for event in events:
            validate(event, WATCH)
        assert [event["event"] for event in events] == ["complete", "ended"][again:]
        assert events[-1]["tally"] == {"complete": 1, "incomplete": 0, "others": 0}
        log.write_text(log.read_text() + said.out if again else said.out)
    log.write_text("{}\n")
    said = command("watch", str(run), "--json", "--known", str(log))
    assert (said.code, json.loads(said.out)["error"]["code"]) == (
        ExitCode.UNREADABLE,
        "watch.known_malformed",
    )


def test_until_ends_it(command: Command, run: Path) -> None:
    said = command("watch", str(run), "--until", "1", *SOON)

    assert said.code == ExitCode.OK
    assert "  complete    checkpoint-5" in said.out


def test_what_cannot_be_watched_is_an_error_document(command: Command, tmp_path: Path) -> None:
    said = command("watch", str(tmp_path / "absent"), "--json")

    assert (said.code, json.loads(said.out)["error"]["code"]) == (ExitCode.UNREADABLE, "source.missing")
    assert command("watch", str(tmp_path), "--until", "0").code == ExitCode.USAGE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_its_last_lines(run: Path, number: int) -> None:
    half = write_sharded(run / "checkpoint-6")
    next(half.glob("*-00001-*")).unlink()
    with process("watch", str(run), "--json", *SOON) as watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        os.kill(watching.pid, number)
        out, err = watching.communicate(timeout=60)

    rest = [json.loads(text) for text in out.splitlines()]
    assert (first["event"], first["folder"]) == ("complete", "checkpoint-5")
    assert [(event["event"], event["folder"]) for event in rest] == [
        ("incomplete", "checkpoint-6"),
        ("ended", None),
    ]
    assert rest[-1]["why"] == ["stopped"]
    assert (watching.returncode, err) == (ExitCode.CANCELLED, b"")


def test_a_reader_that_goes_away_ends_it(run: Path) -> None:
    with process("watch", str(run), "--json", *SOON) as watching:
        assert watching.stdout is not None
        watching.stdout.readline()
        watching.stdout.close()
        write_sharded(run / "checkpoint-7")
        assert watching.wait(timeout=60) == ExitCode.OK


@pytest.mark.parametrize(
    "name", [name for name, (raw, _) in HOSTILE.items() if not set(raw) & set("\0\ud800/")]
)
def test_names_are_harmless(command: Command, tmp_path: Path, name: str) -> None:
    raw, shown = HOSTILE[name]
    write_sharded(tmp_path / f"{raw}-5")
    for form in ((), ("--json",)):
        said = command("watch", str(tmp_path), "--once", *SOON, *form)
        assert said.code == ExitCode.OK
        assert UNSAFE.search(said.out.replace("\n", "")) is None
    assert json.loads(said.out.splitlines()[0])["folder"] == f"{shown}-5"


def test_lines_hold_what_is_to_be_known() -> None:
    event = WatchEvent(
        schema=WATCH,
        event=WatchWord.COMPLETE,
        at="2026-01-01T00:00:00+00:00",
        folder="step_1",
        step=1,
        format="torch_dcp",
        whole=Whole.NOT_KNOWN,
        files=3,
        bytes=2048,
        content="00",
        again=True,
        why=("nothing is missing by name",),
        codes=("trust.opaque_pickle",),
        tally=None,
    )

    assert line(event) == (
        "2026-01-01T00:00:00+00:00  complete    step_1  PyTorch distributed checkpoint (DCP); 3 files, 2.0 KiB; again; "
        "nothing is missing by name"
    )
