"""A bundle on disk: a zip with the same bytes for the same files, or a folder. Written whole or not at all, never over anything."""

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from struct import Struct as Layout
from typing import Final

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.text import path_text
from shardscope.engine.parse.zip import DEFLATED

_LOCAL: Final = Layout("<4s5H3I2H")
_RECORD: Final = Layout("<4s6H3I5H2I")
_END: Final = Layout("<4s4H2IH")
_VERSION: Final = 20
_UNIX: Final = 3 << 8 | _VERSION
_PLAIN_FILE: Final = 0o100644 << 16
_EPOCH: Final = 1 << 5 | 1
"""The first of January 1980, the first day that a zip can name: the clock has no place in a report."""


def packed(members: Mapping[str, bytes]) -> bytes:
    """Return a zip of `members`, in their order, without times, owners or anything else of this machine.

    Format: PKWARE APPNOTE 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16. Written here because the standard library's module takes
    longer to import than the rest of the work.
    """
    body, directory = bytearray(), bytearray()
    for name, data in members.items():
        deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        stored = deflate.compress(data) + deflate.flush()
        raw = name.encode("ascii")
        common = (_VERSION, 0, DEFLATED, 0, _EPOCH, zlib.crc32(data), len(stored), len(data), len(raw), 0)
        directory += _RECORD.pack(b"PK\x01\x02", _UNIX, *common, 0, 0, 0, _PLAIN_FILE, len(body)) + raw
        body += _LOCAL.pack(b"PK\x03\x04", *common) + raw + stored
    count = len(members)
    end = _END.pack(b"PK\x05\x06", 0, 0, count, count, len(directory), len(body), 0)
    return bytes(body + directory + end)


def is_zip(target: str) -> bool:
    """Tell whether a bundle of this name is a zip; otherwise it is a folder."""
    return target.lower().endswith(".zip")


def refuse(target: str, source: str) -> None:
    """Refuse a target that exists or lies inside the checkpoint, before any work is done for it.

    Raises `Fault`: `output.exists`, `report.inside`.
    """
    shown = path_text(os.fsencode(target))
    if os.path.lexists(target):
        raise Fault("output.exists", file=shown)
    root = os.path.realpath(source)
    whole = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(target))), os.path.basename(target))
    if os.path.isdir(root) and os.path.commonpath((root, whole)) == root:
        raise Fault("report.inside", target=shown)


def write(target: str, members: Mapping[str, bytes]) -> None:
    """Write a bundle to `target`, readable by its owner alone until that person decides otherwise.

    Raises `Fault`: `output.exists`, `report.write_failed`.
    """
    if is_zip(target):
        write_page(target, packed(members))
    else:
        with _said(target):
            _write_folder(target, members)


def write_page(target: str, data: bytes) -> None:
    """Write one file, whole or not at all. Raises what `write` raises."""
    with _said(target):
        _write_whole(target, data)


@contextmanager
def _said(target: str) -> Iterator[None]:
    """Turn what the system says about `target` into a fault."""
    shown = path_text(os.fsencode(target))
    try:
        yield
    except FileExistsError:
        raise Fault("output.exists", file=shown) from None
    except OSError as error:
        reason = (error.strerror or "the system refuses").lower()
        raise Fault("report.write_failed", target=shown, reason=reason) from None


def _write_whole(target: str, data: bytes) -> None:
    folder = os.path.dirname(os.path.abspath(target))
    stage = os.path.join(folder, f".{os.path.basename(target)}.{os.urandom(8).hex()}")
    try:
        _write_file(stage, data)
        os.link(stage, target)  # unlike a rename it never replaces what came meanwhile
    finally:
        if os.path.lexists(stage):
            os.unlink(stage)


def _write_folder(target: str, members: Mapping[str, bytes]) -> None:
    os.mkdir(target, 0o700)
    written = []
    try:
        for name, data in members.items():
            written.append(os.path.join(target, name))
            _write_file(written[-1], data)
    except BaseException:
        for path in written:
            if os.path.lexists(path):
                os.unlink(path)
        os.rmdir(target)
        raise


def _write_file(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
