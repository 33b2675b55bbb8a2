"""One output file, made of records of the source within a budget of memory: one task, which can be done again from its beginning."""

import os
import threading
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import numpy as np
from msgspec import Struct

from shardscope.engine.convert.copies.checksums import check_records, checkable
from shardscope.engine.convert.copies.contents import Contents, Opener
from shardscope.engine.convert.copies.crew import Crew
from shardscope.engine.convert.copies.digesting import Chase
from shardscope.engine.convert.copies.segments import cuts
from shardscope.engine.convert.copies.tiles import Maker, prepared
from shardscope.engine.convert.copies.work import (
    KERNEL,
    Band,
    Lane,
    Memory,
    Run,
    Unit,
    Written,
    bands,
    memory,
    units,
)
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Record
from shardscope.engine.model.progress import OnProgress, Pace, Progress
from shardscope.engine.model.staging import Overflow

STAGE: Final = "copy"


class Output(Protocol):
    """The file that is made (`convert.output.OutputFile`)."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def fileno(self) -> int: ...

    def claim(self, offset: int, count: int) -> None: ...

    def write_at(self, offset: int, data: bytes | bytearray | memoryview) -> None: ...

    def refusal(self, error: OSError, needed: int | None = None) -> Fault: ...


class Copied(Struct, frozen=True):
    """What became of one file."""

    bytes: int
    """That were written: those of the file."""
    sha256: str | None
    overflows: tuple[Overflow, ...]
    checked_records: int
    """Whose checksum was compared."""


def copy_file(
    items: Sequence[Written],
    output: Output,
    header: bytes,
    *,
    opener: Opener,
    budget_bytes: int,
    workers: int = 2,
    digest: bool = True,
    checks: Iterable[Record] = (),
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Copied:
    """Write a file: its header, then every tensor at its offset.

    `checks` are records whose checksums are compared meanwhile, each once for all files. `progress` counts the bytes that are
    written, from the calling thread. At most `budget_bytes` are held in buffers, as `work.memory` says.

    Raises `Fault`: `torch.record_crc`, `stage.over_budget`, what the system refuses, and those of `segments.cuts`,
    `tiles.prepared`, `Maker.fill` and `Source.open`. Raises `Cancelled` within 100 ms.
    """
    checked = [record for record in checks if checkable(record)]
    plan = memory(items, budget_bytes, workers, digest=digest, checks=bool(checked))
    task = _Task(items, output, plan, opener, digest=digest)
    task.write(0, header)
    for number in range(max(1, workers)):
        task.crew.start(f"copy-{number}", task.work)
    if checked:
        task.crew.start("checksums", lambda: task.check_records(checked))
    if task.chase is not None:
        task.crew.start("digest", task.hash)
    pace = Pace(progress)

    def report() -> Progress:
        return Progress(STAGE, task.done, output.size, "bytes", output.name)

    def watch() -> None:
        if pace.due():
            pace.report(report())

    task.crew.wait(cancel, watch, task.give_up)
    if task.done != output.size:
        raise Fault("map.incomplete", found=task.done, expected=output.size)
    pace.report(report())
    overflows = [Overflow(items[n].tensor.name, count) for n, count in sorted(task.overflows.items())]
    sha256 = None if task.chase is None else task.chase.sha256
    return Copied(task.done, sha256, tuple(overflows), len(checked))


class _Task:
    """What the threads of one file share."""

    def __init__(
        self, items: Sequence[Written], output: Output, plan: Memory, opener: Opener, *, digest: bool
    ) -> None:
        self._items = items
        self._output = output
        self._plan = plan
        self._opener = opener
        self._units = units(items, plan.step)
        self._turn = threading.Lock()
        self._planning = threading.Lock()
        self.crew = Crew()
        self.chase = Chase(output.fileno(), output.size) if digest else None
        self.done = 0
        self.overflows: dict[int, int] = {}

    def write(self, offset: int, data: memoryview | bytes) -> None:
        """Write and count bytes."""
        self._output.write_at(offset, data)
        self.wrote(offset, len(data))

    def wrote(self, offset: int, length: int) -> None:
        """Count bytes that are in the file."""
        with self._turn:
            self.done += length
        if self.chase is not None:
            self.chase.mark(offset, length)

    def give_up(self) -> None:
        """Let nobody wait for bytes that will not come."""
        if self.chase is not None:
            self.chase.give_up()

    def hash(self) -> None:
        """Do the work of the digest's thread."""
        if self.chase is None:
            raise AssertionError("no digest was asked for")
        try:
            self.chase.run()
        except OSError as error:
            raise self._output.refusal(error) from error

    def check_records(self, records: Sequence[Record]) -> None:
        """Do the work of the checksums' thread."""
        with Contents(self._opener, 1) as contents:
            check_records(records, contents, lambda _: self.crew.check())

    def work(self) -> None:
        """Do the work of one thread: one unit after the other, until there is none."""
        with Contents(self._opener, self._plan.records) as contents:
            worker = _Worker(self, contents, self._plan.step)
            while (unit := self._next()) is not None:
                worker.do(unit)

    def _next(self) -> Unit | None:
        self.crew.check()
        with self._planning:
            return next(self._units, None)

    def overflowed(self, number: int, count: int) -> None:
        """Count numbers of a tensor that became infinite."""
        if count:
            with self._turn:
                self.overflows[number] = self.overflows.get(number, 0) + count

    def item(self, number: int) -> Written:
        """Return a tensor of the file."""
        return self._items[number]

    @property
    def output(self) -> Output:
        """The file."""
        return self._output


class _Worker:
    """What one thread has for itself."""

    def __init__(self, task: _Task, contents: Contents, step: int) -> None:
        self._task = task
        self._contents = contents
        self._step = step
        self._maker = Maker(contents, step)
        self._tile = np.empty(step, np.uint8)
        self._by_kernel = True

    def do(self, unit: Unit) -> None:
        """Do one unit."""
        match unit:
            case Band():
                self._band(unit)
            case Run() if unit.length >= KERNEL and self._by_kernel:
                self._copy(unit)
            case Run():
                self._pass(unit)
            case Lane():
                for number in unit.numbers:
                    self._lane(number)

    def _lane(self, number: int) -> None:
        item = self._task.item(number)
        tensor = prepared(cuts(item.tensor, item.layout), item.dtype)
        for band in bands(number, tensor, item.offset, 0, item.size, self._step):
            self._task.crew.check()
            self._band(band)

    def _band(self, band: Band) -> None:
        data = self._tile[: band.high - band.low]
        self._task.overflowed(band.number, self._maker.fill(band.tensor, band.low, band.high, data))
        self._task.write(band.offset + band.low, data.data)

    def _copy(self, run: Run) -> None:
        """Let the kernel copy; where it does not, between these two files, read and write."""
        file, output = self._contents.file(run.file), self._task.output
        output.claim(run.target, run.length)
        done = 0
        try:
            while done < run.length:
                count = os.copy_file_range(
                    file.fileno(), output.fileno(), run.length - done, run.source + done, run.target + done
                )
                if not count:
                    break
                done += count
        except OSError:
            self._by_kernel = False
        self._stream(run, done)
        self._task.wrote(run.target, run.length)

    def _pass(self, run: Run) -> None:
        self._task.output.claim(run.target, run.length)
        self._stream(run, 0)
        self._task.wrote(run.target, run.length)

    def _stream(self, run: Run, done: int) -> None:
        """Read and write what is left of a run whose bytes were announced."""
        file = self._contents.file(run.file)
        tile = self._tile.data
        while done < run.length:
            view = tile[: run.length - done]
            found = file.pread_into(run.source + done, view)
            if found < len(view):
                raise Fault(
                    "convert.short_record",
                    file=run.file,
                    offset=run.source,
                    found=done + found,
                    expected=run.length,
                )
            self._put(run.target + done, view)
            done += len(view)

    def _put(self, offset: int, view: memoryview) -> None:
        output = self._task.output
        try:
            while view:
                count = os.pwrite(output.fileno(), view, offset)
                view, offset = view[count:], offset + count
        except OSError as error:
            raise output.refusal(error, len(view)) from error
