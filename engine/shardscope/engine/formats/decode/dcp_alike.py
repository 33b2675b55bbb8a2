"""Stored items read in full, and others found to be like them.

An item is a file of torch.save around one tensor. All but its elements is the same for every chunk of one dtype and shape, so
that one of each is decoded and the others are compared with it (`parse/torch_skeleton`).
"""

from msgspec import Struct

from shardscope.engine.formats.decode.dcp_metadata import Place, Shape
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, Record
from shardscope.engine.model.source import Entry, Reader
from shardscope.engine.parse.torch_skeleton import Skeleton


class Window:
    """A file read a little ahead: what stands behind the elements of one item, and the head of the next."""

    __slots__ = ("_at", "_data", "reader")

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._at = 0
        self._data = b""

    def pread(self, offset: int, length: int, ahead: int = 0) -> bytes:
        """Return up to `length` bytes at `offset`, and keep `ahead` more; fewer only at the end of the file."""
        begin = offset - self._at
        if begin < 0 or begin + length > len(self._data):
            self._at, self._data = offset, self.reader.pread(offset, length + ahead)
            begin = 0
        return self._data[begin : begin + length]


class Wanted(Struct, frozen=True, gc=False):
    """A chunk whose elements are looked for."""

    name: str
    label: int
    dtype: str
    shape: Shape
    """Of the chunk."""
    place: Place

    @property
    def end(self) -> int:
        """One past the last byte of its item."""
        return self.place.begin + self.place.length


class Content(Struct, frozen=True, gc=False):
    """What an item holds, without where it lies."""

    dtype: str
    shape: Shape
    begin: int
    """Of the record in the item."""
    length: int
    size: int
    offset: int
    strides: Shape | None
    deflated: bool
    crc_recorded: bool
    big_endian: bool

    def fragment(self, item: Wanted, file: str, crc: int | None) -> Fragment:
        """Return the fragment of an item with this content and this checksum."""
        record = Record(
            file,
            item.place.begin + self.begin,
            self.length,
            self.size,
            "deflate" if self.deflated else "plain",
            crc if self.crc_recorded else None,
            self.big_endian,
        )
        return Fragment(item.label, item.shape, record, self.offset, self.strides)


class Known(Struct, frozen=True):
    """An item that was read in full, for those that are alike."""

    skeleton: Skeleton
    content: Content


class Alike:
    """Items of one length that were read in full, by what stands before their elements."""

    __slots__ = ("_by_head", "_longest")

    def __init__(self) -> None:
        self._by_head: dict[int, dict[bytes, Known]] = {}
        """By the length of the head."""
        self._longest = 0

    def add(self, known: Known) -> None:
        """Remember one more."""
        head = known.skeleton.head
        self._longest = max(self._longest, len(head))
        self._by_head.setdefault(len(head), {})[head] = known

    def fragment(self, window: Window, item: Wanted, file: str) -> Fragment | None:
        """Return the fragment of an item that is like one of them; null where it is like none, or not what is recorded."""
        begin = item.place.begin
        head = window.pread(begin, self._longest)
        for length, by_head in self._by_head.items():
            known = by_head.get(head[:length])
            if known is None:
                continue
            form, content = known.skeleton, known.content
            tail_begin = form.tail_begin
            crc = form.checksum(window.pread(begin + tail_begin, form.length - tail_begin, self._longest))
            if crc is not None and content.shape == item.shape and content.dtype == item.dtype:
                return content.fragment(item, file, crc)
        return None


def read_item(decoder: Decoder, entry: Entry, part: Reader, begin: int) -> tuple[Content, int | None]:
    """Return what an item says of the one tensor that it holds, and the checksum of its elements.

    Raises `Fault`.
    """
    file = decoder.read_torch(entry, part, begin)
    tensor = file.tree.tensor(file.tree.root)
    if tensor is None or tensor.kind != "strided":
        raise Fault("dcp.item_odd", found="no tensor" if tensor is None else f"a {tensor.kind} tensor")
    fragment = decoder.fragment(file, tensor)
    if fragment is None:
        raise Fault("dcp.item_odd", found="a tensor without bytes")
    record = fragment.record
    content = Content(
        dtype=tensor.dtype,
        shape=fragment.shape,
        begin=record.begin - begin,
        length=record.length,
        size=record.size,
        offset=fragment.offset,
        strides=fragment.strides,
        deflated=record.coding == "deflate",
        crc_recorded=record.crc is not None,
        big_endian=record.big_endian,
    )
    return content, record.crc
