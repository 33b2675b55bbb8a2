"""Where the elements of stored chunks begin: each item of a data file held against what the metadata says of it.

An item is a file of torch.save of its own, around one tensor (`torch/distributed/checkpoint/filesystem.py`,
`_write_item`); a zstd frame around that; or, with `serialization_format=SAFETENSORS`, a tensor of the one safetensors file
that all items of the data file are. Items that are alike are read once: see `parse/torch_skeleton`.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.decode.dcp_alike import Alike, Content, Known, Wanted, Window, read_item
from shardscope.engine.formats.decode.dcp_frames import Frames
from shardscope.engine.formats.decode.dcp_metadata import in_words
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.catalogue import Fragment, Record
from shardscope.engine.model.facts import Nature, SafetensorsHeader
from shardscope.engine.model.source import Entry, Reader
from shardscope.engine.parse import safetensors
from shardscope.engine.parse import zip as zip_parser
from shardscope.engine.parse.part import Part
from shardscope.engine.parse.sniff import sniff
from shardscope.engine.parse.torch_skeleton import skeleton
from shardscope.engine.parse.torch_storages import bits_of

_MOST_SKELETONS: Final = 1 << 14
_HEAD: Final = 4 << 10
_ZIP: Final = b"PK\x03\x04"


class _Header(Struct, frozen=True):
    """The header of a data file that is a safetensors file."""

    columns: SafetensorsHeader
    rows: dict[str, int]


class _Trouble(Struct):
    """What is wrong with items of one file: the first, and how many."""

    count: int
    first: Wanted
    finding: Finding


class Locator:
    """Finds the elements of chunks, file by file."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._probe = decoder.probe
        self._known: dict[int, Alike] = {}
        """By the length of the item."""
        self._skeletons = 0
        self._frames = Frames(decoder)
        self._located: list[Fragment | None] = []
        self._done = (0, 0)
        """Files that are done, and all."""
        self._trouble: dict[str, _Trouble] = {}
        self._unknown: list[tuple[Wanted, str]] = []
        self._unopened: list[Wanted] = []

    def locate(self, wanted: Sequence[Wanted]) -> list[Fragment | None]:
        """Return a fragment for each that is wanted; null where it was not found, which is reported."""
        self._located = [None] * len(wanted)
        by_file: dict[bytes, list[int]] = {}
        for number, item in enumerate(wanted):
            by_file.setdefault(item.place.entry.path, []).append(number)
        begins = [item.place.begin for item in wanted]
        for done, numbers in enumerate(by_file.values()):
            entry = wanted[numbers[0]].place.entry
            self._done = done, len(by_file)
            self._probe.checkpoint("items", *self._done, entry)
            numbers.sort(key=begins.__getitem__)
            self._file(entry, wanted, numbers)
        self._report_transforms()
        return self._located

    def _file(self, entry: Entry, wanted: Sequence[Wanted], numbers: Sequence[int]) -> None:
        self._trouble = {}
        kept = self._within(entry, wanted, numbers)

        def read(reader: Reader) -> None:
            self._items(entry, Window(reader), wanted, kept)

        if kept:
            self._probe.guarded(entry, read)
        self._report(entry)

    def _items(self, entry: Entry, window: Window, wanted: Sequence[Wanted], numbers: Sequence[int]) -> None:
        """Find the items of one open file, in its order. This loop runs 100,000 times in a large save."""
        headers: dict[int, _Header] = {}
        before = 0
        text = entry.text
        for number in numbers:
            item = wanted[number]
            place = item.place
            begin = place.begin
            try:
                alike = self._known.get(place.length) if begin >= before and not place.transforms else None
                found = alike.fragment(window, item, text) if alike is not None else None
                if found is None:
                    found = self._item(entry, window, item, headers, before)
            except Fault as fault:
                if fault.finding.code.startswith("source."):
                    raise
                self._note(item, fault.finding)
                continue
            if begin not in headers:
                before = max(before, begin + place.length)
            if found is not None:
                self._located[number] = found

    def _within(self, entry: Entry, wanted: Sequence[Wanted], numbers: Sequence[int]) -> list[int]:
        """Return the items that lie in the file, and report the others."""
        kept, beyond = [], []
        for number in numbers:
            item = wanted[number]
            if item.place.begin < 0 or item.place.length < 0 or item.end > entry.size:
                beyond.append(item)
            else:
                kept.append(number)
        if beyond:
            self._probe.report(
                "dcp.item_range",
                entry,
                size=entry.size,
                count=len(beyond),
                tensor=beyond[0].name,
                end=max(item.end for item in beyond[:1]),
            )
        return kept

    def _item(
        self, entry: Entry, window: Window, item: Wanted, headers: dict[int, _Header], before: int
    ) -> Fragment | None:
        self._probe.checkpoint("items", *self._done, entry)
        place = item.place
        head = window.pread(place.begin, min(_HEAD, place.length))
        if not place.transforms and not head.startswith(_ZIP):
            header = headers.get(place.begin) or self._header(entry, window, item)
            if header is not None:
                headers[place.begin] = header
                return self._in_safetensors(entry, item, header)
        if place.begin < before:
            raise Fault("dcp.items_overlap")
        if place.transforms:
            return self._transformed(entry, window, item)
        return self._whole(entry, window, item)

    def _whole(self, entry: Entry, window: Window, item: Wanted) -> Fragment | None:
        """Read an item in full, and remember it."""
        place = item.place
        part = Part(window.reader, place.begin, place.length)
        content, crc = read_item(self._decoder, entry, part, place.begin)
        if self._skeletons < _MOST_SKELETONS and not content.deflated:
            self._remember(part, content)
        return self._fragment(entry, item, content, crc)

    def _remember(self, part: Reader, content: Content) -> None:
        directory = zip_parser.read_directory(part, self._probe.limits)
        entries = [entry for entry in directory.entries if entry.data_offset == content.begin and entry.size]
        form = (
            skeleton(part, directory, entries[0], self._probe.limits)
            if len(entries) == 1 and content.size == entries[0].size
            else None
        )
        if form is not None:
            self._skeletons += 1
            self._known.setdefault(form.length, Alike()).add(Known(form, content))

    def _fragment(self, entry: Entry, item: Wanted, content: Content, crc: int | None) -> Fragment | None:
        """Return where the elements of an item lie, where it is what the metadata says it is."""
        if content.dtype != item.dtype or content.shape != item.shape:
            self._note(item, _differs(content.dtype, content.shape, item))
            return None
        return content.fragment(item, entry.text, crc)

    def _transformed(self, entry: Entry, window: Window, item: Wanted) -> Fragment | None:
        """Return a fragment inside a zstd frame: all of its decoded bytes are one record."""
        place = item.place
        if not self._frames.knows(place.transforms):
            self._unknown.append((item, ", ".join(place.transforms)))
            return None
        bits = bits_of(item.dtype) or 8
        frame = self._frames.open(window.reader, place.begin, place.length, -(-prod(item.shape) * bits // 8))
        if frame is None:
            self._unopened.append(item)
            return None
        content, crc = read_item(self._decoder, entry, frame, place.begin)
        found = frame.crc_of(content.begin, content.size) if content.crc_recorded else crc
        if found is not None and found != crc:
            raise Fault("torch.record_crc", count=1, record="the elements")
        if content.deflated:
            raise Fault("torch.pickle_unreadable", method=zip_parser.DEFLATED)
        if content.dtype != item.dtype or content.shape != item.shape:
            self._note(item, _differs(content.dtype, content.shape, item))
            return None
        record = Record(
            entry.text, place.begin, place.length, frame.size, "zstd", frame.crc, content.big_endian
        )
        return Fragment(item.label, item.shape, record, content.begin + content.offset, content.strides)

    def _header(self, entry: Entry, window: Window, item: Wanted) -> _Header | None:
        """Return the header of the safetensors file that begins where an item does; null where none does."""
        begin = item.place.begin
        rest = entry.size - begin
        if sniff(window.pread(begin, _HEAD), rest).nature is not Nature.SAFETENSORS:
            return None
        header = safetensors.read_header(Part(window.reader, begin), self._probe.limits)
        return _Header(header, {name: row for row, name in enumerate(header.names)})

    def _in_safetensors(self, entry: Entry, item: Wanted, header: _Header) -> Fragment | None:
        """Return a fragment of a data file that is a safetensors file from its items' common first byte on."""
        columns, row = header.columns, header.rows.get(item.name)
        if row is None:
            raise Fault("dcp.item_odd", found="no tensor of its name in a safetensors header")
        dtype, shape = columns.kinds[columns.kind_of[row]]
        if dtype != item.dtype or shape != item.shape:
            self._note(item, _differs(dtype, shape, item))
            return None
        at, length = item.place.begin + columns.begins[row], columns.ends[row] - columns.begins[row]
        return Fragment(item.label, item.shape, Record(entry.text, at, length, length), 0)

    def _note(self, item: Wanted, finding: Finding) -> None:
        trouble = self._trouble.setdefault(finding.code, _Trouble(0, item, finding))
        trouble.count += 1

    def _report(self, entry: Entry) -> None:
        """Say what is wrong with items of a file: each kind once, with the first one's own reason."""
        unreadable = 0
        first: Wanted | None = None
        for code, trouble in self._trouble.items():
            match code:
                case "dcp.item_disagrees":
                    self._probe.report(code, entry, count=trouble.count, **trouble.finding.params)
                case "dcp.items_overlap":
                    self._probe.report(code, entry, count=trouble.count, tensor=trouble.first.name)
                case _:
                    unreadable += trouble.count
                    first = first or trouble.first
                    self._probe.note(trouble.finding, entry)
        if first is not None:
            self._probe.report("dcp.items_unreadable", entry, count=unreadable, tensor=first.name)

    def _report_transforms(self) -> None:
        if self._unopened:
            item = self._unopened[0]
            self._probe.report(
                "dcp.zstd_missing", item.place.entry, count=len(self._unopened), tensor=item.name
            )
        if self._unknown:
            item, words = self._unknown[0]
            self._probe.report(
                "dcp.transform_unknown",
                item.place.entry,
                count=len(self._unknown),
                tensor=item.name,
                transform=words,
            )


def _differs(dtype: str, shape: Iterable[int], item: Wanted) -> Finding:
    params = {
        "tensor": item.name,
        "found": f"{dtype}, {in_words(shape)}",
        "expected": f"{item.dtype}, {in_words(item.shape)}",
    }
    return Finding("dcp.item_disagrees", dict(params))
