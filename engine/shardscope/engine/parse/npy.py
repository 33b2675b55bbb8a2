"""`.npy` files: eight bytes, the length of a header, and a Python literal with three known keys.

Format: `numpy/lib/_format_impl.py` of NumPy 2. The literal is never evaluated. `read_npy` matches it against the one form that NumPy
writes for plain arrays and refuses the rest: what it accepts is about to be read. `read_array` tells what any array is, by the grammar of
`npy_literal`.
"""

import math
import re
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.source import Reader
from shardscope.engine.parse.npy_literal import Value, read_literal

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
    text, begin = _text(reader)
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
    header = NpyHeader(descr, found["fortran"] == "True", shape, begin, _item(descr))
    if header.end != reader.size:
        raise Fault("npy.truncated", expected=header.end, found=reader.size)
    return header


def _text(reader: Reader) -> tuple[str, int]:
    """Return the literal and where the data begins. Raises `Fault` `npy.malformed`."""
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
    return text, 8 + width + length


DTYPES_OF_NUMPY: Final = {
    "b1": "BOOL",
    "i1": "I8",
    "i2": "I16",
    "i4": "I32",
    "i8": "I64",
    "u1": "U8",
    "u2": "U16",
    "u4": "U32",
    "u8": "U64",
    "f2": "F16",
    "f4": "F32",
    "f8": "F64",
    "c8": "C64",
}
"""Names of safetensors for NumPy's words without their byte order."""
RECORD: Final = "record"
"""What the dtype of a structured array is called here."""
_PLAIN: Final = re.compile(r"[<>|=]?(?P<word>[?bBiufcmMOSUVa](?P<size>\d{0,9})(?:\[[0-9A-Za-z/]{1,16}\])?)")
_SIZE: Final = (1 << 63) - 1
_RANK: Final = 64


class NpyArray(Struct, frozen=True):
    """What an `.npy` file says of its array, whatever kind it is."""

    dtype: str
    """A name of `DTYPES`, otherwise NumPy's word without a byte order (`c16`, `S3`, `V2`), or `record`."""
    shape: tuple[int, ...]
    fortran: bool
    big_endian: bool
    objects: bool
    """The data is a pickle."""
    begin: int
    """Where the data begins in the file."""
    bytes: int
    """Of the data; 0 where it is a pickle, whose length nothing tells."""


def read_array(reader: Reader) -> NpyArray:
    """Return what an `.npy` file of any kind says of its array; whether the data is all there is for the caller to see.

    Raises `Fault` `npy.malformed`.
    """
    text, begin = _text(reader)
    try:
        fields = read_literal(text)
        if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
            raise ValueError("its header does not have the three keys of the format")
        fortran = fields["fortran_order"]
        if not isinstance(fortran, bool):
            raise ValueError("its fortran_order is neither true nor false")  # noqa: TRY004 - one fault for all
        shape = _extents(fields["shape"])
        dtype, item, objects, big = _kind(fields["descr"], 0)
        total = math.prod(shape) * item
        if total > _SIZE:
            raise ValueError("its bytes do not fit in 63 bits")
    except ValueError as error:
        raise Fault("npy.malformed", reason=str(error)) from None
    return NpyArray(dtype, shape, fortran, big, objects, begin, 0 if objects else total)


def _extents(value: Value) -> tuple[int, ...]:
    extents = (value,) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(extents, tuple) or len(extents) > _RANK:
        raise ValueError("its shape is not one of whole numbers")
    shape = []
    for extent in extents:
        if not isinstance(extent, int) or isinstance(extent, bool) or extent < 0:
            raise ValueError("its shape is not one of whole numbers")
        shape.append(extent)
    return tuple(shape)


def _kind(descr: Value, depth: int) -> tuple[str, int, bool, bool]:
    """Return name, bytes of an element, whether objects are in it, and whether its bytes are swapped."""
    if isinstance(descr, str):
        return _plain(descr)
    if isinstance(descr, tuple) and len(descr) == 2 and not isinstance(descr[1], str):
        _, item, objects, _ = _kind(descr[0], depth + 1)
        return RECORD, item * math.prod(_extents(descr[1])), objects, False
    if not isinstance(descr, list) or not descr:
        raise ValueError("its dtype is not known")
    total, any_objects = 0, False
    for field in descr:
        if not isinstance(field, tuple) or len(field) not in (2, 3):
            raise ValueError("its dtype is not known")
        _, item, objects, _ = _kind(field[1], depth + 1)
        times = math.prod(_extents(field[2])) if len(field) == 3 else 1
        total, any_objects = total + item * times, any_objects or objects
    return RECORD, total, any_objects, False


def _plain(descr: str) -> tuple[str, int, bool, bool]:
    found = _PLAIN.fullmatch(descr)
    if found is None:
        raise ValueError("its dtype is not known")
    word, letter = found["word"], found["word"][0]
    if letter == "O":
        return "O", 8, True, False
    size = int(found["size"] or 0 if letter in "SUVa" else found["size"] or 1)
    name = DTYPES_OF_NUMPY.get("b1" if word == "?" else word, word)
    return name, 4 * size if letter == "U" else size, False, descr[0] == ">" and size > 1


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
