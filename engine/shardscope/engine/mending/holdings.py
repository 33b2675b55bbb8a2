"""What one weight set holds: which tensor counts of several of one name, which are lost, and what is wrong."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from shardscope.engine.formats.weight_sets import NumberedGroup
from shardscope.engine.mending.headers import Stored, WeightFile
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.repair import Lost, Repair
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted, display_name

NUMBERED: Final = "{stem}-{number:0{width}d}-of-{total:0{width}d}.safetensors"
"""What a numbered file is called."""


class Found(Struct, frozen=True):
    """Something that is wrong, and what mends it."""

    blocker: Blocker
    repair: Repair


class Held(Struct, frozen=True):
    """A tensor that counts."""

    tensor: Stored
    file: int
    """Of the survey."""
    copies: tuple[tuple[int, Stored], ...] = ()
    """Further ones that have to be the same, byte for byte, since nothing tells which of them counts."""


class Survey(Struct, frozen=True, dict=True):
    """A weight set, looked at file by file."""

    key: str
    """What its files are called without number and suffix."""
    folder: bytes
    files: tuple[WeightFile, ...]
    """By path."""
    strays: tuple[Entry, ...]
    """Weight files and indexes beside it that are not of it."""
    index: Entry | None
    entries: Mapping[str, int | None]
    """By the names in the index: the file that it sends a loader to; null for one that is not here."""
    targets: Mapping[str, str]
    """By the names in the index: what it calls that file, as far as that is a name."""
    index_metadata: Mapping[str, Any]
    found: tuple[Found, ...]
    chosen: bool
    """Whether a person chose the files by name."""
    group: NumberedGroup | None
    """That all of its files are in, with no other files."""
    numbered: frozenset[bytes]
    """Paths of files that have a number, of whatever set."""

    @cached_property
    def held(self) -> tuple[Held, ...]:
        """The tensors that count, in the order of the files and of the data."""
        holders: dict[str, list[tuple[int, Stored]]] = {}
        for number, file in enumerate(self.files):
            for tensor in file.tensors:
                holders.setdefault(tensor.name, []).append((number, tensor))
        damaged = {item.name for item in self.lost}
        picked = []
        for name, some in holders.items():
            if name in damaged:
                continue
            sent = self.entries.get(name)
            chosen = next((one for one in some if one[0] == sent), None)
            (number, tensor), rest = (chosen, []) if chosen is not None else (some[0], some[1:])
            picked.append(Held(tensor, number, tuple(rest)))
        picked.sort(key=lambda held: (held.file, held.tensor.begin, held.tensor.end))
        return tuple(picked)

    @cached_property
    def lost(self) -> tuple[Lost, ...]:
        """What is in no file, or not whole where it counts."""
        gone: list[Lost] = []
        known: set[str] = set()
        for number, file in enumerate(self.files):
            for item in file.lost:
                if item.name is None:
                    if number not in self._sent:
                        gone.append(item)
                elif item.name not in known and self.entries.get(item.name, number) in (number, None):
                    known.add(item.name)
                    gone.append(item)
        return (*gone, *self._missing(known), *self._unnumbered())

    @cached_property
    def _sent(self) -> frozenset[int | None]:
        """The files that the index names."""
        return frozenset(self.entries.values())

    def _missing(self, known: set[str]) -> list[Lost]:
        """Return the tensors that only the index knows."""
        if not self.entries:
            return []
        here = {tensor.name for file in self.files for tensor in file.tensors} | known
        missing = []
        for name, number in self.entries.items():
            if name in here:
                continue
            target = self.targets.get(name)
            file = "" if target is None else display_name(target)
            if number is None:
                code, why = "index.shard_missing", "its file is not here"
            elif self.files[number].readable:
                code, why = "index.tensor_missing", "the index names it, its file does not hold it"
            else:
                code, why = "index.shard_unreadable", "the header of its file cannot be read"
            missing.append(Lost(name, file, None, None, code, why))
        return missing

    def _unnumbered(self) -> list[Lost]:
        """Return the files that numbers declare and that are not here, where no index tells what was in them."""
        group = self.group
        if group is None or self.entries:
            return []
        count, first = group.missing
        if count <= 0:
            return []
        width = group.shards[0].width
        why = "its number is missing among the files, and nothing tells what was in it"
        names = [
            NUMBERED.format(stem=group.key, number=number, total=group.total, width=width) for number in first
        ]
        gone = [Lost(None, display_name(name), None, None, "layout.shard_gap", why) for name in names]
        if count > len(gone):
            rest = f"{counted(count - len(gone), 'more file')}"
            gone.append(Lost(None, rest, None, None, "layout.shard_gap", why))
        return gone

    @cached_property
    def copies_left(self) -> list[tuple[Stored, int, int]]:
        """Copies of tensors that do not count: the copy, its file, the file of the one that counts."""
        counting = {held.tensor.name: held for held in self.held}
        return [
            (tensor, number, held.file)
            for number, file in enumerate(self.files)
            for tensor in file.tensors
            if (held := counting.get(tensor.name)) is not None and held.file != number
        ]
