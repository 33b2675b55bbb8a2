"""DCP written as safetensors, as a catalogue: every fragment at its saved offset. No pickle is read.

The safe plane has compared the fragments with the wholes they make and reported what does not fit; here they are placed.
"""

from collections.abc import Mapping, Sequence

from shardscope.engine.formats.dcp_safetensors import declared_shapes, numbered
from shardscope.engine.formats.dcp_tensors import Tensors, Whole
from shardscope.engine.formats.decode.whole_safetensors import whole_file
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.geometry.constructors.dcp import chunk_list
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.source import Entry
from shardscope.engine.parse.dcp_sharding import SHARDING, parse_sharding


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """Add the tensors that the fragments make up.

    Where consolidated files beside them hold the same tensors, the fragments take their place in the catalogue: they are what
    the ranks saved, and torch's consolidation has lost scalars and holes without a word.
    """
    probe = decoder.probe
    folder = probe.folder(claim.folder)
    files = [item.entry for item in numbered(folder.only(claim.files))]
    declared = declared_shapes(probe, folder)
    tensors, begins = _read(probe, files)
    records = [whole_file(entry) for entry in files]
    found = [_tensor(item, records, begins) for item in tensors.wholes(declared)]
    if tensors.twins(declared):
        if (
            facts.weight_bytes != 0
        ):  # the fragments are not whole, which is reported: the consolidated files stay
            return facts
        _replace(decoder, claim, found)
    for tensor in found:
        decoder.add(tensor)
    return facts


def _read(probe: Probe, files: Sequence[Entry]) -> tuple[Tensors, dict[tuple[int, str], tuple[int, str]]]:
    """Return the fragments of files by tensor, and where each begins and its dtype, by the place of its file and its name."""
    tensors = Tensors()
    begins: dict[tuple[int, str], tuple[int, str]] = {}
    for place, entry in enumerate(files):
        probe.checkpoint("headers", place, len(files), entry)
        tensors.begin(entry)
        header = probe.peek_header(entry)
        text = header.metadata.get(SHARDING) if header is not None else None
        if header is None or text is None:
            continue
        try:
            saved = parse_sharding(text, probe.limits).saved
        except Fault:
            continue
        columns = zip(header.names, header.dtypes, header.shapes, header.begins, strict=True)
        for name, dtype, shape, begin in columns:
            if name in saved and tensors.add(name, dtype, shape, saved[name]) is None:
                begins[place, name] = (begin, dtype)
    return tensors, begins


def _tensor(
    found: Whole, records: Sequence[Record], begins: Mapping[tuple[int, str], tuple[int, str]]
) -> LogicalTensor:
    """Return one tensor. Fragments at the same place of the same shape are replicas of the first of them."""
    dtype = found.dtypes[0]
    labels: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    fragments: list[Fragment] = []
    replicas: list[Fragment] = []
    for item in found.fragments:
        box = (item.offset, item.shape)
        held = fragments if box not in labels else replicas
        label = labels.setdefault(box, len(labels))
        begin, own = begins[item.file, found.name]
        other = None if own == dtype else own
        held.append(Fragment(label, item.shape, records[item.file], begin, dtype=other))
    chart, mesh = chunk_list(found.shape, list(labels))
    return LogicalTensor(
        name=found.name,
        dtype=dtype,
        shape=found.shape,
        map=chart,
        mesh=mesh,
        fragments=tuple(fragments),
        replicas=tuple(replicas),
        note=None if len(found.dtypes) == 1 else f"stored as {', '.join(found.dtypes)}: one must be wrong",
    )


def _replace(decoder: Decoder, claim: Claim, found: Sequence[LogicalTensor]) -> None:
    """Take the consolidated tensors of the same names out of the catalogue."""
    names = {tensor.name for tensor in found}
    beside = claim.folder.rpartition(b"/")[0]
    before = len(decoder.tensors)
    consolidated = {
        item.entry.text
        for folder in (beside, claim.folder)
        for item in numbered(decoder.probe.folder(folder))
        if item.shard is None
    }
    decoder.tensors[:] = [
        tensor
        for tensor in decoder.tensors
        if tensor.name not in names or not {f.record.file for f in tensor.fragments} <= consolidated
    ]
    if before > len(decoder.tensors):
        count = before - len(decoder.tensors)
        decoder.probe.report("dcp.consolidated_beside", claim.files[0], count=count)
