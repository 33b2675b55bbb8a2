"""Tensors put together from one file of torch.save for each rank: what each rank holds, and how the parts make a whole.

A DTensor says it by mesh and placements, a ShardedTensor by a list of boxes. Tensors that are neither have to be whole and the
same on every rank. One tensor on several like meshes (a sub-mesh of each group) is one tensor with copies.
"""

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.formats.decode.dcp_metadata import in_words
from shardscope.engine.formats.decode.dtensors import DTensors, Layout, odd
from shardscope.engine.formats.decode.sharded_tensors import Box, read_sharded
from shardscope.engine.formats.decode.torch_walk import walk
from shardscope.engine.formats.decoder import Decoder, TorchFile
from shardscope.engine.formats.fsdp import RankSet
from shardscope.engine.geometry.constructors.dtensor import Partial
from shardscope.engine.model.blocker import Fault, Param
from shardscope.engine.model.catalogue import Fragment, Shape
from shardscope.engine.model.pickled import PickledTensor
from shardscope.engine.model.source import Entry
from shardscope.engine.parse.torch_storages import bits_of

_FLAT: Final = re.compile(r"_?flat_param(_\d+)?")
_DTENSOR: Final = ".DTensor"
_SHARDED: Final = ".ShardedTensor"

Way = Layout | tuple[Box, ...] | None
"""How parts make a whole: a mesh and placements, a list of boxes, or not at all."""


class Gathered(Struct):
    """One tensor, as all ranks together hold it."""

    name: str
    dtype: str
    shape: Shape
    way: Way
    ranks: tuple[int | None, ...]
    """By place: the rank that holds it, as far as the files say."""
    parts: dict[int, list[tuple[int, Fragment]]]
    """By place (on the mesh, in the list of boxes, or 0): who holds it, and where. Labels are places."""
    parameter: bool = False


class RankState(Struct, frozen=True):
    """What the files of one stem hold."""

    tensors: dict[str, Gathered]
    read: tuple[Entry, ...]
    """The files that were decoded."""
    top: tuple[str, ...]
    """The keys at the top of a file."""
    meshes: dict[tuple[tuple[str, ...], tuple[int, ...]], dict[int, int]]
    """By names and sizes of axes: the place of each rank."""


class Trouble:
    """What is wrong with tensors: each thing said once, with how many and the first."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[dict[str, None], dict[str, Param]]] = {}

    def add(self, code: str, name: str, **params: Param) -> None:
        """Note something wrong with a tensor."""
        self._found.setdefault(code, ({}, params))[0].setdefault(name)

    def alone(self, code: str) -> bool:
        """Tell whether anything was noted by that code; it is then all that is reported, since it explains the rest."""
        if code in self._found:
            self._found = {code: self._found[code]}
        return code in self._found

    def report(self, decoder: Decoder, entry: Entry, pattern: str) -> None:
        """Report everything about the files of one pattern."""
        for code, (names, params) in self._found.items():
            first = next(iter(names))
            decoder.probe.report(code, entry, count=len(names), tensor=first, pattern=pattern, **params)


def gather(decoder: Decoder, each: RankSet, trouble: Trouble) -> RankState:
    """Decode the files of one stem, rank by rank. A rank that has two files counts with the first."""
    return _Gathering(decoder, each, trouble).state()


class _Gathering:
    def __init__(self, decoder: Decoder, each: RankSet, trouble: Trouble) -> None:
        self._decoder = decoder
        self._set = each
        self._trouble = trouble
        self._tensors: dict[str, Gathered] = {}
        self._meshes: dict[tuple[tuple[str, ...], tuple[int, ...]], dict[int, int]] = {}
        self._misplaced: set[str] = set()

    def state(self) -> RankState:
        """Return what all files hold together."""
        read: list[Entry] = []
        top: dict[str, None] = {}
        seen: set[int] = set()
        files = sorted(self._set.files, key=lambda item: (item.rank, item.entry.path))
        for done, item in enumerate(files):
            self._decoder.probe.checkpoint("decode", done, len(files), item.entry)
            file = self._decoder.torch(item.entry)
            if file is None:
                continue
            read.append(item.entry)
            if item.rank not in seen:
                seen.add(item.rank)
                top |= dict.fromkeys(self._take(file, item.rank))
        return RankState(self._tensors, tuple(read), tuple(top), self._meshes)

    def _take(self, file: TorchFile, rank: int) -> Sequence[str]:
        walked = walk(file.tree, file.tree.root)
        dtensors = DTensors(self._decoder, file)
        for leaf in walked.tensors:
            try:
                self._tensor(file, rank, leaf.name, leaf.tensor, dtensors)
            except Fault as fault:
                code = fault.finding.code
                if code not in ("fsdp.layout_unknown", "fsdp.partial"):
                    raise
                self._trouble.add(code, leaf.name, **fault.finding.params)
        return list(walked.top)

    def _tensor(
        self, file: TorchFile, rank: int, name: str, tensor: PickledTensor, dtensors: DTensors
    ) -> None:
        if _FLAT.fullmatch(name.rpartition(".")[2]) and len(tensor.shape) == 1:
            self._trouble.add("fsdp.local_state", name)
            return
        subclass = tensor.subclass or ""
        if tensor.kind == "strided":
            self._add(file, rank, Gathered(name, tensor.dtype, tuple(tensor.shape), None, (), {}), 0, tensor)
        elif tensor.kind == "wrapper" and subclass.endswith(_DTENSOR):
            self._dtensor(file, rank, name, tensor, dtensors)
        elif tensor.kind == "wrapper" and subclass.endswith(_SHARDED):
            self._sharded(file, rank, name, tensor)
        else:
            raise odd(f"it is a {tensor.kind} tensor")

    def _dtensor(
        self, file: TorchFile, rank: int, name: str, tensor: PickledTensor, dtensors: DTensors
    ) -> None:
        local = dtensors.read(tensor)
        self._of_rank(file, rank, local.rank)
        layout = local.layout
        if any(isinstance(item, Partial) for item in layout.placements):
            raise Fault("fsdp.partial")
        self._meshes.setdefault((layout.names, layout.sizes), {})[rank] = local.place
        ranks = local.ranks or (None,) * layout.places
        whole = Gathered(name, tensor.dtype, tuple(tensor.shape), layout, ranks, {})
        self._add(file, rank, whole, local.place, local.tensor)

    def _sharded(self, file: TorchFile, rank: int, name: str, tensor: PickledTensor) -> None:
        held = read_sharded(file.tree, tensor)
        self._of_rank(file, rank, held.rank)
        places = {box: place for place, box in enumerate(held.boxes)}
        whole = Gathered(name, tensor.dtype, tuple(tensor.shape), held.boxes, held.owners, {})
        for box, local in held.shards:
            place = places.get(box)
            if place is None or tuple(local.shape) != box[1]:
                raise odd("a shard of it is not in its list, or of another size")
            self._add(file, rank, whole, place, local)
        if not held.shards:
            self._known(whole)

    def _of_rank(self, file: TorchFile, named: int, found: int | None) -> None:
        if found is not None and found != named and file.entry.text not in self._misplaced:
            self._misplaced.add(file.entry.text)
            self._decoder.probe.report("fsdp.rank_differs", file.entry, found=found, named=named)

    def _add(self, file: TorchFile, rank: int, whole: Gathered, place: int, local: PickledTensor) -> None:
        known = self._known(whole)
        if known is None:
            return
        known.parameter |= local.parameter
        fragment = self._decoder.fragment(file, local, place)
        if fragment is None:
            return  # reported for the file
        if local.dtype != known.dtype:
            self._trouble.add("fsdp.layout_differs", known.name, reason=f"{local.dtype} in {known.dtype}")
            return
        known.parts.setdefault(place, []).append((rank, fragment))

    def _known(self, whole: Gathered) -> Gathered | None:
        """Return a tensor as other ranks have described it, or as this one does first; null where they disagree."""
        known = self._tensors.setdefault(whole.name, whole)
        if known is whole:
            return whole
        if (known.dtype, known.shape, known.way) != (whole.dtype, whole.shape, whole.way):
            plain = known.way is None and whole.way is None
            code = "fsdp.shapes_differ" if plain else "fsdp.layout_differs"
            self._trouble.add(code, whole.name, reason=_difference(known, whole))
            return None
        if any(rank is None for rank in known.ranks):
            known.ranks = whole.ranks
        return known


def _difference(known: Gathered, whole: Gathered) -> str:
    if known.dtype != whole.dtype:
        return f"{known.dtype} and {whole.dtype}"
    if known.shape != whole.shape:
        return f"{in_words(known.shape)} and {in_words(whole.shape)}"
    return "the same shape, cut in different ways"


def alike(parts: Mapping[int, list[tuple[int, Fragment]]], dtype: str) -> bool:
    """Tell whether copies of one part can be the same, by the checksums of records that hold nothing else."""
    bits = bits_of(dtype) or 8
    for copies in parts.values():
        known: set[int] = set()
        for _, fragment in copies:
            record = fragment.record
            alone = record.size * 8 == prod(fragment.shape) * bits and not fragment.offset
            if record.crc is not None and alone and fragment.strides is None:
                known.add(record.crc)
        if len(known) > 1:
            return False
    return True


def labelled(fragment: Fragment, label: int) -> Fragment:
    """Return a fragment under another label."""
    return fragment if fragment.label == label else replace(fragment, label=label)
