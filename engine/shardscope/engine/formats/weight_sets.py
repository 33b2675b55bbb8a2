"""Hugging Face weight sets: which files belong together, by index, by number, or alone.

One folder can hold several sets side by side: variants (`model.fp16.safetensors`), a single file beside its shards, or
two saves on top of each other. A file belongs to the set of the first index that lists it; files that no index lists are
grouped by stem and declared total. Numbers in names only group files: what a set must hold comes from its index.
(Names: huggingface_hub `serialization/_base.py`, transformers `modeling_utils.py`.)
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.folder import Folder
from shardscope.engine.model.source import Entry

_SHARD: Final = r"(?P<stem>.+?)[-_](?P<number>\d+)[-_]of[-_](?P<total>\d+)(?P<variant>\.[^.]+)?\."
_INDEX: Final = r"(?P<stem>.+)\.{suffix}\.index(?P<variant>\.[^.]+)?\.json"


class Shard(Struct, frozen=True):
    """One numbered file: `model-00001-of-00003.safetensors` is number 1 of 3."""

    entry: Entry
    key: str
    number: int
    total: int
    plain: bool
    """Digits are ASCII and both numbers have the same width, as the writers do."""
    width: int
    """Digits of the number."""


class NumberedGroup(Struct, frozen=True):
    """The numbered files of one stem and one total."""

    key: str
    total: int
    shards: tuple[Shard, ...]

    @property
    def numbers(self) -> list[int]:
        """The numbers present, sorted."""
        return sorted({shard.number for shard in self.shards})

    @property
    def missing(self) -> tuple[int, list[int]]:
        """How many numbers of 1 to the total are absent, and the first few of them (never a loop over the total)."""
        present = [number for number in self.numbers if 1 <= number <= self.total]
        shown: list[int] = []
        expected = 1
        for number in (*present, self.total + 1):
            while expected < number and len(shown) < 8:
                shown.append(expected)
                expected += 1
            expected = number + 1
            if len(shown) == 8:
                break
        return self.total - len(present), shown


class Layout(Struct, frozen=True):
    """The files of a folder that can hold Hugging Face weights of one suffix."""

    indexes: tuple[tuple[Entry, str], ...]
    """Index files with the key of the set they describe (`model`, `model.fp16`)."""
    groups: tuple[NumberedGroup, ...]
    singles: tuple[tuple[Entry, str], ...]
    """Files without a number, with their key."""

    @property
    def files(self) -> list[Entry]:
        """Every weight file, by path."""
        numbered = [shard.entry for group in self.groups for shard in group.shards]
        return sorted([*numbered, *(entry for entry, _ in self.singles)], key=lambda entry: entry.path)


def indexes_of(folder: Folder, suffix: str) -> tuple[tuple[Entry, str], ...]:
    """Return the files that are named like an index of `suffix` files, by path, each with the key of its set."""
    index = re.compile(_INDEX.format(suffix=re.escape(suffix)))
    return tuple(
        (entry, match["stem"] + (match["variant"] or ""))
        for name, entry in folder.named("json").items()
        if ".index" in name and (match := index.fullmatch(name))
    )


def layout_of(folder: Folder, suffix: str) -> Layout:
    """Sort the files of a folder that end in `suffix` (`safetensors` or `bin`), and the indexes that name such files."""
    shard = re.compile(_SHARD + re.escape(suffix), re.IGNORECASE)
    groups: dict[tuple[str, int], list[Shard]] = {}
    singles: list[tuple[Entry, str]] = []
    for name, entry in folder.named(suffix).items():
        match = shard.fullmatch(name)
        if match is None or len(match["number"]) > 20 or len(match["total"]) > 20:
            singles.append((entry, name[: -len(suffix) - 1]))
            continue
        key = match["stem"] + (match["variant"] or "")
        digits = match["number"] + match["total"]
        plain = digits.isascii() and len(match["number"]) == len(match["total"])
        numbered = Shard(entry, key, int(match["number"]), int(match["total"]), plain, len(match["number"]))
        groups.setdefault((key, numbered.total), []).append(numbered)
    return Layout(
        indexes=indexes_of(folder, suffix),
        groups=tuple(
            NumberedGroup(key, total, tuple(found)) for (key, total), found in sorted(groups.items())
        ),
        singles=tuple(singles),
    )


class WeightSet(Struct, frozen=True):
    """Files that together hold one model: those of an index, a numbered group, or one file."""

    key: str
    index: Entry | None
    files: tuple[Entry, ...]
    group: NumberedGroup | None


def weight_sets(layout: Layout, listed: Sequence[Iterable[str]]) -> list[WeightSet]:
    """Return the sets of a layout. `listed[i]` are the file names that `layout.indexes[i]` lists."""
    by_name = {entry.name: entry for entry in layout.files}
    taken: set[str] = set()
    sets: list[WeightSet] = []
    for (index, key), names in zip(layout.indexes, listed, strict=True):
        files = tuple(by_name[name] for name in sorted(set(names)) if name in by_name)
        taken.update(entry.name for entry in files)
        sets.append(WeightSet(key, index, files, _group_of(layout, key, files)))
    for group in layout.groups:
        rest = tuple(shard.entry for shard in group.shards if shard.entry.name not in taken)
        owner = next((i for i, found in enumerate(sets) if found.group is group), None)
        if rest and owner is not None:
            sets[owner] = WeightSet(group.key, sets[owner].index, sets[owner].files + rest, group)
        elif rest:
            key = (
                group.key
                if group.key not in {found.key for found in sets}
                else f"{group.key} of {group.total}"
            )
            sets.append(WeightSet(key, None, rest, group))
    sets.extend(
        WeightSet(key, None, (entry,), None) for entry, key in layout.singles if entry.name not in taken
    )
    return sets


def _group_of(layout: Layout, key: str, files: Sequence[Entry]) -> NumberedGroup | None:
    """Return the numbered group that an index describes: the one that holds its files, else the only one of its key."""
    names = {entry.name for entry in files}
    groups = [group for group in layout.groups if group.key == key]
    held = [group for group in groups if any(shard.entry.name in names for shard in group.shards)]
    if held:
        return held[0]
    return groups[0] if len(groups) == 1 else None
