"""Copies cut to size: by bytes, by a stretch of the target, by what one read covers, and into an order that caches like."""

from collections.abc import Iterator

from shardscope.engine.geometry.execution.program import Copy

LINE = 64
"""Bytes of a cache line. A run at least this long needs no care for caches: every line that is touched is used up."""

SHORT = 16
"""Innermost loops shorter than this cost more to enter than to run."""

FEW = 1024
"""Runs that are moved in one call, in whatever order: less work than deciding."""

BLOCK = 128
"""Indices, on each of the two dimensions that change places, of a block of a transposing copy: what it touches on both
sides (128 lines) stays in a 32 KiB first-level cache together."""

PEELED = 1 << 20
"""Bytes of a block of a copy whose short innermost loop is moved outside: read or written several times while in a
second-level cache."""


def within(copy: Copy, low: int, high: int) -> Iterator[Copy]:
    """Yield what a copy writes at the target's bytes `low` to `high`, by rising address: at most two parts for each loop."""
    start, span = copy.target.offset, copy.target_span
    if start >= low and start + span <= high:
        yield copy
        return
    if start >= high or start + span <= low:
        return
    if not copy.counts:
        begin, end = max(start, low), min(start + span, high)
        yield copy.run_part(begin - start, end - begin)
        return
    step, count = copy.target.strides[0], copy.counts[0]
    inner = span - (count - 1) * step
    first = max(0, -((start - low) // step))
    last = min(count - 1, (high - inner - start) // step)
    if first > 0 and start + (first - 1) * step + inner > low:
        yield from within(copy.part(0, first - 1, 1), low, high)
    if first <= last:
        yield copy.part(0, first, last - first + 1)
    after = max(last + 1, first)
    if after < count and start + after * step < high:
        yield from within(copy.part(0, after, 1), low, high)


def split(copy: Copy, most: int) -> Iterator[Copy]:
    """Yield parts of at most `most` bytes each, or of a single element, by rising target address."""
    if copy.size <= most:
        yield copy
    elif not copy.counts:
        length = max(LINE, most // LINE * LINE)
        for start in range(0, copy.run, length):
            yield copy.run_part(start, min(length, copy.run - start))
    else:
        count = copy.counts[0]
        each = max(1, most * count // copy.size)
        for start in range(0, count, each):
            part = copy.part(0, start, min(each, count - start))
            if each == 1:
                yield from split(part, most)
            else:
                yield part


def reads(copy: Copy, gap: int) -> int:
    """Return how many parts `gathered` would make of a copy."""
    number, inner = 1, copy.run
    for step, count in sorted(zip(copy.source.strides, copy.counts, strict=True)):
        if number > 1 or step - inner > gap:
            number *= count
        inner += (count - 1) * step
    return number


def gathered(copy: Copy, gap: int) -> Iterator[Copy]:
    """Yield parts in whose source spans no gap is longer than `gap` bytes: such gaps are cheaper read than left out."""
    if reads(copy, gap) == 1:
        yield copy
        return
    dim = max(range(len(copy.counts)), key=lambda k: copy.source.strides[k])
    for index in range(copy.counts[dim]):
        yield from gathered(copy.part(dim, index, 1), gap)


def blocked(copy: Copy) -> Iterator[Copy]:
    """Yield a copy in an order that caches like.

    Runs as long as a cache line go as they are. Where the fastest dimension of the source is not that of the target, the copy
    transposes: it is cut into blocks of both dimensions. A short innermost loop becomes the outermost of each block.
    """
    last = len(copy.counts) - 1
    if last < 1 or copy.run >= LINE or copy.size <= FEW * copy.run:
        yield copy
    elif copy.counts[last] < SHORT:
        for block in split(copy, PEELED):
            yield from _peeled(block)
    elif (fast := min(range(last + 1), key=lambda k: copy.source.strides[k])) != last and copy.counts[
        fast
    ] >= SHORT:
        for part in _tiled(copy, last, BLOCK):
            # `fast` keeps its place: `last` comes after it, and is never cut to a single index.
            yield from _tiled(part, fast, BLOCK)
    else:
        yield copy


def _peeled(copy: Copy) -> Iterator[Copy]:
    last = len(copy.counts) - 1
    if last < 1 or copy.counts[last] >= SHORT:
        yield copy
        return
    for index in range(copy.counts[last]):
        yield from _peeled(copy.part(last, index, 1))


def _tiled(copy: Copy, dim: int, extent: int) -> Iterator[Copy]:
    count = copy.counts[dim]
    if count % extent == 1:
        extent += 1
    for start in range(0, count, extent):
        yield copy.part(dim, start, min(extent, count - start))
