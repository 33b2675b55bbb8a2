"""The tensors of a decoded distributed save: chunks proven to make them up, and where each chunk is stored.

A writer checks its plan only where several ranks share it, so that everything is checked again here: that chunks lie inside
their tensor, that no two hold the same element, that none is missing. The geometry is a list of chunks and tells nothing of
the mesh behind it.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from shardscope.engine.formats.decode.dcp_items import Locator, Wanted
from shardscope.engine.formats.decode.dcp_metadata import Chunk, Saved, SavedTensor, Shape, in_words
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.fragments import LARGEST, Coverage, Work, cover
from shardscope.engine.formats.fragments import Fragment as Box
from shardscope.engine.geometry.constructors.dcp import chunk_list
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Role
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


def chunked_tensors(decoder: Decoder, saved: Saved) -> list[LogicalTensor]:
    """Return the tensors of a save with their maps and fragments. What is wrong with them is reported."""
    return _Building(decoder, saved).tensors()


class _Building:
    def __init__(self, decoder: Decoder, saved: Saved) -> None:
        self._probe = decoder.probe
        self._decoder = decoder
        self._saved = saved
        self._maps: dict[tuple[Shape, _Boxes], tuple[TensorMap, DeviceMesh]] = {}
        self._coverages: dict[tuple[Shape, _Boxes], Coverage] = {}

    def tensors(self) -> list[LogicalTensor]:
        kept = self._sized()
        wanted: list[Wanted] = []
        rows: list[tuple[SavedTensor, bool]] = []
        for tensor in kept:
            for number, chunk in enumerate(tensor.chunks):
                for copy, item in enumerate((chunk, *tensor.copies.get(number, ()))):
                    if item.place is not None:
                        wanted.append(Wanted(tensor.name, number, tensor.dtype, item.sizes, item.place))
                        rows.append((tensor, copy > 0))
        located = Locator(self._decoder).locate(wanted)
        held: dict[str, list[Fragment]] = {}
        copies: dict[str, list[Fragment]] = {}
        for place, (tensor, copy) in enumerate(rows):
            if place in located:
                (copies if copy else held).setdefault(tensor.name, []).append(located[place])
        return [
            self._tensor(tensor, held.get(tensor.name, []), copies.get(tensor.name, [])) for tensor in kept
        ]

    def _tensor(
        self, tensor: SavedTensor, held: Sequence[Fragment], copies: Sequence[Fragment]
    ) -> LogicalTensor:
        mapped, mesh = self._maps[_key(tensor)]
        component = component_of(tensor.name)
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

    def _sized(self) -> list[SavedTensor]:
        """Return the tensors whose chunks make sense, each with its map proven; report the others."""
        kept: list[SavedTensor] = []
        unknown: list[SavedTensor] = []
        huge: list[SavedTensor] = []
        malformed: list[SavedTensor] = []
        beyond: list[SavedTensor] = []
        holes: list[SavedTensor] = []
        twice: list[SavedTensor] = []
        work = Work(self._probe.limits.fragment_steps)
        for tensor in self._saved.tensors.values():
            bits = bits_of(tensor.dtype)
            if bits is None:
                unknown.append(tensor)
                continue
            if prod(tensor.shape) * bits > LARGEST:
                huge.append(tensor)
                continue
            if not _well_formed(tensor):
                malformed.append(tensor)
                continue
            if _reach(tensor) is not None:
                beyond.append(tensor)
                continue
            if not tensor.chunks and 0 in tensor.shape:  # nothing of it has to be anywhere
                tensor.chunks.append(Chunk((0,) * len(tensor.shape), tensor.shape, None))
            found = self._covered(tensor, work)
            if tensor.chunks:
                kept.append(tensor)
            if found.missing:
                holes.append(tensor)
            if found.overlap is not None:
                twice.append(tensor)
        self._report_shapes(huge, malformed, beyond, unknown)
        self._report_holes(holes)
        self._report_overlaps(twice)
        return kept

    def _covered(self, tensor: SavedTensor, work: Work) -> Coverage:
        """Return how chunks lie in a tensor: once for all that are cut alike."""
        key = _key(tensor)
        if key not in self._coverages:
            shape, boxes = key
            box = [Box(offsets, sizes, 0) for offsets, sizes in boxes]
            self._coverages[key] = cover(box, shape, work)
            self._maps[key] = chunk_list(shape, boxes or [((0,) * len(shape), shape)])
        return self._coverages[key]

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
            reach = _reach(beyond[0]) or ()
            self._report("dcp.chunk_range", beyond, reach=in_words(reach), shape=in_words(beyond[0].shape))
        if unknown:
            self._report("dcp.dtype_unknown", unknown, dtype=unknown[0].dtype)

    def _report_holes(self, holes: Sequence[SavedTensor]) -> None:
        if holes:
            found = self._coverages[_key(holes[0])]
            self._report(
                "dcp.hole",
                holes,
                missing=found.missing,
                total=prod(holes[0].shape),
                where=", ".join(f"{begin:,} to {end:,}" for begin, end in found.hole or ()),
            )

    def _report_overlaps(self, twice: Sequence[SavedTensor]) -> None:
        if twice:
            found = self._coverages[_key(twice[0])]
            files = [_file_of(twice[0].chunks[number]) for number in found.overlap or (0, 0)]
            self._report("dcp.overlap", twice, repeated=found.repeated, first=files[0], second=files[1])

    def _report(self, code: str, tensors: Sequence[SavedTensor], **params: int | str) -> None:
        self._probe.report(code, tensors[0].source, count=len(tensors), tensor=tensors[0].name, **params)


def _key(tensor: SavedTensor) -> tuple[Shape, _Boxes]:
    return tensor.shape, tuple([(chunk.offsets, chunk.sizes) for chunk in tensor.chunks])


def _well_formed(tensor: SavedTensor) -> bool:
    axes = len(tensor.shape)
    return min(tensor.shape, default=0) >= 0 and all(
        len(chunk.offsets) == axes
        and len(chunk.sizes) == axes
        and min((*chunk.offsets, *chunk.sizes), default=0) >= 0
        for chunk in tensor.chunks
    )


def _reach(tensor: SavedTensor) -> Shape | None:
    """Return how far the first chunk reaches that ends outside its tensor; null where none does."""
    for chunk in tensor.chunks:
        ends = tuple(map(int.__add__, chunk.offsets, chunk.sizes))
        if any(end > size for end, size in zip(ends, tensor.shape, strict=True)):
            return ends
    return None


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
    have = {fragment.label for fragment in held}
    lacking = sum(number not in have and 0 not in chunk.sizes for number, chunk in enumerate(tensor.chunks))
    return f"{counted(lacking, 'chunk')} not found in the data files" if lacking else None


def _file_of(chunk: Chunk) -> str:
    return chunk.place.entry.text if chunk.place is not None else "a file that is not here"
