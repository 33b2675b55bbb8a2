"""The shards of rank files, gathered by the name that the whole tensor has, and put together as a layout table says."""

from collections.abc import Iterator
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct

from shardscope.engine.formats.decode.megatron_args import Args
from shardscope.engine.formats.decode.megatron_numbering import Numbering, Round, numbering
from shardscope.engine.formats.decode.megatron_ranks import Place, RankFile, Ranks
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.geometry.mapping.cuts import TP, shard_map
from shardscope.engine.geometry.mapping.sections import Asked
from shardscope.engine.geometry.mapping.tables import LayoutTable, Placed
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.catalogue import Fragment, LogicalTensor
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.pickled import Number, PickledTensor, Plain
from shardscope.engine.model.shardmap import DeviceMesh, MeshAxis, Replicate, TensorMap
from shardscope.engine.model.text import counted, display_name

COPY: Final = "copy"
"""The axis of ranks that hold the same: other expert-parallel ranks, other stages, slices that were never cut."""
_EXTRA: Final = "_extra_state"
_EMBEDDING: Final = "word_embeddings.weight"
_OUTPUT: Final = "output_layer.weight"
_STORED_AS: Final = "stored as {}"


class Shard(Struct, frozen=True):
    """What one rank holds of a tensor."""

    file: RankFile
    tensor: PickledTensor


class Gathered(Struct):
    """A tensor while its shards are gathered."""

    name: str
    placed: Placed | None
    """Null where the table does not know it, and no table is needed."""
    stored: str
    """What its ranks call it."""
    shards: dict[Place, Shard]
    shared: bool
    """Every expert-parallel rank holds the same."""
    twice: str | None = None
    """Another name under which the same rank holds it."""


class Shards:
    """The tensors of all rank files."""

    def __init__(self, decoder: Decoder, ranks: Ranks, layout: LayoutTable, facts: ModelFacts) -> None:
        self.decoder = decoder
        self.ranks = ranks
        self.layout = layout
        self.facts = facts
        self.gathered: dict[str, Gathered] = {}
        self.alone = len(ranks.files) == 1 and all(len(file.models()) < 2 for file in ranks.files.values())
        """One rank holds the whole model: nothing is cut, and every number is that of the model."""
        self.layers: set[int] = set()
        """Layers that hold something."""
        self.met = 0
        """Tensors of all files."""
        self.extra = 0
        """Entries of extra state, which are no tensors of the model."""
        self.unknown: dict[str, RankFile] = {}
        """Names that the table does not know, where it would have to."""
        self.unclear: dict[str, Finding] = {}
        """Names whose meaning depends on a fact that is not declared."""

    def gather(self) -> bool:
        """Sort the tensors of every file; false where their layers cannot be numbered, which is reported."""
        found = list(self._tensors())
        self.met = len(found)
        held: dict[Round, int] = {}
        parts: dict[str, Placed | None] = {}
        for place, at, name, _ in found:
            if name not in parts:
                parts[name] = self._placed(name, self.ranks.files[place])
            where = parts[name]
            layer = where.numbers.get("layer") if where else None
            held[at] = max(held.get(at, 0), 0 if layer is None else layer + 1)
        for place, file in self.ranks.files.items():
            for turn in range(len(file.models())):
                held.setdefault((turn, place.pp), 0)
        rounds = max(len(file.models()) for file in self.ranks.files.values())
        try:
            numbers = numbering(self.ranks.args, held, max(1, rounds), self.ranks.pp, self.ranks.ep)
            for place, at, name, tensor in found:
                self._add(place, at, name, tensor, parts[name], numbers)
        except Fault as fault:
            self.decoder.probe.note(fault.finding, next(iter(self.ranks.files.values())).entry)
            return False
        return True

    def _tensors(self) -> Iterator[tuple[Place, Round, str, PickledTensor]]:
        """Yield every tensor of every model, with its name in that file."""
        for place, file in sorted(self.ranks.files.items()):
            tree = file.tree
            for turn, model in enumerate(file.models()):
                for path, number in tree.leaves(model):
                    name = ".".join(map(str, path))
                    tensor = tree.node(number)
                    if name.endswith(_EXTRA):
                        self.extra += _says_something(file, number)
                    elif isinstance(tensor, PickledTensor):
                        yield place, (turn, place.pp), name, tensor

    def _placed(self, name: str, file: RankFile) -> Placed | None:
        try:
            found = self.layout.place(name, self.facts)
        except Fault as fault:
            if not self.alone:
                self.unclear.setdefault(name, fault.finding)
            return None
        if found is None and not self.alone:
            self.unknown.setdefault(name, file)
        return found

    def _add(
        self,
        place: Place,
        at: Round,
        name: str,
        tensor: PickledTensor,
        placed: Placed | None,
        numbers: Numbering,
    ) -> None:
        if name in self.unknown or name in self.unclear:
            return
        whole, shared = name, True
        if placed is not None:
            counts = dict(placed.numbers)
            if "layer" in counts:
                counts["layer"] = numbers.layer(at, counts["layer"])
                self.layers.add(counts["layer"])
            if "expert" in counts:
                counts["expert"] = numbers.expert(place.ep, counts["expert"])
            shared = "expert" not in counts and placed.kind.group == "dense"
            whole = placed.written(counts)
        item = self.gathered.setdefault(whole, Gathered(whole, placed, name, {}, shared))
        if place in item.shards:
            item.twice = name
        item.shards[place] = Shard(self.ranks.files[place], tensor)

    def tensors(self) -> list[LogicalTensor]:
        """Return the tensors that can be put together, with their maps; report the others."""
        builder = _Builder(self)
        found = [made for item in self.gathered.values() if (made := builder.tensor(item)) is not None]
        builder.report()
        return _tied(self.ranks.args, found)


class _Builder:
    """Puts tensors together and remembers what could not be."""

    def __init__(self, shards: Shards) -> None:
        self._of = shards
        self._lacking: list[tuple[str, RankFile]] = []
        self._failed: dict[str, list[tuple[Finding, RankFile]]] = {}
        self._strange: dict[str, list[tuple[str, RankFile]]] = {}
        """Tensors that are no strided ones, by their kind."""
        self._aliases: dict[tuple[tuple[str, int, int], ...], str] = {}

    def tensor(self, item: Gathered) -> LogicalTensor | None:
        try:
            mesh, rows = self._mesh(item)
            whole = self._tensor(item, mesh, rows)
        except Fault as fault:
            first = next(iter(item.shards.values()))
            self._failed.setdefault(fault.finding.code, []).append((fault.finding, first.file))
            return None
        return whole

    def report(self) -> None:
        """Say once for each reason what could not be put together."""
        probe = self._of.decoder.probe
        for failed in self._failed.values():
            finding, file = failed[0]
            probe.note(Finding(finding.code, {**finding.params, "count": len(failed)}), file.entry)
        for kind, strange in self._strange.items():
            probe.report(
                "torch.tensor_kind", strange[0][1].entry, count=len(strange), tensor=strange[0][0], kind=kind
            )
        if self._lacking:
            name, file = self._lacking[0]
            probe.report(
                "megatron.shard_missing",
                file.entry,
                count=len(self._lacking),
                tensor=name,
                file=file.entry.text,
            )

    def _mesh(self, item: Gathered) -> tuple[DeviceMesh, list[list[Place]]]:
        """Return the mesh of a tensor's holders, and their places: a row for each copy, and in it a place for each slice."""
        ranks = self._of.ranks
        if item.twice is not None:
            reason = f"a rank holds it twice, also as {display_name(item.twice, 120)}"
            raise Fault("megatron.shard_shape", tensor=item.name, reason=reason)
        cut = item.placed is not None and item.placed.kind.cut is not None
        across = self._across(item) if cut else 1
        expected = self._expected(item, across)
        lost = [place for place in expected if place not in item.shards]
        if lost:
            self._lacking.append((item.name, ranks.files[lost[0]]))
        held: list[list[Place]]
        if across == 1:
            held = [[place] for place in sorted(item.shards)]
        else:
            by_slice = [[place for place in sorted(item.shards) if place.tp == tp] for tp in range(across)]
            # As many copies as there are of every slice.
            held = [list(row) for row in zip(*by_slice, strict=False)]
        if not held:
            raise _missing(item)
        labels = tuple(ranks.label(place) for row in held for place in row)
        return DeviceMesh((MeshAxis(COPY, len(held)), MeshAxis(TP, across)), labels), held

    def _expected(self, item: Gathered, across: int) -> list[Place]:
        """Return the rank files that should hold a part of a tensor, by those that do."""
        stages = {place.pp for place in item.shards}
        experts = {place.ep for place in item.shards}
        return [
            place
            for place in sorted(self._of.ranks.files)
            if place.pp in stages and (item.shared or (place.ep in experts and across > 1))
        ]

    def _across(self, item: Gathered) -> int:
        """Return how many ranks hold parts of a tensor: experts can have a cut of their own."""
        ranks = self._of.ranks
        own = ranks.args.etp if item.placed is not None and item.placed.kind.group == "expert" else None
        if own is not None and own not in (1, ranks.tp):
            reason = f"experts are cut among {own:,} ranks, and other layers among {ranks.tp:,}"
            raise Fault("megatron.shard_shape", tensor=item.name, reason=reason)
        return own or ranks.tp

    def _tensor(self, item: Gathered, mesh: DeviceMesh, rows: list[list[Place]]) -> LogicalTensor:
        shards = self._of
        held = [item.shards[place] for row in rows for place in row]
        dtypes = {shard.tensor.dtype for shard in held}
        if len(dtypes) > 1:
            reason = f"its ranks hold {' and '.join(sorted(dtypes))}"
            raise Fault("megatron.shard_shape", tensor=item.name, reason=reason)
        shapes = [tuple(item.shards[place].tensor.shape) for place in rows[0]]
        if any(tuple(item.shards[place].tensor.shape) != shapes[0] for row in rows for place in row):
            raise Fault(
                "megatron.shard_shape", tensor=item.name, reason="its ranks hold shards of different shapes"
            )
        for shard in held:
            if shard.tensor.kind != "strided":
                self._strange.setdefault(shard.tensor.kind, []).append((item.name, shard.file))
                break
        asked = Asked(shards.layout.name, item.name)
        if item.placed is None:
            mapped = _alone(shapes, item.name)
        else:
            _check_gate(item, shapes, shards.ranks.args)
            mapped = shard_map(
                item.placed.kind, shapes, shards.facts, asked, wrong=partial(_wrong_shape, item.name)
            )
        fragments = [
            shards.decoder.fragment(shard.file.file, shard.tensor, label)
            for shard, label in zip(held, mesh.ranks or (), strict=True)
        ]
        kept = tuple(fragment for fragment in fragments if fragment is not None)
        alias = self._alias(item.name, kept) if len(kept) == len(held) else None
        return LogicalTensor(
            name=item.name,
            dtype=held[0].tensor.dtype,
            shape=mapped.shape,
            map=mapped,
            mesh=mesh,
            fragments=kept,
            alias_of=alias,
            note=_note(item, kept, len(held)),
        )

    def _alias(self, name: str, fragments: tuple[Fragment, ...]) -> str | None:
        """Return the earlier tensor that has the very same bytes."""
        key = tuple(
            (item.record.file, item.record.begin, item.offset) for item in fragments if 0 not in item.shape
        )
        first = self._aliases.setdefault((*key, *((str(item.shape), 0, 0) for item in fragments)), name)
        return None if first == name or not key else first


def _wrong_shape(name: str, reason: str) -> Fault:
    return Fault("megatron.shard_shape", tensor=name, reason=reason)


def _alone(shapes: list[tuple[int, ...]], name: str) -> TensorMap:
    if len(shapes) > 1:
        raise Fault(
            "megatron.shard_shape", tensor=name, reason="several ranks hold it, and no table says how"
        )
    return TensorMap(shapes[0], Replicate())


def _check_gate(item: Gathered, shapes: list[tuple[int, ...]], args: Args) -> None:
    """Hold the declared kind of the feed-forward layer against the shape of its first projection."""
    if item.placed is None or args.ffn is None or item.placed.kind.id not in _FIRST:
        return
    rows = sum(shape[0] for shape in shapes if shape)
    expected = args.ffn * (2 if item.placed.kind.each else 1)
    if rows != expected:
        gated = "with a gate" if item.placed.kind.each else "without a gate"
        reason = f"its {rows:,} rows are not the {expected:,} of a layer {gated} of {args.ffn:,}, as declared"
        raise Fault("megatron.shard_shape", tensor=item.name, reason=reason)


_FIRST: Final = frozenset({"gated_fc1.weight", "fc1.weight"})


def _missing(item: Gathered) -> Fault:
    return Fault("megatron.shard_shape", tensor=item.name, reason="none of its copies has all of its parts")


def _note(item: Gathered, kept: tuple[Fragment, ...], held: int) -> str | None:
    said = []
    if (
        item.placed is not None
        and item.stored != item.name
        and _skeleton(item.stored) != _skeleton(item.name)
    ):
        said.append(_STORED_AS.format(display_name(item.stored, 120)))
    if len(kept) < held:
        said.append(f"{counted(held - len(kept), 'shard')} of {held} cannot be read")
    return "; ".join(said) or None


def _skeleton(name: str) -> str:
    return "".join("#" if c.isdigit() else c for c in name).replace("##", "#")


def _says_something(file: RankFile, number: Number) -> bool:
    node = file.tree.node(number)
    return not (isinstance(node, Plain) and node.value is None)


def _tied(args: Args, tensors: list[LogicalTensor]) -> list[LogicalTensor]:
    """Return the tensors with a shared embedding as one: the last stage keeps a copy of that of the first.

    `megatron/core/models/common/language_module/language_module.py`: with `untie_embeddings_and_output_weights` off, the
    weights of the output layer on the last stage are those of the embedding on the first, kept equal in training.
    """
    named = {tensor.name: place for place, tensor in enumerate(tensors)}
    first = next((place for name, place in named.items() if name.endswith(_EMBEDDING)), None)
    last = next((place for name, place in named.items() if name.endswith(_OUTPUT)), None)
    if args.tied is not True or first is None or last is None:
        return tensors
    embedding, output = tensors[first], tensors[last]
    if output.alias_of is not None or output.shape != embedding.shape:
        return tensors
    labels = [item.label for item in embedding.fragments]
    if len(labels) != len(output.fragments):
        return tensors
    copies = tuple(
        msgspec.structs.replace(copy, label=label)
        for copy, label in zip(output.fragments, labels, strict=True)
    )
    found = list(tensors)
    found[first] = msgspec.structs.replace(embedding, replicas=(*embedding.replicas, *copies))
    found[last] = msgspec.structs.replace(
        output, alias_of=embedding.name, note="a copy of the embedding, which the run kept equal to it"
    )
    return found
