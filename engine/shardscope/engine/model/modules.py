"""Names of tensors as modules: numbered parts taken out, so that the layers and experts that repeat fold into one name.

Whatever draws names in a tree or folds them in a list reads them here, so that both fold alike.
"""

import re
from collections.abc import Iterable, Sequence
from math import prod
from typing import Final

from msgspec import Struct

SEPARATOR: Final = "."
"""Between the parts of a name."""
WILD: Final = "*"
"""Stands for a number in a pattern."""
_NUMBER: Final = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z", re.ASCII)
_RANGES: Final = 4
"""Ranges of numbers that are written out before the rest is left to a count."""


class Pattern(Struct, frozen=True):
    """A name with its numbers taken out. Two names of one pattern differ in numbers alone."""

    parts: tuple[str, ...]
    """With `WILD` in the place of numbers. A part of the name that is an asterisk itself is written `**`."""
    numbers: tuple[int, ...]
    """In their order."""


def pattern_of(name: str) -> Pattern:
    """Return the pattern of a name: `layers.3.mlp.weight` is `layers.*.mlp.weight` and 3."""
    parts, numbers = [], []
    for part in name.split(SEPARATOR):
        if part[:1].isdigit() and _NUMBER.match(part):
            numbers.append(int(part))
            parts.append(WILD)
        else:
            parts.append(part if part != WILD else WILD * 2)
    return Pattern(tuple(parts), tuple(numbers))


def is_number(part: str) -> bool:
    """Tell whether a part of a name is a number, as of a layer or an expert."""
    return _NUMBER.match(part) is not None


def ranges_of(numbers: Iterable[int], most: int = _RANGES) -> str:
    """Return numbers as ranges: `0-31`, `0-3,7`. Beyond `most` ranges the rest is three dots."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    words = [str(low) if low == high else f"{low}-{high}" for low, high in found[:most]]
    return ",".join([*words, "..."] if len(found) > most else words)


def folded_name(parts: Sequence[str], numbers: Sequence[tuple[int, ...]]) -> str:
    """Return one name for all names of a pattern: `layers.{0-31}.mlp.weight`.

    `numbers` are those of each name. A place where all have the same number shows that number.
    """
    columns = iter(zip(*numbers, strict=True))
    return SEPARATOR.join(_place(part, columns) for part in parts)


def _place(part: str, columns: "Iterable[tuple[int, ...]]") -> str:
    if part == WILD:
        column = next(iter(columns))
        text = ranges_of(column)
        return text if text.isdigit() else f"{{{text}}}"
    return WILD if part == WILD * 2 else part


def is_complete(numbers: Sequence[tuple[int, ...]]) -> bool:
    """Tell whether every combination of the numbers at each place is there: no expert of one layer alone is left out."""
    if not numbers:
        return True
    return len(set(numbers)) == prod(len(set(column)) for column in zip(*numbers, strict=True))
