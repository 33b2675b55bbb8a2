"""Before anything starts elsewhere: does every worker see this staging folder and this source, and is it of these versions?

Each worker reads a file that was made here, and makes one that is read here: a folder of the same name on a disk of its own, or a
cache that shows old things, is found out before a byte is copied.
"""

import os
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.convert.disk.refusals import reason
from shardscope.engine.convert.jobs.attempts import entered
from shardscope.engine.convert.jobs.running import opener_of
from shardscope.engine.convert.jobs.tasks import Area, Refused, TaskSource, Versions, versions_here
from shardscope.engine.model.blocker import Fault
from shardscope.engine.source.source import Source

FILES: Final = 4
"""Of the source that each worker opens."""
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_BYTES: Final = 32


class Question(Struct, frozen=True):
    """What every worker is asked."""

    source: TaskSource
    area: Area
    note: str
    """Name of the file that was made here, among the attempts."""


class Met(Struct, frozen=True, tag="met"):
    """What a worker answers that sees all of it."""

    versions: Versions
    note: str
    """Name of the file that it made."""


def meet(data: bytes) -> bytes:
    """Answer a question that has travelled, in the process of a worker."""
    return msgspec.msgpack.encode(_answer(msgspec.msgpack.decode(data, type=Question)))


def _answer(question: Question) -> Met | Refused:
    try:
        with entered(question.area) as (folder, _):
            found = _read(folder, question.note)
            name = f"meeting-{os.urandom(8).hex()}"
            _write(folder, name, found + name.encode())
    except OSError as error:
        return Refused(Fault("cluster.staging_elsewhere", reason=reason(error)).finding)
    except Fault as fault:
        return Refused(fault.finding)
    try:
        path = os.fsdecode(question.source.path)
        with Source(path, hf_cache=question.source.hf_cache) as source:
            open_ = opener_of(source, question.source)
            for entry in question.source.entries:
                with open_(entry.text):
                    pass
    except Fault as fault:
        elsewhere = fault.finding.code in {"source.missing", "source.unreadable", "source.root_link"}
        return Refused(Fault("cluster.source_elsewhere").finding if elsewhere else fault.finding)
    return Met(versions_here(), name)


def question(source: TaskSource, area: Area) -> tuple[Question, bytes]:
    """Make a file for all workers to read; return what to ask them, and that file's bytes. Raises `Fault` as `entered`, `OSError`."""
    note, secret = f"meeting-{os.urandom(8).hex()}", os.urandom(_BYTES)
    with entered(area) as (folder, _):
        _write(folder, note, secret)
    return Question(replace(source, entries=source.entries[:FILES]), area, note), secret


def packed_question(asked: Question) -> bytes:
    """Return a question as it travels."""
    return msgspec.msgpack.encode(asked)


def judge(asked: Question, secret: bytes, answers: Iterable[bytes]) -> None:
    """Read what every worker made, and remove it.

    Raises `Fault`: what a worker refused, `cluster.versions`, `cluster.staging_elsewhere`.
    """
    here = versions_here()
    with entered(asked.area) as (folder, _):
        for data in answers:
            answer = msgspec.msgpack.decode(data, type=Met | Refused)
            if isinstance(answer, Refused):
                raise Fault(answer.finding.code, **answer.finding.params)
            if answer.versions != here:
                raise Fault("cluster.versions", found=answer.versions.says, expected=here.says)
            if "/" in answer.note:
                raise Fault("cluster.staging_elsewhere", reason="what it made there has no plain name")
            try:
                found = _read(folder, answer.note)
                os.unlink(answer.note, dir_fd=folder)
            except OSError as error:
                why = f"what it made there is not seen here ({reason(error)})"
                raise Fault("cluster.staging_elsewhere", reason=why) from error
            if found != secret + answer.note.encode():
                raise Fault("cluster.staging_elsewhere", reason="it read another file there")
        os.unlink(asked.note, dir_fd=folder)


def _read(folder: int, name: str) -> bytes:
    descriptor = os.open(name, _OLD, dir_fd=folder)
    try:
        return os.read(descriptor, 2 * _BYTES + 64)
    finally:
        os.close(descriptor)


def _write(folder: int, name: str, data: bytes) -> None:
    descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
