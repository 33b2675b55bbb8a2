"""The staging folder: a marked, private sibling of the target in which an output is made.

    .NAME.shardscope-staging-1f0c9a3e/
        shardscope-staging.json    what this folder is, and whose
        journal.jsonl              finished files with size and digest
        output/                    becomes NAME by one rename

Whatever happens to the process, the target stays as it is until that rename.
"""

import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Final, Self

from shardscope.engine.convert.disk.journal import Journal
from shardscope.engine.convert.disk.leftovers import close_gap
from shardscope.engine.convert.disk.lock import Lock
from shardscope.engine.convert.disk.marker import write_marker
from shardscope.engine.convert.disk.names import JOURNAL, MARKER, OUTPUT, checked_parts
from shardscope.engine.convert.disk.output import OutputFile, reserve
from shardscope.engine.convert.disk.owner import this_process
from shardscope.engine.convert.disk.place import Inode, Place
from shardscope.engine.convert.disk.refusals import reason, refused, refusing
from shardscope.engine.convert.disk.removal import remove_staging
from shardscope.engine.convert.disk.steps import At, nowhere
from shardscope.engine.convert.jobs.attempts import looked_at, make_room, take
from shardscope.engine.convert.jobs.tasks import Area, Done, FileTask
from shardscope.engine.convert.stage.audit import compare
from shardscope.engine.convert.stage.folder import (
    holds_old,
    is_in_place,
    new_folder,
    sync_folder,
    try_exchange,
)
from shardscope.engine.convert.stage.resuming import find_resumable, holds, sweep
from shardscope.engine.model.blocker import Fault, Finding, Param
from shardscope.engine.model.schemas import STAGING
from shardscope.engine.model.staging import FileRecord, Marker, State
from shardscope.engine.model.text import exact_text, path_text
from shardscope.engine.version import __version__

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_STAGED: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_OPEN_FILES: Final = 16
"""Finished files that stay open until they are durable: a disk error is told to those who have a file open. More are made
durable as they come."""


class Staging:
    """Use it in a `with` block; `promotion.promote` makes the output appear, leaving without it removes what was staged.

    `allowed` is how many bytes all files of the output may have together. With `keep` the folder stays when the block is left
    without promotion; `keeps` is asked where files are finished and an error ends the block. `sources` are never written to: a
    target inside one, or one inside the target, is refused. `resume` goes on in the folder that an earlier run of `plan` left:
    `earlier` is what it says it finished.

    Entering raises `Fault`: codes of `stage.*` for a target that cannot or must not be written, `source.*` for a source that
    cannot be looked at. After leaving, `notes` say what became of the folder.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        *,
        allowed: int,
        sources: Iterable[str | os.PathLike[str]] = (),
        replace: bool = False,
        allow_gap: bool = False,
        keep: bool = False,
        keeps: Callable[[BaseException], bool] | None = None,
        resume: bool = False,
        allocated: bool = True,
        plan: str | None = None,
        at: At = nowhere,
    ) -> None:
        self._target = target
        self._sources = tuple(sources)
        self._plan = plan
        self._allocated = allocated
        self.at = at
        self.allowed = allowed
        self.replace = replace
        self.allow_gap = allow_gap
        self.keep = keep
        self._keeps = keeps
        self._resume = resume
        self.earlier: Mapping[str, FileRecord] = {}
        self.taken: list[FileRecord] = []
        self._entered = True
        self.notes: list[Finding] = []
        """What a person should hear about: an old output that was put back, a folder that was kept."""
        self.promoted = False
        self.discard = False
        """Remove the old output too, once the new one is in its place."""
        self.output_inode: int | None = None
        self._interrupted = False
        self._stack = ExitStack()
        self._turn = threading.Lock()
        self._sizes: dict[str, int] = {}
        self._finished: dict[str, FileRecord] = {}
        self._undurable: deque[OutputFile] = deque()
        self._files: list[OutputFile] = []

    def __enter__(self) -> Self:
        with refusing(path_text(os.path.basename(os.fsencode(self._target)))), ExitStack() as stack:
            self.place = Place(self._target, self._sources)
            stack.callback(self.place.close)
            lock = Lock(self.place, self.at)
            stack.callback(lock.release)
            lock.acquire()
            self.notes += close_gap(self.place, self.at)
            self.existing: Inode | None = self.place.existing(replace=self.replace)
            self.place.check_sources(self.existing)
            self._make_folder(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._interrupted = kind is not None
        if error is not None and (self.earlier or any(record.task for record in self.records)):
            self.keep = self.keep or (self._resume if self._keeps is None else self._keeps(error))
        with self._stack:
            for file in self._files:
                file.close()

    @property
    def file(self) -> str:
        """Name of the staging folder, for sentences."""
        return path_text(self.name)

    @property
    def records(self) -> tuple[FileRecord, ...]:
        """The finished files, in the order of their names."""
        with self._turn:
            return tuple(self._finished[name] for name in sorted(self._finished))

    def create(self, name: str, size: int) -> OutputFile:
        """Return a new file of the output, its blocks reserved where the file system can.

        `name` is relative, with `/` between folders. Raises `Fault`: `stage.file_name`, `stage.file_exists`,
        `stage.over_budget`, `stage.no_space` and what else the system refuses.
        """
        parts = self.expect(name, size)
        try:
            return self._create(name, parts, size)
        except BaseException:
            with self._turn:
                del self._sizes[name]
            raise

    def expect(self, name: str, size: int) -> tuple[bytes, ...]:
        """Set room aside for a file of the output, and return the parts of its name.

        Raises `Fault`: `stage.file_name`, `stage.file_exists`, `stage.over_budget`.
        """
        parts = checked_parts(name)
        with self._turn:
            if name in self._sizes:
                raise Fault("stage.file_exists", file=name)
            total = sum(self._sizes.values()) + size
            if total > self.allowed:
                raise Fault("stage.over_budget", file=name, allowed=self.allowed, wanted=total)
            self._sizes[name] = size
        return parts

    def area(self) -> Area:
        """Make room for attempts of other processes, and return where they find the staging folder."""
        with refusing(self.place.file, self.folder):
            make_room(self.folder)
            return Area(os.path.join(self.place.holder, self.name), os.fstat(self.folder).st_ino)

    def adopt(self, task: FileTask, done: Done) -> None:
        """Take a file that was expected from the attempt that made it, after a look of one's own at it.

        Raises `Fault`: `cluster.attempt_differs`, and what the system refuses.
        """
        parts = checked_parts(task.name)
        self.at("attempt.adopt")
        with refusing(task.name, self.folder), self._folder_of(parts) as folder:
            descriptor = looked_at(self.folder, task, done)
            file = OutputFile(task.name, task.size, descriptor, self._record)
            with self._turn:
                self._files.append(file)
            take(self.folder, done, folder, parts[-1])
        copied = done.copied
        self._record(file, FileRecord(task.name, task.size, copied.sha256, task.id, copied.overflows))

    def take_up(
        self, task: FileTask, cancel: threading.Event | None = None, done: Callable[[int], None] | None = None
    ) -> FileRecord | None:
        """Take a file that an earlier run finished for the same task, after reading all of it; null where it has to be made.

        Raises `Fault` as `expect` does and what the system refuses; `Cancelled`.
        """
        record = self.earlier.get(task.name)
        if record is None:
            return None
        parts = self.expect(task.name, task.size)
        self.at("file.verify")
        with refusing(task.name, self.folder), ExitStack() as stack:
            try:
                folder = stack.enter_context(self._folder_of(parts, make=False))
                descriptor = os.open(parts[-1], _STAGED, dir_fd=folder)
            except FileNotFoundError:
                self._sizes.pop(task.name)
                return None
            file = OutputFile(task.name, task.size, descriptor, self._record)
            with self._turn:
                self._files.append(file)
            if (record.task, record.size) == (task.id, task.size) and holds(descriptor, record, cancel, done):
                self._enrol(file, record)
                self.taken.append(record)
                return record
            file.close()
            os.unlink(parts[-1], dir_fd=folder)
            with self._turn:
                del self._sizes[task.name]
            return None

    def _create(self, name: str, parts: tuple[bytes, ...], size: int) -> OutputFile:
        self.at("file.create")
        try:
            with self._folder_of(parts) as folder:
                descriptor = os.open(parts[-1], _NEW, 0o666, dir_fd=folder)
                try:
                    self.at("file.reserve")
                    reserve(descriptor, size, allocated=self._allocated)
                except BaseException:
                    os.close(descriptor)
                    os.unlink(parts[-1], dir_fd=folder)
                    raise
        except OSError as error:
            raise refused(error, name, needed=size, folder=self.folder) from error
        file = OutputFile(name, size, descriptor, self._record)
        with self._turn:
            self._files.append(file)
        return file

    def write_small(self, name: str, data: bytes) -> FileRecord:
        """Write a whole file of the output. Raises `Fault` as `create` and writing do."""
        with self.create(name, len(data)) as file:
            file.write_at(0, data)
            return file.finish(hashlib.sha256(data).hexdigest())

    def open_staged(self, name: str) -> int:
        """Return a descriptor to read a file of the output as a stranger would; the caller closes it. Raises `OSError`."""
        parts = checked_parts(name)
        with self._folder_of(parts, make=False) as folder:
            return os.open(parts[-1], _STAGED, dir_fd=folder)

    def staged_path(self) -> str:
        """Return the path of the output as it is staged, for libraries that take no descriptor."""
        return os.path.join("/proc/self/fd", str(self._output))

    def control_bytes(self) -> int:
        """Return the bytes of what is in the staging folder beside the output: marker and journal."""
        sizes = 0
        for name in (MARKER, JOURNAL):
            try:
                sizes += os.stat(name, dir_fd=self.folder, follow_symlinks=False).st_size
            except FileNotFoundError:
                continue
        return sizes

    def audit(self) -> None:
        """Make sure that the output holds the finished files in their sizes, which were allowed, and nothing else.

        Raises `Fault`: `promote.unfinished`, `promote.unexpected`.
        """
        with self._turn:
            unfinished = sorted(self._sizes.keys() - self._finished.keys())
            wanted = {name: record.size for name, record in self._finished.items()}
        if unfinished:
            raise Fault("promote.unfinished", file=unfinished[0], files=len(unfinished))
        compare(self._output, wanted)

    def sync(self) -> None:
        """Make all finished files and their folders durable. Raises `Fault` `promote.sync_failed`."""
        while self._undurable:
            self.at("file.sync")
            self._undurable.popleft().sync()
        folders = {
            "/".join(name.split("/")[:depth])
            for name in self._sizes
            for depth in range(1, name.count("/") + 1)
        }
        for name in sorted(folders, reverse=True):
            try:
                with self._folder_of((*checked_parts(name), b""), make=False) as folder:
                    self.sync_folder(folder, name)
            except OSError as error:
                raise Fault("promote.sync_failed", file=name, reason=reason(error)) from error
        self.sync_folder(self._output, self.file)
        self.sync_folder(self.folder, self.file)

    def sync_folder(self, folder: int, name: str) -> None:
        """Make the entries of a folder durable. Raises `Fault` `promote.sync_failed`."""
        self.at("folder.sync")
        sync_folder(folder, name)

    def mark(self, state: State) -> None:
        """Write into the marker what is about to happen, or has. Raises `Fault` as writing does."""
        target, target_hex = exact_text(self.place.name)
        new = None if state == "staging" else self.output_inode
        marker = Marker(STAGING, __version__, target, target_hex, this_process(), state, new)
        with refusing(self.place.file, self.place.parent):
            write_marker(self.folder, marker, self.at)

    def _make_folder(self, stack: ExitStack) -> None:
        found = find_resumable(self.place, self._plan) if self._resume else None
        parent = self.place.parent
        self.at("folder.create" if found is None else "folder.resume")
        if found is None:
            self.name, self.folder = new_folder(self.place)
        else:
            self.name, self.folder = found.name, os.open(found.name, _FOLDER, dir_fd=parent)
            self._entered = False
        stack.callback(os.close, self.folder)
        stack.callback(self._leave)
        with refusing(self.place.file, parent):
            self.mark("staging")
            self._journal = Journal(self.folder, self._plan, self.at, begun=found is not None)
            stack.callback(self._journal.close)
            self.at("output.create")
            with suppress(FileExistsError):
                os.mkdir(OUTPUT, 0o777, dir_fd=self.folder)
            self._output = os.open(OUTPUT, _FOLDER, dir_fd=self.folder)
            stack.callback(os.close, self._output)
            self.output_inode = os.fstat(self._output).st_ino
            if found is not None:
                self.at("folder.sweep")
                sweep(self.folder, self._output, found.finished)
                self.earlier = found.finished
            if self.existing is not None and not self.allow_gap:
                try_exchange(self.folder, self.place.file, self.at)
        self._entered = True

    def _leave(self) -> None:
        """Remove the folder, or say why it stays. The disk is believed: an interrupt may have come right after a rename."""
        try:
            self.notes += close_gap(self.place, self.at)
        except Fault as fault:
            self.notes.append(fault.finding)
        self.promoted = self.promoted or is_in_place(self.place, self.output_inode)
        if self.promoted and self._interrupted:
            self.notes.append(Finding("stage.promoted", {"file": self.place.file}))
        old = self.existing is not None and holds_old(self.folder, self.output_inode)
        if old and not (self.promoted and self.discard):
            return
        if (self.keep or not self._entered) and not self.promoted:
            self.notes.append(Finding("stage.kept", {"file": self.place.file, "staging": self.file}))
            return
        removed = self._remove()
        if not self.promoted:
            named: dict[str, Param] = {"file": self.place.file}
            self.notes.append(
                Finding("stage.nothing_promoted", named)
                if removed
                else Finding("stage.kept", {**named, "staging": self.file})
            )

    def _remove(self) -> bool:
        try:
            remove_staging(self.place.parent, self.name, self.at)
        except FileNotFoundError:
            pass  # somebody else did
        except OSError as error:
            self.notes.append(Finding("stage.not_removed", {"staging": self.file, "reason": reason(error)}))
            return False
        return True

    def _record(self, file: OutputFile, record: FileRecord) -> None:
        try:
            self._journal.record(record)
        except OSError as error:
            raise file.refusal(error) from error
        self._enrol(file, record)

    def _enrol(self, file: OutputFile, record: FileRecord) -> None:
        with self._turn:
            self._finished[file.name] = record
            self._undurable.append(file)
            oldest = self._undurable.popleft() if len(self._undurable) > _OPEN_FILES else None
        if oldest is not None:
            oldest.sync()

    @contextmanager
    def _folder_of(self, parts: tuple[bytes, ...], *, make: bool = True) -> Iterator[int]:
        """A descriptor of the folder of a file of the output, for the length of the block. Raises `OSError`."""
        with ExitStack() as stack:
            folder = self._output
            for part in parts[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o777, dir_fd=folder)
                folder = os.open(part, _FOLDER, dir_fd=folder)
                stack.callback(os.close, folder)
            yield folder
