"""Carrying out a task: the same work in a thread of this process and in a process of any machine."""

import os
import threading
import time
from collections.abc import Sequence

from msgspec.structs import replace

from shardscope.engine.convert.copies.contents import Opener
from shardscope.engine.convert.copies.copying import Copied, copy_file
from shardscope.engine.convert.copies.entries import entries_by_name, entry_of
from shardscope.engine.convert.disk.output import OutputFile
from shardscope.engine.convert.disk.refusals import refused
from shardscope.engine.convert.jobs.attempts import Attempt, entered
from shardscope.engine.convert.jobs.tasks import (
    Done,
    FileTask,
    Outcome,
    Refused,
    Stopped,
    TaskSource,
    packed_outcome,
    unpacked,
    versions_here,
)
from shardscope.engine.host import peak_rss
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.progress import Cancelled, OnProgress, check
from shardscope.engine.model.source import Entry
from shardscope.engine.source.read import OpenFile
from shardscope.engine.source.source import Source


def run_task(data: bytes) -> bytes:
    """Carry out a task that has travelled, and return its outcome as it travels.

    It opens the source by itself, writes an attempt of its own and leaves it in the staging folder for whoever holds that. It
    raises nothing that was foreseen: faults and the flag are outcomes.
    """
    task = unpacked(data)
    return packed_outcome(_outcome(task))


def _outcome(task: FileTask) -> Outcome:
    try:
        return _attempt(task)
    except Cancelled:
        return Stopped()
    except Fault as fault:
        return Refused(fault.finding)
    except OSError as error:
        return Refused(refused(error, task.name, needed=task.size).finding)


def _attempt(task: FileTask) -> Done:
    began = time.monotonic()
    if task.area is None or task.versions is None:
        raise AssertionError("a task that travels says where to and for which versions")
    here = versions_here()
    if here != task.versions:
        raise Fault("cluster.versions", found=here.says, expected=task.versions.says)
    with (
        entered(task.area) as (folder, flag),
        Source(os.fsdecode(task.source.path), hf_cache=task.source.hf_cache) as source,
    ):
        check(flag)
        attempt = Attempt(task, folder)
        with attempt as output:
            copied = copy_task(task, output, opener=opener_of(source, task.source), cancel=flag)
            output.finish(copied.sha256)
            inode = attempt.inode
    seconds = round(time.monotonic() - began, 3)
    return Done(task.id, attempt.name, inode, copied, peak_rss(), seconds)


def copy_task(
    task: FileTask,
    output: OutputFile,
    *,
    opener: Opener,
    cancel: threading.Event | None,
    progress: OnProgress | None = None,
) -> Copied:
    """Write the file of a task. Raises `Fault`, `Cancelled`: those of `copy_file`."""
    return copy_file(
        task.written(),
        output,
        task.header,
        opener=opener,
        budget_bytes=task.budget_bytes,
        workers=task.workers,
        digest=task.digest,
        checks=task.checks,
        cancel=cancel,
        progress=progress,
    )


def opener_of(source: Source, expected: TaskSource) -> Opener:
    """Return what opens the files of a task, each held against what the inventory says of it.

    Raises `Fault` `cluster.source_elsewhere` where the root is another folder.
    """
    root = source.root.identity
    if root.inode != expected.inode:
        raise Fault("cluster.source_elsewhere")
    entries = entries_by_name(_as_here(expected.entries, expected.device, root.device))

    def open_(name: str) -> OpenFile:
        return source.open(entry_of(entries, name))

    return open_


def _as_here(entries: Sequence[Entry], there: int, here: int) -> Sequence[Entry]:
    """Return entries with the number that this machine gives to the source's file system."""
    if there == here:
        return entries
    return [
        replace(entry, identity=replace(entry.identity, device=here))
        if entry.identity.device == there
        else entry
        for entry in entries
    ]
