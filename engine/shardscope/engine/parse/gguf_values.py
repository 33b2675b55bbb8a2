"""Values of a GGUF file one after the other: a cursor that never leaves the file, the limits, or what a count can mean."""

import struct
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.facts import GgufArray, GgufText, GgufValue
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Reader

LONGEST_KEY: Final = 65_535
KEPT_TEXT: Final = 1 << 16
"""Bytes of a text that are kept; a longer one is told by its length."""
_DEEPEST: Final = 4
_PIECE: Final = 1 << 20
_STRING: Final = 8
_ARRAY: Final = 9
_BOOL: Final = 7


class _Scalar(Struct, frozen=True):
    """How a value of one type is stored."""

    name: str
    code: str
    size: int


_SCALARS: Final = {
    0: _Scalar("uint8", "B", 1),
    1: _Scalar("int8", "b", 1),
    2: _Scalar("uint16", "H", 2),
    3: _Scalar("int16", "h", 2),
    4: _Scalar("uint32", "I", 4),
    5: _Scalar("int32", "i", 4),
    6: _Scalar("float32", "f", 4),
    7: _Scalar("bool", "B", 1),
    10: _Scalar("uint64", "Q", 8),
    11: _Scalar("int64", "q", 8),
    12: _Scalar("float64", "d", 8),
}


class Cursor:
    """A place in the header of a GGUF file that moves forward.

    Every read is bounded by the file and by `limits.header_bytes`; values are counted against `limits.json_nodes`. Raises `Fault`
    `gguf.cut_off`, `gguf.malformed`, `limit.header_bytes` or `limit.json_nodes`.
    """

    def __init__(self, reader: Reader, begin: int, limits: Limits, *, big_endian: bool, wide: bool) -> None:
        self.at = begin
        self.order = ">" if big_endian else "<"
        self.lossy = 0
        """Texts that are no UTF-8."""
        self._reader = reader
        self._limits = limits
        self._width = 8 if wide else 4
        self._length = struct.Struct(f"{self.order}{'Q' if wide else 'I'}")
        self._buffer = b""
        self._buffer_at = begin
        self._values = 0

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        self._reach(count)
        start = self.at - self._buffer_at
        if start + count > len(self._buffer):
            wanted = min(max(count, _PIECE), self._reader.size - self.at)
            self._buffer, self._buffer_at, start = self._reader.pread(self.at, wanted), self.at, 0
            if len(self._buffer) < count:
                raise Fault("gguf.cut_off", at=self.at, size=self._reader.size)
        self.at += count
        return self._buffer[start : start + count]

    def number(self, code: str, size: int) -> int:
        """Return the next number of a `struct` code and its size."""
        (value,) = struct.unpack(self.order + code, self.take(size))
        return int(value)

    def length(self) -> int:
        """Return the next length or count, eight bytes (four in version 1)."""
        (value,) = self._length.unpack(self.take(self._width))
        return int(value)

    def text(self, longest: int, what: str) -> str:
        """Return the next text of at most `longest` bytes. `what` names it in a fault."""
        length = self.length()
        if length > longest:
            raise Fault("gguf.malformed", reason=f"{what} is said to have {length:,} bytes", at=self.at)
        raw = self.take(length)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.lossy += 1
            return raw.decode("utf-8", "backslashreplace")

    def value(self) -> GgufValue:
        """Return the next value with its type before it; of a list its length, of a long text its bytes."""
        return self._value(self.number("I", 4))

    def _value(self, kind: int) -> GgufValue:
        self._count(1)
        if (scalar := _SCALARS.get(kind)) is not None:
            (value,) = struct.unpack(self.order + scalar.code, self.take(scalar.size))
            if kind != _BOOL:
                return value  # type: ignore[no-any-return]
            if value > 1:
                raise Fault("gguf.malformed", reason=f"a truth value is {value}", at=self.at)
            return bool(value)
        if kind == _STRING:
            return self._long_text()
        if kind == _ARRAY:
            return self._array(1)
        raise Fault("gguf.malformed", reason=f"a value is of type {kind:,}, which is not known", at=self.at)

    def _long_text(self) -> str | GgufText:
        before = self.at
        length = self.length()
        self._reach(length)
        if length > KEPT_TEXT:
            self.at += length
            return GgufText(length)
        self.at = before
        return self.text(length, "a text")

    def _array(self, depth: int) -> GgufArray:
        if depth > _DEEPEST:
            raise Fault("gguf.malformed", reason=f"lists are nested more than {_DEEPEST} deep", at=self.at)
        kind = self.number("I", 4)
        count = self.length()
        if (scalar := _SCALARS.get(kind)) is not None:
            self._skip(count * scalar.size)
            return GgufArray(scalar.name, count)
        if kind not in (_STRING, _ARRAY):
            raise Fault(
                "gguf.malformed", reason=f"a list is of type {kind:,}, which is not known", at=self.at
            )
        self._count(count)
        self._reach(count * (self._width if kind == _STRING else self._width + 4))
        if kind == _STRING:
            self._skip_texts(count)
            return GgufArray("string", count)
        for _ in range(count):
            self._array(depth + 1)
        return GgufArray("array", count)

    def _skip_texts(self, count: int) -> None:
        """Go past `count` texts. Vocabularies have hundreds of thousands of them, so the loop works in the buffer."""
        unpack, width, end = self._length.unpack_from, self._width, self._end
        done = 0
        while done < count:
            self.take(width)
            self.at -= width  # the buffer now holds the length of the next text
            buffer, start, at = self._buffer, self._buffer_at, self.at
            last = start + len(buffer) - width
            while done < count and at <= last:
                (length,) = unpack(buffer, at - start)
                if length > end - at:
                    self.at = at
                    self._reach(width + length)
                at += width + length
                done += 1
            self.at = at
        self._reach(0)

    def _skip(self, count: int) -> None:
        self._reach(count)
        self.at += count

    @property
    def _end(self) -> int:
        return min(self._reader.size, self._limits.header_bytes)

    def _reach(self, count: int) -> None:
        """Make sure that `count` more bytes are there and allowed."""
        wanted = self.at + count
        if wanted > self._reader.size:
            raise Fault("gguf.cut_off", at=self.at, size=self._reader.size)
        if wanted > self._limits.header_bytes:
            raise Fault("limit.header_bytes", limit=self._limits.header_bytes, found=wanted)

    def _count(self, count: int) -> None:
        self._values += count
        if self._values > self._limits.json_nodes:
            raise Fault("limit.json_nodes", limit=self._limits.json_nodes, found=self._values)
