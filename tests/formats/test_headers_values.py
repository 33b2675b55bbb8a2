"""Values of formats that are only listed: what stands whole in files can be compared with any other family, byte for byte."""

import json
from pathlib import Path

import numpy as np
import pytest

from shardscope.engine import diff
from shardscope.engine.comparing.compared import Compared
from shardscope.engine.model.blocker import Fault
from shardscope.engine.peeking.peek import peek
from shardscope.engine.peeking.scanning import scan
from tests.formats.looking import copied
from tests.parse.gguf_files import Order, Row, gguf


def bfloat16(values: np.ndarray) -> bytes:
    """Return numbers that 16 bits hold exactly."""
    return (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()


def write(path: Path, **tensors: tuple[str, tuple[int, ...], bytes]) -> str:
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name.replace("__", ".")] = {
            "dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)],
        }  # fmt: skip
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return str(path)


def compared(first: Path | str, second: Path | str) -> Compared:
    return diff(first, second, values=True)


FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
KERNEL, BIAS = np.arange(32.0).reshape(8, 4), np.arange(4.0)


@pytest.mark.parametrize("change", [0, 1])
def test_packed_chunks_of_orbax_are_the_tensors_of_an_export(change: int, tmp_path: Path) -> None:
    folder = copied("orbax/zarr", tmp_path / "orbax")
    export = write(
        tmp_path / "model.safetensors",
        params__dense__kernel=("BF16", (8, 4), bfloat16(KERNEL + change)),
        params__dense__bias=("F32", (4,), BIAS.astype("<f4").tobytes()),
        params__emb=("F32", (3, 2), np.ones(6, "<f4").tobytes()),
        step=("I64", (), np.int64(7).tobytes()),
    )
    found = compared(folder, export)
    assert found.document.compared_bytes == 112
    assert found.document.same is (change == 0)
    changed = [item.name for item in found.document.tensors if item.state == "changed"]
    assert changed == (["params.dense.kernel"] if change else [])


def test_plain_chunks_at_the_edge_are_cut(tmp_path: Path) -> None:
    folder = copied("zarr/group_v3", tmp_path / "zarr")
    values = np.arange(30, dtype="<f4").reshape(5, 6)
    export = write(tmp_path / "model.safetensors", layer__x=("F32", (5, 6), values.tobytes()))
    (folder / "layer" / "weight").rename(folder / "layer" / "x")
    text = Path(export).read_bytes().replace(b"layer.x", b"layer/x")
    Path(export).write_bytes(text)
    item = next(each for each in compared(folder, export).document.tensors if each.name == "layer/x")
    assert item.state == "same"
    assert item.values is not None
    assert item.values.verdict == "bits"


def test_shards_and_other_codecs_are_not_compared_and_say_so(tmp_path: Path) -> None:
    one, other = copied("zarr/group_v3", tmp_path / "a"), copied("zarr/group_v3", tmp_path / "b")
    notes = {item.name: item.note for item in compared(one, other).document.tensors}
    assert "not compared" in (notes["sharded"] or "")
    assert notes["layer/weight"] is None


def test_arrays_of_numpy_are_the_same_in_any_order_and_packing(tmp_path: Path) -> None:
    array = np.arange(24, dtype="f4").reshape(2, 3, 4)
    np.savez(tmp_path / "a.npz", c=array, f=np.asfortranarray(array), b=array.astype(">f4"))
    np.savez_compressed(tmp_path / "b.npz", c=array, f=array, b=array)
    found = compared(tmp_path / "a.npz", tmp_path / "b.npz")
    assert found.document.same
    assert found.document.compared_bytes == 3 * array.nbytes


@pytest.mark.parametrize("sign", ["<", ">"])
def test_plain_tensors_of_gguf_are_those_of_safetensors(sign: str, tmp_path: Path) -> None:
    values = np.arange(8.0)
    data = gguf([Row("w", (4, 2), 0, 0)], order=Order(sign), data=0) + values.astype(f"{sign}f4").tobytes()
    (tmp_path / "a.gguf").write_bytes(data)
    export = write(tmp_path / "b.safetensors", w=("F32", (2, 4), values.astype("<f4").tobytes()))
    found = compared(tmp_path / "a.gguf", export)
    assert found.document.same
    assert found.document.compared_bytes == 32


def test_an_array_of_objects_takes_no_number_away_from_those_beside_it() -> None:
    folder = FIXTURES / "numpy/arrays/checkpoint"

    assert peek(folder, "plain").grid.values[0] == ("0", "1", "2", "3")
    assert scan(folder).opaque_files == 1
    with pytest.raises(Fault) as caught:
        peek(folder, "objects")
    assert caught.value.finding.code == "peek.no_tensor"  # decoding would not list it either


def test_quantised_tensors_of_gguf_say_that_they_were_not_compared(tmp_path: Path) -> None:
    for name, fill in (("a", b"\0"), ("b", b"\1")):
        (tmp_path / f"{name}.gguf").write_bytes(gguf([Row("w", (32, 2), 2, 0)], data=0) + fill * 36)
    (item,) = compared(tmp_path / "a.gguf", tmp_path / "b.gguf").document.tensors
    assert item.values is None
    assert item.note == "values were not compared: its type, Q4_0, does not exist in safetensors"


def test_more_chunks_than_a_map_can_have_are_refused_and_listed(tmp_path: Path) -> None:
    folder = copied("orbax/zarr", tmp_path)
    path = folder / "params.emb" / ".zarray"
    path.write_text(
        json.dumps(json.loads(path.read_text()) | {"shape": [1 << 20, 1 << 20], "chunks": [1, 1]})
    )
    from shardscope.engine import inspect

    found = inspect(folder, digest="none", with_catalogue=True)
    assert "map.budget" in {item.code for item in found.descriptor.blockers}
    assert found.descriptor.tensors.count == 4
    assert found.catalogue is not None
    assert {tensor.name for tensor in found.catalogue.tensors} == {
        "params.dense.kernel",
        "params.dense.bias",
        "step",
    }
