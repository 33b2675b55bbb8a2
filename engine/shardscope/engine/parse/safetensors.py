"""safetensors headers: eight bytes of length, a JSON object, and the rule that tensors tile the rest of the file.

Format: `safetensors/src/tensor.rs` and the README of the reference library, release 0.8.0. Whatever it refuses is
refused here, with a code for each reason; where it is laxer than the format's text, `docs/format-notes.md` says which
side is taken.

Nearly every header takes the short way: a typed decoder builds the entries, and counting quotation marks proves that
it dropped nothing (see `_typed`). Any doubt sends the header down the exact way (`header_text`), which names the fault.
Both end in the same columns and the same checks (`tiling`).
"""

import re
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct, field

from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.facts import SafetensorsHeader
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Reader
from shardscope.engine.model.text import UNSAFE
from shardscope.engine.parse.header_text import Columns, OnFault, is_white, number_kinds, read_text
from shardscope.engine.parse.json import without_escapes
from shardscope.engine.parse.names import note_names
from shardscope.engine.parse.tiling import tile

REFERENCE_CEILING: Final = 100_000_000
"""Bytes of header beyond which the reference library refuses a file."""

_LARGE: Final = 1 << 20
_LARGE_METADATA: Final = 32_768, 1_000
"""Characters and keys beyond which metadata gets a word."""
_PLAIN_CONTROL: Final = str.maketrans("", "", "\n\r\t")


class _Entry(Struct, gc=False):
    """One value of the header. The defaults let the metadata, which has none of the fields, decode as well.

    Each default is a value that sends the header down the exact way, so that a missing field never passes for one.
    """

    dtype: str = ""
    shape: tuple[int, ...] = (-1,)
    data_offsets: tuple[int, int] = (-1, -1)


class _WithMetadata(Struct):
    """The whole header of which only the metadata is kept."""

    metadata: dict[str, str] = field(name="__metadata__", default_factory=dict)


_ENTRIES: Final = msgspec.json.Decoder(dict[str, _Entry])
_METADATA: Final = msgspec.json.Decoder(_WithMetadata)
_STRINGS: Final = msgspec.json.Decoder(dict[str, str])
_METADATA_FIRST: Final = b'{"__metadata__":'
_SPACES: Final = re.compile(rb" *+")
_NEGATIVE: Final = re.compile(rb"[\[,][ \t\r\n]*+-")


def read_header(reader: Reader, limits: Limits) -> SafetensorsHeader:
    """Read and check the header of a safetensors file: 8 bytes, then exactly the header, never a byte of the data.

    Raises `Fault` with the `header.*` code of what is wrong first, or `limit.header_bytes`, `limit.tensors`, `limit.tensor_rank`,
    `limit.json_depth`, `limit.json_nodes`. A file that is cut off or too long in its data (`header.truncated`,
    `header.overlong`) and dtypes that are not known (`header.dtype_unknown`) are notes of severity error: the header itself is
    whole and says what should be there.
    """
    raw = _text(reader, limits)
    length = len(raw)
    notes = _framing(raw)
    columns = _typed(raw, limits) or read_text(raw, limits)
    del raw
    data_begin = 8 + length
    notes += columns.notes
    notes += tile(columns, reader.size - data_begin, limits)
    notes += note_names(columns.names)
    notes += _metadata_notes(columns.metadata)
    if data_begin % 8:
        notes.append(Finding("header.unaligned", {"offset": data_begin}))
    ends = list(map(data_begin.__add__, columns.ends))
    return SafetensorsHeader(
        header_bytes=length,
        data_begin=data_begin,
        data_end=ends[-1] if ends else data_begin,
        names=columns.names,
        kinds=columns.kinds,
        kind_of=columns.kind_of,
        ends=ends,
        metadata=columns.metadata,
        notes=tuple(notes),
    )


def read_columns(reader: Reader, limits: Limits) -> tuple[int, int, Columns]:
    """Return where the data begins, the bytes of JSON without what fills them up, and the tensors as the header has them.

    Whether they tile the data is not looked at. Raises `Fault` as `read_header` does for what is no header.
    """
    raw = _text(reader, limits)
    columns = _typed(raw, limits) or read_text(raw, limits)
    if len(columns.names) > limits.tensors:
        raise Fault("limit.tensors", limit=limits.tensors, found=len(columns.names))
    return 8 + len(raw), raw.rfind(b"}") + 1, columns


def read_damaged(reader: Reader, limits: Limits, on_fault: OnFault) -> tuple[int, Columns]:
    """Return where the data begins, and what can be read of a header whatever else is wrong with it, tensors in the order of the text.

    `on_fault` is as of `header_text.read_text`; whether tensors fit the file is not looked at. Raises `Fault` as `read_header` does
    where nothing at all can be read.
    """
    raw = _text(reader, limits)
    columns = _typed(raw, limits) or read_text(raw, limits, on_fault)
    columns.notes += _framing(raw)
    if len(columns.names) > limits.tensors:
        raise Fault("limit.tensors", limit=limits.tensors, found=len(columns.names))
    return 8 + len(raw), columns


def _text(reader: Reader, limits: Limits) -> bytes:
    size = reader.size
    if size < 8:
        raise Fault("header.too_short", size=size)
    length = int.from_bytes(reader.pread(0, 8), "little")
    if length == 0:
        raise Fault("header.length_zero")
    if length > size - 8:
        raise Fault("header.past_eof", length=length, missing=length - (size - 8))
    if length > limits.header_bytes:
        raise Fault("limit.header_bytes", limit=limits.header_bytes, found=length)
    return reader.pread(8, length)


def _framing(raw: bytes) -> list[Finding]:
    notes = []
    if len(raw) > REFERENCE_CEILING:
        notes.append(Finding("header.beyond_reference", {"length": len(raw), "ceiling": REFERENCE_CEILING}))
    if raw[:1] in b" \t\r\n":
        notes.append(Finding("header.leading_space"))
    end = raw.rfind(b"}") + 1
    if not _SPACES.fullmatch(raw, end) and is_white(raw, end):
        notes.append(Finding("header.padding_space"))
    return notes


def _typed(raw: bytes, limits: Limits) -> Columns | None:
    """Decode a header with nothing odd about it; null where the exact way has to look.

    The typed decoder keeps the last of two equal keys and skips unknown fields without a word. Both show in the
    number of quotation marks that delimit strings: a tensor has exactly ten (its name, three keys, its dtype), a pair
    of the metadata four, the key `__metadata__` two. As everything that was kept accounts for at least so many, an equal
    total proves that nothing was dropped, whatever the escapes.
    """
    if len(raw) > _LARGE and raw.count(b",") > (limits.tensor_rank + 8) * raw.count(b"{"):
        return None  # no header of tensors within the limits: a list that is all commas, which would cost 9 times its bytes
    metadata: dict[str, str] = {}
    quotes = 0
    try:
        entries = _ENTRIES.decode(raw)
        if entries.pop("__metadata__", None) is not None:
            metadata = _metadata(raw)
            quotes = 2 + 4 * len(metadata)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if without_escapes(raw).count(b'"') != quotes + 10 * len(entries):
        return None
    if b"-" in raw and _NEGATIVE.search(raw):  # includes -0, which the decoder takes for 0
        return None
    offsets = [entry.data_offsets for entry in entries.values()]
    columns = Columns(
        names=list(entries),
        dtypes=[entry.dtype for entry in entries.values()],
        shapes=[entry.shape for entry in entries.values()],
        begins=[begin for begin, _ in offsets],
        ends=[end for _, end in offsets],
        metadata=metadata,
    )
    number_kinds(columns)
    lacking = any(dtype == "" or shape == (-1,) for dtype, shape in columns.kinds) or -1 in columns.begins
    return None if lacking else columns


def _metadata(raw: bytes) -> dict[str, str]:
    """Return the metadata of a header that is known to be JSON; raises `msgspec.DecodeError` where they are no strings.

    Writers put it first. What stands between its key and the next closing brace is then all of it, if it is an object
    at all, and the rest need not be read again.
    """
    end = raw.find(b"}", 0, _LARGE) + 1
    if end and raw.startswith(_METADATA_FIRST):
        with suppress(msgspec.DecodeError):
            return _STRINGS.decode(raw[len(_METADATA_FIRST) : end])
    return _METADATA.decode(raw).metadata


def _metadata_notes(metadata: dict[str, str]) -> list[Finding]:
    if not metadata:
        return []
    notes = []
    text = "".join((*metadata, *metadata.values()))
    characters, keys = _LARGE_METADATA
    if len(text) > characters or len(metadata) > keys:
        notes.append(Finding("header.metadata_large", {"characters": len(text), "keys": len(metadata)}))
    if not (text.isascii() and text.isprintable()) and UNSAFE.search(text.translate(_PLAIN_CONTROL)):
        notes.append(Finding("header.metadata_control"))
    return notes
