"""Arithmetic on bytes, with every number in the formula: weights in a type, and what a token adds to the cache of keys and values.

It says how many bytes these numbers take, and never how much memory or how many devices a run needs.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from shardscope.engine.model.anatomy import LEFT_OUT, Line, Memory, Parameters, Sizes

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
        bits = WIDTHS[dtype]
        size = -(-parameters.total * bits // 8)
        more = f" (without {parameters.unknown:,} tensors of unknown size)" if parameters.unknown else ""
        lines.append(
            _shared(f"in {dtype}", size, f"{parameters.total:,} parameters x {bits} bits{more}", devices)
        )
    per_token = _per_token(sizes, WIDTHS[cache_dtype], devices)
    cache = _cache(sizes, per_token, asked, batch)
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


def _cached_layers(sizes: Sizes) -> int | None:
    return None if sizes.layers is None else sizes.layers - (sizes.linear_layers or 0)


def _per_token(sizes: Sizes | None, bits: int, devices: int) -> Line | None:
    """Return what one token adds in all layers."""
    layers = _cached_layers(sizes) if sizes is not None else None
    if sizes is None or layers is None:
        return None
    linear = f" (and {sizes.linear_layers:,} layers whose state does not grow)" if sizes.linear_layers else ""
    if sizes.latent_rank is not None and sizes.rope_head is not None:
        width = sizes.latent_rank + sizes.rope_head
        formula = f"{layers:,} layers x ({sizes.latent_rank:,} latent + {sizes.rope_head:,} with positions) x {bits} bits{linear}"
        if devices > 1:
            formula += f"; each of {devices} devices holds all of it"
        return Line("a token", layers * width * bits // 8, formula)
    if sizes.kv_heads is None or sizes.head is None:
        return None
    value = sizes.value_head or sizes.head
    heads = -(-sizes.kv_heads // devices)
    words = (
        f"{heads:,} heads"
        if devices == 1
        else f"{heads:,} of {sizes.kv_heads:,} heads on each of {devices} devices"
    )
    both = f"2 x {sizes.head:,}" if value == sizes.head else f"({sizes.head:,} + {value:,})"
    size = layers * heads * (sizes.head + value) * bits // 8
    return Line("a token", size, f"{layers:,} layers x {words} x {both} x {bits} bits{linear}")


def _together(cache: Line | None, weights: Sequence[Line]) -> Iterator[Line]:
    """Yield the sum of weights and cache, for weights in each type."""
    if cache is None or cache.bytes is None:
        return
    for line in weights:
        if line.bytes is not None:
            formula = f"{line.bytes:,} bytes of weights + {cache.bytes:,} bytes of cache"
            yield Line(line.name, line.bytes + cache.bytes, formula)


def _cache(sizes: Sizes | None, per_token: Line | None, context: int | None, batch: int) -> Line | None:
    """Return what sequences of `context` tokens take; layers of sliding attention keep no more than their window."""
    layers = _cached_layers(sizes) if sizes is not None else None
    if sizes is None or per_token is None or per_token.bytes is None or context is None or not layers:
        return None
    name = f"{context:,} tokens" if batch == 1 else f"{batch:,} x {context:,} tokens"
    times = "" if batch == 1 else f"{batch:,} sequences x "
    windowed = sizes.windowed_layers or 0
    if not windowed or sizes.window is None or sizes.window >= context:
        formula = f"{times}{context:,} tokens x {per_token.bytes:,} bytes"
        return Line(name, batch * per_token.bytes * context, formula)
    one = per_token.bytes // layers
    full = layers - windowed
    size = batch * one * (full * context + windowed * sizes.window)
    formula = f"{times}{one:,} bytes x ({full:,} layers x {context:,} tokens + {windowed:,} layers x {sizes.window:,} tokens)"
    return Line(name, size, formula)
