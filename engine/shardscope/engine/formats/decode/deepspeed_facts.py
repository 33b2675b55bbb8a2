"""What the decoded files of a DeepSpeed save declare beside its tensors: who wrote it, on which ranks, and which state is in it."""

from collections import defaultdict
from collections.abc import Iterable

from msgspec.structs import replace

from shardscope.engine.formats.decode.deepspeed_partitions import WEIGHT
from shardscope.engine.formats.decode.deepspeed_save import Save
from shardscope.engine.formats.decode.deepspeed_states import ModelStates, there
from shardscope.engine.formats.deepspeed_names import DeepSpeedFiles
from shardscope.engine.formats.protocol import Facts
from shardscope.engine.formats.rank_grid import Coordinate
from shardscope.engine.model.descriptor import Component, ProducerFact
from shardscope.engine.model.evidence import Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.oracle import Compared
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import counted, display_name
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology

_SHOWN = 8
_RANDOM = ("rng", "rng_state", "random_rng_state", "torch_rng_state", "cuda_rng_state", "rng_tracker_states")
"""Keys of client states that keep random numbers (Megatron-DeepSpeed and Megatron-LM)."""


def facts_of(facts: Facts, files: DeepSpeedFiles, save: Save, compared: Compared | None) -> Facts:
    """Return the facts of the safe plane with what decoding knows better."""
    return replace(
        facts,
        confidence=Confidence.HIGH,
        evidence=(*facts.evidence, *_evidence(save, compared)),
        components=examined(facts),
        producer=producers(save.states.values(), (part.version for part in save.partitions.values())),
        topology=_topology(facts.topology, files, save),
        state=scope_of(facts.state, save),
    )


def examined(facts: Facts) -> tuple[Component, ...]:
    """Return the components without the word that they are opaque, where none of their files is any more."""
    opaque = {entry.text for entry in facts.opaque}
    return tuple(
        replace(one, note=None)
        if one.note and one.note.startswith("opaque") and opaque.isdisjoint(one.files)
        else one
        for one in facts.components
    )


def producers(states: Iterable[ModelStates], more: Iterable[str | None] = ()) -> tuple[ProducerFact, ...]:
    """Return the versions of deepspeed that files declare, each with how many do."""
    counts: dict[str, int] = defaultdict(int)
    for version in (*(one.version for one in states), *more):
        if version is not None:
            counts[version] += 1
    return tuple(
        ProducerFact(
            "deepspeed",
            display_name(version, 40),
            Basis.DECLARED,
            f"ds_version of {counted(count, 'file')}",
        )
        for version, count in sorted(counts.items())
    )


def compared_evidence(subject: str, compared: Compared) -> Evidence:
    """Return how the masters compare with the module, with how much was looked at."""
    agree = compared.tensors - len(compared.differing)
    verdict = "agree" if not compared.differing else f"agree in {agree:,} of {compared.tensors:,} tensors"
    says = f"fp32 weights and the module's rounded copies {verdict}: {compared.says}"
    return Evidence(EvidenceKind.PAYLOAD, subject, says, Basis.OBSERVED)


def _evidence(save: Save, compared: Compared | None) -> list[Evidence]:
    first = save.any
    degrees = save.degrees
    says = (
        f"model states of {counted(len(save.states), 'rank')}: ZeRO stage {degrees.stage}, "
        f"{degrees.pp} x {degrees.tp} x {degrees.dp} ranks of pp, tp and dp"
    )
    found = [Evidence(EvidenceKind.PICKLE, first.file.entry.text, says, Basis.DECLARED)]
    if compared is not None:
        found.append(compared_evidence(first.file.entry.text, compared))
    return found


def _topology(before: Topology, files: DeepSpeedFiles, save: Save) -> Topology:
    """Return the dense mesh as it is declared; meshes of experts and of other names stay as the names gave them."""
    degrees = save.degrees
    told = Basis.DECLARED if degrees.declared else Basis.INFERRED
    why = (
        "checkpoint_parallel_dimensions"
        if degrees.declared
        else "mp_world_size, the numbers of files and their layers"
    )
    three = degrees.stage == 3
    ranked = "partition_count" if save.partitions else "dp_world_size"
    axes = (
        Axis("world", degrees.pp * degrees.tp * degrees.dp, Basis.DERIVED, "the product of the axes"),
        Axis("tp", degrees.tp, told, why),
        Axis("pp", degrees.pp, told, why),
        Axis("dp", degrees.dp, Basis.DECLARED, ranked),
        Axis("zero_stage", degrees.stage, Basis.DECLARED, "zero_stage, or the stage of ds_config"),
    )

    def place(at: Coordinate) -> Coordinate:
        pp, tp = degrees.place(at[0])
        return (tp, pp, at[1] if len(at) > 1 else 0)

    grid = [(mp, dp) for mp in range(degrees.pp * degrees.tp) for dp in range(degrees.dp)]
    models = {at[0] for at in save.states}
    if save.partitions:
        seen = [
            at for at in grid if at in save.partitions and (at in save.states if three else at[0] in models)
        ]
    else:  # one data-parallel rank wrote for all
        seen = [at for at in grid if at[0] in models]
    held: dict[Coordinate, list[str]] = defaultdict(list)
    for file in (*files.model, *files.partitioned, *files.optimizer):
        held[place(file.at)].append(file.entry.text)
    missing = sorted(set(grid) - set(seen))
    dense = Mesh("dense", axes, tuple(sorted(map(place, seen))), tuple(sorted(map(place, missing)))[:_SHOWN])
    rank_files = tuple(RankFiles("dense", at, tuple(sorted(names))) for at, names in sorted(held.items()))
    others = tuple(mesh for mesh in before.meshes if mesh.name != "dense")
    return Topology(
        (dense, *_expert_mesh(save), *others),
        (*rank_files, *(one for one in before.rank_files if one.mesh != "dense")),
        None,
    )


def _expert_mesh(save: Save) -> tuple[Mesh, ...]:
    """Return the grid that experts are partitioned on, where a group of parameters has one of its own."""
    among = {
        group.ranks
        for part in save.partitions.values()
        for group in part.groups
        if group.experts and group.ranks > 0 and save.degrees.dp % group.ranks == 0
    }
    if len(among) != 1 or save.degrees.tp > 1 or save.degrees.pp > 1:
        return ()
    (edp,) = among
    ep = save.degrees.dp // edp
    first = save.any.data_before_experts
    seen = sorted((dp // edp, dp % edp) if first else (dp % ep, dp // ep) for _, dp in save.partitions)
    grid = [(one, other) for one in range(ep) for other in range(edp)]
    axes = (
        Axis("ep", ep, Basis.DERIVED, "data-parallel ranks over partition_count of the group of experts"),
        Axis("edp", edp, Basis.DECLARED, "partition_count of the group of experts"),
    )
    missing = tuple(at for at in grid if at not in set(seen))[:_SHOWN]
    return (Mesh("expert parallel", axes, tuple(seen), missing),)


def scope_of(before: StateScope, save: Save) -> StateScope:
    """Return what of a training state the decoded files hold."""
    states = list(save.states.values())
    parts = list(save.partitions.values())
    kinds = {state for part in parts for group in part.groups for state in group.flats} - {WEIGHT}
    masters = any(WEIGHT in group.flats for part in parts for group in part.groups)
    names = [one.file.entry.text for one in states]
    partitions = [one.file.entry.text for one in parts]
    stored = any(there(one.tree, one.optimizer) is not None for one in states)
    if kinds:
        says = "partitions hold " + ", ".join(display_name(kind, 40) for kind in sorted(kinds)[:_SHOWN])
        optimizer = StatePart(Presence.PRESENT, Basis.DECLARED, says, tuple(partitions[:_SHOWN]))
    elif stored:
        optimizer = _part(names, "model states hold an optimizer", present=True)
    else:
        optimizer = _part(names, "no file holds a state of the optimizer", present=False)
    weights = "fp32 masters in the partitions" if masters else "the module's own tensors"
    return StateScope(
        weights=_part(partitions if masters else names, weights, present=True),
        optimizer=optimizer,
        scheduler=_key(states, "lr_scheduler"),
        rng=_random(before.rng, states),
        scaler=_scaler(save, partitions),
        progress=_key(states, "global_steps"),
        data_position=_key(states, "data_sampler"),
    )


def _part(files: list[str], says: str, *, present: bool) -> StatePart:
    presence = Presence.PRESENT if present else Presence.ABSENT
    return StatePart(presence, Basis.DECLARED, says, tuple(files[:_SHOWN]) if present else ())


def _key(states: list[ModelStates], key: str) -> StatePart:
    held = [one for one in states if there(one.tree, one.tree.get(one.tree.root, key)) is not None]
    if held:
        return _part([one.file.entry.text for one in held], f"{key} of the model states", present=True)
    return _part([], f"{key} is empty in the model states", present=False)


def _random(before: StatePart, states: list[ModelStates]) -> StatePart:
    for key in _RANDOM:
        if any(there(one.tree, one.tree.get(one.tree.root, key)) is not None for one in states):
            return _key(states, key)
    return before if not states else _part([], "no key of a random state in the model states", present=False)


def _scaler(save: Save, partitions: list[str]) -> StatePart:
    for part in save.partitions.values():
        if part.file.tree.has(part.file.tree.root, "optimizer_state_dict", "loss_scaler"):
            return _part(partitions, "loss_scaler of the partitions", present=True)
    return _part([], "no loss scaler in the partitions", present=False)
