"""Tensors out of every kind of source, against what numpy makes of the same arrays."""

import hashlib
import random as randomness
import zlib
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from shardscope.engine.convert.copies import work
from shardscope.engine.convert.copies.copying import copy_file
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.piece import IndexedPiece, Lowered, Piece, RankShard, Side
from tests.convert import material
from tests.convert.material import NUMPY, Array, boxes, convert, deflated, noise, plain, put, single


def read(path: Path) -> dict[str, bytes]:
    """Return every tensor's bytes as the format says, each at a multiple of its element's size."""
    import json

    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    assert (8 + length) % 64 == 0
    found = {}
    for name, entry in header.items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        if entry["dtype"] in NUMPY:
            assert begin % np.dtype(NUMPY[entry["dtype"]]).itemsize == 0
        found[name] = data[begin:end]
    with safe_open(path, "np") as file:
        assert set(file.keys()) == set(found)
    return found


@st.composite
def cut_boxes(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """A shape and boxes that cover it exactly."""
    shape = tuple(draw(st.lists(st.integers(1, 13), min_size=1, max_size=4)))
    found = [((0,) * len(shape), shape)]
    for _ in range(draw(st.integers(0, 6))):
        offsets, sizes = found.pop(draw(st.integers(0, len(found) - 1)))
        dim = draw(st.integers(0, len(shape) - 1))
        at = draw(st.integers(0, sizes[dim]))
        low = tuple(at if k == dim else n for k, n in enumerate(sizes))
        high = tuple(n - at if k == dim else n for k, n in enumerate(sizes))
        moved = tuple(o + at if k == dim else o for k, o in enumerate(offsets))
        found += [(offsets, low), (moved, high)]
    return shape, [box for box in found if prod(box[1])]


@given(
    cut_boxes(),
    st.sampled_from(["F32", "BF16", "U8", "I64"]),
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_boxes_come_together(
    tmp_path: Path, cut: Any, dtype: str, big: bool, coded: bool, random: randomness.Random
) -> None:
    shape, cover = cut
    full = noise(shape, dtype)
    parts = []
    for number, (offsets, sizes) in enumerate(cover):
        box = np.ascontiguousarray(full[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))])
        data = (box.byteswap() if big else box).tobytes()
        before = random.randrange(0, 40)
        inner = b"\x11" * before + data + b"\x22"
        stored = deflated(inner) if coded else inner
        (tmp_path / f"{number}").write_bytes(b"\x33" * 5 + stored)
        record = Record(
            f"{number}", 5, len(stored), len(inner), "deflate" if coded else "plain", zlib.crc32(inner), big
        )
        parts.append((offsets, sizes, record, before))
    tensor = boxes("x", dtype, shape, parts)

    made = convert(
        tmp_path, tmp_path / "out", [(tensor, dtype)], checks=work.records([work.Written(tensor, dtype, 0)])
    )

    assert read(tmp_path / "out") == {"x": full.tobytes()}
    assert made.checked_records == len(cover)
    assert made.sha256 == hashlib.sha256((tmp_path / "out").read_bytes()).hexdigest()
    assert made.bytes == (tmp_path / "out").stat().st_size


@given(
    st.permutations(range(3)),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.lists(st.integers(0, 2), max_size=2),
    st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_views_come_out_as_torch_would_make_them_contiguous(
    tmp_path: Path, order: list[int], sizes: list[int], expanded: list[int], cast: bool
) -> None:
    storage = noise([n + 1 for n in sizes], "F32")
    view = storage[tuple(slice(1, None) for _ in sizes)].transpose(order)
    for dim in expanded:
        first = tuple(slice(0, 1) if k == dim else slice(None) for k in range(3))
        view = np.broadcast_to(view[first], view.shape)
    record = put(tmp_path, "storage", storage, before=3)
    strides = tuple(step // 4 for step in view.strides)
    offset = (
        (view.__array_interface__["data"][0] - storage.__array_interface__["data"][0]) if view.size else 0
    )
    tensor = single("x", "F32", view.shape, record, offset, strides=strides)

    convert(tmp_path, tmp_path / "out", [(tensor, "F16" if cast else "F32")])

    assert read(tmp_path / "out") == {"x": view.astype("<f2" if cast else "<f4").tobytes()}


def test_a_transposed_storage_larger_than_a_tile(tmp_path: Path) -> None:
    storage = noise((700, 600), "F32")
    record = put(tmp_path, "storage", storage)
    tensor = single("x", "F32", (600, 700), record, strides=(1, 600))

    convert(tmp_path, tmp_path / "out", [(tensor, "F32")], budget_bytes=1 << 20)

    assert read(tmp_path / "out") == {"x": storage.T.tobytes()}


def test_an_expanded_row_larger_than_a_tile(tmp_path: Path) -> None:
    row = noise((300_000,), "BF16")
    record = put(tmp_path, "storage", row)
    tensor = single("x", "BF16", (5, 300_000), record, strides=(0, 1))

    convert(tmp_path, tmp_path / "out", [(tensor, "BF16")], budget_bytes=1 << 20)

    assert read(tmp_path / "out") == {"x": np.broadcast_to(row, (5, 300_000)).tobytes()}


def test_overlapping_windows(tmp_path: Path) -> None:
    line = noise((60_000,), "F32")
    record = put(tmp_path, "storage", line)
    tensor = single("x", "F32", (50, 59_000), record, strides=(7, 1))

    convert(tmp_path, tmp_path / "out", [(tensor, "F32")], budget_bytes=1 << 20)

    expected = np.lib.stride_tricks.as_strided(line, (50, 59_000), (28, 4))
    assert read(tmp_path / "out") == {"x": expected.tobytes()}


def columns(folder: Path, full: Array, dtype: str, ranks: int) -> LogicalTensor:
    parts = []
    width = full.shape[1] // ranks
    for rank in range(ranks):
        shard = np.ascontiguousarray(full[:, rank * width : (rank + 1) * width])
        record = put(folder, f"tp{rank}", shard, before=rank)
        parts.append(((0, rank * width), (full.shape[0], width), record, 0))
    return boxes("w", dtype, full.shape, parts)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("wanted", ["F32", "BF16", "F16"])
def test_columns_of_ranks(tmp_path: Path, workers: int, wanted: str) -> None:
    full = noise((512, 4096), "F32")
    tensor = columns(tmp_path, full, "F32", 8)

    convert(tmp_path, tmp_path / "out", [(tensor, wanted)], workers=workers, budget_bytes=1 << 20)

    expected = {
        "F32": full,
        "F16": full.astype("<f2"),
        "BF16": rounded(full),
    }[wanted]
    assert read(tmp_path / "out") == {"w": expected.tobytes()}


def rounded(full: Array) -> Array:
    bits = full.view("<u4").astype("u8")
    halves: Array = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    return halves


def test_rows_of_ranks_go_through_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = noise((1024, 1024), "F32")
    parts = []
    for rank in range(2):
        rows = full[rank * 512 : (rank + 1) * 512]
        parts.append(((rank * 512, 0), (512, 1024), put(tmp_path, f"r{rank}", rows, before=8), 0))
    tensor = boxes("w", "F32", full.shape, parts)
    item = work.Written(tensor, "F32", 64)

    assert list(work.units([item], 1 << 20)) == [
        work.Run("r0", 8, 64, 2 << 20),
        work.Run("r1", 8, 64 + (2 << 20), 2 << 20),
    ]
    convert(tmp_path, tmp_path / "out", [(tensor, "F32")])
    assert read(tmp_path / "out") == {"w": full.tobytes()}


@pytest.mark.parametrize("error", [OSError(18, "EXDEV"), OSError(22, "EINVAL"), OSError(38, "ENOSYS"), 0])
def test_where_the_kernel_does_not_copy_bytes_are_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError | int
) -> None:
    full = noise((1024, 1024), "F32")
    tensor = single("w", "F32", full.shape, put(tmp_path, "a", full))

    def refused(*_: Any) -> int:
        if isinstance(error, OSError):
            raise error
        return error

    monkeypatch.setattr("os.copy_file_range", refused)
    convert(tmp_path, tmp_path / "out", [(tensor, "F32")])

    assert read(tmp_path / "out") == {"w": full.tobytes()}


def test_neighbours_are_copied_together(tmp_path: Path) -> None:
    arrays = [noise((100 + n,), "F32", n) for n in range(5)]
    data = b"".join(array.tobytes() for array in arrays)
    (tmp_path / "a").write_bytes(data)
    tensors, at = [], 0
    for number, array in enumerate(arrays):
        record = plain("a", at, array.nbytes)
        tensors.append(single(f"t{number}", "F32", array.shape, record))
        at += array.nbytes
    items = [work.Written(tensor, "F32", 1000 + tensor.fragments[0].record.begin) for tensor in tensors]

    assert list(work.units(items, 1 << 20)) == [work.Run("a", 0, 1000, len(data))]
    convert(tmp_path, tmp_path / "out", [(tensor, "F32") for tensor in tensors])
    assert read(tmp_path / "out") == {f"t{n}": array.tobytes() for n, array in enumerate(arrays)}


def test_flat_ranges_of_partitions(tmp_path: Path) -> None:
    """ZeRO: a parameter is a few stretches of the ranks' flat partitions, long and short ones, from fp32 to bf16 or kept."""
    full = noise((1500, 401), "F32")
    flat = full.reshape(-1)
    edges = [0, 37, 37, 400_000, flat.size]
    ranges = {rank: (edges[rank], edges[rank + 1]) for rank in range(4)}
    ranks = []
    fragments = []
    for rank, (start, stop) in ranges.items():
        n = stop - start
        record = put(tmp_path, f"p{rank}", np.concatenate([np.full(11, 9, "<f4"), flat[start:stop]]))
        piece = Piece((n,), Side(start, (1,)), Side(0, (1,)), (rank,))
        ranks.append(RankShard(rank, (n,), (piece,) if n else ()))
        fragments.append(Fragment(rank, (n,), record, 44))
    layout = Lowered(full.shape, tuple(ranks))
    tensor = LogicalTensor("w", "F32", full.shape, layout, None, tuple(fragments))

    some = list(work.units([work.Written(tensor, "F32", 0)], 1 << 20))
    assert [(one.low, one.high) for one in some if isinstance(one, work.Band)] == [
        (0, 4 * 37),
        (1_600_000, 2 << 20),
        (2 << 20, full.nbytes),
    ]
    assert sum(one.length for one in some if isinstance(one, work.Run)) == 4 * (400_000 - 37)
    convert(tmp_path, tmp_path / "out", [(tensor, "F32")])
    assert read(tmp_path / "out") == {"w": full.tobytes()}
    convert(tmp_path, tmp_path / "out", [(tensor, "BF16")])
    assert read(tmp_path / "out") == {"w": rounded(full).tobytes()}


@pytest.mark.parametrize("wanted", ["F32", "BF16"])
def test_factors_are_undone_before_the_cast(tmp_path: Path, wanted: str) -> None:
    """A row-parallel bias that each of four ranks stores divided by four, and one of a map that names it."""
    full = noise((700_000,), "F32")
    record = put(tmp_path, "a", full / np.float32(4))
    piece = Piece(full.shape, Side(0, (1,)), Side(0, (1,)), (0,), (1, 4))
    layout = Lowered(full.shape, (RankShard(0, full.shape, (piece,)),))
    tensor = LogicalTensor("b", "F32", full.shape, layout, None, (Fragment(0, full.shape, record, 0),))

    convert(tmp_path, tmp_path / "out", [(tensor, wanted)])

    assert read(tmp_path / "out") == {"b": (full if wanted == "F32" else rounded(full)).tobytes()}


def test_a_part_in_another_order_is_written_as_its_layout_says(tmp_path: Path) -> None:
    """The second of three fused projections, its rows backwards in pairs: what a table of names asks for."""
    full = noise((12, 5), "F32")
    tensor = columns_of(tmp_path, full)
    pieces = tuple(
        Piece((2, 5), Side((4 + 2 * (1 - pair)) * 5, (5, 1)), Side(2 * pair * 5, (5, 1)), (0,))
        for pair in range(2)
    )
    layout = Lowered((12, 5), (RankShard(0, (4, 5), pieces),))
    item = work.Written(tensor, "F32", 0, layout)
    assert item.size == 80
    with material.opened(tmp_path) as opener, material.output(tmp_path / "out", 80) as file:
        copy_file([item], file, b"", opener=opener, budget_bytes=1 << 20)

    assert (tmp_path / "out").read_bytes() == full[[6, 7, 4, 5]].tobytes()


def columns_of(folder: Path, full: Array) -> LogicalTensor:
    parts = []
    for rank, (start, stop) in enumerate(((0, 2), (2, 5))):
        shard = np.ascontiguousarray(full[:, start:stop])
        parts.append(((0, start), (len(full), stop - start), put(folder, f"c{rank}", shard), 0))
    return boxes("qkv", "F32", full.shape, parts)


def test_fragments_stored_in_different_types_meet_in_one_tensor(tmp_path: Path) -> None:
    full = noise((64, 64), "F16").astype("<f4")
    left = put(tmp_path, "left", np.ascontiguousarray(full[:, :32]).astype("<f2"))
    right = put(tmp_path, "right", np.ascontiguousarray(full[:, 32:]).byteswap(), big=True)
    tensor = boxes("w", "F32", full.shape, [((0, 0), (64, 32), left, 0), ((0, 32), (64, 32), right, 0)])
    first, second = tensor.fragments
    mixed = LogicalTensor(
        "w", "F32", full.shape, tensor.map, None, (Fragment(0, first.shape, left, 0, dtype="F16"), second)
    )

    convert(tmp_path, tmp_path / "out", [(mixed, "F32")])

    assert read(tmp_path / "out") == {"w": full.tobytes()}


def test_big_endian_complex_numbers_turn_each_half(tmp_path: Path) -> None:
    full = noise((33,), "C64")
    tensor = single("w", "C64", full.shape, put(tmp_path, "a", full.byteswap(), big=True))

    convert(tmp_path, tmp_path / "out", [(tensor, "C64")])

    assert read(tmp_path / "out") == {"w": full.tobytes()}


def test_empty_tensors_and_single_elements(tmp_path: Path) -> None:
    one = noise((1,), "F32")
    record = put(tmp_path, "a", one)
    empty = single("e", "F32", (0, 3), plain("a", 0, 0))
    scalar = single("s", "F32", (), record)
    view = single("v", "F32", (1, 1), record, strides=(9, 5))

    convert(tmp_path, tmp_path / "out", [(empty, "F32"), (scalar, "F32"), (view, "BF16")])

    assert read(tmp_path / "out") == {"e": b"", "s": one.tobytes(), "v": rounded(one).tobytes()}


def test_an_index_of_elements(tmp_path: Path) -> None:
    """An explicit order that no few pieces describe, out of a view: every address is looked up."""
    random = np.random.default_rng(5)
    order = random.permutation(400)
    full = noise((400,), "F32")
    shard = full[order].reshape(20, 20)
    record = put(tmp_path, "a", np.ascontiguousarray(shard.T))
    addresses = order.astype("<i8").tobytes()
    piece = IndexedPiece(addresses, np.arange(400, dtype="<i8").tobytes(), (0,))
    layout = Lowered((400,), (RankShard(0, (20, 20), (), 0, (piece,)),), explicit=True)
    for strides, stored in (((1, 20), record), (None, put(tmp_path, "b", shard))):
        fragment = Fragment(0, (20, 20), stored, 0, strides)
        tensor = LogicalTensor("w", "F32", (400,), layout, None, (fragment,))
        for wanted, expected in (("F32", full), ("BF16", rounded(full))):
            convert(tmp_path, tmp_path / "out", [(tensor, wanted)])
            assert read(tmp_path / "out") == {"w": expected.tobytes()}
