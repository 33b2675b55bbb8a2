"""zstd frames around stored items: decompressed once, bounded, to learn where the elements lie inside.

torch's extension compresses each item on its own (`torch/distributed/checkpoint/_extension.py`, `stream.zstd/1`). What is
needed of the decompressed bytes is at their two ends: the records before the elements, and the directory behind them. Since
all of them pass by, the checksum of the elements is compared at once.
"""

import zlib
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.source import Reader

_TRANSFORM: Final = "stream.zstd/1"
_READ: Final = 1 << 20
_STEP: Final = 2 << 10
"""Compressed bytes handed over at once: four of them can stand for 128 KiB, so that this is 64 MiB at the most."""
_WINDOW: Final = 8 << 20
"""The furthest that a frame may refer back: what every reader has to allow (RFC 8878, 3.1.1.1.2)."""
_KEPT: Final = 256 << 10
"""Bytes kept of each end."""
_AROUND: Final = 1 << 20
"""Bytes that an item may have beside its elements, which may be stored twice over in padded storages."""


class _Decompressor(Protocol):
    """What both libraries have: Python 3.14's `compression.zstd` and `zstandard`."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def decompressor() -> _Decompressor | None:
    """Return a decompressor of one zstd frame; null where neither library is there."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        pass
    else:
        most = {zstd.DecompressionParameter.window_log_max: _WINDOW.bit_length() - 1}
        standard: _Decompressor = zstd.ZstdDecompressor(options=most)
        return standard
    try:
        import zstandard
    except ImportError:
        return None
    found: _Decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
    return found


class Ends:
    """A decompressed item, of which only the two ends are kept: a reader of it."""

    __slots__ = ("_crc", "_head", "_tail", "size")

    def __init__(self, head: bytes, tail: bytes, size: int, crc: int) -> None:
        self._head = head
        self._tail = tail
        self._crc = crc
        """Of everything before the tail."""
        self.size = size

    @property
    def crc(self) -> int:
        """CRC-32 of all decompressed bytes."""
        return zlib.crc32(self._tail, self._crc)

    def crc_of(self, begin: int, size: int) -> int | None:
        """Return the CRC-32 of a stretch that begins in the kept head and ends in the kept tail; null where it does not.

        A CRC is linear: that of what comes before the stretch, followed by as many zeros, is taken out of the one up to its
        end.
        """
        behind = self.size - len(self._tail)
        if begin > len(self._head) or not behind <= begin + size <= self.size:
            return None
        up_to_end = zlib.crc32(self._tail[: begin + size - behind], self._crc)
        return up_to_end ^ _zeros(size, zlib.crc32(self._head[:begin])) ^ _zeros(size, 0)

    def pread(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes at `offset`. Raises `Fault` `dcp.frame_damaged` for bytes that were not kept."""
        end = min(offset + max(0, length), self.size)
        if end <= len(self._head):
            return self._head[offset:end]
        behind = self.size - len(self._tail)
        if offset >= behind:
            return self._tail[offset - behind : end - behind]
        if behind <= len(self._head):
            return (self._head + self._tail[len(self._head) - behind :])[offset:end]
        raise Fault(
            "dcp.frame_damaged", reason="its records are not at its two ends, where a writer puts them"
        )


def _zeros(count: int, crc: int) -> int:
    """Return a CRC-32 continued over zeros."""
    block = bytes(min(count, _READ))
    for _ in range(count // _READ):
        crc = zlib.crc32(block, crc)
    return zlib.crc32(block[: count % _READ], crc)


class Frames:
    """Opens compressed items."""

    def __init__(self, decoder: Decoder) -> None:
        self._limit = decoder.limits.decompressed_bytes
        self._decompressed = 0

    def knows(self, transforms: Sequence[str]) -> bool:
        """Tell whether the transformations of an item can be undone."""
        return list(transforms) == [_TRANSFORM]

    def open(self, reader: Reader, begin: int, length: int, elements: int) -> Ends | None:
        """Return a compressed item whose tensor has so many bytes of elements; null where no library is there for it.

        Raises `Fault` `dcp.frame_damaged`, `dcp.frame_size` or `limit.decompressed_bytes`.
        """
        frame = decompressor()
        if frame is None:
            return None
        most = 2 * elements + _AROUND
        left = self._limit - self._decompressed
        try:
            ends = _ends(frame, reader, begin, length, min(most, left))
        except Fault as fault:
            if fault.finding.code == "dcp.frame_size" and left < most:
                raise Fault("limit.decompressed_bytes", limit=self._limit, found=self._limit + 1) from None
            raise
        self._decompressed += ends.size
        return ends


def _ends(frame: _Decompressor, reader: Reader, begin: int, length: int, limit: int) -> Ends:
    head = bytearray()
    tail: deque[bytes] = deque()
    kept = size = crc = 0
    for at in range(begin, begin + length, _READ):
        data = reader.pread(at, min(_READ, begin + length - at))
        for step in range(0, len(data), _STEP):
            if frame.eof:
                raise Fault("dcp.frame_damaged", reason="bytes follow its end")
            part = _step(frame, data[step : step + _STEP])
            size += len(part)
            if size > limit:
                raise Fault("dcp.frame_size", limit=limit)
            head += part[: max(0, _KEPT - len(head))]
            tail.append(part)
            kept += len(part)
            while kept - len(tail[0]) >= _KEPT:
                crc = zlib.crc32(tail[0], crc)
                kept -= len(tail.popleft())
    if not frame.eof or frame.unused_data:
        raise Fault("dcp.frame_damaged", reason="bytes follow its end" if frame.eof else "its end is missing")
    return Ends(bytes(head), b"".join(tail), size, crc)


def _step(frame: _Decompressor, data: bytes) -> bytes:
    """Return what a few more bytes of a frame decompress to; both libraries have errors of their own for bytes that do not."""
    try:
        return frame.decompress(data)
    except Exception:  # noqa: BLE001 - the errors are classes of a library that may not be there
        reason = "it does not decompress, or refers back further than 8 MiB"
        raise Fault("dcp.frame_damaged", reason=reason) from None
