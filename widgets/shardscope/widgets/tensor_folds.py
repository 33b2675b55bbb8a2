"""What names of modules have in common, how numbers of layers are written, and how one layer differs from others."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

RUNS: Final = 4
"""Stretches of numbers that the name of a fold has."""


def common(first: str, last: str) -> int:
    """Return the length of what two names have in common, up to and with its last separator."""
    end = next(
        (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other),
        min(len(first), len(last)),
    )
    while end and first[end - 1] not in "./":
        end -= 1
    return end


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers in words: `0-31`, `0-2, 4-6`; of many stretches the first ones and the last."""
    runs = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        held = [number for _, number in run]
        runs.append(f"{held[0]}-{held[-1]}" if len(held) > 1 else str(held[0]))
    if len(runs) > RUNS:
        return f"{', '.join(runs[: RUNS - 1])} ... {runs[-1]}"
    return ", ".join(runs)


def natural(label: str) -> tuple[bool, int, str]:
    """Return a key that puts parts of names in order: words first, then numbers by what they are."""
    number = label.isdecimal() and label.isascii() and len(label) < 18
    return (number, int(label) if number else 0, label)


def differences(here: dict[str, tuple[int, int]], there: dict[str, tuple[int, int]]) -> str:
    """Return in words what the tensors of one branch lack, add or have otherwise than those of another."""
    both = here.keys() & there.keys()
    words = []
    for word, names in (
        ("lacks", there.keys() - here.keys()),
        ("adds", here.keys() - there.keys()),
        ("other type or shape:", {name for name in both if here[name] != there[name]}),
    ):
        if names:
            more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
            words.append(f"{word} {min(names)}{more}")
    return "; ".join(words)
