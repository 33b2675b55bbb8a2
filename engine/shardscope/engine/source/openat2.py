"""The system call openat2, which resolves a path beneath a folder and refuses links on the way (Linux 5.6).

Python does not wrap it. The structure and the flags are those of `linux/openat2.h`.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import ClassVar

_SYS_OPENAT2 = 437
"""The number on every architecture but Alpha."""
_AT_FDCWD = -100
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08

OpenAt2 = Callable[[int, bytes, int], int]
"""`(folder, path, flags) -> descriptor`; raises `OSError`, with `ELOOP` for a link and `EXDEV` for an escape."""


class _OpenHow(ctypes.Structure):
    _fields_: ClassVar = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


@cache
def openat2() -> OpenAt2 | None:
    """Return the call where this kernel has it and lets us use it (container profiles may forbid it)."""
    if os.uname().sysname != "Linux" or os.uname().machine == "alpha":
        return None
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    syscall.argtypes = [
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.POINTER(_OpenHow),
        ctypes.c_size_t,
    ]

    def call(folder: int, path: bytes, flags: int) -> int:
        how = _OpenHow(flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
        while True:
            descriptor = int(syscall(_SYS_OPENAT2, folder, path, ctypes.byref(how), ctypes.sizeof(how)))
            if descriptor >= 0:
                return descriptor
            number = ctypes.get_errno()
            if number != errno.EINTR:
                raise OSError(number, os.strerror(number))

    try:
        os.close(call(_AT_FDCWD, b".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError:
        return None
    return call
