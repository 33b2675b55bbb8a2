"""The header of a safetensors file, before a byte of its tensors is there.

Format: 8 bytes of length, little-endian; JSON; the tensors, end to end, without a gap. Reference implementation of
safetensors (`safetensors/src/tensor.rs`, `prepare`): tensors go by falling alignment, and spaces fill the JSON, so that each tensor begins
at a multiple of its element's size.
"""

import json
from collections.abc import Mapping, Sequence
from math import prod
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.tensors import DTYPES

MOST_BYTES: Final = 25_000_000
"""The longest header that Hugging Face's hub reads; the format's own limit is 100 MB."""
ALIGNMENT: Final = 64
"""Bytes of a cache line: tensors begin at a multiple of it, counted from the start of the file, as torch.save has them. The
format asks for 8."""
METADATA: Final = "__metadata__"
_LENGTH: Final = 8
_RANKS: Final = {name: rank for rank, name in enumerate(DTYPES)}
"""Types in the order in which the format's own library has them (`dtype.rs`)."""


class Described(Protocol):
    """What a header says of a tensor."""

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


Item = TypeVar("Item", bound=Described)


class Header(Struct, frozen=True):
    """The first bytes of a file, and where its tensors go."""

    data: bytes
    """With the length before it and the spaces behind it."""
    offsets: tuple[int, ...]
    """First byte in the file of each tensor, in the order in which they were given."""
    size: int
    """Bytes of the whole file."""


def ordered(tensors: Sequence[Item]) -> list[Item]:
    """Return tensors in the order in which they lie in a file: by falling size of their elements, otherwise as they come."""
    return sorted(tensors, key=lambda tensor: -_bits(tensor))


def size_of(tensor: Described) -> int:
    """Return the bytes of a tensor.

    Raises `Fault`: `convert.dtype`, `map.sub_byte`.
    """
    bits = prod(tensor.shape) * _bits(tensor)
    if bits % 8:
        raise Fault("map.sub_byte", bits=_bits(tensor))
    return bits // 8


def build(tensors: Sequence[Described], metadata: Mapping[str, str] | None = None) -> Header:
    """Return the header of a file of these tensors. Equal tensors in an equal order give equal bytes. `metadata` is said beside
    the format.

    Raises `Fault`: `convert.header_size`, `convert.header_name`, `convert.dtype`, `map.sub_byte`.
    """
    return _built(tensors, ordered(tensors), {"format": "pt", **(metadata or {})}, ALIGNMENT)


def canonically(tensors: Sequence[Item]) -> list[Item]:
    """Return tensors in the order in which the safetensors library lays them out: by falling type, then by name."""
    return sorted(tensors, key=lambda tensor: (-_RANKS.get(tensor.dtype, -1), tensor.name))


def canonical(tensors: Sequence[Described], metadata: Mapping[str, str]) -> Header:
    """Return the header that the safetensors library writes for these tensors, metadata in the order that they are given in.

    Raises as `build` does.
    """
    return _built(tensors, canonically(tensors), dict(metadata), _LENGTH)


def _built(
    tensors: Sequence[Described], lying: Sequence[Described], metadata: dict[str, str], alignment: int
) -> Header:
    """Return the header of tensors that lie as in `lying`, with their places in the order of `tensors`."""
    entries: dict[str, object] = {METADATA: metadata}
    starts: dict[str, int] = {}
    end = 0
    for tensor in lying:
        if tensor.name in entries:
            reason = "the format keeps it for itself" if tensor.name == METADATA else "it occurs twice"
            raise Fault("convert.header_name", tensor=tensor.name, reason=reason)
        starts[tensor.name], begin = end, end
        end += size_of(tensor)
        entries[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    if not metadata:
        del entries[METADATA]
    text = _text(entries)
    text += b" " * (-(_LENGTH + len(text)) % alignment)
    if len(text) > MOST_BYTES:
        raise Fault("convert.header_size", count=len(tensors), size=len(text), limit=MOST_BYTES)
    data = len(text).to_bytes(_LENGTH, "little") + text
    return Header(data, tuple([len(data) + starts[tensor.name] for tensor in tensors]), len(data) + end)


def length(tensors: Sequence[Described]) -> int:
    """Return the bytes before the tensors of a file. Raises as `build` does."""
    return len(build(tensors).data)


def _bits(tensor: Described) -> int:
    known = DTYPES.get(tensor.dtype)
    if known is None:
        raise Fault("convert.dtype", tensor=tensor.name, found=tensor.dtype)
    return known.bits


def _text(entries: dict[str, object]) -> bytes:
    try:
        return json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        for name in entries:
            if not _encodable(name):
                raise Fault("convert.header_name", tensor=name, reason="it is no text in UTF-8") from None
        raise


def _encodable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
