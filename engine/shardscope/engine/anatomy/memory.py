"""Arithmetic on bytes, with every number in the formula: weights in a type, and what a token adds to the cache of keys and values.

It says how many bytes these numbers take, and never how much memory or how many devices a run needs.
"""

from collections.abc import Sequence
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
    cache_dtype: str = CACHE,
    devices: int = 1,
) -> Memory:
    """Return the figures. `stored` are the bytes of all tensors of the model; `context` null takes what the configuration declares."""
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
    return Memory(
        devices=devices,
        context=asked,
        cache_dtype=cache_dtype,
        weights=tuple(lines),
        cache_per_token=per_token,
        cache=_cache(sizes, per_token, asked),
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


def _cache(sizes: Sizes | None, per_token: Line | None, context: int | None) -> Line | None:
    """Return what a sequence of `context` tokens takes; layers of sliding attention keep no more than their window."""
    layers = _cached_layers(sizes) if sizes is not None else None
    if sizes is None or per_token is None or per_token.bytes is None or context is None or not layers:
        return None
    name = f"{context:,} tokens"
    windowed = sizes.windowed_layers or 0
    if not windowed or sizes.window is None or sizes.window >= context:
        return Line(name, per_token.bytes * context, f"{context:,} tokens x {per_token.bytes:,} bytes")
    one = per_token.bytes // layers
    full = layers - windowed
    size = one * (full * context + windowed * sizes.window)
    formula = f"{one:,} bytes x ({full:,} layers x {context:,} tokens + {windowed:,} layers x {sizes.window:,} tokens)"
    return Line(name, size, formula)
