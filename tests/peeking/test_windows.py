"""Windows into tensors and figures on the way: what a screen asks for while a person looks."""

import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from shardscope.engine.inspecting.sides import Side, side_of
from shardscope.engine.looking.slices import selection
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.gathered import Gathered
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.peeking.gathering import Wanted, gather
from shardscope.engine.peeking.peek import tensor_of
from shardscope.engine.peeking.windows import opened, window
from tests.peeking.test_peeking import FIXTURES, Counter, decoding, matrices, sparse


def side(path: Path) -> Side:
    return side_of(path, limits=Limits())


def test_a_window_has_numbers_and_bits(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    numbers = np.arange(24, dtype="<f2").reshape(2, 3, 4)
    numbers[1, 2, 1:] = np.nan, np.inf, -np.inf
    save_file(
        {
            "a": numbers,
            "c": np.array([1 - 2j], "c8"),
            "i": np.array([-1, 0x76543210], "i4"),
            "one": np.array(7, "u1"),
            "none": np.zeros((0, 4), "f4"),
        },
        path,
    )
    here = side(path)

    found = window(here, tensor_of(here, "a"), selection("1,1:,1:", (2, 3, 4), "a"))
    assert found.words == (("17", "18", "19"), ("nan", "inf", "-inf"))
    assert found.codes == (("4c40", "4c80", "4cc0"), ("7e00", "7c00", "fc00"))
    row = window(here, tensor_of(here, "a"), selection("0,1,::2", (2, 3, 4), "a"))
    assert row.words == (("4", "6"),)
    assert window(here, tensor_of(here, "c"), selection(None, (1,), "c")).codes == (("3f800000 c0000000",),)
    taken = window(here, tensor_of(here, "i"), selection(None, (2,), "i"), 4)
    assert taken.words == (("15 15 15 15 15 15 15 15", "0 1 2 3 4 5 6 7"),)
    assert taken.codes == (("ffffffff", "76543210"),)
    assert window(here, tensor_of(here, "one"), selection(None, (), "one")).words == (("7",),)
    assert window(here, tensor_of(here, "none"), selection(None, (0, 4), "none")).words == ()
    with pytest.raises(Fault, match=r"peek\.bits"):
        window(here, tensor_of(here, "a"), selection(None, (2, 3, 4), "a"), 4)


def test_a_window_far_in_a_hundred_gigabytes_reads_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.safetensors"
    sparse(path, 100 * 10**9)
    here = side(path)
    tensor = tensor_of(here, "weight")
    chosen = selection(None, tensor.shape, tensor.name)
    rows = tensor.shape[0]
    counter = Counter(monkeypatch)

    found = window(here, tensor, chosen.within((range(rows - 20, rows), range(4_000, 4_008))))

    assert [line[0] for line in found.words[-3:]] == ["0", str(rows - 2 + 4_000), "0"]
    assert counter.bytes <= 20 * 4_096 * 4  # rows so short are not worth a read of their own each


def test_a_window_into_fragments_is_that_of_the_whole_tensor() -> None:
    folder = FIXTURES / "deepspeed/zero3-w3-fp32"
    key, value = max(matrices(folder / "expected.safetensors").items(), key=lambda item: item[1].size)
    here = side_of(folder / "checkpoint", limits=Limits(), decoding=decoding())

    found = window(here, tensor_of(here, key), selection("1:4,2:7", value.shape, key))

    assert np.allclose(np.array(found.words, "f8"), value[1:4, 2:7], rtol=1e-8, atol=0)


def test_figures_are_told_on_the_way_and_where_it_ends_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardscope.engine.peeking.gathering.BETWEEN", 0)
    path = tmp_path / "model.safetensors"
    numbers = np.zeros((64, 4096), "f4")  # 1 MiB, in tiles of 256 KiB
    numbers[40, 7] = -5
    numbers[41, 8] = np.nan
    save_file({"a": numbers}, path)
    here = side(path)
    tensor = tensor_of(here, "a")
    chosen = selection("::,::1", tensor.shape, "a")
    heard: list[Gathered] = []
    cancel = threading.Event()

    with opened(here, tensor, chosen) as tiles:
        whole = gather(tensor, chosen, Wanted(), tiles, on_gathered=heard.append)
    assert whole.complete
    assert whole.landmarks is not None
    assert (whole.landmarks.min, whole.landmarks.nan) == ((40, 7), (41, 8))
    assert len(heard) > 1
    assert not heard[0].complete
    assert heard[0].statistics is not None
    assert heard[0].statistics.numbers == heard[0].done

    def stop(known: Gathered) -> None:
        heard.append(known)
        cancel.set()

    heard.clear()
    with opened(here, tensor, chosen) as tiles, pytest.raises(Cancelled):
        gather(tensor, chosen, Wanted(), tiles, cancel=cancel, on_gathered=stop)
    assert heard[-1].done == heard[0].done < chosen.elements
