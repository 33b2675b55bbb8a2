"""`.npy` files: eight bytes, the length of a header, and a Python literal with three known keys.

Format: `numpy/lib/_format_impl.py` of NumPy 2. The literal is matched, never evaluated; arrays of Python objects, which the
format stores as a pickle, and structured ones are refused.
"""

import math
import re
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.source import Reader

MAGIC: Final = b"\x93NUMPY"
LONGEST: Final = 1 << 16
"""Bytes of a header; a plain dtype and a shape take fewer than 200."""
ALIGNED: Final = 64

_HEADER: Final = re.compile(
    r"\{'descr': '(?P<descr>[<>|=]?[a-zA-Z]\d{0,9})', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>[0-9L, ]*)\),? ?\} *\n?"
)
_EXTENT: Final = re.compile(r"[0-9]{1,19}L?")


class NpyHeader(Struct, frozen=True):
    """What stands before the data of an array."""

    descr: str
    """The dtype in numpy's words: `<f4`."""
    fortran: bool
    """The first dimension is the fastest."""
    shape: tuple[int, ...]
    begin: int
    """Where the data begins in the file."""
    item: int
    """Bytes of one element."""

    @property
    def end(self) -> int:
        """Where the data ends in the file."""
        return self.begin + math.prod(self.shape) * self.item


def read_npy(reader: Reader) -> NpyHeader:
    """Read and check the header of an `.npy` file; its data is not touched.

    Raises `Fault`: `npy.malformed`, `npy.objects`, `npy.truncated`.
    """
    head = reader.pread(0, 12)
    if head[:6] != MAGIC or len(head) < 10:
        raise Fault("npy.malformed", reason="it does not begin with the eight bytes of the format")
    major = head[6]
    if major not in (1, 2, 3):
        raise Fault("npy.malformed", reason=f"version {major} of the format is not known")
    width = 2 if major == 1 else 4
    length = int.from_bytes(head[8 : 8 + width], "little")
    if length > LONGEST:
        raise Fault("npy.malformed", reason=f"its header is said to have {length:,} bytes")
    text = reader.pread(8 + width, length).decode("latin-1")
    if len(text) != length:
        raise Fault("npy.malformed", reason="it ends within its header")
    found = _HEADER.fullmatch(text)
    if found is None:
        raise Fault("npy.malformed", reason="its header is not that of a plain array")
    descr = found["descr"]
    if "O" in descr:
        raise Fault("npy.objects")
    extents = [extent.strip() for extent in found["shape"].split(",")]
    if extents[-1] == "":
        extents.pop()
    if not all(_EXTENT.fullmatch(extent) for extent in extents):
        raise Fault("npy.malformed", reason="its shape is not one of whole numbers")
    shape = tuple(int(extent.rstrip("L")) for extent in extents)
    header = NpyHeader(descr, found["fortran"] == "True", shape, 8 + width + length, _item(descr))
    if header.end != reader.size:
        raise Fault("npy.truncated", expected=header.end, found=reader.size)
    return header


def _item(descr: str) -> int:
    """Return the bytes of one element of a dtype."""
    digits = descr.lstrip("<>|=")[1:]
    size = int(digits) if digits else 1
    return 4 * size if "U" in descr else size


def npy_header(descr: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of an array in row-major order, as `numpy.save` writes it."""
    extents = f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {extents}, }}".encode("ascii")
    padded = -(-(10 + len(text) + 1) // ALIGNED) * ALIGNED
    text = text.ljust(padded - 11) + b"\n"
    return MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little") + text
