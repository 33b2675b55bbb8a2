"""Meta's `consolidated.NN.pth`, decoded: the tensors of the ranks put together where their shapes prove how they were cut."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from msgspec.structs import replace

from shardscope.engine.formats.decode.meta_shapes import Cut, cut_of, extents_of, with_vocabulary
from shardscope.engine.formats.decode.ranks import part_of_rank
from shardscope.engine.formats.decode.torch_listing import Listing, list_file
from shardscope.engine.formats.decode.torch_save import settled
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.meta_consolidated import rank_of
from shardscope.engine.formats.mistral_consolidated import PARAMS
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.geometry.constructors.cuts import mesh
from shardscope.engine.model.catalogue import LogicalTensor, Shape
from shardscope.engine.model.shardmap import Contiguous, Node, Replicate, TensorMap
from shardscope.engine.model.source import Entry
from shardscope.engine.model.tensors import DTYPES

_DIMENSIONS: Final = "consolidated.dimensions"
_EMBEDDING: Final = "tok_embeddings.weight"

Parts = dict[int, LogicalTensor]
"""What each rank holds under one name."""


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """List the tensors of the ranks: whole ones where `params.json` and the shapes prove the cut, otherwise rank by rank."""
    listings, by_rank = _read(decoder, facts)
    if not by_rank:
        return facts
    ranks = max(max(by_rank) + 1, *(len(axis) for axis in _extents(facts)))
    tensors: dict[str, Parts] = {}
    for rank, listing in sorted(by_rank.items()):
        for tensor in listing.tensors:
            tensors.setdefault(tensor.name, {})[rank] = tensor
    params = decoder.probe.folder(claim.folder).files.get(PARAMS)
    extents = _known(decoder, params, tensors, ranks)
    unproven = _add(decoder, tensors, ranks, extents)
    first = listings[0].file.entry
    if ranks == 1:
        return settled(decoder, claim, facts, listings)
    _report(decoder, first, len(tensors), unproven)
    return settled(decoder, claim, facts, listings, *(() if unproven else (_DIMENSIONS,)))


def _extents(facts: Facts) -> list[range]:
    return [range(axis.size) for found in facts.topology.meshes for axis in found.axes if axis.size]


def _read(decoder: Decoder, facts: Facts) -> tuple[list[Listing], dict[int, Listing]]:
    listings: list[Listing] = []
    by_rank: dict[int, Listing] = {}
    for done, entry in enumerate(facts.opaque):
        decoder.probe.checkpoint("decode", done, len(facts.opaque), entry)
        rank = rank_of(entry.name)
        file = decoder.torch(entry)
        if file is None or rank is None or rank in by_rank:
            continue
        by_rank[rank] = list_file(decoder, file)
        listings.append(by_rank[rank])
    return listings, by_rank


def _known(
    decoder: Decoder, params: Entry | None, tensors: Mapping[str, Parts], ranks: int
) -> dict[str, int]:
    document = decoder.probe.json(params) if params is not None else None
    embedding = tensors.get(_EMBEDDING)
    shape: Shape | None = next(iter(embedding.values())).shape if embedding else None
    return with_vocabulary(extents_of(document.value if document else None), shape, ranks)


def _add(decoder: Decoder, tensors: Mapping[str, Parts], ranks: int, extents: Mapping[str, int]) -> list[str]:
    """Add the tensors; return the names of those whose cut is not proven."""
    unproven: list[str] = []
    for name, parts in tensors.items():
        shapes = [part.shape for part in parts.values()]
        cut = cut_of(name, shapes, ranks, extents, differ=_differ(parts))
        if cut is not None and len(parts) == ranks and len({part.dtype for part in parts.values()}) == 1:
            decoder.add(_joined(parts, cut, ranks))
            continue
        unproven.append(name)
        for rank, part in parts.items():
            fragment = replace(part.fragments[0], label=rank) if part.fragments else None
            decoder.add(part_of_rank(name, part.dtype, part.shape, fragment, rank, role=part.role))
    return unproven


def _differ(parts: Parts) -> bool | None:
    """Tell by recorded checksums whether ranks hold different bytes; null where a rank has none for this tensor alone.

    Equal checksums prove nothing here: parts of zeros are alike.
    """
    checksums = set()
    for part in parts.values():
        fragment = part.fragments[0] if part.fragments else None
        known = DTYPES.get(part.dtype)
        if fragment is None or known is None or fragment.record.crc is None or fragment.strides is not None:
            return None
        if fragment.record.size * 8 != prod(part.shape) * known.bits:
            return None
        checksums.add(fragment.record.crc)
    return len(checksums) > 1


def _joined(parts: Parts, cut: Cut, ranks: int) -> LogicalTensor:
    """Return the whole of which the ranks hold equal parts, in order, or copies."""
    first = parts[min(parts)]
    if ranks == 1:
        return first
    if cut.axis is None:
        node: Node = Replicate()
        note = "inferred: every rank holds the whole"
    else:
        widths = (cut.shape[cut.axis] // ranks,) * ranks
        node = Contiguous("tp", cut.axis, widths)
        note = f"inferred: cut along axis {cut.axis}"
    return replace(
        first,
        shape=cut.shape,
        map=TensorMap(cut.shape, node),
        mesh=mesh(tp=ranks),
        fragments=tuple(
            replace(fragment, label=rank) for rank, part in parts.items() for fragment in part.fragments
        ),
        note=f"{note}, from params.json, shapes and checksums",
    )


def _report(decoder: Decoder, first: Entry, count: int, unproven: Sequence[str]) -> None:
    proven = count - len(unproven)
    if proven:
        decoder.probe.report("consolidated.cut_inferred", first, count=proven)
    if unproven:
        decoder.probe.report("consolidated.cut_unproven", first, count=len(unproven), tensor=unproven[0])
