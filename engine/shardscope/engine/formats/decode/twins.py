"""Two places of a checkpoint that have to hold the same numbers, one of them rounded: compared tile by tile.

A trainer that keeps fp32 masters beside a module in 16 bit writes every trained number twice. Whatever was put together
wrongly, by a writer or by a converter, shows where the two differ. Inspection samples within a bound, conversion compares all.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import prod
from typing import Final

from msgspec.structs import replace

from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.catalogue import Fragment
from shardscope.engine.model.oracle import Compared, Oracle, Twin
from shardscope.engine.model.piece import row_major
from shardscope.engine.model.source import Entry, Reader
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.parse.strides import reach

SAMPLED_BYTES: Final = 64 << 20
"""Bytes of exact numbers that an inspection compares; smaller checkpoints are compared whole."""
_TILE_BYTES: Final = 1 << 20
_SPREAD: Final = 8
_LEAST_BYTES: Final = 4 << 10
EXACT: Final = "F32"
"""The type of numbers in full precision."""
_ROUNDED: Final = ("BF16", "F16", "F32")

Shape = tuple[int, ...]


def twin(name: str, exact: Fragment, rounded: Fragment, dtype: str) -> Twin | None:
    """Return two fragments of one shape as a pair; null where they cannot be compared as they are stored."""
    plain = all(side.record.coding == "plain" and not side.record.big_endian for side in (exact, rounded))
    if not plain or dtype not in _ROUNDED or 0 in exact.shape or exact.shape != rounded.shape:
        return None
    return Twin(name, replace(exact, dtype=EXACT), replace(rounded, dtype=dtype))


def checked(decoder: Decoder, oracle: Oracle) -> Compared:
    """Compare an oracle's pairs, all of them or a bounded part as the decoder says, and keep it for whoever compares again."""
    decoder.oracles.append(oracle)
    found = check(decoder.probe, oracle, None if decoder.compares_all else SAMPLED_BYTES)
    decoder.payload_bytes += found.read
    return found


def check(probe: Probe, oracle: Oracle, most: int | None = SAMPLED_BYTES) -> Compared:
    """Compare the pairs of an oracle, `most` bytes of them or all of them, and report where they differ.

    Files that cannot be read are reported too. Raises `Cancelled`.
    """
    found = compare(probe, oracle.pairs, most)
    if found.differing:
        probe.report(
            oracle.code,
            oracle.subject,
            count=len(found.differing),
            total=found.tensors,
            first=next(iter(found.differing)),
            said=found.says,
        )
    return found


def compare(probe: Probe, twins: Sequence[Twin], most: int | None = SAMPLED_BYTES) -> Compared:
    """Compare pairs, `most` bytes of them or all of them; files that cannot be read are reported. Raises `Cancelled`."""
    total = sum(one.bytes for one in twins)
    windows = list(twins) if most is None or total <= most else list(_sampled(twins, most))
    entries = {entry.text: entry for entry in probe.inventory.files}
    work = _Work(probe, len(windows))
    for (first, second), held in groupby(sorted(windows, key=_files), key=_files):
        work.between(entries[first], entries[second], list(held))
    tensors = len({one.name for one in twins})
    return Compared(work.compared, total, tensors, work.read, work.differing)


def _files(one: Twin) -> tuple[str, str]:
    return one.exact.record.file, one.rounded.record.file


class _Work:
    """One comparison, while it runs."""

    def __init__(self, probe: Probe, windows: int) -> None:
        self.probe = probe
        self.windows = windows
        self.done = 0
        self.compared = 0
        self.read = 0
        self.differing: dict[str, int] = {}

    def between(self, exact: Entry, rounded: Entry, held: Sequence[Twin]) -> None:
        """Compare windows that have their sides in these two files."""

        def both(one: Reader) -> None:
            self.probe.guarded(rounded, lambda other: self._windows(one, other, held, rounded))

        self.probe.guarded(exact, both)

    def _windows(self, one: Reader, other: Reader, held: Sequence[Twin], entry: Entry) -> None:
        from shardscope.engine.geometry.execution.rounding import (
            differing,  # numpy: only where values are compared
        )

        for window in held:
            for tile in _tiles(window):
                self.probe.checkpoint("compare", self.done, self.windows, entry)
                sides = (_bytes(one, tile.exact), _bytes(other, tile.rounded))
                strides = (_strides(tile.exact), _strides(tile.rounded))
                dtype = tile.rounded.dtype or EXACT
                wrong = differing(sides[0], sides[1], dtype, tile.exact.shape, strides)
                self.read += len(sides[0]) + len(sides[1])
                self.compared += tile.bytes
                if wrong:
                    self.differing[window.name] = self.differing.get(window.name, 0) + wrong
            self.done += 1


def _bytes(reader: Reader, side: Fragment) -> bytes:
    width = DTYPES[side.dtype or EXACT].bits // 8
    return reader.pread(side.record.begin + side.offset, reach(side.shape, _strides(side)) * width)


def _strides(side: Fragment) -> Shape:
    return side.strides if side.strides is not None else row_major(side.shape)


def _sampled(twins: Sequence[Twin], most: int) -> Iterator[Twin]:
    """Yield windows of so many bytes in all: the first and the last of each pair, and some between."""
    share = max(_LEAST_BYTES, most // len(twins))
    step = max(1, -(-share * len(twins) // most))  # of very many pairs every so manyth
    for one in twins[::step]:
        if one.bytes <= share:
            yield one
            continue
        rows = one.exact.shape[0]
        per_row = one.bytes // rows
        windows = _SPREAD if share >= _SPREAD * per_row else max(1, min(_SPREAD, share // max(1, per_row)))
        count = max(1, share // windows // per_row)
        starts = {round(number * (rows - count) / max(1, windows - 1)) for number in range(windows)}
        for start in sorted(starts):
            window = _rows(one, start, min(count, rows - start))
            yield from _first(window, share // windows) if window.bytes > 2 * share else (window,)


def _first(one: Twin, most: int) -> Iterable[Twin]:
    """Yield the beginning of a pair whose every row is large."""
    while one.bytes > most and one.exact.shape:
        rows = one.exact.shape[0]
        if rows > 1:
            one = _rows(one, 0, max(1, rows * most // one.bytes))
            continue
        one = _inner(one)
    yield one


def _tiles(one: Twin) -> Iterator[Twin]:
    """Yield parts of which either side spans no more than a tile."""
    stack = [one]
    while stack:
        part = stack.pop()
        spans = [reach(side.shape, _strides(side)) for side in (part.exact, part.rounded)]
        if max(spans) * 4 <= _TILE_BYTES or prod(part.exact.shape) == 1:
            yield part
        elif part.exact.shape[0] == 1:
            stack.append(_inner(part))
        else:
            half = part.exact.shape[0] // 2
            stack.append(_rows(part, half, part.exact.shape[0] - half))
            stack.append(_rows(part, 0, half))


def _rows(one: Twin, start: int, count: int) -> Twin:
    """Return some slices along the first dimension."""
    return Twin(one.name, _part(one.exact, start, count), _part(one.rounded, start, count))


def _part(side: Fragment, start: int, count: int) -> Fragment:
    strides = _strides(side)
    width = DTYPES[side.dtype or EXACT].bits // 8
    offset = side.offset + start * strides[0] * width
    return replace(side, shape=(count, *side.shape[1:]), strides=strides, offset=offset)


def _inner(one: Twin) -> Twin:
    """Return a pair of one row without its first dimension."""
    return Twin(one.name, _without(one.exact), _without(one.rounded))


def _without(side: Fragment) -> Fragment:
    return replace(side, shape=side.shape[1:], strides=_strides(side)[1:])
