"""The marker of a staging folder: written first, removed last, replaced in one step."""

import os
from typing import Final

import msgspec

from shardscope.engine.convert.disk.names import MARKER, MARKER_NEW
from shardscope.engine.convert.disk.steps import At
from shardscope.engine.model.staging import Marker

_MARKER_BYTES: Final = 16 << 10


def write_marker(folder: int, marker: Marker, at: At) -> None:
    """Put `marker` into the staging folder, durably and in one step. Raises `OSError`."""
    at("marker.write")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(MARKER_NEW, flags, 0o666, dir_fd=folder)
    try:
        os.write(descriptor, msgspec.json.encode(marker) + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    at("marker.rename")
    os.rename(MARKER_NEW, MARKER, src_dir_fd=folder, dst_dir_fd=folder)
    at("marker.sync")
    os.fsync(folder)


def read_marker(folder: int) -> Marker | None:
    """Return the marker of the folder at a descriptor; null where it holds none that is ours."""
    try:
        descriptor = os.open(
            MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder
        )
    except OSError:
        return None
    try:
        text = os.read(descriptor, _MARKER_BYTES + 1)
        return msgspec.json.decode(text, type=Marker)
    except (OSError, msgspec.MsgspecError):
        return None
    finally:
        os.close(descriptor)
