"""Arithmetic on bytes, with every number in the formula: weights in a type, and what a token adds to the cache of keys and values.

It says how many bytes these numbers take, and never how much memory or how many devices a run needs.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from shardscope.engine.anatomy import keeping
from shardscope.engine.model.anatomy import LEFT_OUT, Line, Memory, Parameters, Sizes
from shardscope.engine.model.text import counted

WIDTHS: Final = {"F32": 32, "BF16": 16, "F16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "I8": 8, "I4": 4, "F4": 4}
"""Bits of the types that figures are asked for."""
DEFAULT: Final = ("BF16",)
CACHE: Final = "BF16"


def memory(
    stored: int,
    parameters: Parameters,
    sizes: Sizes | None,
    *,
    dtypes: Sequence[str] = DEFAULT,
    context: int | None = None,
    batch: int = 1,
    cache_dtype: str = CACHE,
    devices: int = 1,
) -> Memory:
    """Return the figures. `stored` are the bytes of all tensors of the model; `context` null takes what the configuration declares;
    `batch` are sequences of that length at one time.
    """
    asked = context if context is not None else sizes.context if sizes is not None else None
    lines = [_shared("as stored", stored, f"{stored:,} bytes of tensors", devices)]
    for dtype in dtypes:
        size = -(-parameters.total * WIDTHS[dtype] // 8)
        more = (
            f" (without {counted(parameters.unknown, 'tensor')} of unknown size)"
            if parameters.unknown
            else ""
        )
        lines.append(
            _shared(
                f"in {dtype}", size, f"{parameters.total:,} parameters x {WIDTHS[dtype]} bits{more}", devices
            )
        )
    bits = WIDTHS[cache_dtype]
    per_token = keeping.per_token(sizes, bits, devices)
    cache = keeping.cache(sizes, per_token, bits, devices, asked, batch)
    return Memory(
        devices=devices,
        context=asked,
        batch=batch,
        cache_dtype=cache_dtype,
        weights=tuple(lines),
        cache_per_token=per_token,
        cache=cache,
        together=tuple(_together(cache, lines)),
        left_out=LEFT_OUT,
    )


def _shared(name: str, size: int, formula: str, devices: int) -> Line:
    if devices == 1:
        return Line(name, size, formula)
    return Line(name, -(-size // devices), f"{formula} / {devices} devices, if all of it is split evenly")


def _together(cache: Line | None, weights: Sequence[Line]) -> Iterator[Line]:
    """Yield the sum of weights and cache, for weights in each type."""
    if cache is None or cache.bytes is None:
        return
    for line in weights:
        if line.bytes is not None:
            formula = f"{line.bytes:,} bytes of weights + {cache.bytes:,} of cache"
            yield Line(line.name, line.bytes + cache.bytes, formula)
