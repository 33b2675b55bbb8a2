"""What the writers of GGUF, NumPy, Zarr and Orbax files write today is listed as they themselves read it back."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine import inspect
from shardscope.engine.model.ggml import GGML_TYPES
from tests.formats.looking import errors, look

np = pytest.importorskip("numpy")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(300), pytest.mark.filterwarnings("default")]


def listed(path: Path) -> dict[str, tuple[str, tuple[int, ...], int]]:
    found = inspect(path, digest="none")
    assert not errors(found.descriptor)
    return {row.name: (row.dtype, row.shape, row.bytes) for row in found.tensors}


# GGUF


def write_gguf(path: Path, endian: str = "LITTLE") -> None:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(str(path), "llama", endianess=gguf.GGUFEndian[endian])
    writer.add_block_count(3)
    writer.add_token_list([f"token {n}" for n in range(1_000)])
    writer.add_array("some.floats", [0.5, 1.5])
    for kind in gguf.GGMLQuantizationType:
        known = GGML_TYPES.get(int(kind))
        if known is None:
            continue
        raw = np.zeros((3, 512 // known.block * known.bytes), np.uint8)
        writer.add_tensor(f"of.{kind.name}", raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_the_package_knows_the_types_that_are_known_here() -> None:
    gguf = pytest.importorskip("gguf")
    theirs = {int(kind): (kind.name, *gguf.GGML_QUANT_SIZES[kind]) for kind in gguf.GGMLQuantizationType}
    ours = {number: (kind.name, kind.block, kind.bytes) for number, kind in GGML_TYPES.items()}
    assert ours.items() <= theirs.items()
    assert set(theirs) - set(ours) == {9}


@pytest.mark.parametrize("endian", ["LITTLE", "BIG"])
def test_every_type_of_gguf_is_listed_as_its_reader_reads_it(endian: str, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "a.gguf"
    write_gguf(path, endian)
    reader = gguf.GGUFReader(str(path))
    theirs = {
        each.name: (
            each.tensor_type.name,
            tuple(int(n) for n in reversed(each.shape)),
            int(each.n_bytes),
            each.data_offset,
        )
        for each in reader.tensors
    }
    ours = {
        row.name: (row.dtype, row.shape, row.bytes, row.begin)
        for row in inspect(tmp_path, digest="none").tensors
    }
    assert ours == theirs
    assert not errors(look(tmp_path))


# NumPy


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_extension_types_lose_their_names_and_not_their_bytes(name: str, tmp_path: Path) -> None:
    types: Any = pytest.importorskip("ml_dtypes")
    array = np.zeros((3, 4), getattr(types, name))
    np.save(tmp_path / "a.npy", array)
    ((dtype, shape, size),) = listed(tmp_path).values()
    assert (dtype[0], shape, size) == ("V", (3, 4), array.nbytes)


def test_archives_that_numpy_writes_are_listed_as_it_reads_them(tmp_path: Path) -> None:
    arrays = {
        f"layer.{n}.weight": np.zeros((n + 1, 3), kind) for n, kind in enumerate(("f2", ">f4", "i8", "?"))
    }
    for save, name in ((np.savez, "a.npz"), (np.savez_compressed, "b.npz")):
        save(tmp_path / name, **arrays)
        found = listed(tmp_path / name)
        assert {key: (value[1], value[2]) for key, value in found.items()} == {
            key: (value.shape, value.nbytes) for key, value in arrays.items()
        }


# Zarr


@pytest.mark.parametrize("version", [2, 3])
def test_what_zarr_python_writes_is_whole(version: int, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(tmp_path / "g"), mode="w", zarr_format=version)
    for name, shape, chunks in (("a/w", (5, 7), (2, 3)), ("b", (4,), (4,)), ("c", (), ())):
        array = group.create_array(name, shape=shape, chunks=chunks or "auto", dtype="f4")
        array[...] = np.ones(shape)
    assert listed(tmp_path / "g") == {
        "a/w": ("F32", (5, 7), 140),
        "b": ("F32", (4,), 16),
        "c": ("F32", (), 4),
    }
    assert "zarr.chunk_missing" not in {item.code for item in look(tmp_path / "g").blockers}


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
@pytest.mark.parametrize(
    ("dtype", "word"),
    [("bfloat16", "BF16"), ("float8_e5m2", "F8_E5M2"), ("float64", "F64"), ("bool", "BOOL")],
)
def test_what_tensorstore_writes_is_whole(driver: str, dtype: str, word: str, tmp_path: Path) -> None:
    tensorstore = pytest.importorskip("tensorstore")
    spec = {
        "driver": driver,
        "kvstore": {"driver": "file", "path": str(tmp_path / "a")},
        "dtype": dtype,
        "schema": {"domain": {"shape": [4, 6]}, "chunk_layout": {"write_chunk": {"shape": [3, 4]}}},
    }
    store = tensorstore.open(spec, create=True).result()
    store.write(np.ones((4, 6), store.dtype.numpy_dtype)).result()
    ((found, shape, _),) = listed(tmp_path / "a").values()
    assert (found, shape) == (word, (4, 6))
    assert "zarr.chunk_missing" not in {item.code for item in look(tmp_path / "a").blockers}


# Orbax


@pytest.mark.parametrize(
    "options", [{"use_ocdbt": False}, {"use_ocdbt": False, "use_zarr3": True}, {}], ids=str
)
def test_what_orbax_writes_is_listed_or_recognised(options: dict[str, bool], tmp_path: Path) -> None:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    orbax = pytest.importorskip("orbax.checkpoint")
    numpy = pytest.importorskip("jax.numpy")
    tree = {
        "p": {"w": numpy.ones((8, 4), numpy.bfloat16), "b": numpy.zeros(4)},
        "e": np.ones((3, 2), "f4"),
        "step": 7,
    }
    folder = tmp_path / "save"
    with orbax.Checkpointer(orbax.PyTreeCheckpointHandler(**options)) as keeper:
        keeper.save(folder, tree)
    descriptor = look(folder)
    assert descriptor.classification.format == "orbax"
    assert not errors(descriptor)
    if options:
        assert listed(folder) == {
            "p.w": ("BF16", (8, 4), 64),
            "p.b": ("F32", (4,), 16),
            "e": ("F32", (3, 2), 24),
            "step": ("I64", (), 8),
        }
    else:
        assert descriptor.tensors.count is None


SHARDED = """
import sys
import jax, jax.numpy as jnp, numpy as np, orbax.checkpoint as orbax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))
def on(array, *spec):
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))
tree = {"w": on(jnp.arange(64.0).reshape(8, 8), "data", "model"), "b": on(jnp.arange(8.0), ("data", "model")), "n": on(jnp.ones(4))}
with orbax.Checkpointer(orbax.PyTreeCheckpointHandler(use_ocdbt=False)) as keeper:
    keeper.save(sys.argv[1], tree)
"""


def test_what_eight_devices_write_is_whole_and_its_mesh_is_told(tmp_path: Path) -> None:
    pytest.importorskip("orbax.checkpoint")
    folder = tmp_path / "save"
    flags = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    subprocess.run(
        [sys.executable, "-c", SHARDED, str(folder)], check=True, env=os.environ | flags, capture_output=True
    )
    descriptor = look(folder)
    assert not errors(descriptor)
    assert descriptor.topology.note == "3 arrays on a mesh of devices, data 2 x model 4"
    assert listed(folder) == {"w": ("F32", (8, 8), 256), "b": ("F32", (8,), 32), "n": ("F32", (4,), 16)}
