"""Single tensors looked at: of every family, of one name several times, in files of any size, and stopped in between."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.progress import Cancelled, Progress
from shardscope.engine.peeking.peek import PeekOptions, peek

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
ALL = PeekOptions(statistics=True, histogram=True, heat=True)


def decoding() -> Decoding:
    return Decoding(Intent("verify", "command line"), "all")


def matrices(path: Path) -> dict[str, np.ndarray]:
    """Return the matrices of 32-bit floats in a safetensors file."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    found = {}
    for key, kind in json.loads(data[8 : 8 + length]).items():
        if key != "__metadata__" and kind["dtype"] == "F32" and len(kind["shape"]) == 2:
            begin, end = kind["data_offsets"]
            found[key] = np.frombuffer(data[8 + length + begin : 8 + length + end], "<f4").reshape(
                kind["shape"]
            )
    return found


@pytest.mark.parametrize(
    "name",
    [
        "accelerate/fsdp2_sharded_world2",
        "dcp/dtensor_2d_dp2_tp2",
        "dcp/fsdp2_zstd_world2",
        "dcp/hf_writer_sharded_world2",
        "deepspeed/zero3-w3-fp32",
        "hf/bin_sharded",
        "deepspeed/autotp2-llama-gqa3-dp2-zero2-fp32",
        "torch/zip_big_endian",
    ],
)
def test_each_family_shows_the_numbers_that_it_holds(name: str) -> None:
    folder = FIXTURES / name
    whole = folder / "expected_hf.safetensors"
    numbers = matrices(whole if whole.exists() else folder / "expected.safetensors")
    key, value = max(numbers.items(), key=lambda item: item[1].size)

    found = peek(
        folder / "checkpoint", key, PeekOptions(slice="1:,::2", statistics=True), decoding=decoding()
    )

    expected = value[1:, ::2].astype("f8")
    assert found.selected == expected.shape
    assert found.statistics is not None
    assert found.statistics.min == expected.min()
    assert found.statistics.mean == pytest.approx(expected.mean(), rel=1e-12, abs=1e-15)
    rows = [row - 1 for row in found.grid.rows]
    columns = [column // 2 for column in found.grid.columns]
    shown = np.array([[float(word) for word in row] for row in found.grid.values])
    assert np.allclose(shown, expected[np.ix_(rows, columns)], rtol=1e-8, atol=0)


def sparse(path: Path, size: int) -> None:
    """Write a file of one tensor of that many bytes, all of them holes but the first row of 4,096 and one far behind."""
    rows = size // (4096 * 4)
    kind = {"dtype": "F32", "shape": [rows, 4096], "data_offsets": [0, rows * 4096 * 4]}
    header = json.dumps({"weight": kind}).encode()
    header += b" " * (-len(header) % 8)
    row = np.arange(4096, dtype="<f4")
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        begin = file.tell()
        file.truncate(begin + rows * 4096 * 4)
        for number in (0, rows - 2):
            file.seek(begin + number * 4096 * 4)
            file.write((row + number).astype("<f4").tobytes())


class Counter:
    """Bytes that were read by descriptor."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        pread, preadv = os.pread, os.preadv

        def counted(descriptor: int, length: int, offset: int) -> bytes:
            data = pread(descriptor, length, offset)
            self.bytes += len(data)
            return data

        def counted_into(descriptor: int, buffers: Any, offset: int) -> int:
            count = preadv(descriptor, buffers, offset)
            self.bytes += count
            return count

        patch.setattr(os, "pread", counted)
        patch.setattr(os, "preadv", counted_into)


@pytest.mark.parametrize("part", ["-2", "-2,::3", "-2:,5", None])
def test_a_row_of_a_hundred_gigabytes_costs_less_than_a_megabyte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str | None
) -> None:
    path = tmp_path / "model.safetensors"
    sparse(path, 100 * 10**9)
    rows = 100 * 10**9 // (4096 * 4)
    counter = Counter(monkeypatch)

    found = peek(path, "weight", PeekOptions(slice=part, statistics=part is not None))

    assert 0 < counter.bytes < 1_000_000
    if part is None:
        assert found.grid.values[0][:3] == ("0", "1", "2")
        assert found.grid.rows[-2] == rows - 2
        assert float(found.grid.values[-2][1]) == rows - 1
    elif part == "-2":
        assert found.statistics is not None
        assert (found.statistics.min, found.statistics.max) == (rows - 2, rows - 2 + 4095)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_file({"a": np.ones((3, 4), "f4"), "empty": np.zeros((0, 4), "f4"), "one": np.array(7, "i4")}, path)
    return path


def test_nothing_and_one_number_can_be_looked_at(small: Path) -> None:
    nothing, one = peek(small, "empty", ALL), peek(small, "one", ALL)

    assert nothing.grid.values == ()
    assert nothing.statistics is not None
    assert nothing.statistics.numbers == 0
    assert one.grid.values == (("7",),)
    assert one.statistics is not None
    assert (one.statistics.mean, one.statistics.std, one.statistics.exponent_max) == (7, 0, 2)
    assert one.heat is not None
    assert one.heat.rms == ((7.0,),)


def refused(path: Path, name: str, **options: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        peek(path, name, PeekOptions(**options))
    return caught.value


def test_a_name_that_is_not_there_is_met_with_the_nearest(small: Path) -> None:
    fault = refused(small, "emty")

    assert fault.finding.code == "peek.no_tensor"
    assert fault.finding.params["nearest"] == "empty"


def test_a_tensor_behind_a_pickle_asks_for_decoding() -> None:
    fault = refused(FIXTURES / "hf/bin_sharded/checkpoint", "lm_head.weight")

    assert fault.finding.code == "peek.opaque"
    with pytest.raises(Fault) as caught:
        peek(FIXTURES / "hf/bin_sharded/checkpoint", "absent", decoding=decoding())
    assert caught.value.finding.code == "peek.no_tensor"
    assert refused(FIXTURES / "orbax/ocdbt/checkpoint", "x").finding.code == "peek.unread"


def test_a_quantised_type_is_not_guessed() -> None:
    fault = refused(FIXTURES / "gguf/llama_mixed_be/checkpoint", "blk.0.attn_q.weight")

    assert fault.finding.code == "peek.unreadable"


def test_progress_reaches_its_end_and_a_stop_is_heard(small: Path) -> None:
    heard: list[Progress] = []
    peek(small, "a", ALL, progress=heard.append)
    last = [each for each in heard if each.stage == "peek"][-1]
    assert (last.done, last.total) == (48, 48)

    cancel = threading.Event()

    def stop(progress: Progress) -> None:
        cancel.set()

    with pytest.raises(Cancelled):
        peek(small, "a", ALL, cancel=cancel, progress=stop)
