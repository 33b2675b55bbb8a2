"""What lies in the staged output, held against what was finished: by name, size and kind, before it is promoted."""

import os
import stat
from collections.abc import Iterator, Mapping

from msgspec import Struct

from shardscope.engine.convert.disk.refusals import reason
from shardscope.engine.model.blocker import Fault

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class StagedFile(Struct, frozen=True):
    """A file of the output as it lies in the staging folder."""

    file: str
    """Relative to the output."""
    size: int


def compare(folder: int, finished: Mapping[str, int]) -> None:
    """Make sure that the files beneath `folder` are those of `finished`, with its sizes, and nothing else.

    Raises `Fault` `promote.unexpected`.
    """
    try:
        found = {each.file: each.size for each in listed(folder)}
    except OSError as error:
        raise Fault("promote.unexpected", file=".", problem=reason(error)) from error
    for name in sorted(found.keys() | finished.keys()):
        if found.get(name) != finished.get(name):
            problem = _problem(found.get(name), finished.get(name))
            raise Fault("promote.unexpected", file=name, problem=problem)


def listed(folder: int, prefix: str = "") -> Iterator[StagedFile]:
    """Yield every file beneath the descriptor `folder` as it lies on the disk now.

    Raises `Fault` `promote.unexpected` for anything but regular files of one name in plain folders.
    """
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        file = prefix + name
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            descriptor = os.open(name, _FOLDER, dir_fd=folder)
            try:
                yield from listed(descriptor, file + "/")
            finally:
                os.close(descriptor)
        elif stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            yield StagedFile(file, status.st_size)
        else:
            raise Fault("promote.unexpected", file=file, problem="it is no regular file of one name")


def _problem(found: int | None, wanted: int | None) -> str:
    if found is None:
        return "it is gone"
    if wanted is None:
        return "nobody of this conversion made it"
    return f"it has {found:,} bytes and was finished with {wanted:,}"
