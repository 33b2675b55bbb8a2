"""The bindings of libseccomp, loaded without the search for the library that would start other programs.

pyseccomp asks `ctypes.util`, which runs ldconfig, a compiler and a linker. This worker runs nothing: the name of the library
has been libseccomp.so.2 since 2012. Only the disposable worker imports this module.
"""

import ctypes
import sys
from types import ModuleType
from typing import Final

from shardscope.engine.isolation.escalation import Lacking
from shardscope.engine.model.escalation import Facility

_NAMES: Final = {"seccomp": "libseccomp.so.2"}
"""The C library itself is there already: no name means this process."""


class _Names(ModuleType):
    """In place of `ctypes.util`: names, and no search."""

    find_library = staticmethod(_NAMES.get)


sys.modules["ctypes.util"] = ctypes.util = _Names("ctypes.util")  # type: ignore[attr-defined]  # that is the point
try:
    import pyseccomp
except (OSError, RuntimeError):
    raise Lacking(Facility.LIBRARY) from None

__all__ = ["pyseccomp"]
