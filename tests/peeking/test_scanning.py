"""What stands out in the numbers of a checkpoint, and what does not."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from shardscope.engine.diffing.numbers import values
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.sides import side_of
from shardscope.engine.looking.statistics import first_not_finite, summing
from shardscope.engine.looking.zero_runs import PAGE, ZeroRun
from shardscope.engine.model.blocker import Blocker, Fault
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import Cancelled, Progress
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.peeking.scanning import scan, scan_side, to_read

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    chance = np.random.default_rng(0)

    def noise(*shape: int) -> np.ndarray:
        return chance.normal(size=shape).astype("f4")

    broken, hole, half = noise(8, 8), noise(64, 1024), noise(40, 1024)
    broken[3, 3], broken[4, 4] = np.nan, -np.inf
    hole[20:40] = 0
    half[20:] = 0
    one = noise(9, 9)
    tensors = {
        "broken": broken,
        "copy": one.copy(),
        "half": half,
        "hole": hole,
        "one": one,
        "ones": np.ones(16, "f4"),
        "single": np.array([3], "i8"),
        "step": np.array(0, "i8"),
        "sound": noise(50, 50),
        "zeros": np.zeros((7, 7), "f4"),
        "zeros too": np.zeros((7, 7), "f4"),
        "empty": np.zeros((0, 7), "f4"),
    }
    save_file(tensors, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_what_stands_out_is_found_and_nothing_else(path: Path) -> None:
    document = scan(path)

    found = {(each.subject, each.code): each.params for each in document.findings}
    pair = next(subject for subject, code in found if code == "scan.duplicate")
    assert set(found) == {
        ("broken", "scan.not_finite"),
        (pair, "scan.duplicate"),
        ("half", "scan.zero_run"),
        ("hole", "scan.zero_run"),
        ("ones", "scan.constant"),
        ("zeros", "scan.zeros"),
        ("zeros too", "scan.zeros"),
    }
    assert {pair, found[pair, "scan.duplicate"]["other"]} == {"one", "copy"}
    assert found["broken", "scan.not_finite"]["nans"] == 1
    assert found["broken", "scan.not_finite"]["infinite"] == 1
    assert found["hole", "scan.zero_run"]["bytes"] == 20 * PAGE
    assert found["hole", "scan.zero_run"]["begin"] == 20 * PAGE
    assert document.tensors == 12
    assert document.bytes == path.stat().st_size - 8 - int.from_bytes(path.read_bytes()[:8], "little")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_is_read(dtype: str, tmp_path: Path) -> None:
    bits = DTYPES[dtype].bits
    data = (
        np.random.default_rng(5).integers(0, 2 if dtype == "BOOL" else 256, 32 * 48 * bits // 8).astype("u1")
    )
    kinds = {
        f"layers.{n}.w": {
            "dtype": dtype,
            "shape": [32, 48],
            "data_offsets": [n * len(data), (n + 1) * len(data)],
        }
        for n in range(2)
    }
    header = json.dumps(kinds).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + data.tobytes() * 2)

    document = scan(path)

    found = {each.code: each.params for each in document.findings}
    numbers = values(data, dtype)
    assert (document.tensors, document.unread, document.bytes) == (2, 0, 2 * len(data))
    assert found["scan.duplicate_layer"]["tensor"] == "layers.1"
    strange = found.get("scan.not_finite", {"nans": 0, "infinite": 0})
    assert strange["nans"] == 2 * int(np.isnan(numbers).sum())
    assert strange["infinite"] == 2 * int(np.isinf(numbers).sum())


def test_stretches_go_on_from_tile_to_tile() -> None:
    run = ZeroRun()
    ones = np.ones(PAGE, "u1")
    for tile in (ones, np.zeros(3 * PAGE, "u1"), np.zeros(PAGE, "u1"), ones, np.zeros(2 * PAGE + 5, "u1")):
        run.add(tile)
    run.finished()

    assert (run.begin, run.length) == (PAGE, 4 * PAGE)


def test_the_rest_of_a_tile_ends_a_stretch_where_it_is_no_zero() -> None:
    run = ZeroRun()
    tail = np.zeros(PAGE + 10, "u1")
    tail[-1] = 1
    run.add(np.zeros(PAGE, "u1"))
    run.add(tail)
    run.add(np.zeros(PAGE, "u1"))
    run.finished()

    assert (run.begin, run.length) == (0, 2 * PAGE)


def test_states_of_every_rank_are_read() -> None:
    decoding = Decoding(Intent("verify", "command line"), "all")
    found = scan(FIXTURES / "deepspeed/zero3-w3-fp32/checkpoint", component="all", decoding=decoding)

    assert found.tensors > 20
    assert not found.unread


def test_blocks_of_ggml_are_read_as_numbers_and_others_are_said_to_be_unread() -> None:
    found = scan(FIXTURES / "gguf/llama_mixed/checkpoint")
    assert (found.tensors, found.unread, found.findings) == (21, 0, ())
    assert found.bytes < (FIXTURES / "gguf/llama_mixed/checkpoint/tiny-q4.gguf").stat().st_size

    found = scan(FIXTURES / "gguf/llama_mixed_be/checkpoint")
    unread = [each for each in found.findings if each.code == "scan.unread"]
    assert found.unread == 13 > len(unread) > 0
    assert any("blk.{0-1}.ffn_down.weight" in each.message for each in unread)


def test_copies_and_zeros_among_blocks_of_ggml_are_found(tmp_path: Path) -> None:
    path = FIXTURES / "gguf/llama_mixed/checkpoint/tiny-q4.gguf"
    data = bytearray(path.read_bytes())
    rows = {row.name: row for row in side_of(path, limits=Limits()).found.tensors}
    for name in ("attn_q", "ffn_up"):
        first, second = rows[f"blk.0.{name}.weight"], rows[f"blk.1.{name}.weight"]
        data[second.begin : second.end] = data[first.begin : first.end]
    near = rows["blk.1.ffn_up.weight"]
    data[near.begin + 9] ^= 0x10  # one number of one block
    zeros = rows["blk.1.attn_v.weight"]
    data[zeros.begin : zeros.end] = bytes(zeros.bytes)
    (tmp_path / "model.gguf").write_bytes(data)

    found = {each.code: each for each in scan(tmp_path).findings}

    assert set(found) == {"scan.near_duplicate", "scan.zeros"}
    assert found["scan.zeros"].subject == "blk.1.attn_v.weight"
    params = found["scan.near_duplicate"].params
    assert (params["tensor"], params["other"], params["count"]) == ("blk.1", "blk.0", 2)


def test_nothing_to_read_is_no_clean_answer(path: Path) -> None:
    with pytest.raises(Fault) as opaque:
        scan(FIXTURES / "hf/bin_sharded/checkpoint")
    with pytest.raises(Fault) as empty:
        scan(path, component="optimizer")

    with pytest.raises(Fault) as unread:
        scan(FIXTURES / "orbax/ocdbt/checkpoint")

    assert opaque.value.finding.code == "scan.nothing"
    assert unread.value.finding.code == "peek.unread"
    assert empty.value.finding.code == "scan.empty"


def test_progress_reaches_its_end_and_a_stop_is_heard(path: Path) -> None:
    heard: list[Progress] = []
    scan(path, progress=heard.append)
    for stage in ("scan", "compare"):
        last = [each for each in heard if each.stage == stage][-1]
        assert last.done == last.total

    cancel = threading.Event()
    with pytest.raises(Cancelled):
        scan(path, cancel=cancel, progress=lambda _: cancel.set())


def test_what_will_be_read_is_known_before_and_findings_are_heard_on_the_way(path: Path) -> None:
    side = side_of(path, limits=Limits())
    reading = to_read(side, decoded=False)
    heard: list[Blocker] = []

    document = scan_side(side, reading, on_finding=heard.append)

    assert (len(reading.tensors), reading.bytes) == (document.tensors, document.bytes)
    assert {each.code for each in heard} == {each.code for each in document.findings}
    assert document.findings == scan(path).findings
    broken = next(each for each in heard if each.code == "scan.not_finite")
    assert broken.params["element"] == 3 * 8 + 3


def test_what_was_heard_of_a_scan_that_is_stopped_stays(path: Path) -> None:
    side = side_of(path, limits=Limits())
    cancel, heard = threading.Event(), list[Blocker]()

    def hear(item: Blocker) -> None:
        heard.append(item)
        cancel.set()

    with pytest.raises(Cancelled):
        scan_side(side, to_read(side, decoded=False), cancel=cancel, on_finding=hear)
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("dtype", "bits", "strange"),
    [("F32", 32, 0x7F800000), ("BF16", 16, 0xFF80), ("F16", 16, 0x7E00), ("F8_E5M2", 8, 0x7C), ("F8_E4M3", 8, 0xFF)],
)  # fmt: skip
def test_the_first_number_that_is_not_finite_is_found(dtype: str, bits: int, strange: int) -> None:
    data = np.zeros(70_000, f"<u{bits // 8}")
    assert first_not_finite(data.view("u1"), dtype, len(data)) is None
    data[[66_000, 69_000]] = strange
    assert first_not_finite(data.view("u1"), dtype, len(data)) == 66_000
    sums = summing(dtype)
    sums.add(data.view("u1"), len(data))
    assert sums.not_finite == 2


def test_a_part_of_a_complex_number_is_enough() -> None:
    data = np.zeros(9, "c8")
    data[4] = complex(0, np.inf)
    assert first_not_finite(data.view("u1"), "C64", 9) == 4
