"""The index of a sharded save, decoded typed where nothing about it is odd: half the memory and time of the exact way.

An index of a million tensors has 90 MB of text. The typed decoder keeps the last of two equal keys without a word; the
number of quotation marks tells whether it dropped anything, as for safetensors headers (`parse/safetensors.py`).
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.facts import JsonDocument
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Reader
from shardscope.engine.parse.json import parse_json, without_escapes


class _Index(Struct, forbid_unknown_fields=True):
    weight_map: dict[str, str]
    metadata: msgspec.Raw = msgspec.Raw(b"null")


_DECODER: Final = msgspec.json.Decoder(_Index)


def read_weight_index(reader: Reader, limits: Limits) -> JsonDocument:
    """Read an index file as a bounded JSON document, whose value may be anything: the caller judges it.

    Raises what `parse.json.read_json` raises.
    """
    if reader.size > limits.json_bytes:
        raise Fault("limit.json_bytes", limit=limits.json_bytes, found=reader.size)
    data = reader.pread(0, reader.size)
    return _typed(data, limits) or parse_json(data, limits)


def _typed(data: bytes, limits: Limits) -> JsonDocument | None:
    """Decode an index with nothing odd about it; null where the exact way has to look."""
    try:
        index = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    nodes = 2 + len(index.weight_map)
    if nodes > limits.json_nodes:
        return None
    metadata = bytes(index.metadata)
    named = 4 if metadata != b"null" or b'"metadata"' in data else 2
    quotes = named + 4 * len(index.weight_map) + without_escapes(metadata).count(b'"')
    if without_escapes(data).count(b'"') != quotes:
        return None
    document = parse_json(metadata, limits)
    files: dict[str, str] = {}  # a file's name a thousand times over is one string
    named_files = index.weight_map.values()
    weight_map = dict(zip(index.weight_map, map(files.setdefault, named_files, named_files), strict=True))
    value: dict[str, Any] = {"weight_map": weight_map}
    if named == 4:
        value["metadata"] = document.value
        nodes += document.nodes
    return JsonDocument(value=value, bytes=len(data), nodes=nodes, notes=document.notes)
