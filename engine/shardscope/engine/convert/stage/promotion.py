"""Making a staged output appear: everything durable first, then one rename, then the folder that holds it durable.

A new target takes its name by a rename that replaces nothing. An old one and the new one exchange their names in one step,
and the old one stays in the staging folder. Where the file system cannot exchange and a gap was allowed, the old one is set
aside first; the marker says so before, so that the next run can put it back.
"""

import errno
import os
from contextlib import suppress

from msgspec import Struct

from shardscope.engine.convert.disk.kernel import NO_SUCH_CALL, exchange
from shardscope.engine.convert.disk.leftovers import put
from shardscope.engine.convert.disk.names import OUTPUT, PREVIOUS
from shardscope.engine.convert.disk.place import Inode
from shardscope.engine.convert.disk.refusals import reason
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.staging import FileRecord


class Promoted(Struct, frozen=True):
    """An output that has appeared."""

    files: tuple[FileRecord, ...]
    bytes: int
    how: str
    """`exclusive rename`, `plain rename`, `exchange` or `rename with a gap`."""
    previous: str | None
    """Where the old output is now, relative to the folder that holds the target; null where there was none."""


def promote(staging: Staging) -> Promoted:
    """Make the staged output appear at its target.

    Raises `Fault`: `promote.*`, and the codes about sources and targets that entering has, which are
    checked again. Then the target is as it was. Once everything is durable the staged output is kept, whatever `keep` says.
    """
    try:
        return _promote(staging)
    except OSError as error:
        raise _refused(staging, error) from error


def _promote(staging: Staging) -> Promoted:
    staging.at("promote.audit")
    staging.audit()
    staging.sync()
    staging.keep = True  # it is whole, and a person can put it where it belongs
    staging.place.check_parent()
    existing = _existing(staging)
    how = _appear(staging) if existing is None else _replace(staging, existing)
    staging.promoted = True
    _settle(staging, replaced=existing is not None)
    records = staging.records
    return Promoted(
        records,
        sum(record.size for record in records),
        how,
        None if existing is None else _previous(staging),
    )


def discard_old(staging: Staging) -> None:
    """Let leaving the block remove the old output that a promotion has left in the staging folder."""
    staging.discard = True


def _existing(staging: Staging) -> Inode | None:
    """Return the old target, which has to be the one that was there at the beginning, or to be gone."""
    status = staging.place.look()
    if status is None:
        return None
    if staging.existing is None:
        raise _appeared(staging)
    existing = staging.place.existing(replace=True)
    if existing != staging.existing:
        raise Fault("promote.target_changed", file=staging.place.file, staging=staging.file)
    staging.place.check_sources(existing)
    return existing


def _appear(staging: Staging) -> str:
    staging.at("promote.rename")
    try:
        return put(staging.folder, OUTPUT, staging.place.parent, staging.place.name)
    except OSError as error:
        if error.errno == errno.EEXIST:
            raise _appeared(staging) from error
        raise _refused(staging, error) from error


def _replace(staging: Staging, existing: Inode) -> str:
    staging.mark("replacing")
    staging.at("promote.exchange")
    place = staging.place
    try:
        exchange(staging.folder, OUTPUT, place.parent, place.name)
    except OSError as error:
        if error.errno not in NO_SUCH_CALL:
            raise _refused(staging, error) from error
        if not staging.allow_gap:
            raise Fault("promote.no_exchange", file=place.file, staging=staging.file) from error
        return _with_gap(staging, existing)
    staging.at("promote.exchanged")
    if _is_other(staging, existing):  # something took the target's place in the last moment: give it back
        exchange(staging.folder, OUTPUT, place.parent, place.name)
        raise Fault("promote.target_changed", file=place.file, staging=staging.file)
    staging.promoted = True
    staging.at("promote.set_aside")
    with suppress(OSError):  # it is as safe under the name that it has
        os.rename(OUTPUT, PREVIOUS, src_dir_fd=staging.folder, dst_dir_fd=staging.folder)
    return "exchange"


def _is_other(staging: Staging, existing: Inode) -> bool:
    """Tell whether what came out of the exchange is another folder than the old target."""
    try:
        return _inode(staging, OUTPUT) != existing
    except OSError:
        return False  # the exchange has happened; the disk that cannot say what came out of it will say so elsewhere


def _with_gap(staging: Staging, existing: Inode) -> str:
    place = staging.place
    staging.mark("gap")
    staging.at("promote.gap_open")
    try:
        os.rename(place.name, PREVIOUS, src_dir_fd=place.parent, dst_dir_fd=staging.folder)
    except OSError as error:
        raise _refused(staging, error) from error
    try:
        if _inode(staging, PREVIOUS) != existing:
            raise Fault("promote.target_changed", file=place.file, staging=staging.file)
        staging.at("promote.gap_rename")
        put(staging.folder, OUTPUT, place.parent, place.name)
    except OSError as error:
        _put_back(staging, error)
        raise (_appeared(staging) if error.errno == errno.EEXIST else _refused(staging, error)) from error
    except Fault as fault:
        _put_back(staging, fault)
        raise
    return "rename with a gap"


def _put_back(staging: Staging, cause: BaseException) -> None:
    staging.at("promote.gap_restore")
    try:
        put(staging.folder, PREVIOUS, staging.place.parent, staging.place.name)
    except OSError as error:
        old = f"{staging.file}/{PREVIOUS.decode()}"
        raise Fault("promote.gap_lost", file=staging.place.file, old=old, reason=reason(error)) from cause


def _settle(staging: Staging, *, replaced: bool) -> None:
    """Make the new state durable. What fails here is a note: the output is in its place."""
    try:
        staging.at("promote.settle")
        staging.sync_folder(staging.place.parent, staging.place.file)
        staging.sync_folder(staging.folder, staging.file)
        if replaced:
            staging.mark("replaced")
    except Fault as fault:
        problem = fault.finding.params.get("reason", fault.finding.code)
        staging.notes.append(Finding("promote.not_durable", {"file": staging.place.file, "reason": problem}))


def _previous(staging: Staging) -> str:
    """Return where the old target is: under the name of the output where it could not be renamed."""
    try:
        _inode(staging, PREVIOUS)
    except OSError:
        return f"{staging.file}/{OUTPUT.decode()}"
    return f"{staging.file}/{PREVIOUS.decode()}"


def _inode(staging: Staging, name: bytes) -> Inode:
    status = os.stat(name, dir_fd=staging.folder, follow_symlinks=False)
    return status.st_dev, status.st_ino


def _appeared(staging: Staging) -> Fault:
    return Fault("promote.target_appeared", file=staging.place.file, staging=staging.file)


def _refused(staging: Staging, error: OSError) -> Fault:
    file = staging.place.file
    if error.errno == errno.EXDEV:
        return Fault("promote.cross_device", file=file, staging=staging.file)
    return Fault("promote.refused", file=file, staging=staging.file, reason=reason(error))
