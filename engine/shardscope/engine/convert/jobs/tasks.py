"""One output file as a task: data that any process can carry out, on this machine or on another one of a shared file system.

A task travels as bytes (MessagePack), and so does its outcome. Whatever moves it from process to process, pickle included, moves
bytes and the name of one function: no object of ours is ever taken apart by anything else, and a fault keeps its code.
"""

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import Struct

from shardscope.engine.convert.copies.casting import NUMPY
from shardscope.engine.convert.copies.copying import Copied
from shardscope.engine.convert.copies.entries import entries_by_name, entry_of
from shardscope.engine.convert.copies.rows import first_rows
from shardscope.engine.convert.copies.work import Written, records
from shardscope.engine.convert.plans.header import Header, build, canonical
from shardscope.engine.convert.plans.ranks import Ranks, metadata
from shardscope.engine.geometry.language.layout import normal_form
from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record, Shape
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.plan import Plan, PlannedFile, PlannedTensor
from shardscope.engine.model.source import Entry
from shardscope.engine.version import __version__

NOTHING_KEPT: Final[Mapping[str, Header]] = MappingProxyType({})
KEY: Final = 16
"""Characters of a task's id that name its attempts."""


class Versions(Struct, frozen=True):
    """What decides, beside a task itself, which bytes it makes."""

    shardscope: str
    python: str
    numpy: str

    @property
    def says(self) -> str:
        """They in words."""
        return f"shardscope {self.shardscope}, Python {self.python}, numpy {self.numpy}"


class Area(Struct, frozen=True):
    """A staging folder, as another process finds it."""

    path: bytes
    """Absolute."""
    inode: int


class TaskSource(Struct, frozen=True):
    """A source, as another process finds it."""

    path: bytes
    """Absolute."""
    hf_cache: bool
    device: int
    """Of the root, where the inventory was made: a shared file system has another number on every machine."""
    inode: int
    """Of the root."""
    entries: tuple[Entry, ...]
    """The files that the task reads, as the inventory has them: each is held against what is there when it is opened."""


class TaskTensor(Struct, frozen=True):
    """One tensor of the file: `Written`, its map in normal form."""

    name: str
    stored_dtype: str
    shape: Shape
    map: Lowered
    fragments: tuple[Fragment, ...]
    dtype: str
    """In the output."""
    offset: int
    layout: Lowered | None


class FileTask(Struct, frozen=True):
    """One file of the output. Carried out twice it gives the same bytes twice."""

    id: str
    """SHA-256 of all that determines the bytes of the file."""
    name: str
    """In the output."""
    size: int
    header: bytes
    tensors: tuple[TaskTensor, ...]
    checks: tuple[Record, ...]
    """Records whose checksums this task compares."""
    digest: bool
    budget_bytes: int
    workers: int
    """Threads."""
    source: TaskSource
    area: Area | None = None
    """Null for a task of the process that holds the staging folder open."""
    versions: Versions | None = None
    """Null likewise; otherwise a process of others refuses."""

    def written(self) -> list[Written]:
        """Return the tensors as copying wants them."""
        return [
            Written(
                LogicalTensor(item.name, item.stored_dtype, item.shape, item.map, None, item.fragments),
                item.dtype,
                item.offset,
                item.layout,
            )
            for item in self.tensors
        ]


class Done(Struct, frozen=True, tag="done"):
    """An attempt that made its file."""

    task: str
    attempt: str
    """Name of the file among the attempts."""
    inode: int
    copied: Copied
    peak_rss_bytes: int | None
    """Of the process that did it, so far."""
    seconds: float


class Refused(Struct, frozen=True, tag="refused"):
    """An attempt that met a fault. It would meet it again."""

    finding: Finding


class Stopped(Struct, frozen=True, tag="stopped"):
    """An attempt that saw the flag."""


Outcome = Done | Refused | Stopped


def versions_here() -> Versions:
    """Return the versions of this process."""
    return Versions(__version__, ".".join(map(str, sys.version_info[:3])), NUMPY)


def file_tasks(
    plan: Plan,
    tensors: Mapping[str, LogicalTensor],
    source: TaskSource,
    kept: Mapping[str, Header] = NOTHING_KEPT,
) -> list[FileTask]:
    """Return the tasks of a plan, one for each file, in its order. `tensors` are those of the source by name, `kept` the headers of
    those files that have the source's own, by the names of the output.

    Each record whose checksum is to be compared is so by one task. Raises `Fault`: those of `header.build` and of `file_task`.
    """
    checked: set[Record] = set()
    entries = entries_by_name(source.entries)
    ranks = None if plan.target is None else Ranks(plan.target)
    tasks = []
    for file in plan.files:
        built = kept[file.name] if file.kept is not None else _header(file, ranks)
        items = []
        for item, offset in zip(file.tensors, built.offsets, strict=True):
            tensor = tensors[item.source]
            items.append(Written(tensor, item.dtype, offset, layout_of(item, file, tensor.shape, ranks)))
        checks: list[Record] = []
        if plan.options.check_crc:
            checks = [record for record in records(items) if record.crc is not None and record not in checked]
            checked.update(checks)
        tasks.append(
            file_task(
                file.name,
                built.size,
                built.data,
                items,
                source=source,
                entries=entries,
                checks=checks,
                digest=plan.options.digest == "sha256",
                budget_bytes=plan.options.memory_bytes,
                workers=plan.options.workers,
            )
        )
    return tasks


def _header(file: PlannedFile, ranks: Ranks | None) -> Header:
    if file.metadata is not None:
        return canonical(file.tensors, file.metadata)
    return build(file.tensors, None if ranks is None else metadata(file, ranks))


def layout_of(item: PlannedTensor, file: PlannedFile, whole: Shape, ranks: Ranks | None) -> Lowered | None:
    """Return the layout in which a tensor of the shape `whole` is written; null where it is written as it is. Raises `Fault`."""
    if ranks is None or file.rank is None:
        return first_rows(whole, item.shape)
    return ranks.layout(item.name, file.rank, whole)


def file_task(
    name: str,
    size: int,
    header: bytes,
    items: Sequence[Written],
    *,
    source: TaskSource,
    entries: Mapping[str, Entry | None] | None = None,
    checks: Iterable[Record] = (),
    digest: bool,
    budget_bytes: int,
    workers: int,
) -> FileTask:
    """Return the task that writes `items` behind `header`. `source` may have more entries than the items need; `entries` are
    those by name, for a caller that makes many tasks.

    Raises `Fault`: `convert.file_unclear` for a record in no file of the source, or in one of two that are shown alike, and those
    of `normal_form`.
    """
    checks = tuple(checks)
    tensors = tuple(
        TaskTensor(
            item.tensor.name,
            item.tensor.dtype,
            item.tensor.shape,
            normal_form(item.tensor),
            item.tensor.fragments,
            item.dtype,
            item.offset,
            item.layout,
        )
        for item in items
    )
    read = dict.fromkeys(fragment.record.file for item in tensors for fragment in item.fragments)
    by_name = entries_by_name(source.entries) if entries is None else entries
    read |= dict.fromkeys(record.file for record in checks)
    source = msgspec.structs.replace(source, entries=tuple(entry_of(by_name, file) for file in read))
    key = _key(name, size, header, tensors, source.entries)
    return FileTask(key, name, size, header, tensors, checks, digest, budget_bytes, workers, source)


def _key(name: str, size: int, header: bytes, tensors: Sequence[TaskTensor], entries: Sequence[Entry]) -> str:
    digest = hashlib.sha256(__version__.encode() + b"\0")
    for entry in entries:
        same = entry.identity
        facts = (entry.path, same.size, same.inode, same.mtime_ns, same.ctime_ns)
        digest.update(msgspec.msgpack.encode(facts))
    digest.update(msgspec.msgpack.encode((name, size, header)))
    for item in tensors:
        digest.update(msgspec.msgpack.encode(item))
    return digest.hexdigest()


def packed(task: FileTask) -> bytes:
    """Return a task as it travels."""
    return msgspec.msgpack.encode(task)


def unpacked(data: bytes) -> FileTask:
    """Return a task that has travelled. Raises `msgspec.MsgspecError`."""
    return msgspec.msgpack.decode(data, type=FileTask)


def packed_outcome(outcome: Outcome) -> bytes:
    """Return an outcome as it travels."""
    return msgspec.msgpack.encode(outcome)


def unpacked_outcome(data: bytes) -> Outcome:
    """Return an outcome that has travelled. Raises `msgspec.MsgspecError`."""
    return msgspec.msgpack.decode(data, type=Outcome)
