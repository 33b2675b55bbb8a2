"""The bindings of libseccomp, loaded without the search for the library that would start other programs.

pyseccomp asks `ctypes.util.find_library`, which runs ldconfig, a compiler and a linker. This worker runs nothing: the
name of the library has been libseccomp.so.2 since 2012. Only the disposable worker imports this module.
"""

import ctypes.util
from typing import Final

from shardscope.engine.isolation.escalation import Lacking
from shardscope.engine.model.escalation import Facility

_NAMES: Final = {"seccomp": "libseccomp.so.2"}
"""The C library itself is there already: no name means this process."""

_search = ctypes.util.find_library
ctypes.util.find_library = _NAMES.get  # type: ignore[assignment]  # asked with one name
try:
    import pyseccomp
except (OSError, RuntimeError):
    raise Lacking(Facility.LIBRARY) from None
finally:
    ctypes.util.find_library = _search

__all__ = ["pyseccomp"]
