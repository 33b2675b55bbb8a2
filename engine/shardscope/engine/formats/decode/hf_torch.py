"""Hugging Face weights in torch files, decoded: each set's tensors, compared with the index that names them."""

from collections.abc import Sequence

from msgspec.structs import replace

from shardscope.engine.formats.decode.torch_listing import Listing
from shardscope.engine.formats.decode.torch_save import list_files, settled
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.hf_index import CrossCheck, Index, read_index
from shardscope.engine.formats.hf_torch import SUFFIX
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.weight_sets import WeightSet, layout_of, weight_sets
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.evidence import Basis, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import display_name


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """List the tensors of every set, and hold the index against the names that are there."""
    probe = decoder.probe
    layout = layout_of(probe.folder(claim.folder).only(claim.files), SUFFIX)
    indexes = [_again(probe, entry) for entry, _ in layout.indexes]
    sets = weight_sets(layout, [index.files if index else () for index in indexes])
    by_entry = {index.entry.path: index for index in indexes if index is not None}
    opaque = {entry.path for entry in facts.opaque}
    listings: list[Listing] = []
    agreeing: list[Entry] = []
    for number, found in enumerate(sets):
        files = [entry for entry in found.files if entry.path in opaque]
        read = list_files(decoder, files, note=_note(found) if number else None)
        index = by_entry.get(found.index.path) if found.index else None
        if _agree(probe, found, index, read) and index is not None:
            agreeing.append(index.entry)
        listings += read
    known = settled(decoder, claim, facts, listings)
    if not agreeing:
        return known
    says = "index and decoded names agree entry by entry"
    evidence = Evidence(EvidenceKind.STRUCTURE, agreeing[0].text, says, Basis.OBSERVED)
    return replace(known, evidence=(*known.evidence, evidence))


def _again(probe: Probe, entry: Entry) -> Index | None:
    """Return an index that the safe plane has read before: what is wrong with it has been said."""
    before = len(probe.blockers)
    index = read_index(probe, entry)
    del probe.blockers[before:]
    return index


def _note(found: WeightSet) -> str:
    return f"of a further weight set, {display_name(found.key, 80)}"


def _agree(probe: Probe, found: WeightSet, index: Index | None, listings: Sequence[Listing]) -> bool:
    """Report names that two files of a set hold, and where index and files differ; tell whether all is well."""
    unique = _report_repeated(probe, listings)
    if index is None:
        return unique
    check = CrossCheck(probe, index)
    names = [[tensor.name for tensor in listing.tensors] for listing in listings]
    agree = [
        check.compare_names(listing.file.entry, held, _bytes(listing.tensors))
        for listing, held in zip(listings, names, strict=True)
    ]
    if len(listings) == len(found.files) == len(check.files):
        check.total()
    return unique and all(agree) and len(listings) == len(check.files)


def _report_repeated(probe: Probe, listings: Sequence[Listing]) -> bool:
    seen: dict[str, Entry] = {}
    twice: list[tuple[str, Entry, Entry]] = []
    for listing in listings:
        entry = listing.file.entry
        for tensor in listing.tensors:
            first = seen.setdefault(tensor.name, entry)
            if first is not entry:
                twice.append((tensor.name, first, entry))
    if twice:
        name, first, second = twice[0]
        probe.report("index.tensor_duplicate", first, count=len(twice), tensor=name, target=second.text)
    return not twice


def _bytes(tensors: Sequence[LogicalTensor]) -> int:
    """Return the bytes of the tensors of a file as writers count them: those that share all their bytes once."""
    total = 0
    for tensor in tensors:
        known = DTYPES.get(tensor.dtype)
        if known is None or tensor.alias_of is not None:
            continue
        count = known.bits
        for extent in tensor.shape:
            count *= extent
        total += -(-count // 8)
    return total
