"""Every number of a checkpoint read once, for what stands out: not finite, all zeros, one number alone, stretches of zeros, copies.

Tensors are read in one pass (`scan`). Those that it found to be alike are read a second time, for an exact word (`compare`).
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from shardscope.engine.convert.copies.contents import Contents, Opener
from shardscope.engine.convert.copies.entries import opener_of
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.sides import LOCAL, Side, side_of
from shardscope.engine.looking.folding import Said, Seen, alone, folded
from shardscope.engine.looking.unwritten import Unwritten, look_at, place_of, spans
from shardscope.engine.model.blocker import Blocker, Fault, Finding, Param, blocker
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.decoded import Listed
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import OnProgress, Pace, Progress, check
from shardscope.engine.model.scan import Hole, ScanDocument
from shardscope.engine.model.schemas import SCAN
from shardscope.engine.model.text import display_name
from shardscope.engine.peeking.peek import MEMORY, in_the_way, opaque_files
from shardscope.engine.peeking.unpacking import readable, stored_bytes
from shardscope.engine.source.source import Source

if TYPE_CHECKING:
    from shardscope.engine.convert.proofs.comparing import Tiles
    from shardscope.engine.looking.copies import OnElements

LEAST: Final = 1 << 20
"""Bytes of buffers below which no budget goes."""
SCRATCH: Final = 8 << 20
"""Bytes that working on numbers takes beside the tiles, at most."""
HOLES: Final = 256
"""Holes that the document lists."""

OnFinding = Callable[[Blocker], None]
"""Hears of each finding when it is made, also of those that a scan that is stopped later leaves behind. While tensors are read these are
about single ones: what is alike is put together at the end, in the document."""


class Reading(Struct, frozen=True):
    """What a scan will read, before it does."""

    tensors: tuple[LogicalTensor, ...]
    """Those of the component that are not tied to another one; blocks of ggml as the numbers that they stand for."""
    bytes: int
    """Of their numbers, as they are stored."""
    unreadable: int
    """Whose numbers cannot be read."""
    opaque_files: int
    in_the_way: tuple[Blocker, ...]
    """Errors of inspection on account of which something may not be read."""


def scan(
    path: str | os.PathLike[str],
    *,
    component: Listed = "model",
    memory_bytes: int = MEMORY,
    decoding: Decoding | None = None,
    limits: Limits | None = None,
    hf_cache: bool = False,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> ScanDocument:
    """Read every number of a checkpoint and say what stands out.

    Raises `Fault`: those of `inspect`, `scan.nothing`, `scan.empty`, `peek.unread`, and those of maps and of reading; `Cancelled`.
    """
    side = side_of(
        path,
        limits=limits or Limits(),
        hf_cache=hf_cache,
        decoding=decoding,
        cancel=cancel,
        progress=progress,
    )
    reading = to_read(side, component, decoded=decoding is not None)
    return scan_side(
        side, reading, component=component, memory_bytes=memory_bytes, cancel=cancel, progress=progress
    )


def to_read(side: Side, component: Listed = "model", *, decoded: bool) -> Reading:
    """Return what a scan of an inspected checkpoint will read. Raises `Fault`: `scan.nothing`, `scan.empty`, `peek.unread`."""
    opaque = opaque_files(side)
    own = (each for each in side.catalogue.of(component) if each.alias_of is None)
    tensors = tuple(readable(side, own))
    errors = in_the_way(side)
    if not tensors and not errors:
        if opaque and not decoded:
            raise Fault("scan.nothing", files=opaque)
        raise Fault("scan.empty", count=len(side.catalogue.tensors))
    read = [each for each in tensors if each.unwritable is None]
    return Reading(tensors, sum(map(stored_bytes, read)), len(tensors) - len(read), opaque, errors)


def scan_side(
    side: Side,
    reading: Reading,
    *,
    component: Listed = "model",
    memory_bytes: int = MEMORY,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
    on_finding: OnFinding | None = None,
) -> ScanDocument:
    """Read what `to_read` said of a checkpoint, and say what stands out. Raises `Fault`: those of the source; `Cancelled`."""
    hear = on_finding or (lambda _: None)
    findings = list(reading.in_the_way)
    with Source(side.path, limits=Limits(), hf_cache=side.found.hf_cache) as source:
        opener = opener_of(source, side.found.inventory)
        files = list(_files(reading.tensors, opener, cancel))
        findings += (blocker(found, each.file) for each in files for found in _of_file(each, reading.tensors))
        for item in findings:
            hear(item)
        work = _Scan(reading, files, opener, max(LEAST, memory_bytes - SCRATCH), cancel, Pace(progress), hear)
        work.read()
        work.compare()
    return ScanDocument(
        schema=SCAN,
        format=side.found.descriptor.classification.format,
        component=component,
        tensors=len(reading.tensors) - work.unread,
        bytes=work.done,
        unread=work.unread,
        opaque_files=reading.opaque_files,
        findings=(*findings, *work.findings()),
        holes=tuple(hole for each in files for hole in _holes(each))[:HOLES],
        unexamined_files=sum(not each.told for each in files),
    )


def _files(
    tensors: Sequence[LogicalTensor], opener: Opener, cancel: threading.Event | None
) -> Iterator[Unwritten]:
    """Yield of each file that holds tensors what was never stored of it, and whether it ends in zeros."""
    with Contents(opener) as contents:
        for name, places in spans(tensors).items():
            check(cancel)
            yield look_at(name, contents.file(name), places, cancel)


def _holes(found: Unwritten) -> Iterator[Hole]:
    for hole in found.holes[:HOLES]:
        yield Hole(found.file, hole.begin, hole.end - hole.begin)


def _of_file(found: Unwritten, tensors: Sequence[LogicalTensor]) -> Iterator[Finding]:
    """Yield what was never written of one file."""
    if found.tail is not None:
        params: dict[str, Param] = {
            "file": found.file,
            "count": len(found.emptied),
            "tensor": tensors[found.emptied[0]].name,
            "begin": found.tail.begin,
            "bytes": found.size - found.tail.begin,
            "unstored": found.unstored,
        }
        yield Finding("scan.half_written", params)
    if found.elsewhere:
        params = {
            "file": found.file,
            "bytes": sum(hole.end - hole.begin for hole in found.elsewhere),
            "holes": len(found.elsewhere),
            "begin": found.elsewhere[0].begin,
            "count": len(found.hit),
            "tensor": tensors[found.hit[0]].name,
        }
        yield Finding("scan.holes", params)


class _Scan:
    """Two passes: over all tensors, and over those that may be copies."""

    def __init__(
        self,
        reading: Reading,
        files: Sequence[Unwritten],
        opener: Opener,
        budget: int,
        cancel: threading.Event | None,
        pace: Pace,
        hear: OnFinding,
    ) -> None:
        from shardscope.engine.looking.copies import Copies

        self._tensors = reading.tensors
        self._total = reading.bytes
        self._files = {each.file: each for each in files}
        self._opener = opener
        self._budget = budget
        self._cancel = cancel
        self._pace = pace
        self._hear = hear
        self._copies = Copies(reading.tensors)
        self._seen: list[Seen] = []
        self._pairs: list[Said] = []
        self._varied: dict[str, None] = {}
        """Names of tensors that have more than one number."""
        self.done = self.unread = 0

    def read(self) -> None:
        """Read every tensor once."""
        from shardscope.engine.looking.packed.reading import Unpacking

        place = 0
        while place < len(self._tensors):
            with Unpacking(self._opener, self._budget, 1) as tiles:  # anew after a tensor that cannot be read
                place = self._read_on(place, tiles)
        self._say("scan", self.done, self._total, None)

    def _read_on(self, place: int, tiles: "Tiles") -> int:
        """Read tensors up to one that cannot be read, or to the last; return the place of the next."""
        while place < len(self._tensors):
            check(self._cancel)
            tensor, before = self._tensors[place], self.done
            place += 1
            try:
                for each in self._read(tensor, place - 1, tiles):
                    self._see(each)
            except Fault as fault:
                if not fault.finding.code.startswith(LOCAL):
                    raise
                self.unread += 1
                self._total -= before + stored_bytes(tensor) - self.done
                why = blocker(fault.finding, tensor.name).message
                cause: dict[str, Param] = {"cause": fault.finding.code}
                self._see(Seen("scan.unreadable", tensor.name, place - 1, kind=cause, first={"why": why}))
                return place
        return place

    def _see(self, seen: Seen) -> None:
        self._seen.append(seen)
        self._hear(blocker(alone(seen).finding, seen.tensor))

    def _read(self, tensor: LogicalTensor, place: int, tiles: "Tiles") -> Iterator[Seen]:
        """Yield what stands out in a tensor."""
        from shardscope.engine.convert.copies.work import Written
        from shardscope.engine.looking.outstanding import Outstanding

        if tensor.unwritable is not None:
            self.unread += 1
            yield Seen("scan.unread", tensor.name, place, kind={"why": tensor.unwritable})
            return
        item = Written(tensor, tensor.dtype, 0)
        sketcher = self._copies.sketcher(tensor, item.elements)
        size, before = stored_bytes(tensor), self.done
        found = Outstanding(tensor, place, size)
        for stretch in tiles.stretches([item], self._cancel) if item.elements else ():
            found.add(stretch.element, stretch.data[0], stretch.elements)
            if sketcher is not None:
                sketcher.add(stretch.element, stretch.data[0], stretch.elements)
            self.done = before + size * (stretch.element + stretch.elements) // item.elements
            if self._pace.due():
                self._say("scan", self.done, self._total, tensor.name)
        found.finished()
        if found.varied:
            self._varied[tensor.name] = None
            if sketcher is not None:
                self._copies.keep(place, sketcher, found.statistics)
        for each in found.seen():
            zeros = found.zeros_of(each)
            if zeros is None or not self._explained(tensor, *zeros):
                yield each

    def _explained(self, tensor: LogicalTensor, begin: int, length: int) -> bool:
        """Tell whether zeros of a tensor are what was said of its files."""
        places = [(each.record.file, place_of(tensor, each)) for each in tensor.fragments]
        if begin == 0 and length == stored_bytes(tensor):
            return all(
                self._files[file].explains(*place) for file, place in places if place.end > place.begin
            )
        if len(places) != 1:
            return False
        ((file, (low, _)),) = places
        return self._files[file].explains(low + begin, low + begin + length)

    def compare(self) -> None:
        """Look again at what may be copies."""
        from shardscope.engine.looking.copies import equal, near
        from shardscope.engine.looking.packed.reading import Pairs, Unpacking
        from shardscope.engine.looking.twins import said_of

        tensors, cancel = self._tensors, self._cancel
        groups = self._copies.maybe_equal()
        with Unpacking(self._opener, self._budget, 1) as tiles:
            on_elements = self._saying([place for some in groups for place in some])
            twins = list(equal(tensors, groups, tiles, cancel=cancel, on_elements=on_elements))
        candidates = list(self._copies.maybe_near({each.place for each in twins}, cancel))
        with Pairs(self._opener, self._budget) as both:
            on_elements = self._saying([place for pair in candidates for place in pair])
            twins += near(tensors, candidates, both, cancel=cancel, on_elements=on_elements)
        self._pairs = list(said_of(twins, self._varied))
        for each in self._pairs:
            self._hear(blocker(each.finding, each.tensor))

    def findings(self) -> Iterator[Blocker]:
        """Yield what was found, put together, in the order of the tensors."""
        for each in sorted([*folded(self._seen), *self._pairs], key=lambda each: each.place):
            yield blocker(each.finding, each.tensor)

    def _saying(self, places: Sequence[int]) -> "OnElements":
        """Return what hears of elements of these tensors that are read again."""
        done, total = 0, sum(prod(self._tensors[place].shape) for place in places)

        def read(name: str, count: int) -> None:
            nonlocal done
            done += count
            if self._pace.due() or done == total:
                self._say("compare", done, total, name, "elements")

        return read

    def _say(self, stage: str, done: int, total: int, name: str | None, unit: str = "bytes") -> None:
        subject = None if name is None else display_name(name, 120)
        self._pace.report(Progress(stage, done, total, unit, subject))
