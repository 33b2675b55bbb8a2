"""One file of the output while it is made: of a size that is known before, and never a byte longer."""

import errno
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from shardscope.engine.convert.disk.kernel import allocate
from shardscope.engine.convert.disk.owner import seal_of
from shardscope.engine.convert.disk.refusals import reason, refused, refusing
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.staging import FileRecord, Overflow

_NO_ALLOCATION: Final = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ENODEV})


class OutputFile:
    """A new file of `size` bytes below the staging folder. Threads may write to it at once.

    Whoever writes through `fileno()` calls `claim` before, so that every byte is counted. Leaving a `with` block without
    `finish` leaves a file that promotion refuses.
    """

    def __init__(
        self,
        name: str,
        size: int,
        descriptor: int,
        finished: Callable[["OutputFile", FileRecord], None],
    ) -> None:
        self.name = name
        self.size = size
        self._descriptor = descriptor
        self._finished = finished
        self._turn = threading.Lock()
        self._claimed = 0
        self._writable = True
        self._closed = False

    @property
    def claimed(self) -> int:
        """Bytes that were written, or that a writer announced."""
        return self._claimed

    def fileno(self) -> int:
        """Return the descriptor, open for reading and writing. Raises `ValueError` once the file is finished."""
        if not self._writable:
            raise ValueError(f"{self.name} is finished")
        return self._descriptor

    def claim(self, offset: int, count: int) -> None:
        """Announce that `count` bytes will be written at `offset`.

        Raises `Fault` `stage.over_budget` where they do not lie in the file, or where more is written than it holds: a source
        that delivers more than it announced.
        """
        self.fileno()
        with self._turn:
            end = max(offset + count, self._claimed + count)
            if offset < 0 or count < 0 or end > self.size:
                raise Fault("stage.over_budget", file=self.name, allowed=self.size, wanted=end)
            self._claimed += count

    def write_at(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at `offset`. Raises `Fault`: `stage.over_budget`, and what the system refuses."""
        view = memoryview(data).cast("B")
        self.claim(offset, len(view))
        descriptor = self.fileno()
        try:
            while view:
                done = os.pwrite(descriptor, view, offset)
                view, offset = view[done:], offset + done
        except OSError as error:
            raise self.refusal(error, len(view)) from error

    def refusal(self, error: OSError, needed: int | None = None) -> Fault:
        """Return the fault for what the system refused while `needed` bytes (by default all) were written to this file."""
        return refused(
            error, self.name, needed=self.size if needed is None else needed, folder=self._descriptor
        )

    def finish(
        self, sha256: str | None = None, task: str | None = None, overflows: tuple[Overflow, ...] = ()
    ) -> FileRecord:
        """Say that every byte is written. The file is recorded in the journal, and made durable later.

        Raises `Fault` `stage.incomplete` where bytes are missing, `stage.over_budget` where the file grew unannounced.
        """
        with refusing(self.name):
            status = os.fstat(self.fileno())
            length = status.st_size
        if length > self.size:
            raise Fault("stage.over_budget", file=self.name, allowed=self.size, wanted=length)
        if self._claimed != self.size or length != self.size:
            raise Fault(
                "stage.incomplete", file=self.name, written=min(self._claimed, length), size=self.size
            )
        record = FileRecord(self.name, self.size, sha256, task, overflows, seal_of(status))
        self._finished(self, record)
        self._writable = False
        return record

    def sync(self) -> None:
        """Make a finished file durable and close it. Raises `Fault` `promote.sync_failed`."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise Fault("promote.sync_failed", file=self.name, reason=reason(error)) from error
        finally:
            self.close()

    def close(self) -> None:
        """Close the descriptor, whatever became of the file."""
        self._writable = False
        if not self._closed:
            self._closed = True
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writable:
            self.close()


def reserve(descriptor: int, size: int, *, allocated: bool) -> None:
    """Make an empty file `size` bytes long, with blocks behind them where the file system can. Raises `OSError`."""
    if size and allocated:
        try:
            allocate(descriptor, size)
        except OSError as error:
            if error.errno not in _NO_ALLOCATION:
                raise
        else:
            return
    os.ftruncate(descriptor, size)
