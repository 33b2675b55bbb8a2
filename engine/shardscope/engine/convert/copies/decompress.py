"""Coded records as streams of their decoded bytes: deflate through zlib, zstd through the standard library or `zstandard`.

A coded record can only be read from its beginning. A `Decoded` keeps its place, so that reading in rising order decodes every byte
once; going back starts over. What is held is bounded whatever a record claims to decode to.
"""

import io
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Record

INPUT: Final = 64 << 10
"""Bytes of a coded record that are read at one time."""
SKIP: Final = 256 << 10
"""Bytes that are decoded at one time to be passed over."""
WINDOW: Final = 8 << 20
"""The furthest that a zstd frame may refer back: what every reader has to allow (RFC 8878, 3.1.1.1.2), and what all levels of
`zstd` but `--ultra` and `--long` stay within."""
HELD: Final = {"deflate": INPUT + (64 << 10), "zstd": WINDOW + (1 << 20)}
"""Bytes that an open record takes: its input, and the state of its decoder."""


class Stored(Protocol):
    """A file of the source, open."""

    def pread_into(self, offset: int, buffer: memoryview, /) -> int: ...

    def pread(self, offset: int, length: int, /) -> bytes: ...


class _Decoder(Protocol):
    """The bytes of a record, decoded, from the first one on."""

    def readinto(self, buffer: memoryview, /) -> int: ...


class Decoded:
    """One coded record."""

    def __init__(self, file: Stored, record: Record) -> None:
        self._file = file
        self._record = record
        self._decoder = self._fresh()
        self._position = 0

    def _fresh(self) -> _Decoder:
        return DECODERS[self._record.coding](_Input(self._file, self._record), self._record)

    def read_into(self, offset: int, buffer: memoryview) -> int:
        """Fill `buffer` with decoded bytes from `offset` on; fewer only at the end.

        Raises `Fault` `convert.record_damaged`.
        """
        if offset < self._position:
            self._decoder = self._fresh()
            self._position = 0
        if offset > self._position:
            scratch = memoryview(bytearray(min(SKIP, offset - self._position)))
            while offset > self._position:
                if not self._next(scratch[: offset - self._position]):
                    return 0
        got = 0
        while got < len(buffer):
            count = self._next(buffer[got:])
            if not count:
                break
            got += count
        return got

    def _next(self, buffer: memoryview) -> int:
        count = self._decoder.readinto(buffer)
        self._position += count
        return count


class _Input(io.RawIOBase):
    """The coded bytes of a record, as a file."""

    def __init__(self, file: Stored, record: Record) -> None:
        self._file = file
        self._at, self._end = record.begin, record.begin + record.length

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        length = min(len(view), self._end - self._at)
        got = self._file.pread_into(self._at, view[:length]) if length > 0 else 0
        self._at += got
        return got


class _Fed:
    """A decoder that is fed input and told how much to give: zlib's, and those of the standard library like bz2's."""

    def __init__(self, source: _Input, record: Record) -> None:
        self._source = source
        self._record = record

    def _damaged(self, reason: str) -> Fault:
        return damaged(self._record, reason)


class _Inflater(_Fed):
    def __init__(self, source: _Input, record: Record) -> None:
        super().__init__(source, record)
        self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)
        self._input = b""

    def readinto(self, buffer: memoryview) -> int:
        while len(buffer) and not self._zlib.eof:
            if not self._input:
                self._input = self._source.read(INPUT) or b""
            ended = not self._input
            try:
                data = self._zlib.decompress(self._input, len(buffer))
            except zlib.error:
                raise self._damaged("its deflated bytes are none") from None
            self._input = self._zlib.unconsumed_tail
            if data:
                buffer[: len(data)] = data
                return len(data)
            if ended:
                raise self._damaged("its deflated bytes end early")
        return 0


class _Zstd(_Fed):
    """Frames of zstd, one after the other, through the standard library (Python 3.14, `compression.zstd`)."""

    def __init__(self, source: _Input, record: Record, made: Callable[[], Any]) -> None:
        super().__init__(source, record)
        self._made = made
        self._frame: Any = made()
        self._input = b""
        self._fresh = True

    def readinto(self, buffer: memoryview) -> int:
        while len(buffer):
            if self._frame.eof:
                self._input, self._frame, self._fresh = self._frame.unused_data, self._made(), True
            if not self._input and self._frame.needs_input:
                self._input = self._source.read(INPUT) or b""
                if not self._input:
                    if self._fresh:
                        return 0
                    raise self._damaged("its last zstd frame ends early")
            try:
                data = self._frame.decompress(self._input, len(buffer))
            except Exception:  # noqa: BLE001 - `ZstdError` is a name that only Python 3.14 has
                raise self._damaged("its zstd frames are none, or refer back further than 8 MiB") from None
            self._input, self._fresh = b"", False
            if data:
                buffer[: len(data)] = data
                return len(data)
        return 0


class _Zstandard(_Fed):
    """The same through the package `zstandard`."""

    def __init__(self, source: _Input, record: Record, package: Any) -> None:
        super().__init__(source, record)
        self._error = package.ZstdError
        self._source = source
        decompressor = package.ZstdDecompressor(max_window_size=WINDOW)
        self._reader = decompressor.stream_reader(
            source, read_size=INPUT, read_across_frames=True, closefd=False
        )

    def readinto(self, buffer: memoryview) -> int:
        try:
            return int(self._reader.readinto(buffer))
        except self._error:
            raise self._damaged("its zstd frames are none, or refer back further than 8 MiB") from None


def damaged(record: Record, reason: str) -> Fault:
    """Return what is said of a coded record that cannot be decoded."""
    return Fault("convert.record_damaged", file=record.file, offset=record.begin, reason=reason)


def _zstd(source: _Input, record: Record) -> _Decoder:
    try:
        from compression import zstd  # Python 3.14
    except ImportError:
        pass
    else:
        most = {zstd.DecompressionParameter.window_log_max: WINDOW.bit_length() - 1}
        return _Zstd(source, record, partial(zstd.ZstdDecompressor, options=most))
    try:
        import zstandard
    except ImportError:
        raise Fault("convert.zstd_missing", file=record.file) from None
    return _Zstandard(source, record, zstandard)


DECODERS: Final[dict[str, Callable[[_Input, Record], _Decoder]]] = {"deflate": _Inflater, "zstd": _zstd}
