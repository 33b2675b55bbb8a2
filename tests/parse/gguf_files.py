"""GGUF files written for tests, sound and otherwise: no field is checked on the way."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

ALIGNMENT = 32


class Row(NamedTuple):
    """The description of a tensor. `dims` are in the order of the file: the fastest first."""

    name: str | bytes = "a"
    dims: Sequence[int] = (4,)
    type: int = 0
    offset: int = 0


class Order(NamedTuple):
    """Byte order and width of lengths."""

    sign: str = "<"
    wide: bool = True

    def pack(self, code: str, *values: object) -> bytes:
        return struct.pack(self.sign + code, *values)

    def length(self, count: int) -> bytes:
        return self.pack("Q" if self.wide else "I", count)

    def text(self, text: str | bytes) -> bytes:
        raw = text if isinstance(text, bytes) else text.encode()
        return self.length(len(raw)) + raw


LITTLE = Order()


def pair(key: str | bytes, kind: int, value: bytes, order: Order = LITTLE) -> bytes:
    """Return a key with the bytes of a value of type `kind`."""
    return order.text(key) + order.pack("I", kind) + value


def word(key: str, text: str, order: Order = LITTLE) -> bytes:
    """Return a key with a text."""
    return pair(key, 8, order.text(text), order)


def number(key: str, value: int, order: Order = LITTLE) -> bytes:
    """Return a key with a number of 32 bits."""
    return pair(key, 4, order.pack("I", value), order)


def texts(key: str, *items: str, order: Order = LITTLE) -> bytes:
    """Return a key with a list of texts."""
    body = order.pack("I", 8) + order.length(len(items)) + b"".join(map(order.text, items))
    return pair(key, 9, body, order)


def gguf(
    rows: Sequence[Row] = (Row(),),
    pairs: Sequence[bytes] = (),
    *,
    version: int = 3,
    order: Order = LITTLE,
    data: int | None = 64,
    tensors: int | None = None,
    keys: int | None = None,
    alignment: int = ALIGNMENT,
) -> bytes:
    """Return a file with so many bytes of data; without any padding before them where `data` is null."""
    head = b"GGUF" + order.pack("I", version)
    head += order.length(len(rows) if tensors is None else tensors)
    head += order.length(len(pairs) if keys is None else keys) + b"".join(pairs)
    for row in rows:
        head += order.text(row.name) + order.pack("I", len(row.dims)) + b"".join(map(order.length, row.dims))
        head += order.pack("IQ", row.type, row.offset)
    if data is None:
        return head
    return head + bytes(-len(head) % alignment) + bytes(data)
