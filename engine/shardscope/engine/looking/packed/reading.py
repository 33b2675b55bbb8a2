"""Packed weights read as the numbers that they stand for: a window of packed elements and of each companion at a time.

Whatever reads tensors tile by tile reads these, too: they are tensors of 32-bit floats, of which no byte stands in a file.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.convert.copies.contents import Opener
from shardscope.engine.convert.copies.work import Written
from shardscope.engine.convert.proofs.comparing import Beside, Stretch, Tiles
from shardscope.engine.looking.addresses import Addresses, Places
from shardscope.engine.looking.packed.formulas import FORMULAS
from shardscope.engine.looking.packed.recipe import Recipe, Unpacked
from shardscope.engine.looking.slices import boxed
from shardscope.engine.looking.statistics import Bytes
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.progress import check
from shardscope.engine.model.tensors import DTYPES

STEP: Final = 1 << 17
"""Numbers that are worked out at one time. All arrays on the way are a small multiple of it."""
NARROW: Final = 4 << 10
"""Bytes side by side below which more are read than were asked for, where the next ones will be asked for soon."""
FEW: Final = 8
"""Rows below which reading ahead saves nothing."""
BAND: Final = 2 << 20
"""Bytes of a tensor that are kept for that."""


class Unpacking(Tiles):
    """Reads `Unpacked` tensors, alone, as well as others. It serves one thread."""

    _ahead = False
    """Whether what stands beside a window will be asked for, too."""

    def stretches(self, items: Sequence[Written], cancel: threading.Event | None = None) -> Iterator[Stretch]:
        """Yield tensors of as many elements tile by tile. One that is packed is alone.

        Raises `Fault`: those of `Tiles.stretches`; `Cancelled`.
        """
        recipe = items[0].tensor.recipe if isinstance(items[0].tensor, Unpacked) else None
        if recipe is None:
            yield from super().stretches(items, cancel)
            return
        where = Addresses(items[0].layout, items[0].elements)
        self._bands: dict[str, _Band] = {}
        self._ahead = items[0].elements > STEP
        for low in range(0, items[0].elements, STEP):
            check(cancel)
            high = min(low + STEP, items[0].elements)
            with np.errstate(all="ignore"):
                numbers = self._numbers(recipe, where, low, high)
            yield Stretch(low, high - low, (numbers.astype("<f4", copy=False).view(np.uint8),))

    def _numbers(self, recipe: Recipe, where: Addresses, low: int, high: int) -> NDArray[np.float32]:
        run = where.run(low, high)
        if run is None:
            return self._scattered(recipe, where.places(low, high))
        begin, end = run
        width = recipe.inputs
        rows = range(begin // width, (end - 1) // width + 1)
        if len(rows) == 1:
            columns = range(begin % width, (end - 1) % width + 1)
            return self._window(recipe, rows, columns).reshape(-1)
        found = self._window(recipe, rows, range(width)).reshape(-1)
        skipped = rows.start * width
        return found[begin - skipped : end - skipped]

    def _scattered(self, recipe: Recipe, places: Places) -> NDArray[np.float32]:
        """Return numbers at any places, by windows of rows that are as far from each other."""
        rows, columns = np.divmod(places, recipe.inputs)
        used, first, last = np.unique(rows), int(columns.min()), int(columns.max())
        steps = np.diff(used)
        even = len(steps) == 0 or bool((steps == steps[0]).all())
        if len(places) > 1 and (not even or len(used) * (last + 1 - first) > 4 * STEP):
            half = len(places) // 2
            return np.concatenate([self._scattered(recipe, part) for part in (places[:half], places[half:])])
        step = int(steps[0]) if len(steps) else 1
        begin = int(used[0])
        found = self._window(recipe, range(begin, int(used[-1]) + 1, step), range(first, last + 1))
        picked: NDArray[np.float32] = found[(rows - begin) // step, columns - first]
        return picked

    def _window(self, recipe: Recipe, rows: range, columns: range) -> NDArray[np.float32]:
        return FORMULAS[recipe.method](recipe, self.window, rows, columns)

    def window(self, tensor: LogicalTensor, view: tuple[int, int], rows: range, columns: range) -> Bytes:
        """Return the bytes of some rows and columns of a tensor that is looked at as a matrix of another shape."""
        width = DTYPES[tensor.dtype].bits // 8
        if not self._ahead or len(rows) < FEW or len(columns) * width >= NARROW:
            return self._read(tensor, view, rows, columns)
        band = self._bands.get(tensor.name)
        if band is None or not band.has(view, rows, columns):
            room = max(columns[-1] + 1 - columns.start, BAND // (len(rows) * width))
            some = range(columns.start, min(view[1], columns.start + room))
            data = self._read(tensor, view, rows, some).reshape(len(rows), -1, width)
            band = self._bands[tensor.name] = _Band(view, rows, some, data)
        first = columns.start - band.columns.start
        last = columns[-1] + 1 - band.columns.start
        return band.data[:, first : last : columns.step].reshape(-1)

    def _read(self, tensor: LogicalTensor, view: tuple[int, int], rows: range, columns: range) -> Bytes:
        part = boxed(tensor.shape, view, (rows, columns))
        data = [
            stretch.data[0].copy() for stretch in super().stretches([Written(tensor, tensor.dtype, 0, part)])
        ]
        return data[0] if len(data) == 1 else np.concatenate([np.empty(0, np.uint8), *data])


class _Band(NamedTuple):
    """Columns of a matrix that were read ahead: of weights that are stored the other way round, a window has a few bytes of each row."""

    view: tuple[int, int]
    rows: range
    columns: range
    data: Bytes

    def has(self, view: tuple[int, int], rows: range, columns: range) -> bool:
        """Tell whether a window is in it."""
        inside = columns.start >= self.columns.start and columns[-1] < self.columns.stop
        return inside and view == self.view and rows == self.rows


class Pairs:
    """Reads tensors two and two, packed or not. Use it in a `with` block, as `Tiles`."""

    def __init__(self, opener: Opener, budget_bytes: int) -> None:
        self._plain = Beside(opener, budget_bytes // 2)
        self._packed = tuple(Unpacking(opener, budget_bytes // 4, 1) for _ in range(2))
        self._open = ExitStack()

    def __enter__(self) -> Self:
        for each in (self._plain, *self._packed):
            self._open.enter_context(each)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def tiles(
        self, one: LogicalTensor, two: LogicalTensor, cancel: threading.Event | None = None
    ) -> Iterator[tuple[Bytes, Bytes, int]]:
        """Yield the same elements of two tensors of one type and shape, and how many there are. Raises as `Unpacking.stretches`."""
        items = Written(one, one.dtype, 0), Written(two, two.dtype, 0)
        if not isinstance(one, Unpacked):
            for both in self._plain.stretches(items, cancel):
                first_data, second_data = both.data
                yield first_data, second_data, both.elements
            return
        sides = (tiles.stretches([item], cancel) for tiles, item in zip(self._packed, items, strict=True))
        for first, second in zip(*sides, strict=True):
            yield first.data[0], second.data[0], first.elements
