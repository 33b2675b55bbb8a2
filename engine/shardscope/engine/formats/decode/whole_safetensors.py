"""Families whose tensors stand whole in files that the safe plane reads: what it listed, as a catalogue. No pickle is read.

Hugging Face and Mistral safetensors, adapters, and the raw files of an offload folder.
"""

from collections.abc import Set

from msgspec.structs import replace

from shardscope.engine.formats.decode.torch_save import list_files, settled
from shardscope.engine.formats.decode.whole import whole
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.source import Entry
from shardscope.engine.model.tensors import DTYPES, TensorTable


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """Add the tensors that headers and indexes describe."""
    for tensor in listed(decoder.probe.tensors, claim.files):
        decoder.add(tensor)
    return facts


def decode_adapter(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """Add the tensors of an adapter, whichever of the two forms it is saved in."""
    facts = decode(decoder, claim, facts)
    if not facts.opaque:
        return facts
    weights = facts.state.weights
    known = settled(decoder, claim, facts, list_files(decoder, facts.opaque))
    reason = f"{known.state.weights.reason} of an adapter; no base model weights"
    if known.state.weights == weights:
        return known
    return replace(known, state=replace(known.state, weights=replace(known.state.weights, reason=reason)))


def whole_file(entry: Entry, *, big_endian: bool = False) -> Record:
    """Return a file as one record, for fragments at places in it."""
    return Record(entry.text, 0, entry.size, entry.size, big_endian=big_endian)


def listed(
    table: TensorTable, files: tuple[Entry, ...], swapped: Set[str] = frozenset()
) -> list[LogicalTensor]:
    """Return the rows of the safe plane's table that are in some files, each tensor whole and row-major.

    `swapped` names the files of big-endian elements.
    A row whose bytes are not those of its dtype and shape has no fragment: the safe plane has reported it.
    """
    records = {entry.text: whole_file(entry, big_endian=entry.text in swapped) for entry in files}
    by_number = [records.get(name) for name in table.files]
    dtypes, shapes = table.dtypes, table.shapes
    sizes = table.sizes()
    begins = table.column("begin")
    found = []
    columns = zip(
        table.names, table.column("dtype"), table.column("shape"), table.column("file"), strict=True
    )
    for row, (name, dtype, shape, file) in enumerate(columns):
        record = by_number[file]
        if record is None:
            continue
        known = DTYPES.get(dtypes[dtype])
        extent = shapes[shape]
        fits = known is not None and _bytes(extent, known.bits) == sizes[row]
        fragment = Fragment(0, extent, record, begins[row]) if fits else None
        note = None if fits else "the bytes are not those of its type and shape"
        found.append(whole(name, dtypes[dtype], extent, fragment, note=note))
    return found


def _bytes(shape: tuple[int, ...], bits: int) -> int:
    count = bits
    for extent in shape:
        count *= extent
    return count // 8
