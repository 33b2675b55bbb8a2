"""Numbers in plain words, beside those of `shardscope.widgets.figures`."""

from functools import lru_cache

from shardscope.widgets.figures import size as binary


@lru_cache(maxsize=4096)
def size(count: int) -> str:
    """Return bytes in binary units; a million tensors have few distinct sizes."""
    return binary(count)


def amount(count: int, unit: str) -> str:
    """Return a number with its unit, bytes in binary units."""
    return binary(count) if unit == "bytes" else f"{count:,} {unit}"


def clock(seconds: float) -> str:
    """Return a span of time that grows: `0:03`, `12:40`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
