"""From what ranks hold to tensors of the catalogue: maps, labels, what is missing and what is there twice."""

from collections.abc import Mapping, Sequence
from math import prod

from msgspec.structs import replace

from shardscope.engine.formats.decode.dcp_metadata import in_words
from shardscope.engine.formats.decode.dtensors import Layout, coordinates, place_of
from shardscope.engine.formats.decode.rank_tensors import Gathered, Trouble, alike, labelled
from shardscope.engine.formats.decode.sharded_tensors import Box
from shardscope.engine.formats.decode.whole import held_by, identity
from shardscope.engine.formats.fragments import LARGEST, Work, cover
from shardscope.engine.formats.fragments import Fragment as Placed
from shardscope.engine.geometry.constructors.dcp import chunk_list
from shardscope.engine.geometry.constructors.dtensor import Shard, dtensor
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Role, Shape
from shardscope.engine.model.decoded import Component
from shardscope.engine.model.shardmap import DeviceMesh, MeshAxis, TensorMap
from shardscope.engine.parse.torch_storages import bits_of

Parts = Mapping[int, list[tuple[int, Fragment]]]


class Wholes:
    """Makes tensors out of what was gathered of one stem."""

    def __init__(self, trouble: Trouble, component: Component, prefix: str, steps: int) -> None:
        self._trouble = trouble
        self._component = component
        self._prefix = prefix
        self._work = Work(steps)
        self._shapes: dict[tuple[Shape, Layout], tuple[Shape, ...]] = {}
        self._covered: dict[tuple[Shape, tuple[Box, ...]], str | None] = {}
        self._first: dict[tuple[object, ...], str] = {}

    def tensors(self, gathered: Mapping[str, Gathered]) -> list[LogicalTensor]:
        """Return the tensors that can be put together; what is wrong with the others is noted."""
        found = []
        for item in gathered.values():
            tensor = self._tensor(item)
            if tensor is not None:
                found.append(self._with_alias(tensor))
        return found

    def _tensor(self, item: Gathered) -> LogicalTensor | None:
        if prod(item.shape) * (bits_of(item.dtype) or 8) > LARGEST:
            self._trouble.add("fsdp.layout_unknown", item.name, reason="it is larger than any memory")
            return None
        if not alike(item.parts, item.dtype):
            self._trouble.add(self._differing(item), item.name)
            return None
        try:
            if item.way is None:
                return self._plain(item)
            if isinstance(item.way, Layout):
                return self._dtensor(item, item.way)
            return self._sharded(item, item.way)
        except Fault as fault:
            reason = str(fault.finding.params.get("reason", fault.finding.code))
            self._trouble.add("fsdp.layout_unknown", item.name, reason=reason)
            return None

    def _differing(self, item: Gathered) -> str:
        """Return what it is that copies differ: an optimizer over flat parameters has pieces that look like copies."""
        flat = self._component == "optimizer" and item.way is None and len(item.shape) == 1
        return "fsdp.flat_optimizer" if flat else "fsdp.replicas_differ"

    def _plain(self, item: Gathered) -> LogicalTensor | None:
        held = item.parts.get(0)
        if not held:
            return None  # its bytes are nowhere: reported for the file
        label = held[0][0]
        copies = [labelled(fragment, label) for _, fragment in held]
        return self._listed(item, identity(item.shape), held_by(label), copies[:1], copies[1:], None)

    def _dtensor(self, item: Gathered, layout: Layout) -> LogicalTensor | None:
        if len(item.parts) < layout.places:
            item, layout = _cut_axes_alone(item, layout)
            if not layout.sizes:
                return self._plain(item)
        axes = tuple(MeshAxis(name, size) for name, size in zip(layout.names, layout.sizes, strict=True))
        labels = _labels(item, layout.places)
        mesh = DeviceMesh(axes, labels)
        mapped = dtensor(item.shape, mesh, layout.placements)
        expected = self._expected(item, layout, mapped)
        sized: dict[int, list[tuple[int, Fragment]]] = {}
        for place, held in item.parts.items():
            sized[place] = self._sized(item, held, expected[place])
        note = self._missing(item, sized, expected, labels)
        fragments, copies = _labelled(sized, labels)
        return self._listed(item, mapped, mesh, fragments, copies, note)

    def _expected(self, item: Gathered, layout: Layout, mapped: TensorMap) -> tuple[Shape, ...]:
        """Return the shape of the shard at each place: once for all tensors that are cut alike."""
        key = (item.shape, layout)
        if key not in self._shapes:
            axes = tuple(MeshAxis(name, size) for name, size in zip(layout.names, layout.sizes, strict=True))
            self._shapes[key] = tuple(shard.shape for shard in lower(mapped, DeviceMesh(axes)).ranks)
        return self._shapes[key]

    def _sized(
        self, item: Gathered, held: Sequence[tuple[int, Fragment]], shape: Shape
    ) -> list[tuple[int, Fragment]]:
        """Return the parts that have the size they should have."""
        kept = []
        for rank, fragment in held:
            if fragment.shape == shape:
                kept.append((rank, fragment))
            elif 0 in fragment.shape and 0 in shape:  # nothing is nothing, whatever shape it has
                kept.append((rank, Fragment(fragment.label, shape, fragment.record, 0)))
            else:
                self._trouble.add(
                    "fsdp.shard_shape", item.name, found=in_words(fragment.shape), expected=in_words(shape)
                )
        return kept

    def _sharded(self, item: Gathered, boxes: tuple[Box, ...]) -> LogicalTensor:
        key = (item.shape, boxes)
        if key not in self._covered:
            self._covered[key] = self._uncovered(item.shape, boxes)
        if (reason := self._covered[key]) is not None:
            raise Fault("fsdp.layout_unknown", reason=reason)
        mapped, mesh = chunk_list(item.shape, boxes)
        labels = tuple(range(len(boxes)))
        ranks = [owner if owner is not None else 0 for owner in item.ranks]
        note = self._missing(item, item.parts, [sizes for _, sizes in boxes], ranks)
        fragments, copies = _labelled(item.parts, labels)
        return self._listed(item, mapped, mesh, fragments, copies, note)

    def _uncovered(self, shape: Shape, boxes: tuple[Box, ...]) -> str | None:
        """Return why boxes do not make up a tensor; null where they do."""
        for offsets, sizes in boxes:
            if any(at + size > end for at, size, end in zip(offsets, sizes, shape, strict=True)):
                return "a shard in its list reaches beyond it"
        found = cover([Placed(offsets, sizes, 0) for offsets, sizes in boxes], shape, self._work)
        if found.overlap is not None:
            return "two shards in its list overlap"
        return "the shards in its list leave a hole" if found.missing else None

    def _missing(
        self, item: Gathered, parts: Parts, shapes: Sequence[Shape], ranks: Sequence[int]
    ) -> str | None:
        """Note the first place of which no rank's file is here; return what to say of the tensor."""
        lacking = [place for place, shape in enumerate(shapes) if prod(shape) and not parts.get(place)]
        if not lacking:
            return None
        self._trouble.add("fsdp.shard_missing", item.name, rank=ranks[lacking[0]])
        return f"{len(lacking):,} of {len(shapes):,} shards are missing"

    def _listed(
        self,
        item: Gathered,
        mapped: TensorMap,
        mesh: DeviceMesh,
        fragments: Sequence[Fragment],
        copies: Sequence[Fragment],
        note: str | None,
    ) -> LogicalTensor:
        roles: dict[Component, Role] = {"model": "parameter", "optimizer": "state", "other": "other"}
        return LogicalTensor(
            name=self._prefix + item.name,
            dtype=item.dtype,
            shape=item.shape,
            map=mapped,
            mesh=mesh,
            fragments=tuple(fragments),
            component=self._component,
            apart=self._component == "optimizer",
            role=roles[self._component],
            replicas=tuple(copies),
            note=note,
        )

    def _with_alias(self, tensor: LogicalTensor) -> LogicalTensor:
        """Return a tensor with the name of an earlier one whose bytes it shares on every rank."""
        if not prod(tensor.shape) or not tensor.fragments:
            return tensor
        places = [
            (item.record.file, item.record.begin, item.offset, item.shape, item.strides)
            for item in tensor.fragments
            if 0 not in item.shape
        ]
        earlier = self._first.setdefault((tensor.dtype, tensor.shape, *places), tensor.name)
        if earlier == tensor.name:
            return tensor
        return replace(tensor, alias_of=earlier)


def _cut_axes_alone(item: Gathered, layout: Layout) -> tuple[Gathered, Layout]:
    """Return a tensor without the axes that repeat it: what positions along them hold are copies of one part.

    So a tensor is whole as long as one of its copies is here.
    """
    cut = [axis for axis, item in enumerate(layout.placements) if isinstance(item, Shard)]
    reduced = Layout(
        tuple(layout.names[axis] for axis in cut),
        tuple(layout.sizes[axis] for axis in cut),
        tuple(layout.placements[axis] for axis in cut),
    )
    parts: dict[int, list[tuple[int, Fragment]]] = {}
    ranks: list[int | None] = [None] * reduced.places
    for place in range(layout.places):
        at = coordinates(layout.sizes, place)
        kept = place_of(reduced.sizes, [at[axis] for axis in cut])
        parts.setdefault(kept, []).extend(item.parts.get(place, ()))
        if ranks[kept] is None and place < len(item.ranks):
            ranks[kept] = item.ranks[place]
    held = {place: copies for place, copies in parts.items() if copies}
    found = Gathered(item.name, item.dtype, item.shape, reduced, tuple(ranks), held, item.parameter)
    return found, reduced


def _labels(item: Gathered, places: int) -> tuple[int, ...]:
    """Return the label of each place: the lowest rank that holds it here, otherwise the one that should."""
    labels: list[int | None] = [None] * places
    taken: set[int] = set()
    for place, held in item.parts.items():
        labels[place] = held[0][0]
        taken.add(held[0][0])
    spare = max(taken | {rank for rank in item.ranks if rank is not None}, default=0) + 1
    for place in range(places):
        if labels[place] is None:
            rank = item.ranks[place] if place < len(item.ranks) else None
            if rank is None or rank in taken:
                rank, spare = spare, spare + 1
            labels[place] = rank
            taken.add(rank)
    return tuple(label for label in labels if label is not None)


def _labelled(parts: Parts, labels: Sequence[int]) -> tuple[list[Fragment], list[Fragment]]:
    """Return the first copy of each part and the others, under their labels."""
    first, others = [], []
    for place in sorted(parts):
        copies = [labelled(fragment, labels[place]) for _, fragment in parts[place]]
        first += copies[:1]
        others += copies[1:]
    return first, others
