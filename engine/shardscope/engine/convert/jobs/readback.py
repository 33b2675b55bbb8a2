"""Files that others made, hashed here: what a worker says of its own file is one side of a comparison."""

import hashlib
import threading
from collections.abc import Callable, Iterable
from typing import Final

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.progress import check
from shardscope.engine.model.staging import FileRecord
from shardscope.engine.source.read import OpenFile

TILE: Final = 1 << 20


def check_digests(
    records: Iterable[FileRecord], staged: Callable[[str], OpenFile], cancel: threading.Event | None = None
) -> int:
    """Compare the recorded digests of staged files with what is read back; return how many were compared.

    Raises `Fault` `verify.digest`, `Cancelled`.
    """
    count = 0
    for record in records:
        if record.sha256 is None:
            continue
        digest = hashlib.sha256()
        with staged(record.file) as file:
            for at in range(0, record.size, TILE):
                check(cancel)
                digest.update(file.pread(at, min(TILE, record.size - at)))
        if digest.hexdigest() != record.sha256:
            raise Fault("verify.digest", file=record.file)
        count += 1
    return count
