"""What executing a shard map costs beside moving the same bytes: `python tests/benchmarks/geometry_copy.py [MIB] [NAME...]`.

Arrays are made, and touched, before anything is measured. Ratios are times: 1.11x is 0.9 of the reference's speed.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.pairs import measure

from shardscope.engine.geometry.execution.execute import assemble, slice_
from shardscope.engine.geometry.execution.stream import transfer
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.transfer.compose import compose
from shardscope.engine.model.piece import IndexedPiece, Lowered, Piece, RankShard, Side
from shardscope.engine.model.shardmap import (
    Contiguous,
    DeviceMesh,
    FlatRange,
    Interleave,
    MeshAxis,
    Node,
    Part,
    SubParamConcat,
    TensorMap,
)

Array = NDArray[Any]
RANKS = 8
HIDDEN = 8192
HEAD = 128


def lowered(shape: tuple[int, ...], node: Node) -> Lowered:
    return lower(TensorMap(shape, node), DeviceMesh((MeshAxis("tp", RANKS),)))


def touched(shape: tuple[int, ...], dtype: str = "<u2") -> Array:
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[:] = 1
    return array


def filled(shape: tuple[int, ...], dtype: str = "<u2") -> Array:
    array = touched(shape, dtype)
    flat = array.reshape(-1)
    flat[:] = np.arange(len(flat), dtype=np.uint64).astype(flat.dtype)
    return array


class Case:
    """A tensor, its shards, and places for the results."""

    def __init__(self, layout: Lowered, dtype: str = "<u2") -> None:
        self.layout = layout
        self.full, self.made = filled(layout.shape, dtype), touched(layout.shape, dtype)
        self.shards = {shard.rank: touched(shard.shape, dtype) for shard in layout.ranks}
        self.cut()
        assert np.array_equal(assemble(layout, self.shards, out=self.made), self.full)

    def cut(self, workers: int = 1) -> None:
        for rank, shard in self.shards.items():
            slice_(self.layout, self.full, rank, out=shard, checked=True, workers=workers)

    def join(self, workers: int = 1) -> None:
        assemble(self.layout, self.shards, out=self.made, checked=True, workers=workers)

    def memcpy(self) -> None:
        np.copyto(self.made, self.full)

    def memcpy_by_shard(self) -> None:
        place = 0
        flat = self.made.reshape(-1)
        for shard in self.shards.values():
            np.copyto(flat[place : place + shard.size], shard.reshape(-1))
            place += shard.size


def both(name: str, case: Case, bar: float) -> None:
    measure(f"{name}: assemble by memcpy", case.memcpy, case.join, bar=1 / bar)
    measure(f"{name}: slice by memcpy", case.memcpy, case.cut, bar=1 / bar)
    measure(f"{name}: assemble by memcpy of each shard", case.memcpy_by_shard, case.join, bar=1 / bar)
    measure(f"{name}: slice by memcpy of each shard", case.memcpy_by_shard, case.cut, bar=1 / bar)


def rows(size: int) -> None:
    both("contiguous, dimension 0", Case(lowered((size // HIDDEN, HIDDEN), Contiguous("tp", 0, (size // HIDDEN // RANKS,) * RANKS))), 0.9)  # fmt: skip


def flat(size: int) -> None:
    each = size // RANKS
    starts = tuple(rank * each for rank in range(RANKS))
    node = FlatRange("tp", starts, tuple(start + each for start in starts))
    both("flat ranges", Case(lowered((size // HIDDEN, HIDDEN), node)), 0.9)


def heads(size: int) -> None:
    count = size // HIDDEN // (3 * HEAD) // RANKS * RANKS
    shape = (count * 3 * HEAD, HIDDEN)
    both("interleaved heads of 128 rows", Case(lowered(shape, Interleave("tp", 0, 1, HEAD, 3))), 0.85)


def parts(size: int) -> None:
    quarter = size // HIDDEN // 4
    each = Contiguous("tp", 0, (quarter // RANKS,) * RANKS)
    node = SubParamConcat(0, tuple(Part(quarter, each) for _ in range(4)))
    both("parts on dimension 0", Case(lowered((4 * quarter, HIDDEN), node)), 0.85)


def columns(size: int) -> None:
    """Column splits, by the same views copied by hand."""
    width = HIDDEN // RANKS
    case = Case(lowered((size // HIDDEN, HIDDEN), Contiguous("tp", 1, (width,) * RANKS)))
    views = [case.full[:, rank * width : (rank + 1) * width] for rank in range(RANKS)]
    into = [case.made[:, rank * width : (rank + 1) * width] for rank in range(RANKS)]

    def join() -> None:
        for view, shard in zip(into, case.shards.values(), strict=True):
            np.copyto(view, shard)

    def cut() -> None:
        for view, shard in zip(views, case.shards.values(), strict=True):
            np.copyto(shard, view)

    measure("columns: assemble by hand-written copies", join, case.join, bar=1 / 0.85)
    measure("columns: slice by hand-written copies", cut, case.cut, bar=1 / 0.85)
    measure("columns: assemble by memcpy", case.memcpy, case.join)
    measure("columns: slice by memcpy", case.memcpy, case.cut)
    threads("columns", case)


def threads(name: str, case: Case) -> None:
    """Two threads by one, with what this machine gives to two threads of memcpy, and of arithmetic, beside it."""
    from concurrent.futures import ThreadPoolExecutor

    half = len(case.full) // 2
    with ThreadPoolExecutor(2) as pool:

        def two() -> None:
            list(
                pool.map(
                    lambda rows: np.copyto(case.made[rows], case.full[rows]),
                    (slice(half), slice(half, None)),
                )
            )

        measure(f"{name}: memcpy, two threads by one", case.memcpy, two)
        small = np.random.default_rng(0).random(20_000)

        def spin() -> None:
            for _ in range(500):
                np.sin(small)

        def after_another() -> None:
            spin()
            spin()

        def together() -> None:
            for one in [pool.submit(spin), pool.submit(spin)]:
                one.result()

        measure(f"{name}: arithmetic in cache, two threads by one", after_another, together)
    measure(f"{name}: assemble, two threads by one", case.join, lambda: case.join(2), bar=1 / 1.5)
    measure(f"{name}: slice, two threads by one", case.cut, lambda: case.cut(2), bar=1 / 1.5)


def three(size: int) -> None:
    """Interleaving on the last dimension, element by element, by the transposition that says the same."""
    shape = (size // 3 // HIDDEN, 3 * HIDDEN)
    case = Case(lowered(shape, Interleave("tp", 1, 1, 1, 3)))
    width = HIDDEN // RANKS
    view = case.full.reshape(-1, 3, HIDDEN)

    def cut() -> None:
        for rank, shard in case.shards.items():
            part = view[:, :, rank * width : (rank + 1) * width].transpose(0, 2, 1)
            np.copyto(shard.reshape(-1, width, 3), part)

    def join() -> None:
        target = case.made.reshape(-1, 3, HIDDEN)
        for rank, shard in case.shards.items():
            part = target[:, :, rank * width : (rank + 1) * width].transpose(0, 2, 1)
            np.copyto(part, shard.reshape(-1, width, 3))

    measure("elements interleaved by three: assemble by hand-written copies", join, case.join, bar=1 / 0.85)
    measure("elements interleaved by three: slice by hand-written copies", cut, case.cut, bar=1 / 0.85)
    threads("elements interleaved by three", case)


def indexed(name: str, layout: Lowered, order: Array, run: int) -> None:
    full, shard, made = filled(layout.shape), touched(layout.shape), touched(layout.shape)
    back = np.argsort(order)
    shape = (-1, run) if run > 1 else (-1,)
    lines, into, out = (array.reshape(shape) for array in (full, shard, made))

    def take() -> None:
        np.take(lines, order, axis=0, out=into, mode="clip")

    def untake() -> None:
        np.take(into, back, axis=0, out=out, mode="clip")

    measure(f"{name}: slice by np.take", take, lambda: slice_(layout, full, 0, out=shard, checked=True), bar=1 / 0.85)  # fmt: skip
    measure(f"{name}: assemble by np.take", untake, lambda: assemble(layout, {0: shard}, out=made, checked=True), bar=1 / 0.85)  # fmt: skip
    assert np.array_equal(made, full)


def explicit(size: int) -> None:
    """Rows in any order, as pieces; and single elements in any order, as an index, by one np.take of the same."""
    count, run = 32_768, size // 32_768
    order = np.random.default_rng(0).permutation(count)
    pieces = tuple(
        Piece((run,), Side(int(row) * run, (1,)), Side(place * run, (1,)), (0,))
        for place, row in enumerate(order)
    )
    layout = Lowered((count, run), (RankShard(0, (count, run), pieces),))
    indexed(f"rows of {2 * run:,} bytes in any order", layout, order, run)

    count = size // 16
    order = np.random.default_rng(0).permutation(count)
    dense = np.arange(count, dtype="<i8").tobytes()
    held = IndexedPiece(order.astype("<i8").tobytes(), dense, (0,))
    layout = Lowered((count,), (RankShard(0, (count,), (), 0, (held,)),))
    indexed(f"{count:,} elements in any order", layout, order, 1)


def replicas(size: int) -> None:
    """Comparing a second copy while assembling, by np.array_equal of the same bytes."""
    from shardscope.engine.model.shardmap import Replicate

    shape = (size // HIDDEN, HIDDEN)
    layout = lower(TensorMap(shape, Replicate()), DeviceMesh((MeshAxis("dp", 2),)))
    one, other, out = filled(shape), filled(shape), touched(shape)

    def reference() -> None:
        np.copyto(out, one)
        assert np.array_equal(out.view("<u8"), other.view("<u8"))

    measure("two replicas: assemble by copy and array_equal", reference, lambda: assemble(layout, {0: one, 1: other}, out=out, checked=True))  # fmt: skip


def files(size: int) -> None:
    """Shard files into other shard files, by reading and writing the same bytes in pieces of 1 MiB."""
    rows_ = size // HIDDEN
    source = lowered((rows_, HIDDEN), Contiguous("tp", 0, (rows_ // RANKS,) * RANKS))
    target = lower(
        TensorMap((rows_, HIDDEN), Contiguous("tp", 1, (HIDDEN // 4,) * 4)), DeviceMesh((MeshAxis("tp", 4),))
    )
    plan = compose(target, source)
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, f"source-{rank}") for rank in range(RANKS)]
        for name in names:
            with open(name, "wb") as stream:
                stream.write(bytes(2 * size // RANKS))
        made = [os.open(os.path.join(folder, f"target-{rank}"), os.O_CREAT | os.O_RDWR) for rank in range(4)]
        given = [os.open(name, os.O_RDONLY) for name in names]

        def plain() -> None:
            step = 1 << 20
            for number, descriptor in enumerate(given):
                for offset in range(0, 2 * size // RANKS, step):
                    at = number * 2 * size // RANKS + offset
                    rank, place = divmod(at, 2 * size // 4)
                    os.pwrite(made[rank], os.pread(descriptor, step, offset), place)

        def move(workers: int) -> None:
            transfer(
                plan,
                source,
                target,
                dtype="BF16",
                read=lambda rank, offset, length: os.pread(given[rank], length, offset),
                write=lambda rank, offset, data: os.pwrite(made[rank], data, offset),
                workers=workers,
            )

        measure("files, rows to columns: transfer by pread and pwrite", plain, lambda: move(1))
        measure("files, rows to columns: two workers by pread and pwrite", plain, lambda: move(2))
        for descriptor in (*given, *made):
            os.close(descriptor)


CASES: dict[str, Callable[[int], None]] = {
    "rows": rows,
    "flat": flat,
    "heads": heads,
    "parts": parts,
    "columns": columns,
    "three": three,
    "explicit": explicit,
    "replicas": replicas,
    "files": files,
}


def main() -> None:
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    for name in sys.argv[2:] or CASES:
        CASES[name]((mib << 20) // 2)


if __name__ == "__main__":
    main()
