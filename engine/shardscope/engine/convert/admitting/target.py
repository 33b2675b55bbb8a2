"""A target as a person types it: whether an output could appear there, looked at without making anything."""

import errno
import os
import stat
from typing import Literal

from msgspec import Struct

from shardscope.engine.convert.admitting.space import Figure, space_of
from shardscope.engine.convert.disk.leftovers import find_staging
from shardscope.engine.convert.disk.place import Place
from shardscope.engine.convert.disk.refusals import reason
from shardscope.engine.model.blocker import Blocker, Fault, Finding, blocker

Stands = Literal["nothing", "folder", "something else"]


class TargetLook(Struct, frozen=True):
    """What a look at a target showed. It is looked at again before anything is made."""

    refused: Blocker | None
    """Why no output can appear there; null where one can."""
    stands: Stands | None = None
    """What stands there; null where that could not be looked at."""
    free_bytes: Figure | None = None
    """Of the file system on which the output is staged and appears."""
    beside_source: bool | None = None
    """Whether that file system is the source's."""
    leftovers: int = 0
    """Staging folders of earlier runs to this target."""


def look_at_target(
    target: str | os.PathLike[str], source: str | os.PathLike[str], *, replace: bool = False
) -> TargetLook:
    """Return whether an output of `source` could appear at `target`. Nothing is made, and nothing is raised."""
    try:
        place = Place(target, [source])
    except Fault as fault:
        return TargetLook(blocker(fault.finding))
    except OSError as error:
        return TargetLook(_closed(os.path.basename(os.fspath(target)), error))
    try:
        return _look(place, source, replace=replace)
    except OSError as error:
        return TargetLook(_closed(place.file, error))
    finally:
        place.close()


def _look(place: Place, source: str | os.PathLike[str], *, replace: bool) -> TargetLook:
    refused: Blocker | None = None
    stands: Stands | None = None
    try:
        status = place.look()
        stands = _what(status)
        place.check_sources(None if status is None else (status.st_dev, status.st_ino))
        place.existing(replace=replace)
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=place.parent, effective_ids=True):
            raise Fault("stage.parent_closed", file=place.file, reason=os.strerror(errno.EACCES).lower())
    except Fault as fault:
        refused = blocker(fault.finding)
    return TargetLook(
        refused,
        stands,
        space_of(place.parent).free_bytes,
        os.fstat(place.parent).st_dev == os.stat(source).st_dev,
        len(find_staging(place.parent, place.name)),
    )


def _what(status: os.stat_result | None) -> Stands:
    if status is None:
        return "nothing"
    return "folder" if stat.S_ISDIR(status.st_mode) else "something else"


def _closed(file: str, error: OSError) -> Blocker:
    return blocker(Finding("stage.parent_closed", {"file": file, "reason": reason(error)}))
