"""SHA-256 of files: which to hash, and hashing them side by side in constant memory.

hashlib releases the interpreter lock, so that two threads hash at twice the rate of one. Each thread owns one tile of
1 MiB, which stays in the processor's cache between the read and the hash.
"""

import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.progress import Cancelled, OnProgress, Pace, Progress, check
from shardscope.engine.model.source import Entry, Identity, Kind
from shardscope.engine.source.read import OpenFile

Mode = Literal["auto", "all", "none"]
"""`--digest`: everything within a limit, everything, or nothing."""

_TILE: Final = 1 << 20
_POLL: Final = 1 / 30
"""Seconds between looks at `cancel` and reports of progress."""
_PATIENCE: Final = 1 / 20
"""Seconds to wait for threads that were told to stop. One that hangs in a read of a dead disk is left behind."""


class Choice(Struct, frozen=True):
    """Whether a file is hashed, and why or why not."""

    hashed: bool
    reason: str


def choose(
    entries: Iterable[Entry], mode: Mode, limit_bytes: int, whole_reads: Container[bytes]
) -> Mapping[bytes, Choice]:
    """Return for each regular file of `entries`, by its path, whether it is hashed.

    `auto` hashes everything where all files together have at most `limit_bytes`, and otherwise the files of
    `whole_reads`, whose every byte is read anyway.
    """
    files = [entry for entry in entries if entry.kind is Kind.FILE]
    if mode == "none":
        return dict.fromkeys(
            (entry.path for entry in files), Choice(hashed=False, reason="digests were not asked for")
        )
    if mode == "all":
        return dict.fromkeys(
            (entry.path for entry in files), Choice(hashed=True, reason="all digests were asked for")
        )
    total = sum({entry.identity: entry.size for entry in files}.values())
    if total <= limit_bytes:
        choice = Choice(hashed=True, reason=f"all files together are within digest_bytes ({limit_bytes:,})")
        return dict.fromkeys((entry.path for entry in files), choice)
    whole = Choice(hashed=True, reason="it is read whole anyway")
    left = Choice(
        hashed=False,
        reason=f"all files together have {total:,} bytes, more than digest_bytes ({limit_bytes:,})",
    )
    return {entry.path: whole if entry.path in whole_reads else left for entry in files}


def sha256(file: OpenFile, tile: memoryview, on_tile: Callable[[int], None]) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal, read through `tile`.

    `on_tile` is told how many bytes were hashed after each tile, and stops the work by raising.
    """
    import hashlib  # loads OpenSSL, which reading headers alone need not wait for

    digest = hashlib.sha256()
    offset = 0
    zeros = b"" if file.entry.allocated >= file.size else bytes(len(tile))
    while offset < file.size:
        if zeros and (hole := file.hole_at(offset)):  # reading it would fill the page cache with zeros
            count = min(hole, len(zeros))
            digest.update(memoryview(zeros)[:count])
        else:
            count = file.pread_into(offset, tile)
            digest.update(tile[:count])
        offset += count
        on_tile(count)
    return digest.hexdigest()


def hash_files(
    open_entry: Callable[[Entry], OpenFile],
    entries: Sequence[Entry],
    *,
    workers: int,
    cancel: threading.Event | None,
    on_progress: OnProgress | None,
    on_fault: Callable[[Entry, Fault], None] | None,
) -> dict[bytes, str]:
    """Return the SHA-256 of each of `entries` in hexadecimal by path: largest first, each inode once.

    A file that cannot be read, or changes, goes to `on_fault` and is left out; without it, the fault is raised.
    Raises `Cancelled` within 100 ms of `cancel`.
    """
    names: dict[Identity, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (-entry.size, entry.path)):
        names.setdefault(entry.identity, []).append(entry)
    crew = _Crew(open_entry, [group[0] for group in names.values()])
    crew.work(min(workers, len(names)), cancel, Pace(on_progress))
    digests: dict[bytes, str] = {}
    for identity, group in names.items():
        outcome = crew.outcomes[identity]
        for entry in group:
            if isinstance(outcome, str):
                digests[entry.path] = outcome
            elif on_fault is None:
                raise outcome
            else:
                on_fault(entry, outcome)
    return digests


class _Crew:
    """Threads that take files from one list until it is empty or the work is stopped."""

    def __init__(self, open_entry: Callable[[Entry], OpenFile], files: Sequence[Entry]) -> None:
        self.outcomes: dict[Identity, str | Fault] = {}
        self._open = open_entry
        self._files = iter(files)
        self._total = sum(entry.size for entry in files)
        self._done = 0
        self._subject: str | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._crash: BaseException | None = None

    def work(self, workers: int, cancel: threading.Event | None, pace: Pace) -> None:
        """Hash everything; the calling thread watches."""
        threads = [
            threading.Thread(target=self._run, name=f"digest-{n}", daemon=True) for n in range(workers)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    check(cancel)
                    if pace.due():
                        pace.report(self._progress())
                    thread.join(_POLL)
        finally:
            self._stop.set()
            end = time.monotonic() + _PATIENCE
            for thread in threads:
                thread.join(max(0.0, end - time.monotonic()))
        if self._crash is not None:
            raise self._crash
        pace.report(self._progress())

    def _progress(self) -> Progress:
        return Progress("digests", self._done, self._total, "bytes", self._subject)

    def _run(self) -> None:
        tile = memoryview(bytearray(_TILE))
        try:
            while True:
                with self._lock:
                    entry = next(self._files, None)
                if entry is None:
                    return
                self._subject = entry.text
                self.outcomes[entry.identity] = self._hash(entry, tile)
        except Cancelled:
            return
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            self._crash = error
            self._stop.set()

    def _hash(self, entry: Entry, tile: memoryview) -> str | Fault:
        try:
            with self._open(entry) as file:
                return sha256(file, tile, self._hashed)
        except Fault as fault:
            return fault

    def _hashed(self, count: int) -> None:
        with self._lock:
            self._done += count
        check(self._stop)
