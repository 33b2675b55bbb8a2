"""The names that staging gives on the disk, and the names that it takes for output files."""

import hashlib
import os
import re
from typing import Final

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.staging import Marker
from shardscope.engine.model.text import exact_text, is_altered, path_text

OUTPUT: Final = b"output"
"""The folder, inside the staging folder, that becomes the target."""
PREVIOUS: Final = b"previous"
"""The folder, inside the staging folder, that was the target."""
MARKER: Final = b"shardscope-staging.json"
MARKER_NEW: Final = b"shardscope-staging.json.new"
JOURNAL: Final = b"journal.jsonl"
ATTEMPTS: Final = b"attempts"
"""The folder, inside the staging folder, in which other processes make files of the output."""
STOP: Final = b"stop"
"""The flag that stops them."""

TRIES: Final = (b"try-1", b"try-2")
"""Two folders, inside the staging folder, that are exchanged to see whether the file system can."""

NAME_BYTES: Final = 255
"""Of one name on every common file system (`NAME_MAX`)."""
_DEPTH: Final = 8
"""Folders between the output and a file in it."""
_STEM_BYTES: Final = 180
"""Of the target's name in the names beside it; a longer one is cut and told apart by a digest."""
_LOCK: Final = re.compile(rb"\.(.+)\.shardscope-lock", re.DOTALL)
_STAGING: Final = re.compile(rb"\.(.+)\.shardscope-staging-[0-9a-f]{8}", re.DOTALL)


def staging_name(target: bytes) -> bytes:
    """Return a new name for the staging folder of `target`."""
    return b".%s.shardscope-staging-%s" % (_stem(target), os.urandom(4).hex().encode())


def lock_name(target: bytes) -> bytes:
    """Return the name of the lock of `target`."""
    return b".%s.shardscope-lock" % _stem(target)


def is_staging_name(name: bytes, target: bytes | None = None) -> bool:
    """Tell whether a folder is named like a staging folder (of `target`)."""
    match = _STAGING.fullmatch(name)
    return match is not None and (target is None or match[1] == _stem(target))


def staging_stem(name: bytes) -> bytes | None:
    """Return what stands for the target in the name of a staging folder; null for another name."""
    match = _STAGING.fullmatch(name)
    return None if match is None else match[1]


def lock_stem(name: bytes) -> bytes | None:
    """Return what stands for the target in the name of a lock; null for another name."""
    match = _LOCK.fullmatch(name)
    return None if match is None else match[1]


def marked_target(marker: Marker) -> bytes | None:
    """Return the name of the target that a marker is about; null where it says none that could be."""
    try:
        name = os.fsencode(marker.target) if marker.target_hex is None else bytes.fromhex(marker.target_hex)
    except ValueError:
        return None
    return name if marks(marker, name) and b"/" not in name else None


def marks(marker: Marker, target: bytes) -> bool:
    """Tell whether a marker is about `target`."""
    return (marker.target, marker.target_hex) == exact_text(target)


def _stem(target: bytes) -> bytes:
    if len(target) <= _STEM_BYTES:
        return target
    return target[: _STEM_BYTES - 17] + b"-" + hashlib.sha256(target).hexdigest()[:16].encode()


def checked_parts(name: str) -> tuple[bytes, ...]:
    """Return the parts of a relative file name of the output.

    Raises `Fault` `stage.file_name` for anything but plain names: empty, `.`, `..`, too long or too deep, and characters
    that a person could not see.
    """
    parts = tuple(os.fsencode(part) for part in name.split("/"))
    if (
        len(parts) > _DEPTH
        or is_altered(name)
        or any(part in {b"", b".", b".."} or len(part) > NAME_BYTES for part in parts)
    ):
        raise Fault("stage.file_name", file=path_text(os.fsencode(name)))
    return parts
