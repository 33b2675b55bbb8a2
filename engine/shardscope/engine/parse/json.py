"""JSON within bounds: bytes, depth and number of values are known before anything is built.

The standard library's scanner builds the values, because it alone shows every pair of an object and every literal
as it was written. What it lets through is caught here: UTF-16, duplicate keys, NaN, numbers beyond 64 bits and
halves of surrogate pairs.
"""

import json
import math
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final

from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.facts import JsonDocument
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Reader

MAX_DEPTH: Final = 500
"""The scanner recurses: beyond this depth it could meet the interpreter's own limit, whatever `Limits` allow."""

_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}

_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")

_EXPECTED: Final = {
    "Expecting property name": "a key in double quotes is expected",
    "Expecting ':'": "a colon is expected",
    "Expecting ','": "a comma or the end of the list or object is expected",
    "Expecting value": "a value is expected",
    "Unterminated string": "a string has no end",
    "Invalid control": "a control character stands in a string",
    "Invalid \\": "an escape in a string is not one of JSON's",
    "Extra data": "text follows the end of the document",
    "Illegal trailing comma": "a comma is followed by nothing",
}

_PIECE: Final = 1 << 20
_BOM: Final = b"\xef\xbb\xbf"


def read_json(reader: Reader, limits: Limits) -> JsonDocument:
    """Read a whole JSON file and parse it.

    Raises `Fault` `limit.json_bytes` before reading a file that is too large, and what `parse_json` raises.
    """
    if reader.size > limits.json_bytes:
        raise Fault("limit.json_bytes", limit=limits.json_bytes, found=reader.size)
    return parse_json(reader.pread(0, reader.size), limits)


def parse_json(data: bytes, limits: Limits) -> JsonDocument:
    """Parse one JSON document (RFC 8259, UTF-8).

    Raises `Fault` `limit.json_bytes`, `json.encoding`, `json.not_utf8`, `limit.json_nodes`, `limit.json_depth`,
    `json.syntax`, `json.duplicate_key` or `json.lone_surrogate`, whichever comes first in this order. A byte-order mark,
    NaN and numbers beyond 64 bits are notes: configurations and training logs in the wild carry them.
    """
    if len(data) > limits.json_bytes:
        raise Fault("limit.json_bytes", limit=limits.json_bytes, found=len(data))
    if (encoding := wide_encoding(data)) is not None:
        raise Fault("json.encoding", encoding=encoding)
    notes = []
    if data.startswith(_BOM):
        notes.append(Finding("json.bom"))
        data = data[len(_BOM) :]
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Fault("json.not_utf8", offset=error.start) from None
    nodes = check_structure(data, limits)
    literals = _Literals()
    try:
        value = literals.decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Fault(
            "json.syntax", line=error.lineno, column=error.colno, expected=expectation(error)
        ) from None
    if literals.duplicate is not None:
        raise Fault("json.duplicate_key", key=literals.duplicate)
    if (offset := lone_surrogate(text)) is not None:
        line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
        raise Fault("json.lone_surrogate", line=line, column=column)
    notes.extend(Finding(code, {"count": count}) for code, count in sorted(literals.odd.items()))
    return JsonDocument(value=value, bytes=len(data), nodes=nodes, notes=tuple(notes))


def require_object(document: JsonDocument) -> dict[str, Any]:
    """Return the document's value, which has to be an object.

    Raises `Fault` `json.not_object`.
    """
    if not isinstance(document.value, dict):
        raise Fault("json.not_object", found=kind_of(document.value))
    return document.value


def kind_of(value: object) -> str:
    """Return what kind of JSON value this is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case dict():
            return "an object"
        case _:
            return "a list"


def wide_encoding(data: bytes) -> str | None:
    """Return `UTF-16` or `UTF-32` where the first bytes show it: a byte-order mark, or NULs between ASCII."""
    head = data[:4]
    if head in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        return "UTF-32"
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "UTF-16"
    match [byte != 0 for byte in head]:
        case [False, False, False, True] | [True, False, False, False]:
            return "UTF-32"
        case [False, True, *_] | [True, False, True, False]:
            return "UTF-16"
    return None


def check_structure(data: bytes, limits: Limits) -> int:
    """Return the number of values in JSON text, having checked it and the depth against `limits`.

    Nothing is built: escapes and strings are cut out piece by piece and what is left is counted, in time linear in
    the bytes. Past the first error of syntax the count means nothing, and the scanner does not get there.

    Raises `Fault` `limit.json_nodes` or `limit.json_depth`.
    """
    text = without_escapes(data)
    nodes, brackets = 1, bytearray()
    for start, end in _even_pieces(text):
        skeleton = b'"'.join(text[start:end].split(b'"')[::2]).translate(None, b" \t\r\n")
        opened = skeleton.count(b"[") + skeleton.count(b"{")
        nodes += skeleton.count(b",") + opened - skeleton.count(b"[]") - skeleton.count(b"{}")
        if nodes > limits.json_nodes:
            raise Fault("limit.json_nodes", limit=limits.json_nodes, found=nodes)
        brackets += skeleton.translate(None, _NOT_BRACKETS)
    allowed = min(limits.json_depth, MAX_DEPTH)
    depth = max(accumulate(map(_STEP.__getitem__, brackets)), default=0)
    if depth > allowed:
        raise Fault("limit.json_depth", limit=allowed, found=depth)
    return nodes


def without_escapes(data: bytes) -> bytes:
    """Return JSON text without escaped backslashes and quotation marks, so that each one left delimits a string."""
    if b"\\" not in data:
        return data
    return data.replace(b"\\\\", b"").replace(b'\\"', b"")


def _even_pieces(text: bytes) -> Iterator[tuple[int, int]]:
    """Cut text into pieces of about a megabyte that begin and end outside strings, each end at a quotation mark."""
    start = 0
    while start < len(text):
        end = text.find(b'"', start + _PIECE) + 1 or len(text)
        if text.count(b'"', start, end) % 2:
            end = text.find(b'"', end) + 1 or len(text)
        yield start, end
        start = end


def lone_surrogate(text: str) -> int | None:
    """Return where JSON text escapes half of a surrogate pair, or null."""
    if _SURROGATE.search(text) is None:  # nearly always
        return None
    return next((match.start() for match in _ESCAPE.finditer(text) if match[1]), None)


def expectation(error: json.JSONDecodeError) -> str:
    """Return in one clause what the standard library's scanner missed, in the same words for every Python version."""
    return next(
        (words for start, words in _EXPECTED.items() if error.msg.startswith(start)), "it cannot be read"
    )


class _Literals:
    """What the scanner meets on its way: the first duplicate key, and literals that need a word."""

    def __init__(self) -> None:
        self.duplicate: str | None = None
        self.odd: dict[str, int] = {}
        self.decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._integer,
            parse_float=self._float,
            parse_constant=self._constant,
        )

    def _note(self, code: str) -> None:
        self.odd[code] = self.odd.get(code, 0) + 1

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs) and self.duplicate is None:
            self.duplicate = first_duplicate(pairs)
        return value

    def _integer(self, digits: str) -> int | float:
        if len(digits) < 19:
            return int(digits)
        if len(digits) <= 20 and -(1 << 63) <= (value := int(digits)) < 1 << 64:
            return value
        self._note("json.integer_range")
        return self._float(digits)

    def _float(self, literal: str) -> float:
        value = float(literal)
        if math.isinf(value):
            self._note("json.number_range")
        return value

    def _constant(self, name: str) -> float:
        self._note("json.nonfinite")
        return float(name.replace("Infinity", "inf"))


def first_duplicate(pairs: list[tuple[str, Any]]) -> str | None:
    """Return the first key that stands twice in the pairs of an object, or null."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    return None
