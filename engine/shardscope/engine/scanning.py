"""Every number of a checkpoint read once, for what stands out: not finite, all zeros, one number alone, stretches of zeros, copies."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from shardscope.engine.convert.copies.entries import opener_of
from shardscope.engine.decoding import Decoding, bytes_of
from shardscope.engine.model.blocker import Blocker, Fault, Finding, Param, blocker
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.decoded import Listed
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import OnProgress, Pace, Progress, check
from shardscope.engine.model.scan import ScanDocument
from shardscope.engine.model.schemas import SCAN
from shardscope.engine.model.text import display_name
from shardscope.engine.peeking import LEAST, MEMORY, SCRATCH, in_the_way, opaque_files
from shardscope.engine.sides import Side, side_of
from shardscope.engine.source.source import Source

if TYPE_CHECKING:
    from shardscope.engine.convert.proofs.comparing import Tiles

ZEROS: Final = 64 << 10
"""Bytes of zeros in one stretch that are worth a word."""
OnFinding = Callable[[Blocker], None]
"""Hears of each finding when it is made, also of those that a scan that is stopped later leaves behind."""


class Reading(Struct, frozen=True):
    """What a scan will read, before it does."""

    tensors: tuple[LogicalTensor, ...]
    """Those of the component that are not tied to another one."""
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
    tensors = tuple(each for each in side.catalogue.of(component) if each.alias_of is None)
    errors = in_the_way(side)
    if not tensors and not errors:
        if opaque and not decoded:
            raise Fault("scan.nothing", files=opaque)
        raise Fault("scan.empty", count=len(side.catalogue.tensors))
    readable = [each for each in tensors if each.unwritable is None]
    size = sum(bytes_of(each) or 0 for each in readable)
    return Reading(tensors, size, len(tensors) - len(readable), opaque, errors)


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
    """Read what `to_read` said of a checkpoint, and say what stands out. Raises `Fault`: those of maps and of reading; `Cancelled`."""
    from shardscope.engine.convert.proofs.comparing import Tiles

    findings: list[Blocker] = []

    def found(item: Blocker) -> None:
        findings.append(item)
        if on_finding is not None:
            on_finding(item)

    for error in reading.in_the_way:
        found(error)
    with (
        Source(side.path, limits=Limits(), hf_cache=side.found.hf_cache) as source,
        Tiles(opener_of(source, side.found.inventory), max(LEAST, memory_bytes - SCRATCH), 1) as tiles,
    ):
        work = _Scan(reading, tiles, cancel, Pace(progress))
        for tensor in reading.tensors:
            check(cancel)
            for each in work.findings(tensor):
                found(blocker(each, tensor.name))
        work.report(None)
    return ScanDocument(
        schema=SCAN,
        format=side.found.descriptor.classification.format,
        component=component,
        tensors=len(reading.tensors) - work.unread,
        bytes=work.done,
        unread=work.unread,
        opaque_files=reading.opaque_files,
        findings=tuple(findings),
    )


class _Scan:
    def __init__(self, reading: Reading, tiles: "Tiles", cancel: threading.Event | None, pace: Pace) -> None:
        self._tiles = tiles
        self._cancel = cancel
        self._pace = pace
        self._alike = Counter((each.dtype, each.shape) for each in reading.tensors)
        self._seen: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._total = reading.bytes
        self.done = self.unread = 0

    def findings(self, tensor: LogicalTensor) -> Iterator[Finding]:
        """Yield what stands out in a tensor."""
        from shardscope.engine.convert.copies.work import Written
        from shardscope.engine.looking.statistics import first_not_finite, summing
        from shardscope.engine.looking.zero_runs import ZeroRun

        if tensor.unwritable is not None:
            self.unread += 1
            yield Finding("scan.unread", {"tensor": tensor.name, "why": tensor.unwritable})
            return
        item = Written(tensor, tensor.dtype, 0)
        kind = (tensor.dtype, tensor.shape)
        digest = blake2b(digest_size=16) if self._alike[kind] > 1 else None
        sums, zeros = summing(tensor.dtype), ZeroRun()
        first: int | None = None
        for stretch in self._tiles.stretches([item], self._cancel) if item.elements else ():
            data = stretch.data[0]
            sums.add(data, stretch.elements)
            if first is None and sums.not_finite:
                first = stretch.element + (first_not_finite(data, tensor.dtype, stretch.elements) or 0)
            zeros.add(data)
            if digest is not None:
                digest.update(data.data)
            self.done += len(data)
            if self._pace.due():
                self.report(tensor.name)
        zeros.finished()
        found = sums.statistics()
        infinite = found.positive_infinite + found.negative_infinite
        about: dict[str, Param] = {"tensor": tensor.name, "numbers": found.numbers}
        if found.nans or infinite:
            params: dict[str, Param] = {"nans": found.nans, "infinite": infinite, "element": first}
            yield Finding("scan.not_finite", {**about, **params})
        if not found.numbers:
            return
        if found.zeros == found.numbers:
            yield Finding("scan.zeros", about)
            return
        if found.min == found.max and not found.nans and not infinite and found.numbers > 1:
            yield Finding("scan.constant", {**about, "value": f"{found.min:.9g}"})
            return
        if zeros.length >= ZEROS:
            run: dict[str, Param] = {"bytes": zeros.length, "begin": zeros.begin, "size": item.size}
            yield Finding("scan.zero_run", {"tensor": tensor.name, **run})
        if digest is not None:
            other = self._seen.setdefault((*kind, digest.digest()), tensor.name)
            if other is not tensor.name:
                yield Finding("scan.duplicate", {"tensor": tensor.name, "other": other})

    def report(self, name: str | None) -> None:
        """Say how far it is."""
        subject = None if name is None else display_name(name, 120)
        self._pace.report(Progress("scan", self.done, self._total, "bytes", subject))
