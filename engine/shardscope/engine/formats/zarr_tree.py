"""The zarr arrays below a folder, of version 2 or 3, by their descriptions; chunks are counted by name and size, and never read."""

from collections.abc import Sequence
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.folder import files_below
from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import path_text
from shardscope.engine.parse.zarr import ZarrArray, zarr3_array, zarr_array

V2: Final = ".zarray"
V3: Final = "zarr.json"
DESCRIPTIONS: Final = frozenset({V2, V3, ".zgroup", ".zattrs", ".zmetadata"})
_GROUP: Final = "group"


class Leaf(Struct, frozen=True):
    """One array of a tree."""

    name: str
    """Its folder below the tree's: `params.dense.kernel`, `layer/w`."""
    entry: Entry
    """Its description."""
    array: ZarrArray
    missing: int
    """Chunks that are not there."""


class Tree(Struct, frozen=True):
    """What lies below one folder."""

    leaves: tuple[Leaf, ...]
    described: int
    """Descriptions of arrays, readable or not."""
    chunks: int
    """Files of chunks that are there."""
    sound: bool
    """Every description was read, and every chunk has a place and the size that it must have."""

    @property
    def bytes(self) -> int:
        """Bytes of all arrays, unpacked."""
        return sum(leaf.array.bytes for leaf in self.leaves)

    @property
    def missing(self) -> list[Leaf]:
        """Arrays that lack chunks."""
        return [leaf for leaf in self.leaves if leaf.missing]


class Found(Struct, frozen=True):
    """One folder with a description."""

    name: str
    path: bytes
    entry: Entry
    """The description: of an array or, in version 3, of a group."""
    chunks: tuple[Entry, ...]
    """Files below it that are no descriptions."""


def found_below(probe: Probe, base: bytes, owned: Sequence[Entry] | None = None) -> list[Found]:
    """Return the folders with descriptions below `base`, by path. `owned` are the files to look at, where they are not all."""
    files = files_below(probe.inventory, base) if owned is None else list(owned)
    documents: dict[bytes, Entry] = {}
    for entry in files:
        if entry.name in (V2, V3):
            documents.setdefault(_parent(entry.path), entry)
    chunks: dict[bytes, list[Entry]] = {}
    for entry in files:
        if entry.name not in DESCRIPTIONS and (owner := _owner(entry.path, documents)) is not None:
            chunks.setdefault(owner, []).append(entry)
    return [
        Found(_named(path, base), path, entry, tuple(chunks.get(path, ())))
        for path, entry in sorted(documents.items())
    ]


def _named(path: bytes, base: bytes) -> str:
    below = path[len(base) + 1 :] if base else path
    return path_text(below) or path_text(path.rpartition(b"/")[2]) or "."


def read_tree(probe: Probe, base: bytes, owned: Sequence[Entry] | None = None) -> Tree:
    """Read the description of every array below `base`, list the arrays, and compare their chunks with their grids.

    `owned` are the files to look at, where they are not all below `base`.
    """
    found = found_below(probe, base, owned)
    tally = _Tally(probe)
    for done, each in enumerate(found):
        probe.checkpoint("arrays", done, len(found), each.entry)
        array = _described(probe, each.entry, tally)
        if array is None:
            continue
        place = path_text(each.path) or "."
        if not probe.catalogue_array(place, each.name, array.dtype, array.shape, array.bytes):
            tally.sound = False
            break
        tally.add(each.name, each.path, each.entry, array, each.chunks)
    tally.report()
    return Tree(tuple(tally.leaves), tally.described, tally.chunks, tally.sound)


def array_of(probe: Probe, found: Found) -> ZarrArray | None:
    """Return what a description declares, once more: what is wrong with it was reported."""
    document = probe.json(found.entry)
    if document is None:
        return None
    array = zarr3_array(document.value) if found.entry.name == V3 else zarr_array(document.value)
    return None if isinstance(array, str) else array


def _parent(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _owner(path: bytes, documents: dict[bytes, Entry]) -> bytes | None:
    """Return the folder of the nearest array above a file; null where there is none."""
    while path:
        path = _parent(path)
        if path in documents:
            return path
    return b"" if b"" in documents else None


def _described(probe: Probe, entry: Entry, tally: "_Tally") -> ZarrArray | None:
    """Return what a description declares; null for a group, and where it declares nothing, which is reported."""
    document = probe.json(entry)
    value = None if document is None else document.value
    if entry.name == V3 and isinstance(value, dict) and value.get("node_type") == _GROUP:
        return None
    tally.described += 1
    if document is None:
        tally.sound = False
        return None
    array = zarr3_array(value) if entry.name == V3 else zarr_array(value)
    if isinstance(array, str):
        probe.report("zarr.invalid", entry, reason=array)
        tally.sound = False
        return None
    return array


class _Tally:
    """Chunks that are absent, foreign or of the wrong size, over all arrays: a report each, with the first."""

    def __init__(self, probe: Probe) -> None:
        self.leaves: list[Leaf] = []
        self.described = 0
        self.chunks = 0
        self.sound = True
        self._probe = probe
        self._foreign: list[Entry] = []
        self._sized: list[tuple[str, ZarrArray, Entry]] = []

    def add(self, name: str, path: bytes, entry: Entry, array: ZarrArray, chunks: Sequence[Entry]) -> None:
        """Compare the chunks of one array with its grid."""
        begin = len(path) + 1 if path else 0
        places: set[tuple[int, ...]] = set()
        for chunk in chunks:
            place = place_in(path_text(chunk.path[begin:]), array)
            if place is None or place in places:
                self._foreign.append(chunk)
                continue
            places.add(place)
            if array.direct and chunk.size != array.chunk_bytes:
                self._sized.append((name, array, chunk))
        self.chunks += len(places)
        self.leaves.append(Leaf(name, entry, array, prod(array.grid) - len(places)))

    def report(self) -> None:
        """Report what was counted; absent chunks are for the family to judge."""
        if self._foreign:
            first = self._foreign[0]
            self._probe.report("zarr.foreign", first, count=len(self._foreign), first=first.text)
        if self._sized:
            self.sound = False
            name, array, chunk = self._sized[0]
            self._probe.report(
                "zarr.chunk_size",
                chunk,
                count=len(self._sized),
                tensor=name,
                found=chunk.size,
                expected=array.chunk_bytes,
            )


def place_in(name: str, array: ZarrArray) -> tuple[int, ...] | None:
    """Return the place of a chunk in the grid by its path below the array's folder; null where it has none."""
    rank = len(array.shape)
    if array.prefix:
        if not rank:
            return () if name == array.prefix else None
        if not name.startswith(array.prefix + array.separator):
            return None
        name = name[len(array.prefix) + 1 :]
    elif not rank:
        return () if name == "0" else None
    numbers = name.split(array.separator)
    if len(numbers) != rank or not all(
        each.isascii() and each.isdigit() and len(each) < 20 for each in numbers
    ):
        return None
    place = tuple(map(int, numbers))
    canonical = array.separator.join(map(str, place)) == name
    inside = all(at < extent for at, extent in zip(place, array.grid, strict=True))
    return place if canonical and inside else None
