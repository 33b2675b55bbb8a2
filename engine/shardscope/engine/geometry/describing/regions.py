"""Where a piece lies, in words: rows and columns instead of offsets and strides. Arithmetic on a few numbers."""

from collections.abc import Sequence
from math import prod

from msgspec import Struct

from shardscope.engine.model.piece import Side, row_major

SHOWN = 4
"""Runs that are written out before the rest is counted."""


class Run(Struct, frozen=True):
    """So many positions in a dimension, `step` apart."""

    count: int
    step: int
    order: int
    """How far apart they are on the other side: what comes first there has the larger one."""


class Extent(Struct, frozen=True):
    """What a block has of one dimension: runs within runs from `start` on."""

    start: int
    runs: tuple[Run, ...]
    size: int
    """Of the dimension."""

    @property
    def whole(self) -> bool:
        """Whether it is all of the dimension, in its order."""
        runs = self.ordered()
        return self.size == 1 or (
            self.start == 0 and [(run.count, run.step) for run in runs] == [(self.size, 1)]
        )

    def ordered(self, *, rising: bool = False) -> list[Run]:
        """Return the runs, outermost first, in the order of the other side or in their own; what continues is joined."""
        joined: list[Run] = []
        for run in sorted(self.runs, key=lambda run: -(run.step if rising else run.order)):
            times = joined.pop().count if joined and joined[-1].step == run.step * run.count else 1
            joined.append(Run(times * run.count, run.step, run.order))
        return joined

    def words(self, one: str, many: str, *, rising: bool = False) -> str:
        """Return the positions: `rows 0-7`, `rows 0-1, 6-7, 12-13, 18-19`, `rows 0, 2, 4, 1, ... 11 (12 in this order)`."""
        runs = self.ordered(rising=rising)
        length = runs.pop().count if runs and runs[-1].step == 1 else 1
        number = prod(run.count for run in runs)
        texts = [_span(self._at(runs, n), length) for n in range(min(number, SHOWN))]
        if number > SHOWN + 1:
            back = sorted(runs, key=lambda run: -run.step) != runs
            count = f"{number:,} runs" if length > 1 else f"{number:,}"
            texts += [
                f"... {_span(self._at(runs, number - 1), length)} ({count}{' in this order' if back else ''})"
            ]
        elif number > SHOWN:
            texts.append(_span(self._at(runs, SHOWN), length))
        name = one if number == length == 1 else many
        return f"{name} {', '.join(texts)}"

    def _at(self, runs: Sequence[Run], number: int) -> int:
        at = self.start
        for run in reversed(runs):
            number, position = divmod(number, run.count)
            at += position * run.step
        return at


def _span(at: int, length: int) -> str:
    return f"{at:,}" if length == 1 else f"{at:,}-{at + length - 1:,}"


def region(
    shape: tuple[int, ...], side: Side, other: Side, extents: tuple[int, ...]
) -> tuple[Extent, ...] | None:
    """Return a block as what it has of each dimension of a tensor; null where it is no product of such runs."""
    strides = row_major(shape)
    starts = [side.offset // stride % size for stride, size in zip(strides, shape, strict=True)]
    found: list[list[Run]] = [[] for _ in shape]
    for step, count, order in sorted(zip(side.strides, extents, other.strides, strict=True), reverse=True):
        if not _placed(Run(count, step, order), shape, strides, starts, found):
            return None
    return tuple(
        Extent(start, tuple(runs), size) for start, runs, size in zip(starts, found, shape, strict=True)
    )


def _placed(
    run: Run, shape: tuple[int, ...], strides: tuple[int, ...], starts: Sequence[int], found: list[list[Run]]
) -> bool:
    """Add one dimension of a block to what it has of the tensor's dimensions; false where it does not fit."""
    count, step, order = run.count, run.step, run.order
    while count > 1:
        dim = next((d for d, n in enumerate(strides) if n <= step and shape[d] > 1), None)
        if dim is None or step % strides[dim]:
            return False
        by, size = step // strides[dim], shape[dim]
        reached = starts[dim] + sum((run.count - 1) * run.step for run in found[dim])
        if reached + (count - 1) * by < size:
            found[dim].append(Run(count, by, order))
            return True
        inner = size // by
        if size % by or count % inner or starts[dim] >= by or found[dim]:
            return False
        found[dim].append(Run(inner, by, order))
        count //= inner
        step, order = strides[dim] * size, order * inner
    return True


def described(
    shape: tuple[int, ...], side: Side, other: Side, extents: tuple[int, ...], *, rising: bool = False
) -> str:
    """Return in words what a block has of a tensor: `rows 0-7, columns 4-7`, `everything`, `elements 30-59`.

    Positions come in the order of the other side; where `rising`, in their own.
    """
    found = region(shape, side, other, extents)
    if found is None:
        return _flat(side, other, extents, rising=rising)
    names = _names(len(shape))
    parts = [
        extent.words(*name, rising=rising)
        for name, extent in zip(names, found, strict=True)
        if not extent.whole
    ]
    return ", ".join(parts) if parts else "everything"


def _names(dimensions: int) -> tuple[tuple[str, str], ...]:
    if dimensions == 1:
        return (("element", "elements"),)
    if dimensions == 2:
        return ("row", "rows"), ("column", "columns")
    return tuple((f"dim {number}:", f"dim {number}:") for number in range(dimensions))


def _flat(side: Side, other: Side, extents: tuple[int, ...], *, rising: bool) -> str:
    runs = [Run(*dim) for dim in zip(extents, side.strides, other.strides, strict=True)]
    return Extent(side.offset, tuple(runs), 0).words("element", "elements", rising=rising)
