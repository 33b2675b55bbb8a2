"""The decoded metadata of a distributed save: its tensors and objects, and where each stored item is said to lie.

Shared by every family that keeps such saves. One `.metadata` describes a whole save; without collectives each rank leaves
an `__R.metadata` that lists its own chunks alone, and only all of them together are the checkpoint
(`torch/distributed/checkpoint/filesystem.py`). Paths are taken for what the writer makes of them, plain names beside the
metadata, and are looked up in the inventory: nothing is followed.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.dcp_save import Names
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.pickled import DcpChunks, Number
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import display_name, path_text
from shardscope.engine.parse.pickled.tree import Tree

Shape = tuple[int, ...]

KNOWN_VERSION: Final = "1.0.0"
_NOT_PLAIN: Final = ("", ".", "..")
_SEPARATORS: Final = ("/", "\\", "\0")


class Place(Struct, frozen=True, gc=False):
    """Where an item is stored."""

    entry: Entry
    begin: int
    length: int
    transforms: Sequence[str] = ()


class Chunk(Struct, frozen=True, gc=False):
    """One box of a tensor."""

    offsets: Shape
    sizes: Shape
    place: Place | None
    """Null where nothing is recorded, or where it cannot be used: that is reported."""


class SavedTensor(Struct, frozen=True):
    """One tensor of the save, with all its chunks."""

    name: str
    dtype: str
    shape: Shape
    source: Entry
    """The metadata that it was first read in."""
    chunks: list[Chunk]
    copies: dict[int, list[Chunk]]
    """Further copies of chunks by their number, where ranks wrote the same: only without collectives."""


class SavedObject(Struct, frozen=True):
    """Something that is no tensor, stored as a file of torch.save of its own."""

    name: str
    place: Place | None


class Metadata(Struct, frozen=True):
    """One file of metadata."""

    entry: Entry
    tree: Tree
    columns: DcpChunks


class Saved(Struct, frozen=True):
    """What the metadata of a save describes."""

    metadata: tuple[Metadata, ...]
    tensors: dict[str, SavedTensor]
    objects: dict[str, SavedObject]
    files: dict[str, Entry]
    """The data files that it names and that are here."""
    missing: tuple[str, ...]
    """Those that are not here."""

    @property
    def version(self) -> str | None:
        """The version that the metadata declares."""
        return self.metadata[0].columns.version

    def extra(self, name: str) -> tuple[Tree, Number] | None:
        """Return an attribute beyond those of every save, `all_local_plans` or `mcore_data`, with the tree that it is in."""
        found = self.metadata[0].columns.extra.get(name)
        return None if found is None else (self.metadata[0].tree, found)

    def planner(self) -> Iterator[tuple[Metadata, Number]]:
        """Yield where each file records the original places of its keys."""
        for item in self.metadata:
            if item.columns.planner is not None:
                yield item, item.columns.planner


def read_saved(decoder: Decoder, folder: Folder, names: Names) -> Saved | None:
    """Return what the metadata of a folder describes; null where there is none that can be read, which is reported.

    A shared file counts alone: those of single ranks beside it are of another save.
    """
    entries = (
        [names.shared]
        if names.shared is not None
        else [item for each in names.by_rank.values() for item in each]
    )
    read = [found for entry in entries if (found := read_metadata(decoder, entry)) is not None]
    if not read or len(read) < len(entries):
        return None
    return _Union(decoder.probe, folder).of(read)


def read_metadata(decoder: Decoder, entry: Entry) -> Metadata | None:
    """Return one file of metadata, decoded; null where it is none, which is reported."""
    tree = decoder.pickle(entry)
    if tree is None:
        return None
    columns = tree.node(tree.root)
    if not isinstance(columns, DcpChunks) or not _even(columns):
        decoder.probe.report("dcp.not_metadata", entry)
        return None
    return Metadata(entry, tree, columns)


def _even(columns: DcpChunks) -> bool:
    """Tell whether the columns have a row for each tensor and for each chunk."""
    tensors, chunks = len(columns.names), len(columns.offsets)
    by_tensor = (columns.dtypes, columns.shapes, columns.counts, columns.properties)
    by_chunk = (columns.sizes, columns.file, columns.begin, columns.length, columns.transforms)
    return (
        all(len(column) == tensors for column in by_tensor)
        and all(len(column) == chunks for column in by_chunk)
        and min(columns.counts, default=0) >= 0
        and sum(columns.counts) == chunks
        and max(columns.file, default=-1) < len(columns.files)
        and all(0 <= number < len(columns.transform_lists) for number in set(columns.transforms))
    )


class _Union:
    """Gathers the metadata of one save, of one file or of many."""

    def __init__(self, probe: Probe, folder: Folder) -> None:
        self._probe = probe
        self._folder = folder
        self._tensors: dict[str, SavedTensor] = {}
        self._objects: dict[str, SavedObject] = {}
        self._files: dict[str, Entry] = {}
        self._lacking: dict[str, dict[str, None]] = {}
        """Of files that are not here: the tensors that have chunks in them."""
        self._seen: dict[str, dict[tuple[Shape, Shape], int]] = {}
        self._differ: list[tuple[str, str]] = []
        self._shapes: dict[Shape, Shape] = {}

    def of(self, read: Sequence[Metadata]) -> Saved:
        """Return the union. What is wrong with places and with names is reported."""
        for item in read:
            self._take(item, alone=len(read) == 1)
        if self._differ:
            name, reason = self._differ[0]
            self._probe.report(
                "dcp.ranks_disagree", read[0].entry, count=len(self._differ), tensor=name, reason=reason
            )
        if self._lacking:
            tensors = [name for names in self._lacking.values() for name in names]
            first = min(self._lacking)
            self._probe.report(
                "dcp.file_missing",
                read[0].entry,
                count=len(self._lacking),
                first=first,
                tensors=len(set(tensors)),
                tensor=next(iter(tensors), None),
            )
        return Saved(tuple(read), self._tensors, self._objects, self._files, tuple(sorted(self._lacking)))

    def _take(self, item: Metadata, *, alone: bool) -> None:
        columns = item.columns
        entries = self._entries(item)
        unrecorded: list[str] = []
        at = 0
        for name, dtype, shape, count in zip(
            columns.names, columns.dtypes, columns.shapes, columns.counts, strict=True
        ):
            rows = range(at, at + count)
            at += count
            if dtype is None:
                place = self._place(columns, entries, None, at - 1) if count else None
                if not count or columns.file[at - 1] < 0:
                    unrecorded.append(name)
                self._objects.setdefault(name, SavedObject(name, place))
                continue
            tensor = self._tensor(item, name, dtype, self._shape(shape))
            if tensor is None:
                continue
            for row in rows:
                offsets, sizes = self._shape(columns.offsets[row]), self._shape(columns.sizes[row])
                if columns.file[row] < 0 and 0 not in sizes:
                    unrecorded.append(name)
                chunk = Chunk(offsets, sizes, self._place(columns, entries, name, row))
                self._add(tensor, chunk, alone=alone)
        if unrecorded:
            self._probe.report(
                "dcp.storage_unrecorded", item.entry, count=len(unrecorded), tensor=unrecorded[0]
            )
        if columns.strays:
            self._probe.report(
                "dcp.storage_stray", item.entry, count=len(columns.strays), tensor=columns.strays[0]
            )

    def _tensor(self, item: Metadata, name: str, dtype: str, shape: Shape) -> SavedTensor | None:
        known = self._tensors.get(name)
        if known is None:
            self._tensors[name] = known = SavedTensor(name, dtype, shape, item.entry, [], {})
        elif known.dtype != dtype:
            self._differ.append((name, f"{known.dtype} or {dtype}"))
            return None
        elif known.shape != shape:
            self._differ.append((name, f"{in_words(known.shape)} or {in_words(shape)}"))
            return None
        return known

    def _add(self, tensor: SavedTensor, chunk: Chunk, *, alone: bool) -> None:
        if alone:  # one file lists each chunk once: a second one is an overlap
            tensor.chunks.append(chunk)
            return
        seen = self._seen.setdefault(tensor.name, {})
        number = seen.setdefault((chunk.offsets, chunk.sizes), len(tensor.chunks))
        if number == len(tensor.chunks):
            tensor.chunks.append(chunk)
        else:
            tensor.copies.setdefault(number, []).append(chunk)

    def _entries(self, item: Metadata) -> list[Entry | None]:
        """Return the data files that metadata names, each once; null where a path is unsafe or a file is not here."""
        unsafe = [path for path in item.columns.files if not _is_plain(path)]
        if unsafe:
            self._probe.report("dcp.path_unsafe", item.entry, count=len(unsafe), first=unsafe[0])
        found = [self._folder.files.get(path) if _is_plain(path) else None for path in item.columns.files]
        for path, entry in zip(item.columns.files, found, strict=True):
            if entry is not None:
                self._files[path] = entry
            elif _is_plain(path):
                self._lacking.setdefault(path, {})
        return found

    def _place(
        self, columns: DcpChunks, entries: Sequence[Entry | None], name: str | None, row: int
    ) -> Place | None:
        """Return where a chunk is stored; of a tensor by that name note what is not here."""
        number = columns.file[row]
        if number < 0:
            return None
        entry = entries[number]
        if entry is None:
            lacking = self._lacking.get(columns.files[number])
            if (
                lacking is not None and name is not None and 0 not in columns.sizes[row]
            ):  # an empty chunk has no bytes to lack
                lacking[name] = None
            return None
        transforms = columns.transforms[row]
        return Place(
            entry,
            columns.begin[row],
            columns.length[row],
            columns.transform_lists[transforms] if transforms else (),
        )

    def _shape(self, sizes: Sequence[int]) -> Shape:
        """Return extents as a tuple, equal ones as the same: a model repeats few of them."""
        shape = tuple(sizes)
        return self._shapes.setdefault(shape, shape)


def _is_plain(path: str) -> bool:
    return path not in _NOT_PLAIN and not any(mark in path for mark in _SEPARATORS)


def in_words(shape: Iterable[int]) -> str:
    """Return a shape as a person says it."""
    return " x ".join(f"{size:,}" for size in shape) or "a scalar"


def folder_name(folder: Folder) -> str:
    """Return the path of a folder to show."""
    return display_name(path_text(folder.path)) or "."
