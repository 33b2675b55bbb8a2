"""The decoded plane as formats see it: pickles as typed facts, and storages as stretches of files.

A `Decoder` exists only where a person asked for decoding in this invocation. Pickle bytes are read here, bounded, and go to the
contained worker as bytes; what comes back are facts (`model/pickled`). Payload is never read through it, but for small whole
numbers that describe the layout itself (a mesh of ranks).
"""

import zlib
from collections.abc import Callable
from math import prod
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.facts import Nature, ZipEntry
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.oracle import Oracle
from shardscope.engine.model.pickled import Pickled, PickledTensor
from shardscope.engine.model.piece import row_major
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.source import Entry, Reader
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import path_text
from shardscope.engine.parse import torch_archive, torch_storages
from shardscope.engine.parse import zip as zip_parser
from shardscope.engine.parse.part import Part
from shardscope.engine.parse.pickled import CUT_SHORT
from shardscope.engine.parse.pickled.tree import Tree
from shardscope.engine.parse.sniff import sniff
from shardscope.engine.parse.strides import addresses, is_row_major, reach
from shardscope.engine.parse.tar import read_members
from shardscope.engine.parse.zip import DEFLATED, ENCRYPTED, STORED

ReadPickles: TypeAlias = Callable[[bytes, int], Pickled]
"""`read(data, pickles)`: so many pickles from the start of the bytes, as typed facts. Raises `Fault`."""

_FIRST_WINDOW: Final = 1 << 20
_WINDOW_GROWTH: Final = 8
_MOST_INTEGERS: Final = 1 << 20
_OLDEST: Final = frozenset({"sys_info", "pickle", "storages", "tensors"})
_MOST_MEMBERS: Final = 64


class TorchFile(Struct, frozen=True):
    """One decoded file of torch.save, or one item of a larger file that is such a file."""

    entry: Entry
    tree: Tree
    records: tuple[Record | None, ...]
    """By storage: where its bytes are; null where they are nowhere that can be read."""
    container: str
    """`zip` or `stream`."""
    pickle: int = 0
    """Which pickle of a stream holds the object."""

    def place(self, tensor: PickledTensor, label: int = 0) -> Fragment | None:
        """Return where the elements of a tensor are stored, as the shard `label`; null where it has no bytes here.

        Raises `Fault` `torch.dtype_unknown` or `torch.tensor_range`.
        """
        record = None if tensor.storage is None else self.records[tensor.storage]
        if record is None or tensor.storage is None:
            return None
        bits = torch_storages.bits_of(tensor.dtype)
        if bits is None:
            raise Fault("torch.dtype_unknown", dtype=tensor.dtype)
        shape, strides = tuple(tensor.shape), tuple(tensor.strides)
        if 0 in shape:  # where an empty view begins says nothing, and may be beyond the storage
            return Fragment(label, shape, record, 0)
        straight = len(shape) == len(strides) and is_row_major(shape, strides)
        elements = prod(shape) if straight else reach(shape, strides)
        begin, end = tensor.offset * bits, (tensor.offset + elements) * bits
        if min(begin, *shape, 0) < 0 or begin % 8 or end > 8 * record.size:
            key = self.tree.pickled.storages[tensor.storage].key
            raise Fault("torch.tensor_range", key=key, size=record.size, end=-(-end // 8))
        return Fragment(label, shape, record, begin // 8, None if straight else strides)


class PickleUse(Struct, frozen=True):
    """One stream of pickles that was decoded."""

    entry: Entry
    begin: int
    """Where its container begins in the file."""
    pickled: Pickled


class Decoder:
    """One invocation's decoding: what formats ask it for, and what they found."""

    def __init__(self, probe: Probe, read: ReadPickles, limits: DecodeLimits | None = None) -> None:
        self.probe = probe
        self.limits = limits or DecodeLimits()
        self.tensors: list[LogicalTensor] = []
        self.used: list[PickleUse] = []
        """Every stream that was decoded: its references are evidence."""
        self.oracles: list[Oracle] = []
        """Numbers that files hold twice: inspection compares some of them, conversion all."""
        self.compares_all = False
        """Whether all of them are compared now, however many bytes that reads."""
        self.payload_bytes = 0
        """Bytes of tensors that were read to compare values."""
        self._read = read
        self._said: set[tuple[bytes, str]] = set()

    def add(self, tensor: LogicalTensor) -> None:
        """Add a tensor to the catalogue."""
        self.tensors.append(tensor)

    def settle(self, claim: Claim, *codes: str) -> None:
        """Take back what the safe plane had to say about a claim's files and folder by these codes: decoding has answered it."""
        subjects = {shown(entry.text) for entry in claim.files} | {shown(path_text(claim.folder)), "."}
        subjects |= {shown(path_text(folder)) for folder in claim.owned}
        self.probe.blockers[:] = [
            item for item in self.probe.blockers if item.code not in codes or item.subject not in subjects
        ]

    def pickle(self, entry: Entry) -> Tree | None:
        """Return a bare pickle that is the whole of a file; null where it cannot be read, which is then reported."""

        def read(reader: Reader) -> Tree:
            return self._decoded(entry, 0, self._bytes(reader, 0, reader.size))

        return self.probe.guarded(entry, read)

    def torch(self, entry: Entry, begin: int = 0, length: int | None = None) -> TorchFile | None:
        """Return a file of torch.save, or the stretch of a file that is one; null where it cannot be read, which is reported."""

        def read(reader: Reader) -> TorchFile:
            part = reader if begin == 0 and length is None else Part(reader, begin, length)
            return self.read_torch(entry, part, begin)

        return self.probe.guarded(entry, read)

    def read_torch(self, entry: Entry, part: Reader, begin: int = 0) -> TorchFile:
        """Return what an open file, or a part that begins at `begin`, says as a file of torch.save. Raises `Fault`."""
        found = sniff(part.pread(0, 4096), part.size).nature
        match found:
            case Nature.ZIP:
                return self._zip(entry, part, begin)
            case Nature.TORCH_LEGACY:
                return self._stream(entry, part, begin)
            case Nature.TAR if _is_oldest(part):
                raise Fault("torch.tar_form")
            case Nature.PICKLE:
                tree = self._decoded(entry, begin, self._bytes(part, 0, part.size))
                return TorchFile(entry, tree, (None,) * len(tree.pickled.storages), "pickle")
        raise Fault("torch.not_torch", found=found.value)

    def fragment(self, file: TorchFile, tensor: PickledTensor, label: int = 0) -> Fragment | None:
        """Return where the elements of a tensor are stored; null where that is nowhere, or beyond its storage.

        What is wrong is reported, once for each file and code.
        """
        try:
            return file.place(tensor, label)
        except Fault as fault:
            said = (file.entry.path, fault.finding.code)
            if said not in self._said:
                self._said.add(said)
                self.probe.note(fault.finding, file.entry)
            return None

    def integers(self, file: TorchFile, tensor: PickledTensor | None) -> tuple[int, ...] | None:
        """Return the values of a small tensor of whole numbers that describes the layout, row-major; null where it is none."""
        known = None if tensor is None else DTYPES.get(tensor.dtype)
        if tensor is None or known is None or known.kind not in ("int", "uint", "bool"):
            return None
        fragment = self.fragment(file, tensor)
        if fragment is None or fragment.record.coding != "plain" or prod(fragment.shape) > _MOST_INTEGERS:
            return None
        width = known.bits // 8
        strides = fragment.strides or row_major(fragment.shape)
        span = reach(fragment.shape, strides) * width

        def read(reader: Reader) -> bytes:
            return reader.pread(fragment.record.begin + fragment.offset, span)

        data = self.probe.guarded(file.entry, read)
        if data is None or len(data) < span:
            return None
        order: Literal["big", "little"] = "big" if fragment.record.big_endian else "little"
        signed = known.kind == "int"
        return tuple(
            int.from_bytes(data[at * width : (at + 1) * width], order, signed=signed)
            for at in addresses(fragment.shape, strides)
        )

    def _decoded(self, entry: Entry, begin: int, data: bytes, pickles: int = 1) -> Tree:
        pickled = self._read(data, pickles)
        self.used.append(PickleUse(entry, begin, pickled))
        for finding in pickled.findings:
            self.probe.note(finding, entry)
        return Tree(pickled, 0 if pickles == 1 else torch_storages.LEGACY_OBJECT)

    def _bytes(self, reader: Reader, offset: int, length: int) -> bytes:
        if length > self.limits.pickle_bytes:
            raise Fault("limit.pickle_bytes", limit=self.limits.pickle_bytes, found=length)
        return reader.pread(offset, length)

    def _zip(self, entry: Entry, part: Reader, begin: int) -> TorchFile:
        directory = zip_parser.read_directory(part, self.probe.limits)
        archive = torch_archive.describe(part, directory, self.probe.limits)
        tree = self._decoded(entry, begin, self._record(part, archive.pickle, recorded=archive.crc_recorded))
        places = torch_storages.in_zip(
            directory, archive.root, tree.pickled.storages, crc_recorded=archive.crc_recorded
        )
        self._report_places(entry, places)
        records = _records(entry, begin, places, big_endian=archive.byteorder == "big")
        return TorchFile(entry, tree, records, "zip")

    def _report_places(self, entry: Entry, places: torch_storages.Places) -> None:
        if places.missing:
            self.probe.report(
                "torch.storage_missing", entry, count=len(places.missing), first=places.missing[0]
            )
        if places.resized:
            key, size, expected = places.resized[0]
            self.probe.report(
                "torch.storage_size",
                entry,
                count=len(places.resized),
                key=key,
                size=size,
                expected=max(0, expected),
            )
        if places.unwritten:
            self.probe.report(
                "torch.storage_unwritten", entry, count=len(places.unwritten), first=places.unwritten[0]
            )

    def _record(self, part: Reader, entry: ZipEntry, *, recorded: bool) -> bytes:
        """Return the bytes of a small record, inflated where they are deflated, and compared with their checksum."""
        if entry.data_offset is None or entry.method not in (STORED, DEFLATED) or entry.flags & ENCRYPTED:
            raise Fault("torch.pickle_unreadable", method=entry.method)
        if entry.size > self.limits.pickle_bytes:
            raise Fault("limit.pickle_bytes", limit=self.limits.pickle_bytes, found=entry.size)
        data = self._bytes(part, entry.data_offset, entry.compressed)
        if entry.method == DEFLATED:
            inflater = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                data = inflater.decompress(data, entry.size + 1)
            except zlib.error:
                raise Fault("torch.pickle_unreadable", method=entry.method) from None
        if len(data) != entry.size:
            raise Fault("zip.size_lie", entry=entry.name, size=entry.size, stored=len(data))
        if recorded and zlib.crc32(data) != entry.crc:
            raise Fault("torch.record_crc", count=1, record=entry.name)
        return data

    def _stream(self, entry: Entry, part: Reader, begin: int) -> TorchFile:
        """Read a legacy stream: nothing says how long its pickles are, so that the window grows until they are in it."""
        window = min(_FIRST_WINDOW, self.limits.pickle_bytes)
        while True:
            data = part.pread(0, window)
            try:
                tree = self._decoded(entry, begin, data, torch_storages.LEGACY_PICKLES)
                break
            except Fault as fault:
                if fault.finding.code not in CUT_SHORT or len(data) == part.size:
                    raise
                if window == self.limits.pickle_bytes:
                    raise Fault("limit.pickle_bytes", limit=window, found=window + 1) from None
                window = min(window * _WINDOW_GROWTH, self.limits.pickle_bytes)
        records = _records(entry, begin, torch_storages.in_stream(part, tree.pickled))
        return TorchFile(entry, tree, records, "stream", pickle=torch_storages.LEGACY_OBJECT)


def _is_oldest(reader: Reader) -> bool:
    """Tell whether a tar has the members of the oldest form of torch.save."""
    try:
        names = {member.name.removeprefix("./") for member in read_members(reader, _MOST_MEMBERS)}
    except Fault:
        return False
    return names >= _OLDEST


def _records(
    entry: Entry, begin: int, places: torch_storages.Places, *, big_endian: bool = False
) -> tuple[Record | None, ...]:
    """Return the record of each storage; storages of one key share theirs."""
    made: dict[torch_storages.Stretch, Record] = {}
    return tuple(
        None if place is None else made.setdefault(place, _record_of(entry, begin, place, big_endian))
        for place in places.stretches
    )


def _record_of(entry: Entry, begin: int, place: torch_storages.Stretch, big_endian: bool) -> Record:
    coding: Literal["plain", "deflate"] = "deflate" if place.deflated else "plain"
    at = begin + place.begin
    return Record(entry.text, at, place.length, place.size, coding, place.crc, big_endian)
