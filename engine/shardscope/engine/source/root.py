"""The root: the folder or file that was given, held by descriptor from the first look to the last."""

import errno
import os
import stat

from msgspec import Struct

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.source import Identity, Kind
from shardscope.engine.model.text import path_text
from shardscope.engine.source.beneath import FOLDER, PASSAGE
from shardscope.engine.source.identity import WORDS, identity_of, kind_of
from shardscope.engine.source.missing import missing


class Root(Struct, frozen=True):
    """Where everything is opened beneath."""

    path: bytes
    """As it was given, without slashes at its end."""
    folder: int
    """Descriptor of the folder; of the folder that holds it where the root is a single file."""
    file: bytes | None
    """The file's name where the root is a single file."""
    identity: Identity
    """Of the folder or file when it was opened."""

    def replaced(self) -> str | None:
        """Return in words what became of the path since it was opened, or nothing."""
        try:
            status = os.lstat(self.path)
        except OSError as error:
            return f"it is gone ({os.strerror(error.errno or errno.EIO)})"
        if (status.st_dev, status.st_ino) != (self.identity.device, self.identity.inode):
            return "another one took its place"
        return None


def open_root(path: str | os.PathLike[str], *, links: bool = False) -> Root:
    """Open the folder or file at `path` without waiting for anything and without following a last link.

    The way to the last name is the caller's own and may lead through links. `links` lets a root through that is
    itself a link (the `--hf-cache` rule then judges it); it is held like a file, by its folder and its name.

    Raises `Fault`: `source.missing`, `source.tilde`, `source.unreadable`, `source.root_link`, `source.not_regular`,
    `source.changed`.
    """
    given = os.fsencode(path)
    given = given.rstrip(b"/") or given[:1]  # with a slash at its end, a link would be followed
    holder, name = os.path.split(given)
    file = path_text(name) or "."
    try:
        status = os.lstat(given)
        kind = kind_of(status.st_mode)
        if kind is Kind.LINK and not links:
            raise Fault("source.root_link", file=file)
        if kind not in {Kind.DIRECTORY, Kind.FILE, Kind.LINK}:
            raise Fault("source.not_regular", file=file, what=WORDS[kind])
        if kind is Kind.DIRECTORY:
            folder = os.open(given, FOLDER)
        else:
            folder = os.open(holder or b".", PASSAGE & ~os.O_NOFOLLOW)
    except (OSError, ValueError) as error:
        raise _refusal(error, given, file) from error
    try:
        after = (
            os.fstat(folder)
            if kind is Kind.DIRECTORY
            else os.stat(name, dir_fd=folder, follow_symlinks=False)
        )
        if (after.st_dev, after.st_ino, stat.S_IFMT(after.st_mode)) != (
            status.st_dev,
            status.st_ino,
            stat.S_IFMT(status.st_mode),
        ):
            raise Fault("source.changed", file=file, change="another one took its place")
    except OSError as error:
        os.close(folder)
        raise _refusal(error, given, file) from error
    except Fault:
        os.close(folder)
        raise
    return Root(given, folder, None if kind is Kind.DIRECTORY else name, identity_of(after))


def _refusal(error: OSError | ValueError, given: bytes, file: str) -> Fault:
    if not isinstance(error, OSError):  # a zero byte, which no path can hold
        return missing(given)
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return missing(given)
    return Fault("source.unreadable", file=file, reason=os.strerror(error.errno or errno.EIO))
