"""`universal_checkpoint_info` of every version, read from plain data.

Versions 0.2 (until deepspeed 0.18.8), 0.3 and 0.4, the last with or without `affine_map`; which keys are there decides, not
the version, save for sub-parameters: before 0.4 they are cut evenly and may be a count, since then widths are recorded.
Keys: `deepspeed/checkpoint/constants.py` of 0.19.8.
"""

from collections.abc import Mapping
from typing import Final, NoReturn

from msgspec import Struct

from shardscope.engine.geometry.interchange.deepspeed import LARGEST, read_affine_map
from shardscope.engine.geometry.interchange.patterns import Patterns
from shardscope.engine.geometry.pieces.budget import DEFAULT, Budgets
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered

NEWEST: Final = 0.4
WIDTHS_SINCE: Final = 0.4

LISTS: Final = {
    "replicated": "tp_replicated_parameter_patterns",
    "average": "parameter_to_average_patterns",
    "two_sub_params": "parameter_with_2_sub_params_cat_dim_0",
    "row": "parameter_with_row_parallelism_patterns",
    "vocabulary": "vocabulary_parameter_patterns",
    "pipeline_replicated": "pipeline_replicated_parameter_patterns",
    "experts": "expert_parameter_patterns",
}
"""Categories that are plain lists of patterns, with their keys."""

STRICT: Final = ("replicated", "average", "two_sub_params", "sub_params", "row", "vocabulary")
"""Categories whose every pattern has to match something, as the producer's converter asks for."""


class SubParams(Struct, frozen=True):
    """What is said of a parameter that is several sub-parameters along one dimension."""

    shape: tuple[int, ...]
    """As a view of the full parameter; -1 for an extent that follows from the others, 0 at `dim`."""
    dim: int
    sizes: tuple[int, ...]
    """Of the sub-parameters; empty where only their number is recorded."""
    count: int
    widths: tuple[tuple[int, ...], ...] | None
    """Of each sub-parameter on each rank; null before version 0.4."""


class UniversalInfo:
    """The entry, ready to look parameters up in."""

    __slots__ = ("affine", "patterns", "sub_params", "unknown", "unsupported", "version", "vocabulary")

    def __init__(
        self,
        version: float,
        patterns: dict[str, Patterns],
        sub_params: dict[str, SubParams],
        unsupported: dict[str, str],
        vocabulary: int | None,
        affine: dict[str, Lowered],
        unknown: tuple[str, ...],
    ) -> None:
        self.version = version
        self.patterns = patterns
        """By category; those of `LISTS`, `sub_params` and `unsupported`."""
        self.sub_params = sub_params
        """By pattern."""
        self.unsupported = unsupported
        """The reason, by pattern."""
        self.vocabulary = vocabulary
        """Rows of the vocabulary without padding."""
        self.affine = affine
        """By parameter name."""
        self.unknown = unknown
        """Keys that nothing is known of, sorted."""

    def matching(self, category: str, name: str) -> tuple[str, ...]:
        """Return the patterns of a category that match a name. Raises `Fault` `universal.pattern`."""
        return self.patterns[category].matching(name)


def read_universal(value: object, budgets: Budgets = DEFAULT) -> UniversalInfo:
    """Return `universal_checkpoint_info` from plain data (JSON, or what a pickle said).

    Raises `Fault`: `universal.malformed`, `universal.version`, `universal.pattern`, and those of `read_affine_map`.
    """
    if not isinstance(value, Mapping):
        _malformed("universal_checkpoint_info", "it is no dictionary")
    version = _version(value.get("universal_checkpoint_version", 0.0))
    patterns = {category: Patterns(_texts(value.get(key), key)) for category, key in LISTS.items()}
    sub_params = _sub_params(value, version)
    unsupported = _reasons(value.get("autotp_unsupported_parameter_patterns"))
    patterns["sub_params"] = Patterns(sub_params)
    patterns["unsupported"] = Patterns(unsupported)
    container = value.get("affine_map")
    return UniversalInfo(
        version,
        patterns,
        sub_params,
        unsupported,
        _size(value.get("original_vocab_size")),
        read_affine_map(container, budgets) if container else {},
        tuple(sorted(key for key in value if isinstance(key, str) and key not in _KNOWN)),
    )


_KNOWN: Final = frozenset(LISTS.values()) | {
    "universal_checkpoint_version",
    "parameter_with_sub_params",
    "sub_param_shard_widths",
    "autotp_unsupported_parameter_patterns",
    "original_vocab_size",
    "padded_vocab_size",  # declared by every version, used by none
    "affine_map",
    "ds_autoep_layers",
}


def _version(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or value < 0:
        _malformed("universal_checkpoint_version", "it is no version number")
    if value > NEWEST:
        found = str(value) if value < LARGEST else "a very large number"
        raise Fault("universal.version", found=found, known=str(NEWEST))
    return float(value)


def _texts(value: object, place: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        _malformed(place, "it is no list of patterns")
    return list(value)


def _reasons(value: object) -> dict[str, str]:
    place = "autotp_unsupported_parameter_patterns"
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        _malformed(place, "it is no dictionary")
    for key, reason in value.items():
        if not isinstance(key, str) or not isinstance(reason, str):
            _malformed(place, "a pattern or its reason is no text")
    return dict(value)


def _size(value: object) -> int | None:
    return None if value is None else _whole(value, "original_vocab_size")


def _sub_params(info: Mapping[object, object], version: float) -> dict[str, SubParams]:
    key = "parameter_with_sub_params"
    entries = info.get(key)
    widths = info.get("sub_param_shard_widths")
    if widths is not None and not isinstance(widths, Mapping):
        _malformed("sub_param_shard_widths", "it is no dictionary")
    if entries is None:
        return {}
    if not isinstance(entries, list | tuple):
        _malformed(key, "it is no list")
    found: dict[str, SubParams] = {}
    for number, entry in enumerate(entries):
        place = f"{key}[{number}]"
        if not isinstance(entry, Mapping) or not entry.keys() >= {"patterns", "shape", "partition_dim"}:
            _malformed(place, "patterns, shape or partition_dim is missing")
        for pattern in _texts(entry["patterns"], f"{place}.patterns"):
            recorded = None if widths is None or version < WIDTHS_SINCE else widths.get(pattern)
            one = _sub_param(entry["shape"], entry["partition_dim"], recorded, place)
            if found.setdefault(pattern, one) != one:
                _malformed(place, "a pattern is there twice, with another shape")
    return found


def _sub_param(shape: object, dim: object, widths: object, place: str) -> SubParams:
    if not isinstance(shape, list | tuple):
        _malformed(f"{place}.shape", "it is no list")
    axis = _whole(dim, f"{place}.partition_dim", lowest=-len(shape))
    if axis >= len(shape):
        _malformed(f"{place}.partition_dim", f"dimension {axis} of {len(shape)}")
    axis %= len(shape)
    extents: list[int] = []
    sizes: tuple[int, ...] = ()
    count = 0
    for number, extent in enumerate(shape):
        at = f"{place}.shape[{number}]"
        parts = None
        if isinstance(extent, list | tuple):
            parts = tuple([_whole(part, at) for part in extent])
        if number != axis:
            extents.append(sum(parts) if parts is not None else _whole(extent, at, lowest=-1))
            continue
        extents.append(0)
        if parts is None:
            count = _whole(extent, at, lowest=1)
        else:
            sizes, count = parts, len(parts)
    if count == 0 or extents.count(-1) > 1:
        _malformed(f"{place}.shape", "it has no sub-parameters, or more than one extent is open")
    recorded = None if widths is None else _widths(widths, place)
    return SubParams(tuple(extents), axis, sizes, count, recorded)


def _widths(value: object, place: str) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(row, list | tuple) for row in value):
        _malformed(f"{place}, sub_param_shard_widths", "it is no list of lists")
    return tuple(tuple(_whole(width, f"{place}, sub_param_shard_widths") for width in row) for row in value)


def _whole(value: object, place: str, lowest: int = 0) -> int:
    if type(value) is not int:
        _malformed(place, "a number is not whole")
    if not lowest <= value <= LARGEST:
        _malformed(place, "a number is out of its range")
    return value


def _malformed(place: str, reason: str) -> NoReturn:
    raise Fault("universal.malformed", place=place, reason=reason)
