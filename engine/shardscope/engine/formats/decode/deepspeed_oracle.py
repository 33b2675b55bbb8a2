"""The module as an oracle: below stage 3 it holds every trained parameter once more, rounded from the fp32 masters.

Each stretch of a master is compared with the same stretch of the module's tensor on the same tensor-parallel rank, so that no
map of tensor parallelism has a part in it: what is proven is where parameters lie in the flat buffer.
"""

from collections.abc import Iterator
from math import prod

from msgspec.structs import replace

from shardscope.engine.formats.decode.deepspeed_flat import Run
from shardscope.engine.formats.decode.deepspeed_gather import Gathered, Item, Place
from shardscope.engine.formats.decode.deepspeed_partitions import WEIGHT
from shardscope.engine.formats.decode.deepspeed_save import Held, Save
from shardscope.engine.formats.decode.twins import EXACT, twin
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.model.oracle import Twin
from shardscope.engine.model.tensors import DTYPES


def twins_of(decoder: Decoder, save: Save, found: Gathered) -> list[Twin]:
    """Return what has to agree: nothing in stage 3, whose modules are empty."""
    if save.degrees.stage == 3:
        return []
    return [
        pair
        for name, item in found.items.items()
        if item.exact and item.alias_of is None and _in_full(item)
        for pair in _of(decoder, found, name, item)
    ]


def _in_full(item: Item) -> bool:
    return all(shard.dtype == EXACT for shard in item.shards.get(WEIGHT, {}).values())


def _of(decoder: Decoder, found: Gathered, name: str, item: Item) -> Iterator[Twin]:
    for place, shard in item.shards.get(WEIGHT, {}).items():
        if name in found.packed:
            yield from _packed(decoder, found, name, place, item)
            continue
        held = found.modules.get(place[:2], {}).get(name)
        if held is None or tuple(held.tensor.shape) != shard.shape:
            continue
        for run in shard.runs:
            yield from _pair(decoder, name, run, held, run.start, 0, run.count)


def _packed(decoder: Decoder, found: Gathered, name: str, place: Place, item: Item) -> Iterator[Twin]:
    """Yield the pairs of a packed tensor of experts, each of which has a file of its own, numbered by rank and place on it."""
    shard = item.shards[WEIGHT][place]
    count, each = shard.shape[0], prod(shard.shape[1:])
    for local in range(count):
        held = found.packed[name].get((place[0], place[1], place[2] * count + local))
        if held is None or tuple(held.tensor.shape) != shard.shape[1:]:
            continue
        for run in shard.runs:
            low = max(run.start, local * each)
            high = min(run.start + run.count, (local + 1) * each)
            if low < high:
                yield from _pair(decoder, name, run, held, low - local * each, low - run.start, high - low)


def _pair(
    decoder: Decoder, name: str, run: Run, held: Held, start: int, skipped: int, count: int
) -> Iterator[Twin]:
    """Yield a stretch of a run, `skipped` elements from its start on, with that of a tensor that begins at `start`."""
    known = DTYPES.get(held.tensor.dtype)
    rounded = None if known is None else decoder.fragment(held.file, held.tensor)
    if run.fragment is None or known is None or rounded is None or rounded.strides is not None:
        return
    width = known.bits // 8
    exact = replace(run.fragment, shape=(count,), offset=run.fragment.offset + skipped * 4)
    found = twin(
        name,
        exact,
        replace(rounded, shape=(count,), offset=rounded.offset + start * width),
        held.tensor.dtype,
    )
    if found is not None:
        yield found
