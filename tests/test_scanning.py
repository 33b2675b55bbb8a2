"""What stands out in the numbers of a checkpoint, and what does not."""

import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from shardscope.engine.decoding import Decoding
from shardscope.engine.looking.zero_runs import PAGE, ZeroRun
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.progress import Cancelled, Progress
from shardscope.engine.scanning import scan

FIXTURES = Path(__file__).resolve().parent / "fixtures"


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
    assert document.tensors == 11
    assert document.bytes == path.stat().st_size - 8 - int.from_bytes(path.read_bytes()[:8], "little")


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


def test_quantised_types_are_said_to_be_unread() -> None:
    found = scan(FIXTURES / "gguf/llama_mixed/checkpoint")

    assert found.unread == sum(each.code == "scan.unread" for each in found.findings) > 0


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
    assert heard[-1].stage == "scan"
    assert heard[-1].done == heard[-1].total

    cancel = threading.Event()
    with pytest.raises(Cancelled):
        scan(path, cancel=cancel, progress=lambda _: cancel.set())
