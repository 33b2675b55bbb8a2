"""Arrays of the zarr backend: every chunk file is the shard of a rank."""

from math import prod

from shardscope.engine.formats.decode.zarr_chunks import chunked
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.megatron_zarr import Key, is_optimizer, place_of, read_array
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.parse.zarr import ZarrArray


def zarr_tensors(decoder: Decoder, keys: list[Key]) -> list[LogicalTensor]:
    """Return the arrays of a save as tensors. What the safe plane has to say about their chunks it has said."""
    silent = len(decoder.probe.blockers)
    found = []
    lost: list[tuple[Key, ZarrArray, int]] = []
    for key in keys:
        if key.array is None or (array := read_array(decoder.probe, key)) is None:
            continue
        try:
            found.append(_tensor(key, array, lost))
        except Fault as fault:
            decoder.probe.note(fault.finding, key.array)
    # A description that is none was reported where it was first read.
    fresh = decoder.probe.blockers[silent:]
    decoder.probe.blockers[silent:] = [item for item in fresh if item.code != "megatron.zarray_invalid"]
    if lost:
        key, array, count = lost[0]
        decoder.probe.report(
            "megatron.chunk_fill", key.array, arrays=len(lost), tensor=key.name, count=count, value=array.fill
        )
    return found


def _tensor(key: Key, array: ZarrArray, lost: list[tuple[Key, ZarrArray, int]]) -> LogicalTensor:
    """Return an array as a tensor. One that lacks chunks that would be filled in goes to `lost`."""
    files = {place: entry for entry in key.files if (place := place_of(entry.name, array.grid)) is not None}
    optimizer = is_optimizer(key.name)
    tensor = chunked(
        key.name,
        array,
        files if array.separator == "." else {},
        component="optimizer" if optimizer else "model",
        role="state" if optimizer else "parameter",
    )
    lacking = prod(array.grid) - len(files)
    if lacking and array.fill is not None and array.separator == ".":
        lost.append((key, array, lacking))
    return tensor
