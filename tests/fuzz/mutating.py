"""Mutations without coverage: of bytes, and of the values of a JSON document."""

import json
import random
import struct
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Final

NUMBERS: Final = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
)
VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, 0.5, -0.0, 1e308, "", "a", "\u202e\x1b[2J", "..", "/", "x" * 300,
    [], [[]], [0], [-1, 2**63], {}, {"": {}}, {"schema": 1},
)  # fmt: skip

Mutation = Callable[[random.Random, bytearray, Sequence[bytes]], None]


def flip(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """Turn a few bits."""
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def number(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """Write a number that is at an edge, in either byte order."""
    raw = struct.pack(rng.choice("<>") + "Q", rng.choice(NUMBERS))[: rng.choice((1, 2, 4, 8))]
    at = rng.randrange(len(data))
    data[at : at + len(raw)] = raw


def cut(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """End early, or begin late."""
    at = rng.randrange(len(data))
    if rng.random() < 0.8:
        del data[at:]
    else:
        del data[:at]


def remove(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """Take a stretch out."""
    at = rng.randrange(len(data))
    del data[at : at + rng.randint(1, 64)]


def repeat(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """Say a stretch again."""
    at = rng.randrange(len(data))
    data[at:at] = data[at : at + rng.randint(1, 64)] * rng.choice((1, 2, 50))


def splice(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """Put a stretch of another input in."""
    other = rng.choice(others)
    if other:
        at, there = rng.randrange(len(data)), rng.randrange(len(other))
        data[at : at + rng.randint(0, 200)] = other[there : there + rng.randint(1, 200)]


MUTATIONS: Final[tuple[Mutation, ...]] = (flip, number, cut, remove, repeat, splice)


def mutated(rng: random.Random, data: bytes, others: Sequence[bytes], *, textual: bool) -> bytes:
    """Return another input, near to `data`."""
    if textual and rng.random() < 0.6:
        changed = restructured(rng, data)
        if changed is not None:
            return changed
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if made:
            rng.choice(MUTATIONS)(rng, made, others)
    return bytes(made)


def restructured(rng: random.Random, data: bytes) -> bytes | None:
    """Return a JSON document with a few of its values exchanged, doubled or left out; null where `data` is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_places(value))[:2_000]
        if not places:
            return None
        holder, key = rng.choice(places)
        match rng.randrange(5):
            case 0:
                del holder[key]
            case 1:
                other, there = rng.choice(places)
                if type(other) is type(holder) or rng.random() < 0.5:
                    holder[key] = json.loads(json.dumps(other[there])) if _has(other, there) else None
            case 2 if isinstance(holder[key], int):
                holder[key] = holder[key] + rng.choice((-1, 1, 7, 2**32))
            case 3 if isinstance(holder, list):
                holder.insert(key, holder[key])
            case _:
                holder[key] = deepcopy(rng.choice(VALUES))
    return json.dumps(value).encode()


def _places(value: Any) -> Any:
    """Yield every holder with a key of it, in the order of the document."""
    todo = [value]
    while todo:
        holder = todo.pop()
        if isinstance(holder, dict | list):
            for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
                yield holder, key
                todo.append(holder[key])


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)
