"""`DCP_SHARDING_INFO`: where the tensors of a safetensors file lie in the tensors they are pieces of.

torch writes it into the header's metadata (`torch/distributed/checkpoint/_hf_utils.py`, `hf_storage.py`): a JSON string
with an object, tensor name to `{"saved_offsets": [...]}`. Members that later releases add are let through, and
`global_shape`, the size of the whole tensor, is used where it is there.
"""

from typing import Any, Final

from msgspec import Struct

from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.limits import Limits
from shardscope.engine.parse.json import kind_of, parse_json

SHARDING: Final = "DCP_SHARDING_INFO"
VERSION: Final = "DCP_VERSION"
KNOWN_VERSION: Final = "1.0"
_LARGEST: Final = (1 << 63) - 1


class Saved(Struct, frozen=True):
    """What is said of one tensor."""

    offset: tuple[int, ...]
    """Where its piece begins, in elements along each axis."""
    global_shape: tuple[int, ...] | None = None


class Sharding(Struct, frozen=True):
    """What is said of the tensors of one file."""

    saved: dict[str, Saved]
    bad: tuple[tuple[str, str], ...] = ()
    """Tensors whose entry cannot be used, each with the reason."""
    notes: tuple[Finding, ...] = ()


class _Unusable(Exception):  # noqa: N818 - an entry on its way to becoming a reason
    """Why an entry cannot be used."""


def parse_sharding(text: str, limits: Limits) -> Sharding:
    """Return what `DCP_SHARDING_INFO` says.

    Raises `Fault` `dcp.sharding_malformed` where it is no JSON object, and `limit.json_bytes`, `limit.json_depth` or
    `limit.json_nodes`.
    """
    try:
        document = parse_json(text.encode("utf-8", "surrogatepass"), limits)
    except Fault as fault:
        if fault.finding.code.startswith("limit."):
            raise
        raise Fault("dcp.sharding_malformed", reason=fault.finding.code) from None
    if not isinstance(document.value, dict):
        raise Fault("dcp.sharding_malformed", reason=f"it is {kind_of(document.value)}")
    saved: dict[str, Saved] = {}
    bad: list[tuple[str, str]] = []
    for name, entry in document.value.items():
        try:
            saved[name] = _saved(entry)
        except _Unusable as error:
            bad.append((name, str(error)))
    return Sharding(saved, tuple(bad), document.notes)


def _saved(entry: Any) -> Saved:
    """Return one entry; raises `_Unusable` with the reason where it cannot be used."""
    if not isinstance(entry, dict):
        raise _Unusable(f"it is {kind_of(entry)}")
    if "saved_offsets" not in entry:
        raise _Unusable("it has no saved_offsets")
    shape = entry.get("global_shape")
    return Saved(
        _places("saved_offsets", entry["saved_offsets"]),
        None if shape is None else _places("global_shape", shape),
    )


def _places(field: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise _Unusable(f"{field} is {kind_of(value)}")
    for place in value:
        if not isinstance(place, int) or isinstance(place, bool):
            raise _Unusable(f"{field} holds {kind_of(place)} that is no integer")
        if place < 0:
            raise _Unusable(f"{field} holds a negative number")
        if place > _LARGEST:
            raise _Unusable(f"{field} holds a number beyond 63 bits")
    return tuple(value)
