"""DeepSpeed's `affine_map` container, read and written as plain data (format version 1).

The container is the one that deepspeed 0.19.8 keeps in `universal_checkpoint_info` (`deepspeed/checkpoint/affine.py`):

    {"version": 1, "params": {"^name$": {"logical_shape": [...], "ranks": {0: {"shard_shape": [...], "pieces": [
        {"shape": [...], "source": [offset, strides], "dest": [offset, strides], "locations": [ranks], "scale": 0.5}]}}}}}

Offsets and strides are in elements, `scale` is left out where it is 1, and `dest` addresses the flattened shard. Reading
keeps the pieces as they are written, empty ones included; whether they make sense is for the checks to say.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NoReturn

from shardscope.engine.geometry.pieces.budget import DEFAULT, Budget, Budgets
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import ONE, Lowered, Piece, RankShard, Side

VERSION: Final = 1
LARGEST: Final = (1 << 63) - 1
"""No offset, stride or extent is larger: such a number addresses nothing that fits a file."""

_SPECIAL: Final = frozenset("()[]{}?*+-|^$\\.&~# \t\n\r\v\f")
"""What `re.escape` puts a backslash before."""


def read_affine_map(
    value: object, budgets: Budgets = DEFAULT, *, keys_are_names: bool = False
) -> dict[str, Lowered]:
    """Return the maps of a container, by parameter name.

    `keys_are_names`: the keys are plain names, as in the entries of `ds_autoep_layers`. Raises `Fault`: `affine.malformed`,
    `affine.version`, `affine.key`, `map.budget`.
    """
    container = _fields(value, "affine_map", needed=("params",), known=("version", "params"))
    _check_version(container.get("version", VERSION))
    params = container["params"]
    if not isinstance(params, Mapping):
        _malformed("affine_map.params", "it is no dictionary")
    maps: dict[str, Lowered] = {}
    for key, entry in params.items():
        if not isinstance(key, str):
            _malformed("affine_map.params", "a key is no text")
        name = key if keys_are_names else exact_name(key)
        if name is None:
            raise Fault("affine.key", pattern=key, reason="it is not an anchored, escaped name")
        if name in maps:
            raise Fault("affine.key", pattern=key, reason="two keys mean the same name")
        maps[name] = read_parameter(entry, name, Budget(budgets))
    return maps


def read_parameter(entry: object, name: str, budget: Budget | None = None) -> Lowered:
    """Return the map of one parameter; `name` is for messages.

    Raises `Fault`: `affine.malformed`, `map.budget`.
    """
    budget = budget or Budget()
    fields = _fields(entry, name, needed=("logical_shape", "ranks"))
    shape = _shape(fields["logical_shape"], f"{name}.logical_shape")
    budget.bound("axes", len(shape))
    ranks = fields["ranks"]
    if not isinstance(ranks, Mapping):
        _malformed(f"{name}.ranks", "it is no dictionary")
    shards: dict[int, RankShard] = {}
    for key, shard in ranks.items():
        rank = _rank(key, f"{name}.ranks")
        if rank in shards:
            _malformed(f"{name}.ranks", f"rank {rank} is there twice")
        shards[rank] = _shard(shard, rank, f"{name}.ranks.{rank}", budget)
    return Lowered(shape, tuple(shards[rank] for rank in sorted(shards)))


def write_affine_map(maps: Mapping[str, Lowered], *, keys_are_names: bool = False) -> dict[str, object]:
    """Return the container for maps by parameter name, with the keys in the order and form that deepspeed writes.

    Raises `Fault` `affine.unwritable`.
    """
    params = {
        name if keys_are_names else exact_pattern(name): write_parameter(lowered, name)
        for name, lowered in maps.items()
    }
    return {"version": VERSION, "params": params}


def write_parameter(lowered: Lowered, name: str) -> dict[str, object]:
    """Return the entry of one parameter; `name` is for messages.

    A factor becomes the nearest double, as deepspeed holds it. Raises `Fault` `affine.unwritable`.
    """
    ranks: dict[int, object] = {}
    for shard in lowered.ranks:
        if shard.padding:
            reason = f"the shard of rank {shard.rank} has padding of {shard.padding:,} elements"
            raise Fault("affine.unwritable", tensor=name, reason=reason)
        if shard.indexed:
            reason = f"rank {shard.rank} holds elements that only an index describes"
            raise Fault("affine.unwritable", tensor=name, reason=reason)
        ranks[shard.rank] = {
            "shard_shape": list(shard.shape),
            "pieces": [_piece_entry(piece, name) for piece in shard.pieces],
        }
    return {"logical_shape": list(lowered.shape), "ranks": ranks}


def exact_pattern(name: str) -> str:
    """Return the anchored, escaped key of a parameter name."""
    return "^" + "".join("\\" + c if c in _SPECIAL else c for c in name) + "$"


def exact_name(pattern: str) -> str | None:
    """Return the name that an anchored, escaped pattern stands for; null for any other pattern.

    The pattern is taken apart by hand, and never compiled.
    """
    if len(pattern) < 2 or pattern[0] != "^" or pattern[-1] != "$":
        return None
    return _unescaped(pattern[1:-1])


def _unescaped(body: str) -> str | None:
    name = []
    characters = iter(body)
    for c in characters:
        if c == "\\":
            literal = next(characters, "")
            # A backslash before a letter or a digit is a class, an anchor or a reference.
            if not literal or (literal.isascii() and literal.isalnum()):
                return None
            name.append(literal)
        elif c in "()[]{}?*+|^$.":
            return None
        else:
            name.append(c)
    return "".join(name)


def _check_version(version: object) -> None:
    if isinstance(version, bool) or not isinstance(version, int):
        _malformed("affine_map.version", "it is no whole number")
    if version != VERSION:
        raise Fault("affine.version", found=_digits(version), known=VERSION)


def _shard(value: object, rank: int, place: str, budget: Budget) -> RankShard:
    fields = _fields(value, place, needed=("shard_shape", "pieces"))
    shape = _shape(fields["shard_shape"], f"{place}.shard_shape")
    listed = _list(fields["pieces"], f"{place}.pieces")
    budget.spend("pieces", len(listed))
    pieces = [_piece(entry, f"{place}.pieces[{number}]") for number, entry in enumerate(listed)]
    return RankShard(rank, shape, tuple(pieces))


def _piece(value: object, place: str) -> Piece:
    fields = _fields(
        value,
        place,
        needed=("shape", "source", "dest", "locations"),
        known=("shape", "source", "dest", "locations", "scale"),
    )
    shape = _shape(fields["shape"], f"{place}.shape")
    return Piece(
        shape,
        _side(fields["source"], len(shape), f"{place}.source"),
        _side(fields["dest"], len(shape), f"{place}.dest"),
        _holders(fields["locations"], f"{place}.locations"),
        _scale(fields["scale"], f"{place}.scale") if "scale" in fields else ONE,
    )


def _side(value: object, axes: int, place: str) -> Side:
    pair = _list(value, place)
    if len(pair) != 2:
        _malformed(place, "it is no pair of offset and strides")
    strides = _shape(pair[1], place)
    if len(strides) != axes:
        _malformed(place, f"{len(strides)} strides for {axes} dimensions")
    return Side(_whole(pair[0], place), strides)


def _holders(value: object, place: str) -> tuple[int, ...]:
    ranks = [_whole(rank, place, lowest=-LARGEST) for rank in _list(value, place)]
    if len(set(ranks)) != len(ranks):
        _malformed(place, "a rank is there twice")
    return tuple(sorted(ranks))


def _scale(value: object, place: str) -> tuple[int, int]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _malformed(place, "it is no number")
    if isinstance(value, int):
        _whole(value, place, lowest=-LARGEST)
    if not math.isfinite(value) or value == 0:
        _malformed(place, "a factor has to be finite and not zero")
    return value.as_integer_ratio()


def _piece_entry(piece: Piece, name: str) -> dict[str, object]:
    entry: dict[str, object] = {
        "shape": list(piece.shape),
        "source": [piece.source.offset, list(piece.source.strides)],
        "dest": [piece.dest.offset, list(piece.dest.strides)],
        "locations": list(piece.holders),
    }
    if piece.scale != ONE:
        entry["scale"] = _double(piece.scale, name)
    return entry


def _double(scale: tuple[int, int], name: str) -> float:
    try:
        factor = scale[0] / scale[1]
    except OverflowError:
        factor = math.inf
    if factor in (0, 1) or math.isinf(factor):
        raise Fault("affine.unwritable", tensor=name, reason="no double stands for the factor")
    return factor


def _fields(
    value: object, place: str, *, needed: Iterable[str], known: Iterable[str] | None = None
) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        _malformed(place, "it is no dictionary")
    for key in needed:
        if key not in value:
            _malformed(place, f"{key} is missing")
    allowed = frozenset(known if known is not None else needed)
    if any(key not in allowed for key in value):
        _malformed(place, "it has a field that this version does not know")
    return value


def _list(value: object, place: str) -> list[object] | tuple[object, ...]:
    if not isinstance(value, list | tuple):
        _malformed(place, "it is no list")
    return value


def _shape(value: object, place: str) -> tuple[int, ...]:
    return tuple(_numbers(_list(value, place), place))


def _numbers(values: Iterable[object], place: str) -> Iterator[int]:
    for value in values:
        yield _whole(value, place)


def _whole(value: object, place: str, lowest: int = 0) -> int:
    # A truth value is an int to Python, and an int may be a subclass that prints as something else.
    if type(value) is not int:
        _malformed(place, "a number is not whole")
    if not lowest <= value <= LARGEST:
        _malformed(place, "a number is negative or too large")
    return value


def _rank(key: object, place: str) -> int:
    if type(key) is str:
        digits = key.removeprefix("-")
        # Only what str() writes: no signs, spaces, underscores or digits of other scripts. JSON has no other keys.
        plain = digits.isascii() and digits.isdigit() and len(digits) <= 19
        if not plain or str(int(key)) != key:
            _malformed(place, "a rank is no whole number")
        return int(key)
    return _whole(key, place, lowest=-LARGEST)


def _digits(number: int) -> str:
    return str(number) if abs(number) <= LARGEST else "a very large number"


def _malformed(place: str, reason: str) -> NoReturn:
    raise Fault("affine.malformed", place=place, reason=reason)
