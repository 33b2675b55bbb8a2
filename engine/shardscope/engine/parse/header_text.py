"""The exact reading of a safetensors header: every pair as it was written, and a code for each way to be wrong.

It costs four times the typed reading of `parse/safetensors.py` and runs only where that one is in doubt.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from msgspec import Struct

from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.limits import Limits
from shardscope.engine.parse.json import (
    check_structure,
    expectation,
    first_duplicate,
    kind_of,
    lone_surrogate,
)

_SPACE: Final = " \t\r\n"
_JSON_START: Final = re.compile(r'["\[\-0-9]|true|false|null')
_WHITE: Final = re.compile(rb"[ \t\r\n]*+")
_PADDING: Final = re.compile(rb"[ \t\r\n\0\xc2\xa0]*+")
"""What writers pad with by mistake, too: NUL, and the two bytes of a no-break space."""
_SHOWN: Final = 200
_FIELDS: Final = ("dtype", "shape", "data_offsets")

OnFault = Callable[[Fault], None]
"""Hears what is wrong with one part of a header. It raises the fault, or lets reading go on without that part."""


def refuse(fault: Fault) -> None:
    """Raise what is wrong: the way of every reader that trusts a header."""
    raise fault


class Columns(Struct):
    """The tensors of a header in columns, in the order of the text until they are tiled. Offsets are relative."""

    names: list[str] = []
    dtypes: list[str] = []
    shapes: list[tuple[int, ...]] = []
    begins: list[int] = []
    ends: list[int] = []
    kinds: list[tuple[str, tuple[int, ...]]] = []
    kind_of: list[int] = []
    """The distinct dtypes with shapes, and for each tensor which of them it has: see `number_kinds`."""
    metadata: dict[str, str] = {}
    unread: dict[str, str] = {}
    """Metadata that were left out, as JSON, cut."""
    notes: list[Finding] = []


def number_kinds(columns: Columns) -> None:
    """Number the distinct pairs of dtype and shape, of which a checkpoint has few: what follows then asks each pair once."""
    alike = len(set(columns.dtypes)) <= 1
    keys = columns.shapes if alike else zip(columns.dtypes, columns.shapes, strict=True)
    numbers: defaultdict[Any, int] = defaultdict(count().__next__)
    columns.kind_of = list(map(numbers.__getitem__, keys))
    columns.kinds = [(columns.dtypes[0], shape) for shape in numbers] if alike else list(numbers)


class _Object(list[tuple[str, Any]]):
    """The pairs of a JSON object, in order, equal keys included."""


def read_text(raw: bytes, limits: Limits, on_fault: OnFault = refuse) -> Columns:
    """Read the JSON of a header pair by pair.

    Raises `Fault`: first what is wrong with the text (`header.not_utf8`, `bad_start`, `not_object`, `limit.json_*`, `syntax`,
    `padding`, `nonfinite`, `number_range`, `lone_surrogate`), then the first wrong entry in the order of the text. `on_fault` hears
    of padding, of metadata and of entries; where it does not raise, what is wrong is left out, but that an entry whose name stood
    before is read as well.
    """
    end = raw.rfind(b"}") + 1
    padding = len(raw) - end if end and _PADDING.fullmatch(raw, end) else 0
    valid = is_white(raw, end)
    if padding:  # up to 100 MB of it, which nothing below needs to carry along
        raw = raw[:end]
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise Fault("header.not_utf8", offset=error.start) from None
    pairs = _decode(text, raw, limits)
    if padding and not valid:
        on_fault(Fault("header.padding", count=padding))
    if (offset := lone_surrogate(text)) is not None:
        raise Fault("header.lone_surrogate", offset=offset)
    columns = Columns()
    seen: set[str] = set()
    extra = 0
    for name, value in pairs:
        if name in seen:
            metadata = name == "__metadata__"
            on_fault(
                Fault("header.metadata_twice") if metadata else Fault("header.name_duplicate", tensor=name)
            )
        seen.add(name)
        try:
            if name == "__metadata__":
                columns.metadata = _metadata(value, columns.notes)
            else:
                extra += _add_entry(columns, name, value)
        except Fault as fault:
            on_fault(fault)
            if name == "__metadata__":
                _leave(columns, value)
    if extra:
        columns.notes.append(Finding("header.field_extra", {"count": extra}))
    number_kinds(columns)
    return columns


def is_white(raw: bytes, start: int) -> bool:
    """Whether `raw` holds nothing but JSON white space from `start` on."""
    return _WHITE.fullmatch(raw, start) is not None


def _decode(text: str, raw: bytes, limits: Limits) -> _Object:
    start = text.lstrip(_SPACE)
    if not start.startswith("{"):
        if _JSON_START.match(start):
            found = {'"': "a string", "[": "a list", "t": "a boolean", "f": "a boolean", "n": "null"}
            raise Fault("header.not_object", found=found.get(start[0], "a number"))
        raise Fault("header.bad_start")
    check_structure(raw, limits)
    decoder = json.JSONDecoder(
        object_pairs_hook=_Object, parse_int=_integer, parse_float=_float, parse_constant=_constant
    )
    try:
        value, end = decoder.raw_decode(text, len(text) - len(start))
    except json.JSONDecodeError as error:
        raise Fault("header.syntax", offset=error.pos, expected=expectation(error)) from None
    if text[end:].strip(_SPACE):
        raise Fault("header.syntax", offset=end, expected="text follows the end of the object")
    if not isinstance(value, _Object):
        raise Fault("header.not_object", found=kind_of(value))
    return value


def _integer(digits: str) -> int | float:
    """Whole numbers of up to 64 bits are integers; -0 and longer ones are floats, as the reference parser takes them."""
    if digits == "-0" or len(digits) > 20:
        return _float(digits)
    return int(digits)


def _float(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise Fault("header.number_range")
    return value


def _constant(_: str) -> float:
    raise Fault("header.nonfinite")


def _metadata(value: object, notes: list[Finding]) -> dict[str, str]:
    if value is None:
        notes.append(Finding("header.metadata_null"))
        return {}
    if not isinstance(value, _Object):
        raise Fault("header.metadata_not_object", found=_kind(value))
    for _, text in value:
        if not isinstance(text, str):
            raise Fault("header.metadata_type", found=_kind(text))
    if (key := first_duplicate(value)) is not None:
        raise Fault("header.metadata_duplicate", key=key)
    return dict(value)


def _leave(columns: Columns, value: object) -> None:
    """Take what is text of metadata, and keep the rest of them to be shown."""
    pairs = value if isinstance(value, _Object) else [("__metadata__", value)]
    columns.metadata = {key: text for key, text in pairs if isinstance(text, str)}
    columns.unread = {
        key: json.dumps(text, ensure_ascii=False)[:_SHOWN] for key, text in pairs if not isinstance(text, str)
    }


def _add_entry(columns: Columns, name: str, value: object) -> int:
    """Add one tensor and return the number of fields that the format does not name."""
    if not isinstance(value, _Object):
        raise Fault("header.entry_type", tensor=name, found=_kind(value))
    if (field := first_duplicate(value)) is not None:
        raise Fault("header.field_duplicate", tensor=name, field=field)
    fields = dict(value)
    for field in _FIELDS:
        if field not in fields:
            raise Fault("header.field_missing", tensor=name, field=field)
    dtype, shape, offsets = (fields[field] for field in _FIELDS)
    if not isinstance(dtype, str):
        raise Fault("header.dtype_type", tensor=name, found=_kind(dtype))
    if (wrong := _not_whole_numbers(shape)) is not None:
        raise Fault("header.shape_type", tensor=name, found=wrong)
    if (wrong := _not_whole_numbers(offsets)) is not None:
        raise Fault("header.offsets_type", tensor=name, found=wrong)
    if len(offsets) != 2:
        raise Fault("header.offsets_type", tensor=name, found=f"{len(offsets)} numbers")
    columns.names.append(name)
    columns.dtypes.append(dtype)
    columns.shapes.append(tuple(shape))
    columns.begins.append(offsets[0])
    columns.ends.append(offsets[1])
    return len(fields) - len(_FIELDS)


def _kind(value: object) -> str:
    return "an object" if isinstance(value, _Object) else kind_of(value)


def _not_whole_numbers(value: object) -> str | None:
    """Say what keeps a value from being a list of whole numbers of 64 bits; null where it is one."""
    if not isinstance(value, list) or isinstance(value, _Object):
        return _kind(value)
    for number in value:
        if type(number) is not int:
            return (
                "a number with a fraction, an exponent or too many digits"
                if type(number) is float
                else _kind(number)
            )
        if number < 0:
            return "a negative number"
        if number >> 64:
            return "a number beyond 64 bits"
    return None
