"""What this machine does in a few seconds, plainly and by shardscope, in a folder of its own that is removed.

Ratios are what can be held beside figures from elsewhere. They are of one moment on a machine that others may use.
"""

import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

from msgspec import Struct

from shardscope.engine.converting.materializing import materialize
from shardscope.engine.converting.preparing import prepare
from shardscope.engine.host import probe
from shardscope.engine.inspecting.inspection import inspect
from shardscope.engine.model.bench import BenchDocument, BenchRow
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.plan import PlanOptions
from shardscope.engine.model.progress import check
from shardscope.engine.model.schemas import BENCH
from shardscope.engine.model.text import path_text
from shardscope.engine.source.source import Source

_TILE: Final = 1 << 20
_FILES: Final = 4
_HEADERS: Final = 40
_TENSORS: Final = 200
_NOTES: Final = (
    "One moment of this machine: others may use it, and a disk, a network mount and memory are different things.",
    "Read, hash and copy find their bytes in memory where these fit; `read again` comes after the system was asked to forget them.",
)


class BenchOptions(Struct, frozen=True):
    """How much, how long and where."""

    bytes: int = 256 << 20
    """In files of whole MiB: less than 4 MiB are 4 MiB."""
    seconds: float = 1.0
    """For each measurement; one run is always made, however long it takes."""
    folder: str | None = None
    """That the folder of the measurement is made in; null for the system's own for such things."""


class _Measured(Struct, frozen=True):
    rate: float
    runs: int


def bench(
    options: BenchOptions | None = None,
    *,
    cancel: threading.Event | None = None,
    now: Callable[[], float] = time.perf_counter,
) -> BenchDocument:
    """Measure and return. About four times the bytes are written at the most, within one folder that is removed on every way out.

    Raises `Fault`: `bench.no_room`, `bench.failed`; `Cancelled`.
    """
    options = options or BenchOptions()
    size = _measured_bytes(options.bytes)
    parent = options.folder or tempfile.gettempdir()
    free = probe(parent).disk_free
    if free is not None and free < 4 * size:
        raise Fault("bench.no_room", file=path_text(os.fsencode(parent)), free=free, needed=4 * size)
    try:
        with tempfile.TemporaryDirectory(prefix="shardscope-bench-", dir=parent) as folder:
            rows = _Bench(Path(folder), options, cancel, now).rows()
    except OSError as error:
        raise Fault(
            "bench.failed", file=path_text(os.fsencode(parent)), reason=os.strerror(error.errno or 0)
        ) from error
    return BenchDocument(BENCH, size, options.seconds, rows, _NOTES)


def _measured_bytes(wanted: int) -> int:
    """Return how many bytes are measured with where so many are asked for: files of whole tiles."""
    return max(wanted // (_FILES * _TILE), 1) * _FILES * _TILE


class _Bench:
    def __init__(
        self,
        folder: Path,
        options: BenchOptions,
        cancel: threading.Event | None,
        now: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._seconds = options.seconds
        self._cancel = cancel
        self._now = now
        self._source = folder / "source"
        self._bytes = _measured_bytes(options.bytes)
        self._each = self._bytes // _FILES
        self._files = [
            self._source / f"model-{number + 1:05}-of-{_FILES:05}.safetensors" for number in range(_FILES)
        ]

    def rows(self) -> tuple[BenchRow, ...]:
        """Measure one after the other."""
        write = self._measure(self._write, self._bytes, once=True)
        written = BenchRow(
            "write", "bytes", write.rate, "files written and made durable", None, None, None, 1, None, None
        )
        read = self._measure(self._read, self._bytes)
        rows = [written, self._row("read", read, "tiles of 1 MiB, one thread")]
        again = self._measure(self._read, self._bytes, first=self._forget, once=True)
        rows.append(self._row("read again", again, "the same after the system was asked to forget it"))
        rows += [self._hash(), self._copy(), self._headers()]
        return tuple(rows)

    def _row(self, name: str, measured: _Measured, what: str) -> BenchRow:
        return BenchRow(name, "bytes", measured.rate, what, None, None, None, measured.runs, None, None)

    def _hash(self) -> BenchRow:
        def ours() -> None:
            with Source(self._source) as source:
                source.digests(source.walk().files, cancel=self._cancel)

        return _beside(
            ("hash", "bytes"),
            (self._measure(self._digest, self._bytes), "SHA-256 by hashlib, one thread"),
            (self._measure(ours, self._bytes), "digests of an inspection, two threads"),
            "at least 1.7 times one process of openssl is the bar",
            "tests/benchmarks/digests.py",
        )

    def _copy(self) -> BenchRow:
        target = self._folder / "target"

        def plain() -> None:
            target.mkdir()
            for file in self._files:
                check(self._cancel)
                shutil.copyfile(file, target / file.name)

        def ours() -> None:
            prepared = prepare(self._source, PlanOptions(), cancel=self._cancel)
            materialize(self._source, target, prepared, confirm=lambda _: True, cancel=self._cancel)

        def clear() -> None:
            shutil.rmtree(target, ignore_errors=True)

        first = self._measure(plain, self._bytes, first=clear)
        second = self._measure(ours, self._bytes, first=clear)
        return _beside(
            ("copy", "bytes"),
            (first, "files copied as `cp` does, not made durable"),
            (second, "a conversion: planned, copied, hashed, made durable, verified"),
            "0.26 GB/s of output by one thread, digests included, measured on a busy virtual machine with two cores, in memory",
            "tests/benchmarks/scale_model.py",
        )

    def _headers(self) -> BenchRow:
        folder = self._folder / "headers"
        folder.mkdir()
        for number in range(_HEADERS):
            names = [f"model.layers.{number}.block.{each}.weight" for each in range(_TENSORS)]
            (folder / f"model-{number + 1:05}-of-{_HEADERS:05}.safetensors").write_bytes(
                _header(names, 4) + bytes(4 * len(names))
            )

        def plain() -> None:
            for file in folder.iterdir():
                with file.open("rb") as stream:
                    json.loads(stream.read(int.from_bytes(stream.read(8), "little")))

        def ours() -> None:
            inspect(folder, digest="none", cancel=self._cancel)

        return _beside(
            ("headers", "files"),
            (
                self._measure(plain, _HEADERS),
                f"headers of {_TENSORS} tensors read and parsed as JSON, no check",
            ),
            (self._measure(ours, _HEADERS), "an inspection of the folder, every check"),
            "at most the time of safetensors.safe_open asking for each dtype and shape is the bar",
            "tests/benchmarks/headers.py",
        )

    def _measure(
        self,
        work: Callable[[], None],
        units: int,
        *,
        first: Callable[[], None] | None = None,
        once: bool = False,
    ) -> _Measured:
        """Run until the time is over, and once at least; what is done `first` before each run is not measured."""
        times: list[float] = []
        while not times or (not once and sum(times) < self._seconds):
            if first is not None:
                first()
            check(self._cancel)
            began = self._now()
            work()
            times.append(max(self._now() - began, 1e-9))
        return _Measured(units / median(times), len(times))

    def _write(self) -> None:
        self._source.mkdir()
        names = {f"model.layers.{number}.weight": file.name for number, file in enumerate(self._files)}
        index = {"metadata": {"total_size": self._bytes}, "weight_map": names}
        (self._source / "model.safetensors.index.json").write_text(json.dumps(index))
        block = os.urandom(_TILE)
        for number, file in enumerate(self._files):
            with file.open("wb") as stream:
                stream.write(_header([f"model.layers.{number}.weight"], self._each))
                for tile in range(self._each // _TILE):
                    check(self._cancel)
                    stream.write(tile.to_bytes(8, "little") + block[8:])
                stream.flush()
                os.fsync(stream.fileno())

    def _read(self) -> None:
        for file in self._files:
            with file.open("rb", buffering=0) as stream:
                while stream.read(_TILE):
                    check(self._cancel)

    def _digest(self) -> None:
        for file in self._files:
            digest = hashlib.sha256()
            with file.open("rb", buffering=0) as stream:
                while tile := stream.read(_TILE):
                    check(self._cancel)
                    digest.update(tile)

    def _forget(self) -> None:
        for file in self._files:
            with file.open("rb") as stream:
                if hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _header(names: list[str], size: int) -> bytes:
    """Return the header of a safetensors file of F32 vectors with as many bytes each."""
    fields = {
        name: {"dtype": "F32", "shape": [size // 4], "data_offsets": [at * size, (at + 1) * size]}
        for at, name in enumerate(names)
    }
    text = json.dumps(fields).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _beside(
    what: tuple[str, str],
    plain: tuple[_Measured, str],
    ours: tuple[_Measured, str],
    elsewhere: str,
    script: str,
) -> BenchRow:
    (first, first_is), (second, second_is) = plain, ours
    return BenchRow(
        what[0],
        "files" if what[1] == "files" else "bytes",
        first.rate,
        first_is,
        second.rate,
        second_is,
        second.rate / first.rate,
        min(first.runs, second.runs),
        elsewhere,
        script,
    )
