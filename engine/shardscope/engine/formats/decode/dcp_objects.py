"""Objects of a distributed save that are no tensors: which hold tensors all the same, told by their records.

Numbers, texts and states are files of torch.save of their own, thousands of them in a save with flattened parameter groups.
Only an archive with storages can hold tensors, so that directories are looked at first, and few pickles are decoded.
"""

from collections.abc import Sequence
from typing import Final

from shardscope.engine.formats.decode.dcp_metadata import Saved, SavedObject
from shardscope.engine.formats.decode.dcp_tensors import ROLES, component_of
from shardscope.engine.formats.decode.torch_walk import walk
from shardscope.engine.formats.decode.whole import whole
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.source import Entry, Reader
from shardscope.engine.parse import torch_archive
from shardscope.engine.parse import zip as zip_parser
from shardscope.engine.parse.part import Part

_LOOKED: Final = 4_096
"""Objects whose records are looked at."""
_DECODED: Final = 64
"""Objects that are decoded for the tensors in them."""


def tensors_in_objects(decoder: Decoder, saved: Saved) -> list[LogicalTensor]:
    """Return the tensors that objects hold, by the object's key and their place in it."""
    stored = [item for item in saved.objects.values() if item.place is not None and not item.place.transforms]
    looked = stored[:_LOOKED]
    by_file: dict[bytes, list[SavedObject]] = {}
    for item in looked:
        if item.place is not None:
            by_file.setdefault(item.place.entry.path, []).append(item)
    holding: list[SavedObject] = []
    for items in by_file.values():
        holding += _with_storages(decoder, items)
    found = [tensor for item in holding[:_DECODED] for tensor in _decoded(decoder, item)]
    unread = len(saved.objects) - len(looked) + max(0, len(holding) - _DECODED)
    if unread:
        read = len(saved.objects) - unread
        decoder.probe.report(
            "dcp.objects_unread", saved.metadata[0].entry, count=len(saved.objects), read=read
        )
    return found


def _with_storages(decoder: Decoder, items: Sequence[SavedObject]) -> list[SavedObject]:
    """Return the objects of one file whose archive has storages. One that is damaged is reported once for its file."""
    place = items[0].place
    if place is None:
        return []
    entry: Entry = place.entry

    def read(reader: Reader) -> list[SavedObject]:
        found = []
        damaged: list[tuple[SavedObject, Fault]] = []
        for item in items:
            try:
                if _storages(decoder, reader, item):
                    found.append(item)
            except Fault as fault:
                if fault.finding.code.startswith("source."):
                    raise
                damaged.append((item, fault))
        if damaged:
            item, why = damaged[0]
            decoder.probe.note(why.finding, entry)
            decoder.probe.report("dcp.object_damaged", entry, count=len(damaged), tensor=item.name)
        return found

    return decoder.probe.guarded(entry, read) or []


def _storages(decoder: Decoder, reader: Reader, item: SavedObject) -> int:
    if item.place is None:
        return 0
    part = Part(reader, item.place.begin, item.place.length)
    directory = zip_parser.read_directory(part, decoder.probe.limits)
    return torch_archive.describe(part, directory, decoder.probe.limits).storages


def _decoded(decoder: Decoder, item: SavedObject) -> list[LogicalTensor]:
    if item.place is None:
        return []
    file = decoder.torch(item.place.entry, item.place.begin, item.place.length)
    if file is None:
        return []
    found = []
    for leaf in walk(file.tree, file.tree.root).tensors:
        tensor = leaf.tensor
        fragment = decoder.fragment(file, tensor) if tensor.kind == "strided" else None
        if fragment is None:
            continue
        name = f"{item.name}.{leaf.name}"
        component = component_of(name)
        found.append(
            whole(name, tensor.dtype, fragment.shape, fragment, component=component, role=ROLES[component])
        )
    return found
