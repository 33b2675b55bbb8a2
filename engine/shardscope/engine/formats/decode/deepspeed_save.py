"""A DeepSpeed save with its files decoded: the degrees of parallelism that it declares, and what each rank's module holds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.decode.deepspeed_partitions import Partition, counted_ranks, read_partition
from shardscope.engine.formats.decode.deepspeed_states import ModelStates, read_states, tensors_of
from shardscope.engine.formats.decoder import Decoder, TorchFile
from shardscope.engine.formats.deepspeed_names import DeepSpeedFiles, Numbered
from shardscope.engine.formats.rank_grid import Coordinate
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.pickled import PickledTensor

MOST_RANKS: Final = 65_536
_SHOWN: Final = 8


class Held(Struct, frozen=True):
    """A tensor in a file of model states."""

    file: TorchFile
    tensor: PickledTensor


class TensorFile(Struct, frozen=True):
    """A file of plain tensors by name: a layer of a pipeline, or an expert."""

    at: Coordinate
    file: TorchFile
    tensors: dict[str, PickledTensor]


class Degrees(Struct, frozen=True):
    """How many ranks there are along each axis."""

    pp: int
    tp: int
    dp: int
    stage: int
    declared: bool
    """Whether `checkpoint_parallel_dimensions` says how stages and tensor-parallel ranks are numbered."""

    def place(self, mp: int) -> tuple[int, int]:
        """Return the pipeline stage and the tensor-parallel rank of a model-parallel index."""
        return mp // self.tp, mp % self.tp

    def label(self, pp: int, tp: int, dp: int) -> int:
        """Return a rank's number among all: stages slowest, tensor-parallel ranks fastest, as DeepSpeed numbers them."""
        return (pp * self.dp + dp) * self.tp + tp


class Save(Struct, frozen=True):
    """What the files of one tag folder say."""

    states: dict[Coordinate, ModelStates]
    """By (mp, dp); below stage 3 dp is 0."""
    partitions: dict[Coordinate, Partition]
    """By (mp, dp)."""
    layers: tuple[TensorFile, ...]
    """At (layer, tp)."""
    experts: tuple[TensorFile, ...]
    """At (layer among those with experts, expert, mp)."""
    degrees: Degrees
    missing: tuple[Coordinate, ...]
    """The (mp, dp) of partitions that are called for and not there or not readable."""
    firsts: dict[int, ModelStates]
    """By model-parallel index: the model states of its first data-parallel rank that is there; in order."""

    def first(self, mp: int) -> ModelStates | None:
        """Return the model states of a model-parallel index; null where there are none."""
        return self.firsts.get(mp)

    @property
    def any(self) -> ModelStates:
        """The model states of the lowest rank."""
        return next(iter(self.firsts.values()))


def read_save(decoder: Decoder, files: DeepSpeedFiles) -> Save | None:
    """Return the save; null where there are no model states to go by, or where files contradict each other, which is reported."""
    states: dict[Coordinate, ModelStates] = {}
    for numbered in (*files.model, *files.partitioned):
        found = read_states(decoder, numbered)
        if found is not None:
            states[(numbered.at[0], numbered.at[1] if len(numbered.at) > 1 else 0)] = found
    if not states:
        return None
    partitions = {
        numbered.at: part
        for numbered in files.optimizer
        if (part := read_partition(decoder, numbered)) is not None
    }
    layers = tuple(_tensor_files(decoder, files.layers))
    experts = tuple(_tensor_files(decoder, files.experts))
    try:
        degrees = _degrees(states, partitions, layers)
    except Fault as fault:
        decoder.probe.note(fault.finding, min(states.items(), key=_key)[1].file.entry)
        return None
    grid = [(mp, dp) for mp in range(degrees.pp * degrees.tp) for dp in range(degrees.dp)]
    missing = tuple(at for at in grid if at not in partitions) if partitions else ()
    if missing:
        shown = ", ".join(f"mp {mp} dp {dp}" for mp, dp in missing[:_SHOWN])
        decoder.probe.report(
            "deepspeed.partitions_absent",
            next(iter(partitions.values())).file.entry,
            missing=len(missing),
            total=len(grid),
            ranks=shown + (", ..." if len(missing) > _SHOWN else ""),
        )
    firsts: dict[int, ModelStates] = {}
    for at, held in sorted(states.items(), key=_key):
        firsts.setdefault(at[0], held)
    return Save(states, partitions, layers, experts, degrees, missing, firsts)


def _tensor_files(decoder: Decoder, files: Iterable[Numbered]) -> Iterable[TensorFile]:
    for numbered in files:
        file = decoder.torch(numbered.entry)
        if file is not None:
            yield TensorFile(numbered.at, file, tensors_of(file.tree, file.tree.root)[0])


def _key(item: tuple[Coordinate, object]) -> Coordinate:
    return item[0]


def _degrees(
    states: Mapping[Coordinate, ModelStates],
    partitions: Mapping[Coordinate, Partition],
    layers: Sequence[TensorFile],
) -> Degrees:
    """Return the degrees. Raises `Fault` `deepspeed.degrees_differ` or `deepspeed.stages_differ`."""
    first = min(states.items(), key=_key)[1]
    seen = 1 + max(at[0] for at in (*states, *partitions))
    pp = _agreed(states, "checkpoint_parallel_dimensions", "pp_degree")
    tp = _agreed(states, "checkpoint_parallel_dimensions", "tp_degree")
    declared = pp is not None and tp is not None
    if pp is None or tp is None:
        mp = _agreed(states, "mp_world_size") or seen
        tp = 1 + max((file.at[1] for file in layers), default=0) if layers else mp
        pp = mp // tp if tp and mp % tp == 0 else 0
    if pp < 1 or tp < 1 or pp * tp < seen:
        raise Fault("deepspeed.degrees_differ", axis="model-parallel", declared=pp * tp, found=seen)
    stage = _stage(first, partitions.values())
    ranked = 1 + max((at[1] for at in (*partitions, *states)), default=0)
    counted = counted_ranks(tuple(partitions.values()))
    dp = counted or ranked
    said = _agreed(states, "dp_world_size")
    if partitions and said is not None and said != dp:
        raise Fault("deepspeed.degrees_differ", axis="data-parallel", declared=said, found=dp)
    if not partitions:
        dp = max(said or 1, ranked)
    if ranked > dp:
        raise Fault("deepspeed.degrees_differ", axis="data-parallel", declared=dp, found=ranked)
    if pp * tp * dp > MOST_RANKS:
        raise Fault("deepspeed.degrees_differ", axis="parallel", declared=pp * tp * dp, found=len(partitions))
    return Degrees(pp, tp, dp, stage, declared)


def _agreed(states: Mapping[Coordinate, ModelStates], *path: str) -> int | None:
    """Return an integer that all files say alike. Raises `Fault` `deepspeed.files_differ`."""
    said = {found for state in states.values() if (found := state.number(*path)) is not None}
    if len(said) > 1:
        shown = ", ".join(map(str, sorted(said)[:_SHOWN]))
        raise Fault("deepspeed.files_differ", field=".".join(path), found=shown)
    return next(iter(said), None)


def _stage(first: ModelStates, partitions: Iterable[Partition]) -> int:
    """Return the ZeRO stage. Raises `Fault` `deepspeed.stages_differ` where partitions are of several, or of none that is known."""
    held = list(partitions)
    stages = {part.stage for part in held}
    if len(stages) > 1:
        shown = ", ".join("none" if stage is None else str(stage) for stage in sorted(stages, key=str))
        raise Fault("deepspeed.stages_differ", found=shown)
    recorded = next(iter(stages), None)
    stage = recorded if recorded is not None else first.stage
    if stage is None:
        stage = 1 if held else 0
    three = len(first.at) > 1
    if not 0 <= stage <= 3 or (held and three != (stage == 3)):
        raise Fault(
            "deepspeed.stages_differ", found=f"{stage}, and model states of {'3' if three else '1 or 2'}"
        )
    return stage
