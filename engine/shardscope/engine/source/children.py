"""The entries directly in one folder, by descriptor: what a watch looks at again and again. No file is opened, no link followed."""

import os
import sys
import threading

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import check
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import path_text
from shardscope.engine.source.identity import entry_of
from shardscope.engine.source.root import open_root

_ENCODING = sys.getfilesystemencoding()


def children(
    path: str | os.PathLike[str], limits: Limits, cancel: threading.Event | None = None
) -> tuple[Entry, ...]:
    """Return the entries directly in the folder at `path`, by name. What vanishes meanwhile is left out.

    Raises `Fault`: `source.missing`, `source.unreadable`, `source.root_link`, `watch.not_folder`, `limit.files`; `Cancelled`.
    """
    root = open_root(path)
    try:
        name = path_text(os.path.basename(root.path)) or "."
        if root.file is not None:
            raise Fault("watch.not_folder", file=name)
        found = []
        with os.scandir(root.folder) as listing:
            for count, item in enumerate(listing):
                if count >= limits.files:
                    raise Fault("limit.files", file=name, limit=limits.files, found=count + 1)
                if not count & 15:
                    check(cancel)
                try:
                    status = item.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                found.append(entry_of(item.name.encode(_ENCODING, "surrogateescape"), status))
    except OSError as error:
        raise Fault("source.unreadable", file=name, reason=os.strerror(error.errno or 0)) from error
    finally:
        os.close(root.folder)
    return tuple(sorted(found, key=lambda entry: entry.path))
