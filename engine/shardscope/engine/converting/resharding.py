"""Resharding: a checkpoint's tensors in the files of another topology's ranks, planned and carried out like any conversion.

A target is a document of maps, or a topology in numbers with a table that says how ranks cut which tensor. Nothing is taken from a
name alone. The plan that comes of it is an ordinary one (`preparing`), whose files are those of ranks.
"""

import os
import threading
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.capabilities.reading import read_as, read_bytes
from shardscope.engine.convert.plans.aiming import Made, Owners, by_document, by_numbers
from shardscope.engine.convert.plans.ranks import Aimed, Ranks, aimed
from shardscope.engine.convert.plans.renaming import Renaming
from shardscope.engine.convert.plans.selection import Chosen
from shardscope.engine.converting.carrying import beside
from shardscope.engine.converting.naming import facts_beside, with_tie
from shardscope.engine.converting.preparing import Prepared, prepare
from shardscope.engine.geometry.language.layout import normal_form
from shardscope.engine.geometry.mapping.tables import LayoutTable
from shardscope.engine.geometry.mapping.targets import Numbers
from shardscope.engine.geometry.transfer.planning import Planner
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.mappings import NAMES, VLLM, read_table, table, tables
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Catalogue, LogicalTensor
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.mapdocuments import PairOrder, Run, StoredShard, TransferDocument
from shardscope.engine.model.mapping import Layout, ModelFacts
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.plan import PlanOptions, RankLayout, Target
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.schemas import TRANSFER
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.transfer import TransferPlan
from shardscope.engine.shardmaps.reading import ShardMaps

Path = str | os.PathLike[str]


class Aim(Struct, frozen=True):
    """What a person asked for."""

    layout: RankLayout = "ranks"
    maps: ShardMaps | None = None
    """A target as a document; null where it is given by numbers."""
    numbers: Numbers | None = None
    cuts: str | None = None
    """Of the layout tables that ship, or the path of one; null takes the only packaged one that has rules for all tensors."""


def prepare_reshard(
    path: Path,
    options: PlanOptions,
    aim: Aim,
    *,
    decoding: Decoding | None = None,
    config: str | None = None,
    limits: Limits | None = None,
    hf_cache: bool = False,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
    found: Inspection | None = None,
) -> Prepared:
    """Return the plan that makes a target's rank files of the checkpoint at `path`. Nothing is written; `materialize` does that.

    `found` is what `look_for_plan` found before: then nothing is looked at again.

    Raises `Fault`: those of `prepare`, `reshard.*`, and those of maps and mapping tables; `Cancelled`.
    """
    bounds = limits or Limits()
    if (aim.maps is None) == (aim.numbers is None):
        raise Fault("reshard.no_target")

    def at(source: Inspection, catalogue: Catalogue, chosen: Sequence[Chosen]) -> Aimed:
        facts = _facts(path, source, config, bounds, hf_cache=hf_cache)
        facts = with_tie(facts, {item.name for item in chosen})
        made = _made(facts, catalogue, chosen, options, aim)
        files = aimed(chosen, made.target, options.max_shard_bytes)
        return replace(files, decisions=made.decisions)

    return prepare(
        path,
        options,
        decoding=decoding,
        config=config,
        limits=bounds,
        hf_cache=hf_cache,
        cancel=cancel,
        progress=progress,
        aim=at,
        found=found,
    )


def _facts(
    path: Path, found: Inspection, config: str | None, limits: Limits, *, hf_cache: bool
) -> ModelFacts:
    """Return what the checkpoint declares of its model, or the configuration that stands beside it or was named."""
    if config is not None:
        folder = beside(config, limits)
        return facts_beside(folder.path, folder.inventory, limits, hf_cache=False)
    return found.model or facts_beside(path, found.inventory, limits, hf_cache=hf_cache)


def _made(
    facts: ModelFacts, catalogue: Catalogue, chosen: Sequence[Chosen], options: PlanOptions, aim: Aim
) -> Made:
    renaming = Renaming(options.renames)
    shapes = {item.name: item.shape for item in chosen}
    owners = Owners(
        {
            name: shapes.get(name, tensor.shape)
            for tensor in catalogue.of("model")
            if tensor.role != "state"
            for name in (renaming(tensor.name),)
        }
    )
    if aim.layout == "vllm":
        _check_vllm(chosen, facts, aim)
    if aim.maps is not None:
        partial = bool(options.include or options.exclude or options.component != "all")
        return by_document(chosen, aim.maps.document, aim.layout, owners, partial=partial)
    if aim.numbers is None:
        raise Fault("reshard.no_target")
    asked = [item.name for item in chosen if item.tensor.component == "model" and item.tensor.role != "state"]
    named = asked or sorted({owner for item in chosen if (owner := owners.of(item.name, item.shape))})
    layout: LayoutTable | None = None
    if aim.cuts is not None:
        layout = layout_table(aim.cuts)
    elif not aim.numbers.alike:
        layout = fitting_layout(named, facts)
    return by_numbers(chosen, layout, facts, aim.numbers, aim.layout, owners)


def target_of(found: Inspection, tensor: LogicalTensor, aim: Aim, limits: Limits | None = None) -> Target:
    """Return the target of one tensor of a checkpoint, as `prepare_reshard` makes it for all of them.

    The rules of a table are those that fit all of the model; states that ZeRO keeps in one buffer come with the others of it.
    Raises `Fault` as `prepare_reshard` does for a target.
    """
    bounds = limits or Limits()
    catalogue = found.catalogue or Catalogue((tensor,))
    model = [each for each in catalogue.of("model") if each.role != "state"]
    names = sorted({each.name for each in model} or {tensor.name})
    facts = with_tie(_facts(found.path, found, None, bounds, hf_cache=found.hf_cache), set(names))
    owners = Owners({each.name: each.shape for each in model})
    kin = [tensor]
    if aim.numbers is not None and aim.numbers.sharding in ("zero1", "zero2") and tensor.component != "model":
        kin = [each for each in catalogue.of(tensor.component) if each.unwritable is None]
    chosen = [Chosen(each.name, each, each.dtype, each.shape) for each in kin]
    if aim.maps is not None:
        return by_document(chosen, aim.maps.document, aim.layout, owners, partial=True).target
    if aim.numbers is None:
        raise Fault("reshard.no_target")
    layout = None
    if aim.cuts is not None:
        layout = layout_table(aim.cuts)
    elif not aim.numbers.alike:
        layout = fitting_layout(names, facts)
    return by_numbers(chosen, layout, facts, aim.numbers, aim.layout, owners).target


def _check_vllm(chosen: Sequence[Chosen], facts: ModelFacts, aim: Aim) -> None:
    """Raise `Fault` `reshard.names` where a name is none of vLLM's, and `reshard.target` where ranks are more than its tp."""
    runtime = layout_table(aim.cuts or VLLM)
    for item in chosen:
        if runtime.place(item.name, facts) is None:
            raise Fault("reshard.names", tensor=item.name, table=runtime.name)
    n = aim.numbers
    if n is not None and (n.pp, n.dp, n.ep, n.sharding) != (1, 1, 1, "none"):
        raise Fault(
            "reshard.target", reason="files of vLLM's workers are those of tensor-parallel ranks alone"
        )


def layout_table(name: str) -> LayoutTable:
    """Return a packaged layout, or the one in a file. Raises `Fault`: `convert.mapping_unknown`, `mapping.invalid`."""
    known = [one.name for one in tables() if isinstance(one.table, Layout)]
    if name in NAMES:
        document = table(name)
    elif os.sep not in name and not name.endswith(".json"):
        raise Fault("convert.mapping_unknown", name=name, known=", ".join(known))
    else:
        document = read_table(read_bytes(name, Limits()), Limits())
    if not isinstance(document.table, Layout):
        raise Fault("convert.mapping_unknown", name=document.name, known=", ".join(known))
    return LayoutTable(document)


def fitting_layout(names: Sequence[str], facts: ModelFacts) -> LayoutTable:
    """Return the only packaged layout with rules for all of these names.

    Raises `Fault`: `reshard.no_table`, `reshard.table_unclear`, `mapping.fact_missing`.
    """
    fitting: list[LayoutTable] = []
    nearest: tuple[int, str, str] | None = None
    missing: Fault | None = None
    for document in tables():
        if not isinstance(document.table, Layout):
            continue
        layout = LayoutTable(document)
        try:
            strays = [name for name in names if layout.place(name, facts) is None]
        except Fault as fault:
            missing = missing or fault
            continue
        if not strays:
            fitting.append(layout)
        elif nearest is None or len(strays) < nearest[0]:
            nearest = len(strays), layout.name, strays[0]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise Fault("reshard.table_unclear", tables=", ".join(one.name for one in fitting))
    if missing is not None:
        raise missing
    raise Fault("reshard.no_table", table=nearest[1] if nearest else "", tensor=nearest[2] if nearest else "")


def read_transfer(path: Path) -> TransferDocument:
    """Return the copies that a file holds (`shardscope.transfer/1`). Raises `Fault`: those of `capabilities.reading.read_as`."""
    return read_as(path, TransferDocument)


def transfers(prepared: Prepared) -> TransferDocument:
    """Return the copies of a reshard, tensor by tensor and pair by pair: what a transport between live ranks would run.

    The labels of a tensor's source shards are those of its catalogue: ranks, where the checkpoint is one of ranks. Raises `Fault`:
    those of maps and of `compose`.
    """
    plan = prepared.plan
    if plan.target is None:
        raise Fault("reshard.no_target")
    ranks, planner = Ranks(plan.target), Planner()
    tensors = {tensor.name: tensor for tensor in prepared.catalogue.tensors}
    wanted = {item.name: item for file in plan.files for item in file.tensors}
    sources: dict[object, Lowered] = {}
    made: dict[str, TransferPlan] = {}
    stored: dict[str, tuple[StoredShard, ...]] = {}
    dtypes: dict[str, str] = {}
    for name, item in wanted.items():
        tensor = tensors[item.source]
        source = _source(tensor, sources, planner)
        target = ranks.lowered(name)
        if target.shape != source.shape:
            target = sources.setdefault((id(target), source.shape), Lowered(source.shape, target.ranks))
        made[name] = planner.compose(target, source)
        dtypes[name] = tensor.dtype
        stored[name] = tuple(
            StoredShard(one.label, one.record.file, one.record.begin + one.offset) for one in tensor.fragments
        )
    return TransferDocument(TRANSFER, made, dtypes, stored, _pairs(made, dtypes))


def _source(tensor: LogicalTensor, known: dict[object, Lowered], planner: Planner) -> Lowered:
    """Return the normal form of a tensor's map: the same object for all that are laid out alike."""
    if isinstance(tensor.map, Lowered):
        return known.setdefault(tensor.map, tensor.map)
    if tensor.mesh is None:
        return normal_form(tensor)
    return planner.lower(tensor.map, tensor.mesh)


def _pairs(made: dict[str, TransferPlan], dtypes: dict[str, str]) -> tuple[PairOrder, ...]:
    """Return for each pair of ranks which segments of which tensors it exchanges, in order."""
    runs: dict[tuple[int, int], list[Run]] = {}
    sizes: dict[tuple[int, int], int] = {}
    for name, plan in made.items():
        bits = DTYPES[dtypes[name]].bits
        first = 0
        counts: dict[tuple[int, int], int] = {}
        for segment in plan.segments:
            pair = segment.source_rank, segment.target_rank
            counts[pair] = counts.get(pair, 0) + 1
        for one in plan.traffic:
            pair = one.source_rank, one.target_rank
            count = counts.get(pair, 0)
            runs.setdefault(pair, []).append(Run(name, first, count))
            sizes[pair] = sizes.get(pair, 0) + one.elements * bits // 8
            first += count
    return tuple(PairOrder(*pair, sizes[pair], tuple(runs[pair])) for pair in sorted(runs))
