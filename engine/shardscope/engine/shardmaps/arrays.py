"""Shards on disk: `.npy` and safetensors files, read by position; new ones that appear whole or not at all."""

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, Self

import msgspec
from msgspec import Struct

from shardscope.engine.model.blocker import Fault, Severity
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Reader
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import path_text
from shardscope.engine.parse.npy import npy_header, read_npy
from shardscope.engine.parse.safetensors import read_header
from shardscope.engine.source.source import Source

Path = str | os.PathLike[str]

NPY: Final = ".npy"
SAFETENSORS: Final = ".safetensors"

DESCRS: Final = {
    "|b1": "BOOL",
    "|u1": "U8",
    "|i1": "I8",
    "<u2": "U16",
    "<i2": "I16",
    "<f2": "F16",
    "<u4": "U32",
    "<i4": "I32",
    "<f4": "F32",
    "<u8": "U64",
    "<i8": "I64",
    "<f8": "F64",
    "<c8": "C64",
}
"""numpy's dtypes with the names that safetensors has for them."""

_OPAQUE: Final = {1: "U8", 2: "U16", 4: "U32", 8: "U64"}
_NAMES: Final = {name: descr for descr, name in DESCRS.items()}
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
"""What file systems without hard links answer."""
OPEN: Final = 128
"""Output files that are held open at a time."""


class Kind(Struct, frozen=True):
    """What the elements of a file are."""

    dtype: str
    """A name of `DTYPES`, under which they are moved: of their size at least."""
    descr: str
    """The same for numpy."""
    exact: bool
    """The name is the dtype's own, and not only one of its size."""


class ArrayFile(Struct, frozen=True):
    """One array of an open file."""

    file: str
    """The path, for messages."""
    kind: Kind
    shape: tuple[int, ...]
    begin: int
    reader: Reader

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the array's data."""
        return self.reader.pread(self.begin + offset, length)


def suffix_of(path: Path) -> str:
    """Return `.npy` or `.safetensors`.

    Raises `Fault` `array.kind`.
    """
    name = os.fspath(path).lower()
    for suffix in (NPY, SAFETENSORS):
        if name.endswith(suffix):
            return suffix
    raise Fault("array.kind", file=path_text(os.fsencode(path)))


@contextmanager
def opened(paths: Sequence[Path], name: str, limits: Limits) -> Iterator[list[ArrayFile]]:
    """Open the arrays of files; of a safetensors file the tensor `name`, or its only one. They are checked again at the end.

    Raises `Fault`: what opening a source raises, `array.*`, `npy.*`, and what reading a header raises.
    """
    with ExitStack() as stack:
        yield [_opened(path, name, limits, stack) for path in paths]


def _opened(path: Path, name: str, limits: Limits, stack: ExitStack) -> ArrayFile:
    file = path_text(os.fsencode(path))
    try:
        suffix = suffix_of(path)
        with Source(path, limits=limits) as source:
            if source.root.file is None:
                raise Fault("array.kind")
            (entry,) = source.walk().entries
            reader = stack.enter_context(source.open(entry))
        return _npy(file, reader) if suffix == NPY else _safetensors(file, reader, name, limits)
    except Fault as fault:
        raise Fault(fault.finding.code, **{"file": file, **fault.finding.params}) from fault


def _npy(file: str, reader: Reader) -> ArrayFile:
    header = read_npy(reader)
    if header.fortran and sum(extent > 1 for extent in header.shape) > 1:
        raise Fault("array.order")
    exact = DESCRS.get(header.descr)
    dtype = exact or _OPAQUE.get(header.item)
    if dtype is None:
        raise Fault("array.dtype", found=header.descr)
    return ArrayFile(file, Kind(dtype, header.descr, exact is not None), header.shape, header.begin, reader)


def _safetensors(file: str, reader: Reader, name: str, limits: Limits) -> ArrayFile:
    header = read_header(reader, limits)
    for note in header.notes:
        if CODES[note.code].severity is Severity.ERROR:
            raise Fault(note.code, **note.params)
    number = (
        0 if len(header.names) == 1 else next((n for n, it in enumerate(header.names) if it == name), None)
    )
    if number is None:
        raise Fault("array.missing", tensor=name)
    dtype = header.dtypes[number]
    if dtype not in DTYPES:
        raise Fault("array.dtype", found=dtype)
    descr = _NAMES.get(dtype, f"|V{max(1, DTYPES[dtype].bits // 8)}")
    return ArrayFile(
        file, Kind(dtype, descr, exact=True), header.shapes[number], header.begins[number], reader
    )


def refuse_existing(path: Path) -> None:
    """Refuse a target that is there, before any work is done for it.

    Raises `Fault` `output.exists`.
    """
    if os.path.lexists(path):
        raise Fault("output.exists", file=path_text(os.fsencode(path)))


class Target(Struct, frozen=True):
    """One array that is written."""

    name: str
    """Of the file in its folder."""
    shape: tuple[int, ...]
    size: int
    """Bytes of data."""


class Staging:
    """New files beside their target: `promote` makes them appear, leaving the block without it removes them.

    `path` becomes a file with the one target, or a folder with all of them. Raises `Fault` `output.exists` and
    `output.refused`.
    """

    def __init__(self, path: Path, targets: Sequence[Target], tensor: str, kind: Kind, suffix: str) -> None:
        self._path = os.fsencode(path).rstrip(b"/") or b"/"
        self._targets = list(targets)
        self._tensor = tensor
        self._kind = kind
        self._suffix = suffix
        self._folder = len(targets) != 1 or targets[0].name != ""
        head, tail = os.path.split(self._path)
        # A process of this number may have left its own behind: in a container every first process has the same one.
        own = b"%d-%s" % (os.getpid(), os.urandom(4).hex().encode())
        self._stage = os.path.join(head, b".%s.shardscope-%s" % (tail[:200], own))
        self._begins: list[int] = []
        self._open: dict[int, int] = {}
        self._made = False

    def __enter__(self) -> Self:
        refuse_existing(os.fsdecode(self._path))
        if self._suffix == NPY and DTYPES[self._kind.dtype].bits % 8:
            raise Fault("array.dtype", file=path_text(self._path), found=self._kind.dtype)
        if self._suffix == SAFETENSORS and not self._kind.exact:
            raise Fault("array.dtype", file=path_text(self._path), found=self._kind.descr)
        try:
            self._begin()
        except BaseException:
            self.__exit__()  # nobody else calls it for a block that was never entered
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()
        if self._made:
            if self._folder:
                shutil.rmtree(self._stage, ignore_errors=True)
            elif os.path.lexists(self._stage):
                os.unlink(self._stage)

    def _begin(self) -> None:
        """Make the files, each with its header."""
        with self._refusing():
            if self._folder:
                os.mkdir(self._stage)
                self._made = True
            for number, target in enumerate(self._targets):
                header = self._header(target)
                self._begins.append(len(header))
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                self._keep(number, os.open(self._place(number), flags, 0o666))
                self._made = True
                self._put(number, 0, memoryview(header))

    def write(self, number: int, offset: int, data: memoryview) -> None:
        """Write bytes of a target's data."""
        with self._refusing():
            self._put(number, self._begins[number] + offset, data)

    def promote(self) -> list[tuple[str, int]]:
        """Make everything durable, then visible, and return the paths with their sizes."""
        written = []
        with self._refusing():
            for number, target in enumerate(self._targets):
                os.fsync(self._descriptor(number))
                place = os.path.join(self._path, self._file(target)) if self._folder else self._path
                written.append((path_text(place), self._begins[number] + target.size))
            if self._folder:
                _sync(self._stage)
                os.rename(self._stage, self._path)
            else:
                self._place_file()
            self._made = False
            _sync(os.path.dirname(self._path) or b".")
        return written

    def _place_file(self) -> None:
        try:
            os.link(self._stage, self._path)  # unlike a rename it never replaces what came meanwhile
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if os.path.lexists(self._path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
            os.rename(self._stage, self._path)
        else:
            os.unlink(self._stage)

    def _header(self, target: Target) -> bytes:
        if self._suffix == NPY:
            return npy_header(self._kind.descr, target.shape)
        entry = {"dtype": self._kind.dtype, "shape": target.shape, "data_offsets": (0, target.size)}
        text = msgspec.json.encode({self._tensor: entry})
        text = text.ljust(-(-len(text) // 8) * 8)
        return len(text).to_bytes(8, "little") + text

    def _file(self, target: Target) -> bytes:
        return os.fsencode(target.name + self._suffix)

    def _place(self, number: int) -> bytes:
        return os.path.join(self._stage, self._file(self._targets[number])) if self._folder else self._stage

    def _descriptor(self, number: int) -> int:
        if number not in self._open:
            self._keep(number, os.open(self._place(number), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
        return self._open[number]

    def _keep(self, number: int, descriptor: int) -> None:
        if len(self._open) >= OPEN:
            oldest = next(iter(self._open))
            os.fsync(self._open[oldest])
            os.close(self._open.pop(oldest))
        self._open[number] = descriptor

    def _put(self, number: int, offset: int, data: memoryview) -> None:
        descriptor = self._descriptor(number)
        data = data.cast("B")
        while data:
            done = os.pwrite(descriptor, data, offset)
            data, offset = data[done:], offset + done

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Turn what the system refuses into a fault about the target."""
        try:
            yield
        except OSError as error:
            file = path_text(self._path)
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
                raise Fault("output.exists", file=file) from error
            reason = (error.strerror or type(error).__name__).lower()
            raise Fault("output.refused", file=file, reason=reason) from error


def _sync(folder: bytes) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
