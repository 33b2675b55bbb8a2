"""The tensors of a decoded distributed save: chunks proven to make them up, and where each chunk is stored.

A writer checks its plan only where several ranks share it, so that everything is checked again here: that chunks lie inside
their tensor, that no two hold the same element, that none is missing. The geometry is a list of chunks and tells nothing of
the mesh behind it.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.decode.dcp_alike import Wanted
from shardscope.engine.formats.decode.dcp_items import Locator
from shardscope.engine.formats.decode.dcp_metadata import Chunk, Saved, SavedTensor, Shape, in_words
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.fragments import LARGEST, Coverage, Work, cover
from shardscope.engine.formats.fragments import Fragment as Box
from shardscope.engine.geometry.constructors.dcp import chunk_list
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record, Role
from shardscope.engine.model.decoded import Component
from shardscope.engine.model.shardmap import DeviceMesh, TensorMap
from shardscope.engine.model.text import counted
from shardscope.engine.parse.torch_storages import bits_of

_Boxes = tuple[tuple[Shape, Shape], ...]
_OPTIMIZER: Final = frozenset({"optimizer", "optim", "optimizers", "optimizer_states", "optimizer_state"})
_OTHER: Final = frozenset(
    {
        "rng",
        "rng_state",
        "rng_states",
        "random_state",
        "random_states",
        "scheduler",
        "schedulers",
        "lr_scheduler",
        "lr_schedulers",
        "scaler",
        "grad_scaler",
        "train_state",
        "trainer_state",
        "trainer",
        "progress",
        "dataloader",
        "data_loader",
        "sampler",
        "extra_state",
    }
)
ROLES: Final[Mapping[Component, Role]] = {"model": "parameter", "optimizer": "state", "other": "other"}


def component_of(key: str) -> Component:
    """Return which part of the state a flattened key is of, by its first word; extra state by its last."""
    first = key.partition(".")[0]
    if first in _OPTIMIZER:
        return "optimizer"
    return "other" if first in _OTHER or key.endswith("._extra_state") else "model"


class _Geometry(Struct, frozen=True):
    """How chunks lie in a tensor: once for all tensors that are cut alike."""

    sound: bool = True
    """Chunks have the dimensions of the tensor, and no negative numbers."""
    beyond: Shape | None = None
    """How far the first chunk reaches that ends outside the tensor."""
    coverage: Coverage = Coverage(0, None, 0, None)
    map: TensorMap | None = None
    mesh: DeviceMesh | None = None


_Mapped = tuple[SavedTensor, TensorMap, DeviceMesh]


def chunked_tensors(decoder: Decoder, saved: Saved) -> list[LogicalTensor]:
    """Return the tensors of a save with their maps and fragments. What is wrong with them is reported."""
    try:
        return _Building(decoder, saved).tensors()
    except Fault as fault:  # a bound on proving that chunks cover their tensors
        decoder.probe.note(fault.finding, saved.metadata[0].entry)
        return []


class _Building:
    def __init__(self, decoder: Decoder, saved: Saved) -> None:
        self._probe = decoder.probe
        self._decoder = decoder
        self._saved = saved
        self._work = Work(decoder.probe.limits.fragment_steps)
        self._geometries: dict[tuple[Shape, _Boxes], _Geometry] = {}

    def tensors(self) -> list[LogicalTensor]:
        kept = self._sized()
        wanted: list[Wanted] = []
        ends: list[tuple[int, int]] = []
        """Of each tensor: how many of `wanted` there are when its chunks are in, and when further copies are."""
        for tensor, _, _ in kept:
            name, dtype = tensor.name, tensor.dtype
            wanted += [
                Wanted(name, number, dtype, chunk.sizes, chunk.place)
                for number, chunk in enumerate(tensor.chunks)
                if chunk.place is not None and 0 not in chunk.sizes
            ]
            chunks_end = len(wanted)
            wanted += [
                Wanted(name, number, dtype, chunk.sizes, chunk.place)
                for number, copies in tensor.copies.items()
                for chunk in copies
                if chunk.place is not None and 0 not in chunk.sizes
            ]
            ends.append((chunks_end, len(wanted)))
        found = Locator(self._decoder).locate(wanted)
        begin = 0
        tensors = []
        for mapped, (middle, end) in zip(kept, ends, strict=True):
            held = [item for item in found[begin:middle] if item is not None]
            if 0 in mapped[0].shape:
                held = [_nothing(mapped[0])]
            copies = [item for item in found[middle:end] if item is not None]
            tensors.append(_tensor(mapped, held, copies))
            begin = end
        return tensors

    def _sized(self) -> list[_Mapped]:
        """Return the tensors whose chunks make sense, each with its map proven; report the others."""
        kept: list[_Mapped] = []
        unknown: list[SavedTensor] = []
        huge: list[SavedTensor] = []
        malformed: list[SavedTensor] = []
        beyond: list[SavedTensor] = []
        holes: list[SavedTensor] = []
        twice: list[SavedTensor] = []
        for tensor in self._saved.tensors.values():
            bits = bits_of(tensor.dtype)
            if bits is None:
                unknown.append(tensor)
                continue
            if prod(tensor.shape) * bits > LARGEST:
                huge.append(tensor)
                continue
            if not tensor.chunks and 0 in tensor.shape:  # nothing of it has to be anywhere
                tensor.chunks.append(Chunk((0,) * len(tensor.shape), tensor.shape, None))
            found = self._geometry(tensor)
            if not found.sound:
                malformed.append(tensor)
            elif found.beyond is not None:
                beyond.append(tensor)
            elif found.map is not None and found.mesh is not None:
                kept.append((tensor, found.map, found.mesh))
            if found.coverage.missing:
                holes.append(tensor)
            if found.coverage.overlap is not None:
                twice.append(tensor)
        self._report_shapes(huge, malformed, beyond, unknown)
        self._report_holes(holes)
        self._report_overlaps(twice)
        return kept

    def _geometry(self, tensor: SavedTensor) -> _Geometry:
        key = (tensor.shape, tuple([(chunk.offsets, chunk.sizes) for chunk in tensor.chunks]))
        found = self._geometries.get(key)
        if found is None:
            self._geometries[key] = found = _proven(*key, self._work)
        return found

    def _report_shapes(
        self,
        huge: Sequence[SavedTensor],
        malformed: Sequence[SavedTensor],
        beyond: Sequence[SavedTensor],
        unknown: Sequence[SavedTensor],
    ) -> None:
        if huge:
            self._report("dcp.tensor_size", huge, shape=in_words(huge[0].shape))
        if malformed:
            self._report("dcp.chunk_malformed", malformed)
        if beyond:
            reach = self._geometry(beyond[0]).beyond or ()
            self._report("dcp.chunk_range", beyond, reach=in_words(reach), shape=in_words(beyond[0].shape))
        if unknown:
            self._report("dcp.dtype_unknown", unknown, dtype=unknown[0].dtype)

    def _report_holes(self, holes: Sequence[SavedTensor]) -> None:
        if holes:
            found = self._geometry(holes[0]).coverage
            self._report(
                "dcp.hole",
                holes,
                missing=found.missing,
                total=prod(holes[0].shape),
                where=", ".join(f"{begin:,} to {end:,}" for begin, end in found.hole or ()),
            )

    def _report_overlaps(self, twice: Sequence[SavedTensor]) -> None:
        if twice:
            found = self._geometry(twice[0]).coverage
            files = [_file_of(twice[0].chunks[number]) for number in found.overlap or (0, 0)]
            self._report("dcp.overlap", twice, repeated=found.repeated, first=files[0], second=files[1])

    def _report(self, code: str, tensors: Sequence[SavedTensor], **params: int | str) -> None:
        self._probe.report(code, tensors[0].source, count=len(tensors), tensor=tensors[0].name, **params)


def kept_labels(boxes: _Boxes) -> list[int]:
    """Return the numbers of the chunks that a map has: those with elements, or the first one where none has any."""
    held = [number for number, (_, sizes) in enumerate(boxes) if 0 not in sizes]
    return held or list(range(len(boxes)))[:1]


def _proven(shape: Shape, boxes: _Boxes, work: Work) -> _Geometry:
    """Return how boxes lie in a tensor. Raises `Fault` `limit.fragment_steps`."""
    axes = len(shape)
    sound = min(shape, default=0) >= 0 and all(
        len(offsets) == len(sizes) == axes and min((*offsets, *sizes), default=0) >= 0
        for offsets, sizes in boxes
    )
    if not sound:
        return _Geometry(sound=False)
    for offsets, sizes in boxes:
        reach = tuple(map(int.__add__, offsets, sizes))
        if any(end > size for end, size in zip(reach, shape, strict=True)):
            return _Geometry(beyond=reach)
    coverage = cover([Box(offsets, sizes, 0) for offsets, sizes in boxes], shape, work)
    labels = kept_labels(boxes)
    mapped, mesh = chunk_list(shape, [boxes[label] for label in labels], labels) if labels else (None, None)
    return _Geometry(coverage=coverage, map=mapped, mesh=mesh)


def _tensor(described: _Mapped, held: Sequence[Fragment], copies: Sequence[Fragment]) -> LogicalTensor:
    tensor, mapped, mesh = described
    component = component_of(tensor.name)
    if copies:
        held, copies = _promoted(held, copies)
    return LogicalTensor(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=tensor.shape,
        map=mapped,
        mesh=mesh,
        fragments=tuple(held),
        component=component,
        role=ROLES[component],
        replicas=tuple(copies),
        note=_note(tensor, held),
    )


def _nothing(tensor: SavedTensor) -> Fragment:
    """Return the fragment of a tensor without elements, wherever it may be said to lie."""
    return Fragment(0, tensor.chunks[0].sizes, Record(tensor.source.text, 0, 0, 0), 0)


def _promoted(held: Sequence[Fragment], copies: Sequence[Fragment]) -> tuple[list[Fragment], list[Fragment]]:
    """Return fragments and copies, a copy in the place of a fragment that was not found."""
    have = {fragment.label for fragment in held}
    kept, rest = list(held), []
    for copy in copies:
        if copy.label in have:
            rest.append(copy)
        else:
            have.add(copy.label)
            kept.append(copy)
    return sorted(kept, key=lambda fragment: fragment.label), rest


def _note(tensor: SavedTensor, held: Sequence[Fragment]) -> str | None:
    if len(held) == len(tensor.chunks):
        return None
    have = {fragment.label for fragment in held}
    lacking = sum(number not in have and 0 not in chunk.sizes for number, chunk in enumerate(tensor.chunks))
    return f"{counted(lacking, 'chunk')} not found in the data files" if lacking else None


def _file_of(chunk: Chunk) -> str:
    return chunk.place.entry.text if chunk.place is not None else "a file that is not here"
