"""Which part of a path is not there: what a person who misspelled it, or whose disk is not mounted, has to know."""

import os
import re
from collections.abc import Iterator
from typing import Final

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.text import path_text

_NAME: Final = re.compile(rb"/*[^/]+")
_HOME: Final = re.compile(rb"~[A-Za-z0-9_.-]*")


def missing(given: bytes) -> Fault:
    """Return the fault about a path that leads to nothing: `source.missing` or, where a shell left a `~` standing, `source.tilde`.

    It names the first part that is not there, alone: documents do not tell where on a machine a checkpoint stands.
    """
    part = next((each for each in _parts(given) if not _leads(each)), given)
    code = "source.tilde" if _HOME.fullmatch(part) else "source.missing"
    return Fault(code, file=path_text(os.path.basename(part)) or ".")


def _parts(given: bytes) -> Iterator[bytes]:
    return (given[: found.end()] for found in _NAME.finditer(given))


def _leads(path: bytes) -> bool:
    try:
        os.stat(path)
    except (OSError, ValueError):  # a zero byte, which no path can hold
        return False
    return True
