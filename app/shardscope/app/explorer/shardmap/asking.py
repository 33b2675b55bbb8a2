"""What a person types on the shard map: a target topology, a place."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from shardscope.app.explorer.target import quoted

if TYPE_CHECKING:
    from shardscope.engine.converting.resharding import Aim
    from shardscope.engine.geometry.mapping.targets import Sharding

NUMBERS: Final = ("tp", "pp", "dp", "ep")
EXAMPLE: Final = "tp 2 dp 4 zero 3    dp 8 fsdp    ./map.json"
_TOKEN: Final = re.compile(r"-{0,2}([a-z]+)[ =:]*(\d+)?[ ,]*")
_ZERO: "Final[dict[int, Sharding]]" = {0: "none", 1: "zero1", 2: "zero2", 3: "zero3"}


class Wish(Struct, frozen=True):
    """A target as it was typed."""

    numbers: tuple[tuple[str, int], ...] = ()
    """Of `tp`, `pp`, `dp`, `ep`, `zero` and `fsdp`, in the order in which they were typed."""
    path: str | None = None
    """Of a document of maps; then there are no numbers."""

    @property
    def words(self) -> str:
        """What was asked for, short."""
        if self.path is not None:
            return self.path
        return " ".join(name if name == "fsdp" else f"{name} {count}" for name, count in self.numbers)

    @property
    def options(self) -> list[str]:
        """The options of `shardscope reshard` that ask for the same."""
        if self.path is not None:
            return ["--target", quoted(self.path)]
        found = []
        for name, count in self.numbers:
            found += ["--fsdp"] if name == "fsdp" else [f"--{name}", str(count)]
        return found

    def aim(self) -> "Aim":
        """Return it as the engine wants it. Reads a document; raises `Fault`."""
        from shardscope.engine.converting.resharding import Aim
        from shardscope.engine.geometry.mapping.targets import Numbers
        from shardscope.engine.shardmaps.reading import read_shard_map

        if self.path is not None:
            return Aim("ranks", read_shard_map(self.path))
        counts = dict(self.numbers)
        tp, pp, dp, ep = (counts.get(name, 1) for name in NUMBERS)
        return Aim("ranks", None, Numbers(tp, pp, dp, ep, _sharing(counts)))


def _sharing(counts: Mapping[str, int]) -> "Sharding":
    return "fsdp" if "fsdp" in counts else _ZERO[counts.get("zero", 0)]


def read_wish(text: str) -> Wish | str:
    """Return what was typed: `tp 2 dp 4`, `tp=2,zero=3`, `--dp 8 --fsdp`, or a path; or a sentence on what is wrong with it."""
    text = text.strip()
    if not text:
        return "Type numbers of ranks, or the path of a map."
    if "/" in text or text.endswith(".json"):
        return Wish(path=text)
    found: dict[str, int] = {}
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return "Numbers of ranks look like: tp 2 dp 4 zero 3. A path has a slash or ends in .json."
        name, number = token[1], token[2]
        at = token.end()
        if name not in (*NUMBERS, "zero", "fsdp"):
            return "Known are tp, pp, dp, ep, zero and fsdp. A path has a slash or ends in .json."
        if name in found:
            return f"{name} is there twice."
        if (number is None) != (name == "fsdp"):
            return "fsdp has no number." if name == "fsdp" else f"{name} needs a number."
        found[name] = int(number or 1)
        if name == "zero" and found[name] not in _ZERO:
            return "zero is 0, 1, 2 or 3."
        if name != "zero" and not 1 <= found[name] <= 65_536:
            return f"{name} is at least 1 and at most 65,536."
    if "fsdp" in found and found.get("zero"):
        return "fsdp and zero are two ways to share; choose one."
    return Wish(tuple(found.items()))


def read_index(text: str, shape: tuple[int, ...]) -> tuple[int, ...] | str:
    """Return an index in each dimension, from numbers with commas or spaces between them; or a sentence on what is wrong.

    One number alone is an address of the flattened tensor.
    """
    words = re.split(r"[\s,]+", text.replace("_", "").strip(" []()"))
    if not all(word.isdigit() for word in words):
        return "An index is whole numbers: 600, 17."
    numbers = tuple(int(word) for word in words if word)
    if len(numbers) == 1 and len(shape) != 1:
        total = 1
        for extent in shape:
            total *= extent
        if numbers[0] >= total:
            return f"There are {total:,} elements, from 0 on."
        rest, found = numbers[0], []
        for extent in reversed(shape):
            rest, at = divmod(rest, extent)
            found.append(at)
        return tuple(reversed(found))
    if len(numbers) != len(shape):
        return f"It has {len(shape)} dimensions: give {len(shape)} numbers, or one of the flattened tensor."
    for dim, (at, extent) in enumerate(zip(numbers, shape, strict=True)):
        if at >= extent:
            return f"Dimension {dim} has {extent:,} positions, from 0 on."
    return numbers
