"""Keys and values that a model keeps of the tokens it has read, with every number in the formula.

Layers differ: some look back no further than a window, some keep a state that does not grow, some take what earlier ones keep, and some have
other heads than the rest.
"""

from msgspec import Struct

from shardscope.engine.model.anatomy import Line, Sizes


class _Group(Struct, frozen=True):
    """Layers that keep keys and values of the same sizes."""

    full: int
    """Keep those of every token."""
    windowed: int
    """Keep those of a window."""
    bits: int
    """A token adds to one of them, on one device."""
    formula: str


def _groups(sizes: Sizes, bits: int, devices: int) -> list[_Group] | None:
    """Return the layers that keep something; null where their number or their sizes are not known."""
    if sizes.layers is None:
        return None
    full = sizes.layers - (sizes.linear_layers or 0) - (sizes.windowed_layers or 0)
    counts = [(sizes, full, sizes.windowed_layers or 0)]
    for other in sizes.others:
        main, whole, some = counts[0]
        counts[0] = (main, whole - other.full, some - other.windowed)
        counts.append((other.sizes, other.full, other.windowed))
    found = []
    for each, whole, some in counts:
        if not whole and not some:
            continue
        width = _width(each, bits, devices)
        if width is None or whole < 0 or some < 0:
            return None  # more of one kind than there are layers: the configuration says two things
        found.append(_Group(whole, some, *width))
    return found


def _width(sizes: Sizes, bits: int, devices: int) -> tuple[int, str] | None:
    """Return the bits that a token adds to one layer on one device, and how they come about."""
    if sizes.latent_rank is not None and sizes.rope_head is not None:
        words = f"({sizes.latent_rank:,} latent + {sizes.rope_head:,} with positions) x {bits} bits"
        return (sizes.latent_rank + sizes.rope_head) * bits, words
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
    return heads * (sizes.head + value) * bits, f"{words} x {both} x {bits} bits"


def per_token(sizes: Sizes | None, bits: int, devices: int) -> Line | None:
    """Return what one token adds in all layers."""
    if sizes is None or sizes.keeps == "unknown":
        return None
    if sizes.keeps == "nothing":
        return Line("a token", 0, "all tokens are read at once, and nothing is kept of them")
    groups = _groups(sizes, bits, devices)
    if groups is None:
        return None
    size = sum((group.full + group.windowed) * group.bits for group in groups) // 8
    formula = " + ".join(f"{group.full + group.windowed:,} layers x {group.formula}" for group in groups)
    linear = (sizes.linear_layers or 0) - sizes.shared_layers
    aside = [f"{linear:,} layers whose state does not grow"] if linear > 0 else []
    if sizes.shared_layers:
        aside.append(f"{sizes.shared_layers:,} layers that take those of earlier ones")
    if aside:
        formula = f"{formula or '0 layers'} (and {', '.join(aside)})"
    if sizes.latent_rank is not None and devices > 1:
        formula += f"; each of {devices} devices holds all of it"
    if sizes.crossed:
        formula += "; a token that an encoder read takes as much once more"
    return Line("a token", size, formula)


def cache(
    sizes: Sizes | None, token: Line | None, bits: int, devices: int, context: int | None, batch: int = 1
) -> Line | None:
    """Return what sequences of `context` tokens take, where one adds `token`; layers of sliding attention keep no more than their window."""
    if sizes is None or token is None or not token.bytes or context is None:
        return None
    name = f"{context:,} tokens" if batch == 1 else f"{batch:,} x {context:,} tokens"
    times = "" if batch == 1 else f"{batch:,} sequences x "
    groups = _groups(sizes, bits, devices) or []
    if not any(group.windowed for group in groups) or sizes.window is None or sizes.window >= context:
        formula = f"{times}{context:,} tokens x {token.bytes:,} bytes"
        return Line(name, batch * token.bytes * context, formula)
    terms = []
    size = 0
    for group in groups:
        one = group.bits // 8
        held = [(group.full, context), (group.windowed, sizes.window)]
        size += one * sum(layers * tokens for layers, tokens in held)
        parts = [f"{layers:,} layers x {tokens:,} tokens" for layers, tokens in held if layers]
        words = parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"
        terms.append(f"{one:,} bytes x {words}")
    words = " + ".join(terms)
    return Line(name, batch * size, f"{times}({words})" if times and len(terms) > 1 else times + words)
