"""Three system calls that Python does not wrap: renameat2, fallocate and quotactl_fd.

Flags and structures are those of `linux/fs.h`, `linux/falloc.h` and `linux/quota.h`. Every call raises `OSError`; `ENOSYS`
where this machine has none of that name.
"""

import ctypes
import errno
import os
from functools import cache
from typing import ClassVar, Final

NO_SUCH_CALL: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
"""What renameat2 says where the file system (NFS, FAT, many of FUSE) or the kernel does not know a flag."""

_NOREPLACE = 1
_EXCHANGE = 2
_SYS_RENAMEAT2 = {
    "x86_64": 316,
    "aarch64": 276,
    "riscv64": 276,
    "loongarch64": 276,
    "ppc64le": 357,
    "s390x": 347,
}
_SYS_QUOTACTL_FD = 443
"""The number on every architecture but Alpha (Linux 5.14)."""
_GET_QUOTA = 0x800007 << 8
_USER, _GROUP = 0, 1
_HAS_SPACE_LIMIT, _HAS_SPACE, _HAS_INODE_LIMIT, _HAS_INODES = 1, 2, 4, 8
_QUOTA_BLOCK = 1024


class _Quota(ctypes.Structure):
    _fields_: ClassVar = [
        ("block_hard", ctypes.c_uint64),
        ("block_soft", ctypes.c_uint64),
        ("space", ctypes.c_uint64),
        ("inode_hard", ctypes.c_uint64),
        ("inode_soft", ctypes.c_uint64),
        ("inodes", ctypes.c_uint64),
        ("block_time", ctypes.c_uint64),
        ("inode_time", ctypes.c_uint64),
        ("valid", ctypes.c_uint32),
    ]


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _raise_errno() -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def _rename(folder: int, old: bytes, other: int, new: bytes, flags: int) -> None:
    number = _SYS_RENAMEAT2.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    call = _library().syscall
    call.restype = ctypes.c_long
    arguments = (
        ctypes.c_int(folder),
        ctypes.c_char_p(old),
        ctypes.c_int(other),
        ctypes.c_char_p(new),
        ctypes.c_uint(flags),
    )
    if call(ctypes.c_long(number), *arguments) != 0:
        _raise_errno()


def rename_new(folder: int, old: bytes, other: int, new: bytes) -> None:
    """Rename `old` beneath the descriptor `folder` to `new` beneath `other`, unless there is something: `EEXIST`."""
    _rename(folder, old, other, new, _NOREPLACE)


def exchange(folder: int, old: bytes, other: int, new: bytes) -> None:
    """Give each of two existing entries the name of the other, in one step."""
    _rename(folder, old, other, new, _EXCHANGE)


def allocate(descriptor: int, size: int) -> None:
    """Reserve `size` bytes of blocks for a file and make it that long.

    Unlike `posix_fallocate`, which writes into every block of a file system that cannot reserve, it says `EOPNOTSUPP` there.
    """
    call = getattr(_library(), "fallocate64", None) or getattr(_library(), "fallocate", None)
    if call is None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    while call(ctypes.c_int(descriptor), ctypes.c_int(0), ctypes.c_int64(0), ctypes.c_int64(size)) != 0:
        if ctypes.get_errno() != errno.EINTR:
            _raise_errno()


def quota_left(descriptor: int, *, group: bool) -> tuple[int | None, int | None]:
    """Return the bytes and inodes that a quota leaves to this user (or group) on the file system of an open folder.

    Null for what it does not limit. A soft limit counts like a hard one, since its grace may be over.
    """
    kind, who = (_GROUP, os.getegid()) if group else (_USER, os.geteuid())
    found = _Quota()
    call = _library().syscall
    call.restype = ctypes.c_long
    command = ctypes.c_uint(_GET_QUOTA | kind)
    if call(
        ctypes.c_long(_SYS_QUOTACTL_FD),
        ctypes.c_int(descriptor),
        command,
        ctypes.c_uint(who),
        ctypes.byref(found),
    ):
        _raise_errno()
    return (
        _left(found.block_hard * _QUOTA_BLOCK, found.block_soft * _QUOTA_BLOCK, found.space)
        if found.valid & _HAS_SPACE_LIMIT and found.valid & _HAS_SPACE
        else None,
        _left(found.inode_hard, found.inode_soft, found.inodes)
        if found.valid & _HAS_INODE_LIMIT and found.valid & _HAS_INODES
        else None,
    )


def _left(hard: int, soft: int, used: int) -> int | None:
    limits = [limit for limit in (hard, soft) if limit]
    return max(0, min(limits) - used) if limits else None
