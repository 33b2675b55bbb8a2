"""Files that were never written to their end: holes, and tails of zeros."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shardscope.engine.looking.unwritten import PAGE
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.peeking.scanning import scan
from shardscope.engine.source.read import OpenFile

ROW = 64 << 10
"""Bytes of a tensor."""


class Written:
    """A file of safetensors with some tensors of `ROW` bytes, each a number of its own."""

    def __init__(self, path: Path, names: str) -> None:
        self.path = path
        kinds = {
            name: {"dtype": "F32", "shape": [ROW // 256, 64], "data_offsets": [n * ROW, (n + 1) * ROW]}
            for n, name in enumerate(names)
        }
        header = json.dumps(kinds).encode()
        header += b" " * (-(8 + len(header)) % PAGE)
        self.begin = 8 + len(header)
        self.size = self.begin + len(names) * ROW
        chance = np.random.default_rng(0)
        with open(path, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.writelines((chance.standard_normal(ROW // 4) + 1).astype("<f4").tobytes() for _ in names)

    def empty(self, low: int, high: int) -> None:
        """Write zeros between two bytes of the data."""
        with open(self.path, "r+b") as file:
            file.seek(self.begin + low)
            file.write(bytes(high - low))

    def cut(self, length: int) -> None:
        """Leave a hole from a byte of the data on."""
        os.truncate(self.path, self.begin + length)
        os.truncate(self.path, self.size)

    def scan(self) -> list[Blocker]:
        return list(scan(self.path).findings)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Written]:
    return lambda names: Written(tmp_path / "model.safetensors", names)


def test_a_tail_of_zeros_over_tensors_is_one_finding(written: Callable[[str], Written]) -> None:
    file = written("abcdef")
    file.empty(2 * ROW + ROW // 2, 6 * ROW)

    (found,) = file.scan()

    assert (found.code, found.subject) == ("scan.half_written", "model.safetensors")
    assert found.params == {
        "file": "model.safetensors",
        "count": 4,
        "tensor": "c",
        "begin": file.begin + 2 * ROW + ROW // 2,
        "bytes": 3 * ROW + ROW // 2,
        "unstored": 0,
    }


def test_a_file_that_got_its_size_and_no_more_says_what_was_never_stored(
    written: Callable[[str], Written],
) -> None:
    file = written("abcd")
    file.cut(ROW)
    document = scan(file.path)

    (found,) = document.findings

    assert (found.code, found.params["count"], found.params["tensor"]) == ("scan.half_written", 3, "b")
    assert found.params["unstored"] == 3 * ROW
    assert [(hole.begin, hole.bytes) for hole in document.holes] == [(file.begin + ROW, 3 * ROW)]
    assert not document.unexamined_files


def test_holes_in_the_middle_are_one_finding_with_the_tensors_they_hit(
    written: Callable[[str], Written],
) -> None:
    file = written("abcde")
    data = file.path.read_bytes()
    low, high = ROW + ROW // 2, 3 * ROW
    file.cut(low)
    with open(file.path, "r+b") as out:
        out.seek(file.begin + high)
        out.write(data[file.begin + high :])

    (found,) = file.scan()

    assert (found.code, found.subject) == ("scan.holes", "model.safetensors")
    assert found.params == {
        "file": "model.safetensors",
        "bytes": high - low,
        "holes": 1,
        "count": 2,
        "tensor": "b",
        "begin": file.begin + low,
    }


def test_zeros_of_the_last_tensor_alone_are_its_own(written: Callable[[str], Written]) -> None:
    file = written("abc")
    file.empty(2 * ROW, 3 * ROW)

    assert [(each.code, each.subject) for each in file.scan()] == [("scan.zeros", "c")]


def test_a_few_zeros_at_the_end_are_no_tail(written: Callable[[str], Written]) -> None:
    file = written("ab")
    file.empty(2 * ROW - 2000, 2 * ROW)

    assert not [each for each in file.scan() if each.code != "scan.dead_channels"]


def test_a_file_system_that_tells_nothing_of_holes_is_said_to(
    written: Callable[[str], Written], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written("abcd")
    file.cut(ROW)
    monkeypatch.setattr(OpenFile, "hole_at", lambda _self, _offset: 0)
    monkeypatch.setattr(OpenFile, "data_at", lambda self, offset: self.size - offset)

    document = scan(file.path)

    assert document.unexamined_files == 1
    (found,) = document.findings
    assert (found.code, found.params["unstored"]) == ("scan.half_written", 0)


def test_a_scan_stops_while_it_looks_at_files(written: Callable[[str], Written]) -> None:
    cancel = threading.Event()
    cancel.set()

    with pytest.raises(Cancelled):
        scan(written("ab").path, cancel=cancel)


def test_a_tensor_that_cannot_be_read_costs_no_other(written: Callable[[str], Written]) -> None:
    file = written("abcd")
    file.empty(0, ROW)
    os.truncate(file.path, file.begin + 2 * ROW + 100)

    document = scan(file.path)

    assert [each.code for each in document.findings][1:] == [
        "scan.zeros",
        "scan.unreadable",
        "scan.unreadable",
    ]
    assert document.findings[0].code == "header.truncated"
    found = document.findings[-1]
    assert found.subject == "d"
    assert "[convert.outside_record]: The tensor d reaches to byte" in found.message
    assert (document.tensors, document.unread, document.bytes) == (2, 2, 2 * ROW)
