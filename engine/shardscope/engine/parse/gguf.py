"""The head of a GGUF file: magic, version and two counts.

Format: `docs/gguf.md` of ggml. Version 1 had counts of four bytes, 2 and 3 have eight. Version 3 allows big-endian files: the
magic stays, and the version read the wrong way round has its low half empty.
"""

import struct
from typing import Final, Literal

from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.facts import GgufHead
from shardscope.engine.model.source import Reader

MAGIC: Final = b"GGUF"
_HEAD: Final = 24
_TENSOR: Final = 24
"""Bytes that the description of a tensor takes at least: name length, dimensions, type, offset."""
_PAIR: Final = 13
"""Bytes that a key with its value takes at least: key length, type, one byte."""


def read_head(reader: Reader) -> GgufHead:
    """Return the head; nothing beyond its 24 bytes is read.

    Raises `Fault` `gguf.magic`, `gguf.truncated`, `gguf.version` or `gguf.counts`.
    """
    data = reader.pread(0, _HEAD)
    if data[:4] != MAGIC:
        raise Fault("gguf.magic")
    if len(data) < 8:
        raise Fault("gguf.truncated", size=reader.size)
    order: Literal["<", ">"] = "<"
    (version,) = struct.unpack_from("<I", data, 4)
    if version and not version & 0xFFFF:
        order = ">"
        (version,) = struct.unpack_from(">I", data, 4)
    if not 1 <= version <= 3:
        raise Fault("gguf.version", version=version)
    wide = version > 1
    head_bytes = _HEAD if wide else 16
    if len(data) < head_bytes:
        raise Fault("gguf.truncated", size=reader.size)
    tensors, pairs = struct.unpack_from(f"{order}{'QQ' if wide else 'II'}", data, 8)
    if head_bytes + tensors * _TENSOR + pairs * _PAIR > reader.size:
        raise Fault("gguf.counts", tensors=tensors, pairs=pairs, size=reader.size)
    notes = (Finding("gguf.big_endian"),) if order == ">" else ()
    return GgufHead(version, order == ">", tensors, pairs, notes)
