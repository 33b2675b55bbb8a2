"""NeMo, decoded: the weights of an unpacked archive, or those inside a `.nemo` that is a plain tar."""

from typing import Final

from msgspec import Struct

from shardscope.engine.formats.decode.torch_listing import Listing, list_file
from shardscope.engine.formats.decode.torch_save import list_files, settled
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.source import Entry, Reader
from shardscope.engine.parse.tar import Member, read_members

_WEIGHTS: Final = "model_weights.ckpt"
_FOLDER: Final = "model_weights"
_RECOGNISED: Final = "layout.recognised_only"


class _Inside(Struct, frozen=True):
    """What a `.nemo` holds of weights."""

    single: Member | None
    ranks: int
    """Files of weights in folders of their own, one for each rank."""
    distributed: int
    """Members of a distributed save."""


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """List the tensors of the weights, where one torch file holds them."""
    archives = [entry for entry in facts.opaque if _nature(decoder, entry) in (Nature.TAR, Nature.GZIP)]
    if not archives:
        return settled(decoder, claim, facts, list_files(decoder, facts.opaque))
    listings = [listing for entry in archives if (listing := _archive(decoder, entry)) is not None]
    for listing in listings:
        for tensor in listing.tensors:
            decoder.add(tensor)
    return settled(
        decoder, claim, facts, listings, *((_RECOGNISED,) if len(listings) == len(archives) else ())
    )


def _nature(decoder: Decoder, entry: Entry) -> Nature:
    sniffed = decoder.probe.sniff(entry)
    return sniffed.nature if sniffed is not None else Nature.UNKNOWN


def _archive(decoder: Decoder, entry: Entry) -> Listing | None:
    """Decode the weights in one archive; report why where that cannot be done."""
    if _nature(decoder, entry) is Nature.GZIP:
        decoder.probe.report("nemo.compressed", entry)
        return None

    def read(reader: Reader) -> _Inside:
        return _inside(read_members(reader, decoder.probe.limits.zip_entries))

    found = decoder.probe.guarded(entry, read)
    if found is None:
        return None
    if found.single is None:
        kind = "a distributed save" if found.distributed else "files of single ranks"
        count = found.distributed or found.ranks
        if count:
            decoder.probe.report("nemo.inside", entry, count=count, kind=kind)
        else:
            decoder.probe.report("nemo.weights_missing", entry)
        return None
    file = decoder.torch(entry, found.single.begin, found.single.size)
    return None if file is None else list_file(decoder, file)


def _inside(members: list[Member]) -> _Inside:
    single: Member | None = None
    ranks = distributed = 0
    for member in members:
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        if not member.file or not parts:
            continue
        if parts == [_WEIGHTS]:
            single = member
        elif parts[-1] == _WEIGHTS:
            ranks += 1
        elif _FOLDER in parts[:-1]:
            distributed += 1
    return _Inside(single, ranks, distributed)
