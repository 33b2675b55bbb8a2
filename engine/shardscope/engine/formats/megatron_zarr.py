"""The arrays of a Megatron save with the zarr backend: one folder for each key, with `.zarray` and a file for each chunk.

Megatron Core had this backend until 0.16 (`core/dist_checkpointing/strategies/zarr.py`). A chunk is the shard of one rank,
without compression; its place in the grid times the chunk's shape is its offset in the array.
"""

import re
from collections.abc import Iterable
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.rank_grid import Coordinate, rank_grid
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.source import Entry, Kind
from shardscope.engine.model.text import display_name, path_text
from shardscope.engine.model.topology import Axis
from shardscope.engine.parse.zarr import ZarrArray, zarr_array

ARRAY: Final = ".zarray"
_NUMBERS: Final = r"\d{1,9}(?:\.\d{1,9})*"
_CHUNK: Final = re.compile(_NUMBERS, re.ASCII)
_OBJECT: Final = re.compile(rf"shard_({_NUMBERS})_({_NUMBERS})\.pt", re.ASCII)
_ROW_PARALLEL: Final = "linear_proj.weight"
"""Cut along its last dimension, once for each tensor-parallel rank."""


class Key(Struct, frozen=True):
    """One folder of a zarr save."""

    name: str
    path: bytes
    array: Entry | None
    files: tuple[Entry, ...]
    """Its other files: chunks, or pickled objects."""

    @property
    def text(self) -> str:
        """The folder's path, neutralised."""
        return display_name(path_text(self.path))

    @property
    def objects(self) -> tuple[Entry, ...]:
        """The files named like pickled objects."""
        return tuple(entry for entry in self.files if _OBJECT.fullmatch(entry.name))


class Arrays(Struct, frozen=True):
    """What the arrays of a save say together."""

    count: int
    chunks: int
    bytes: int
    """Of all arrays but the optimizer's."""
    optimizer: tuple[str, ...]
    """The folders of arrays that are named like optimizer state."""
    whole: bool
    """Whether each array was understood and has each of its chunks, in the right size."""
    axes: tuple[Axis, ...]


def keys_in(probe: Probe, folder: Folder) -> list[Key]:
    """Return the folders that hold an array, pickled objects or chunks, by name."""
    by_folder = probe.inventory.by_folder
    found = []
    for entry in by_folder.get(folder.path, ()):
        if entry.kind is not Kind.DIRECTORY:
            continue
        files = [below for below in by_folder.get(entry.path, ()) if below.kind is Kind.FILE]
        array = next((below for below in files if below.name == ARRAY), None)
        if array is not None or any(_CHUNK.fullmatch(e.name) or _OBJECT.fullmatch(e.name) for e in files):
            others = tuple(below for below in files if below is not array)
            found.append(Key(entry.name, entry.path, array, others))
    return found


def read_arrays(probe: Probe, keys: list[Key]) -> Arrays:
    """Read every `.zarray`, list the arrays as tensors, and compare the chunks with the grid."""
    tally = _Tally(probe)
    arrays: dict[str, ZarrArray] = {}
    bare = [key for key in keys if key.array is None and not key.objects]
    if bare:
        probe.report("megatron.key_empty", bare[0].text, count=len(bare), first=bare[0].text)
    described = [key for key in keys if key.array is not None]
    for done, key in enumerate(described):
        probe.checkpoint("arrays", done, len(described), key.array)
        array = read_array(probe, key)
        if array is None:
            continue
        arrays[key.name] = array
        tally.add(key, array)
        if not probe.catalogue_array(key.text, key.name, array.dtype, array.shape, array.bytes):
            break
    tally.report()
    optimizer = [key for key in described if is_optimizer(key.name)]
    return Arrays(
        count=len(arrays),
        chunks=tally.seen,
        bytes=sum(array.bytes for name, array in arrays.items() if not is_optimizer(name)),
        optimizer=tuple(key.text for key in optimizer),
        whole=not bare and tally.sound and bool(arrays) and len(arrays) == len(described),
        axes=_axes(keys, arrays),
    )


def is_optimizer(key: str) -> bool:
    """Tell whether a key is named like optimizer state."""
    return key.startswith(("optimizer.", "chained_"))


def read_array(probe: Probe, key: Key) -> ZarrArray | None:
    """Return what the `.zarray` of a key declares; null where that is nothing, which is reported."""
    if key.array is None or (document := probe.json(key.array)) is None:
        return None
    array = zarr_array(document.value)
    if isinstance(array, str):
        probe.report("megatron.zarray_invalid", key.array, reason=array)
        return None
    return array


class _Tally:
    """Chunks that are absent, foreign or of the wrong size, over all arrays: a report each, with the first."""

    def __init__(self, probe: Probe) -> None:
        self.seen = 0
        self.sound = True
        self._probe = probe
        self._total = 0
        self._missing = 0
        self._first_missing: tuple[Key, Coordinate] | None = None
        self._foreign: list[Entry] = []
        self._sized: list[tuple[Entry, int]] = []
        self._encoded: list[Key] = []
        self._swapped: list[Key] = []

    def add(self, key: Key, array: ZarrArray) -> None:
        """Compare the chunks of one array with its grid."""
        if not array.plain:
            (self._swapped if array.big_endian else self._encoded).append(key)
        if array.separator != ".":
            return  # its chunks stand in folders of their own, which Megatron Core never writes
        chunks: dict[Coordinate, Entry] = {}
        for entry in key.files:
            place = place_of(entry.name, array.grid)
            if place is None or place in chunks:
                self._foreign.append(entry)
            else:
                chunks[place] = entry
        total = prod(array.grid)
        self.seen += len(chunks)
        self._total += total
        if len(chunks) < total:
            self._missing += total - len(chunks)
            if self._first_missing is None:
                self._first_missing = key, rank_grid(chunks, array.grid).missing[0]
        if array.plain or array.big_endian:
            expected = array.chunk_bytes
            self._sized += [(entry, expected) for entry in chunks.values() if entry.size != expected]

    def report(self) -> None:
        """Report what was found, once for each kind."""
        probe = self._probe
        self.sound = not (self._missing or self._foreign or self._sized or self._encoded or self._swapped)
        if self._first_missing is not None:
            key, place = self._first_missing
            first = f"{key.text}/{'.'.join(map(str, place)) or '0'}"
            probe.report(
                "megatron.chunk_missing", first, missing=self._missing, total=self._total, first=first
            )
        if self._foreign:
            entry = self._foreign[0]
            probe.report("megatron.chunk_unexpected", entry, count=len(self._foreign), first=entry.text)
        if self._sized:
            entry, expected = self._sized[0]
            probe.report(
                "megatron.chunk_size",
                entry,
                count=len(self._sized),
                first=entry.text,
                size=entry.size,
                expected=expected,
            )
        for keys, what in (
            (self._encoded, "a compressor, a filter or another order"),
            (self._swapped, "big-endian numbers"),
        ):
            if keys:
                probe.report(
                    "megatron.zarr_encoding", keys[0].text, count=len(keys), what=what, first=keys[0].text
                )


def place_of(name: str, grid: Coordinate) -> Coordinate | None:
    """Return the place in the grid that the name of a chunk tells; an array without dimensions has the chunk `0`."""
    if not _CHUNK.fullmatch(name):
        return None
    if not grid:
        return () if name == "0" else None
    place = tuple(map(int, name.split(".")))
    fits = len(place) == len(grid) and all(at < size for at, size in zip(place, grid, strict=True))
    return place if fits and ".".join(map(str, place)) == name else None


def _axes(keys: Iterable[Key], arrays: dict[str, ZarrArray]) -> tuple[Axis, ...]:
    """Return tp and pp as the names of the random states tell them, or tp as the cut of one weight does."""
    for key in keys:
        if key.name != "rng_state":
            continue
        for entry in key.objects:
            match = _OBJECT.fullmatch(entry.name)
            sizes = tuple(map(int, match[2].split("."))) if match else ()
            if len(sizes) >= 2 and min(sizes) > 0:
                says = f"{key.text}/{display_name(entry.name)}: the random states form a grid of pp x tp"
                return (
                    Axis("tp", sizes[1], Basis.INFERRED, says),
                    Axis("pp", sizes[0], Basis.INFERRED, says),
                )
    for name, array in arrays.items():
        if name.endswith(_ROW_PARALLEL) and not is_optimizer(name):
            says = f"{display_name(name)} is cut into so many chunks along its last dimension"
            return (
                (Axis("tp", array.grid[-1], Basis.INFERRED, says),) if array.grid and array.grid[-1] else ()
            )
    return ()
