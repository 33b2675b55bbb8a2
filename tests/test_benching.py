"""`shardscope bench`: it measures what it says, with a clock that a test can set, and leaves nothing behind."""

import itertools
import json
import threading
from pathlib import Path

import pytest
from msgspec import structs

from shardscope.app.cli.bench import lines
from shardscope.engine import benching
from shardscope.engine.benching import BenchOptions, bench
from shardscope.engine.host import probe
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.model.schemas import BENCH
from tests.app.terminal import Command
from tests.documents.pages import ROOT
from tests.schemas import validate

SIZE = 4 << 20


def test_figures_are_units_by_the_time_that_the_clock_gives(tmp_path: Path) -> None:
    clock = itertools.count()  # a second between any two looks

    found = bench(BenchOptions(bytes=SIZE, seconds=2.5, folder=str(tmp_path)), now=lambda: float(next(clock)))

    rows = {row.name: row for row in found.rows}
    assert list(rows) == ["write", "read", "read again", "hash", "copy", "headers"]
    assert [row.plain for row in found.rows] == [SIZE, SIZE, SIZE, SIZE, SIZE, 40]
    assert [row.runs for row in found.rows] == [1, 3, 1, 3, 3, 3]
    assert [row.ratio for row in found.rows] == [None, None, None, 1.0, 1.0, 1.0]
    assert all((ROOT / row.script).is_file() for row in found.rows if row.script is not None)
    assert list(tmp_path.iterdir()) == []
    text = "\n".join(lines(found))
    assert "copy               4.0 MiB/s       4.0 MiB/s    1.00" in text
    assert "Elsewhere: 0.26 GB/s of output by one thread" in " ".join(text.split())


def test_it_leaves_nothing_when_it_is_stopped(tmp_path: Path) -> None:
    stop = threading.Event()
    looks = itertools.count()

    def now() -> float:
        if next(looks) == 6:
            stop.set()
        return 0.0

    with pytest.raises(Cancelled):
        bench(BenchOptions(bytes=SIZE, seconds=0.0, folder=str(tmp_path)), cancel=stop, now=now)
    assert list(tmp_path.iterdir()) == []


def test_it_does_not_begin_where_there_is_no_room(tmp_path: Path) -> None:
    with pytest.raises(Fault) as raised:
        bench(BenchOptions(bytes=1 << 60, folder=str(tmp_path)))
    assert raised.value.finding.code == "bench.no_room"
    with pytest.raises(Fault) as raised:
        bench(BenchOptions(bytes=SIZE, folder=str(tmp_path / "absent")))
    assert raised.value.finding.code == "bench.failed"


def test_less_than_whole_files_is_measured_and_reserved_as_whole_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little = BenchOptions(bytes=1, seconds=0.0, folder=str(tmp_path))
    host = probe(str(tmp_path))

    monkeypatch.setattr(benching, "probe", lambda _: structs.replace(host, disk_free=4 * SIZE - 1))
    with pytest.raises(Fault) as raised:
        bench(little)
    assert raised.value.finding.params["needed"] == 4 * SIZE

    monkeypatch.setattr(benching, "probe", lambda _: host)
    clock = itertools.count()
    assert bench(little, now=lambda: float(next(clock))).bytes == SIZE


def test_what_the_plain_measurements_say_of_the_disk_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Fault) as raised:
        bench(BenchOptions(bytes=SIZE, folder=str(tmp_path)))
    assert raised.value.finding.params["reason"] == "No space left on device"
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_one_document(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    command = Command(capsysbinary)
    said = command("bench", "--size", "4MiB", "--seconds", "0", "--folder", str(tmp_path), "--json")

    document = json.loads(said.out)
    validate(document, BENCH)
    assert (said.code, document["bytes"]) == (ExitCode.OK, SIZE)
    assert str(tmp_path) not in said.out
    assert command("bench", "--folder", str(tmp_path / "absent")).code == ExitCode.OUTPUT
