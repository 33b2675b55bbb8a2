"""What stands out in the numbers of one tensor that is read from end to end."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from shardscope.engine.diffing.numbers import parts
from shardscope.engine.looking.channels import Channels, has_channels
from shardscope.engine.looking.folding import Seen
from shardscope.engine.looking.statistics import Bytes, first_not_finite, summing
from shardscope.engine.looking.zero_runs import PAGE, ZeroRun
from shardscope.engine.model.blocker import Param
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.peek import Statistics
from shardscope.engine.model.tensors import array_bytes

ZEROS: Final = 64 << 10
"""Bytes of zeros in one stretch that are worth a word."""
HALF: Final = 65_504
"""The largest number of F16."""
_WIDE: Final = {"BF16": -126, "F32": -126, "F64": -1022}
"""Types whose range is wider than that of F16, with the exponent of the smallest number that is normal."""


class Outstanding:
    """Takes in the tiles of a tensor, in order."""

    statistics: Statistics
    """What they come to, once all are in."""

    def __init__(self, tensor: LogicalTensor, place: int, size: int) -> None:
        """`size`: bytes as they are stored. Where that is not as they are read, stretches of zeros are not looked for."""
        self._tensor = tensor
        self._place = place
        self._sums = summing(tensor.dtype)
        self._size = size
        self._plain = size == array_bytes(tensor.dtype, tensor.shape)
        self._zeros = ZeroRun()
        self._channels = (
            Channels(tensor.dtype, tensor.shape) if has_channels(tensor.dtype, tensor.shape) else None
        )
        self._first: int | None = None

    def add(self, element: int, data: Bytes, count: int) -> None:
        """Take in `count` elements from `element` on."""
        self._sums.add(data, count)
        if self._plain:
            self._zeros.add(data)
        if self._first is None and self._sums.not_finite:
            self._first = element + (first_not_finite(data, self._tensor.dtype, count) or 0)
        if self._channels is not None:
            self._channels.add(element, data, count)

    def finished(self) -> None:
        """Say that no more comes."""
        self._zeros.finished()
        self.statistics = self._sums.statistics()

    @property
    def varied(self) -> bool:
        """Whether it has more than one number."""
        found = self.statistics
        broken = found.nans or found.positive_infinite or found.negative_infinite
        return bool(found.numbers) and bool(broken or found.min != found.max)

    def zeros_of(self, seen: Seen) -> tuple[int, int] | None:
        """Return where the zeros begin that a finding is about, and how many bytes they are; null where it is about something else."""
        if seen.code == "scan.zeros":
            return 0, self._size
        if not self._plain:
            return None
        counts = seen.counts
        dead = seen.code == "scan.dead_channels" and not counts["columns"] and self._are_zeros(counts["rows"])
        run = (self._zeros.begin, self._zeros.length)
        return run if dead or seen.code == "scan.zero_run" else None

    def seen(self) -> Iterator[Seen]:
        """Yield what stands out."""
        found, zeros = self.statistics, self._zeros
        infinite = found.positive_infinite + found.negative_infinite
        numbers = {"numbers": found.numbers}
        if found.nans or infinite:
            counts = {**numbers, "nans": found.nans, "infinite": infinite}
            yield self._one("scan.not_finite", counts, first={"element": self._first})
        if found.numbers < 2:
            return  # a counter or a gate alone is a zero as well as any other number
        if found.zeros == found.numbers:
            yield self._one("scan.zeros", numbers)
            return
        if not self.varied:
            yield self._one("scan.constant", numbers, kind={"value": f"{found.min:.9g}"})
            return
        if zeros.length >= ZEROS:
            where: dict[str, Param] = {"begin": zeros.begin, "size": zeros.size}
            least = {"bytes": zeros.length}
            yield replace(self._one("scan.zero_run", first=where), least=least, many="scan.zero_runs")
        if self._channels is not None and not found.nans:
            yield from self._dead(self._channels)
        yield from self._ranges()

    def _dead(self, channels: Channels) -> Iterator[Seen]:
        width = self._tensor.shape[-1]
        said = self._zeros.length >= ZEROS and self._are_zeros(channels.rows)
        rows = 0 if said else channels.rows
        if rows or channels.columns:
            counts = {"rows": rows, "columns": channels.columns, "all_rows": self._rows, "all_columns": width}
            yield self._one("scan.dead_channels", counts)

    def _are_zeros(self, rows: int) -> bool:
        """Tell whether as many rows have room in the longest stretch of zeros."""
        return rows * self._zeros.size <= (self._zeros.length + 2 * PAGE) * self._rows

    @property
    def _rows(self) -> int:
        return self.statistics.numbers // parts(self._tensor.dtype) // self._tensor.shape[-1]

    def _ranges(self) -> Iterator[Seen]:
        """Yield what a cast to F16 would lose, and numbers that many kernels take for zeros."""
        found, dtype = self.statistics, self._tensor.dtype
        if dtype not in _WIDE or found.min is None or found.max is None:
            return
        most = float(max(-found.min, found.max))
        if most > HALF:
            yield self._one("scan.f16_overflow", most={"value": most})
        if found.exponent_min is not None and found.exponent_min < _WIDE[dtype]:
            yield self._one(
                "scan.subnormal", kind={"dtype": dtype}, first={"exponent": str(found.exponent_min)}
            )

    def _one(
        self,
        code: str,
        counts: dict[str, int] | None = None,
        *,
        most: dict[str, float] | None = None,
        kind: dict[str, Param] | None = None,
        first: dict[str, Param] | None = None,
    ) -> Seen:
        return Seen(
            code, self._tensor.name, self._place, counts or {}, most or {}, kind or {}, first=first or {}
        )
