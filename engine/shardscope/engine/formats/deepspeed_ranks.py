"""Which ranks a DeepSpeed save names, and which files its numbers call for."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from shardscope.engine.formats.deepspeed_names import DeepSpeedFiles, Numbered
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.rank_grid import Coordinate, RankGrid, rank_grid
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.text import counted
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology

_UNTOLD = "the names do not tell"


def check_ranks(probe: Probe, folder: bytes, files: DeepSpeedFiles, *, copies: bool = False) -> None:
    """Report the files that the numbers call for and that are absent, and those that two saves left.

    `copies` of model states stand in a Universal checkpoint, which has no partitions.
    """
    inside = folder.decode("utf-8", "surrogateescape") + "/" if folder else ""

    def expect(
        what: str, found: Sequence[Numbered], sizes: Sequence[int | None], name: Callable[..., str]
    ) -> None:
        if not found:
            return
        grid = rank_grid({file.at for file in found}, sizes)
        if grid.missing:
            _report_missing(probe, what, grid, inside + name(*grid.missing[0]))
        counts = Counter((file.at, file.prefix) for file in found)
        double = next((file for file in found if counts[file.at, file.prefix] > 1), None)
        if double is not None:
            count = counts[double.at, double.prefix]
            probe.report("deepspeed.rank_duplicate", double.entry, count=count, first=double.entry.text)

    mp = files.mp
    dp = 1 + max((file.at[1] for file in (*files.partitioned, *files.optimizer)), default=-1)
    prefixes = sorted({file.prefix for file in files.optimizer})
    prefix = prefixes[0] if prefixes else ""
    expect("model state", files.model, (mp,), lambda m: f"mp_rank_{m:02d}_model_states.pt")
    expect(
        "model state",
        files.partitioned,
        (mp, dp),
        lambda m, r: f"zero_pp_rank_{r}_mp_rank_{m:02d}_model_states.pt",
    )
    expect(
        "optimizer partition",
        files.optimizer,
        (mp, dp),
        lambda m, r: f"{prefix}zero_pp_rank_{r}_mp_rank_{m:02d}_optim_states.pt",
    )
    expect(
        "expert optimizer",
        files.expert_optimizer,
        (None, mp),
        lambda x, m: f"expp_rank_{x}_mp_rank_{m:02d}_optim_states.pt",
    )
    _check_sets(probe, files, prefixes, copies)
    _check_layers(probe, files, inside)
    _check_experts(probe, files, inside, mp)


def _report_missing(probe: Probe, what: str, grid: RankGrid, first: str) -> None:
    probe.report(
        "deepspeed.rank_missing", first, what=what, missing=grid.missing_count, total=grid.ranks, first=first
    )


def _check_sets(probe: Probe, files: DeepSpeedFiles, prefixes: Sequence[str], copies: bool) -> None:
    if len(prefixes) > 1:
        words = ", ".join(prefix or "none" for prefix in prefixes)
        probe.report("deepspeed.prefix_mixed", files.optimizer[0].entry, prefixes=words)
    if files.partitioned and files.model:
        probe.report(
            "deepspeed.stages_mixed",
            files.partitioned[0].entry,
            three=len(files.partitioned),
            lower=len(files.model),
        )
    if files.partitioned and not files.optimizer and not copies:
        probe.report("deepspeed.partitions_missing", files.partitioned[0].entry, count=len(files.partitioned))
    if not files.partitioned and not files.model:
        first = (*files.partitions, *files.states)[0]
        probe.report("deepspeed.model_states_missing", first.entry, count=len(files.partitions))


def _check_layers(probe: Probe, files: DeepSpeedFiles, inside: str) -> None:
    if not files.layers:
        return
    layers = sorted({file.at[0] for file in files.layers})
    place = {layer: number for number, layer in enumerate(layers)}
    grid = rank_grid([(place[file.at[0]], file.at[1]) for file in files.layers])
    if grid.missing:
        number, rank = grid.missing[0]
        first = f"{inside}layer_{layers[number]:02d}-model_{rank:02d}-model_states.pt"
        _report_missing(probe, "pipeline layer", grid, first)
    if grid.duplicate:
        at = (layers[grid.duplicate[0][0]], grid.duplicate[0][1])
        double = [file.entry for file in files.layers if file.at == at]
        probe.report("deepspeed.rank_duplicate", double[0], count=len(double), first=double[0].text)
    begin = layers[0]
    gap = rank_grid([(layer - begin,) for layer in layers])
    if gap.missing:
        probe.report(
            "deepspeed.layer_gap",
            files.layers[0].entry,
            missing=gap.missing_count,
            first=gap.missing[0][0] + begin,
        )


def _check_experts(probe: Probe, files: DeepSpeedFiles, inside: str, mp: int) -> None:
    if not files.experts:
        return
    by_layer: dict[int, list[Coordinate]] = defaultdict(list)
    for file in files.experts:
        by_layer[file.at[0]].append(file.at[1:])
    with_layer = files.experts[0].entry.name.startswith("layer_")

    def name(layer: int, expert: int, rank: int) -> str:
        start = f"layer_{layer}_" if with_layer else ""
        return f"{inside}{start}expert_{expert}_mp_rank_{rank:02d}_model_states.pt"

    grids = {layer: rank_grid(at, (None, mp)) for layer, at in by_layer.items()}
    gaps = rank_grid([(layer,) for layer in by_layer])
    if gaps.missing:
        _report_missing(probe, "expert layer", gaps, name(gaps.missing[0][0], 0, 0))
    for layer, grid in sorted(grids.items()):
        if grid.missing:
            _report_missing(probe, "expert", grid, name(layer, *grid.missing[0]))
        if grid.duplicate:
            first = next(file for file in files.experts if file.at == (layer, *grid.duplicate[0]))
            count = by_layer[layer].count(grid.duplicate[0])
            probe.report("deepspeed.rank_duplicate", first.entry, count=count, first=first.entry.text)
    extents = sorted({grid.extents[0] for grid in grids.values()})
    if len(extents) > 1:
        words = ", ".join(f"{extent:,}" for extent in extents[:8])
        probe.report("deepspeed.expert_counts", files.experts[0].entry, counts=words)


def topology_of(files: DeepSpeedFiles, stage: Axis) -> Topology:
    """Return the meshes that the names span: dense ranks, and experts beside them."""
    meshes: list[Mesh] = []
    rank_files: list[RankFiles] = []
    note = None
    if files.mp:
        mesh, held, note = _dense(files, stage)
        meshes.append(mesh)
        rank_files += held
    if files.experts:
        mesh, held = _experts(files)
        meshes.append(mesh)
        rank_files += held
    if files.expert_optimizer:
        grid = rank_grid([file.at for file in files.expert_optimizer], (None, files.mp))
        pair = (_axis("ep", grid.extents[0], "expp_rank_*"), _axis("mp", grid.extents[1], "mp_rank_*"))
        meshes.append(Mesh("expert optimizer", pair, grid.seen, grid.missing, grid.duplicate))
        rank_files += _held("expert optimizer", ((file.at, file) for file in files.expert_optimizer))
    return Topology(tuple(meshes), tuple(rank_files), note)


def _axis(name: str, size: int, names: str) -> Axis:
    return Axis(name, size, Basis.INFERRED, f"the numbers of {names} files")


def _dense(files: DeepSpeedFiles, stage: Axis) -> tuple[Mesh, list[RankFiles], str | None]:
    mp = files.mp
    place, split, note = _model_parallel(files)
    ranked = (*files.partitioned, *files.optimizer)
    dp = 1 + max((file.at[1] for file in ranked), default=-1)
    kinds = [{file.at for file in kind} for kind in (files.partitioned, files.optimizer) if kind]
    held = [(file.at, file) for file in ranked]
    if dp:
        # Model states below stage 3 are written once for all data-parallel ranks, by the first of them.
        models = {file.at[0] for file in files.model}
        whole = [at for at in set.intersection(*kinds) if files.partitioned or at[0] in models]
        counts = Counter(file.at for file in files.optimizer)
        grid = rank_grid(whole, (mp, dp))
        double = [at for at, count in counts.items() if count > 1]
        held += [((file.at[0], 0), file) for file in files.model]
        world = Axis("world", mp * dp, Basis.DERIVED, "the product of the axes")
        axes = (world, *split, _axis("dp", dp, "zero_pp_rank_*"))
    else:
        grid = rank_grid([file.at for file in files.model], (mp,))
        double = list(grid.duplicate)
        held = [(file.at, file) for file in files.model]
        axes = (*split, Axis("dp", None, Basis.UNKNOWN, _UNTOLD))
    mesh = Mesh(
        "dense",
        (*axes, stage),
        tuple(sorted(map(place, grid.seen))),
        tuple(sorted(map(place, grid.missing))),
        tuple(sorted(map(place, double))),
    )
    return mesh, _held("dense", ((place(at), file) for at, file in held)), note


def _model_parallel(
    files: DeepSpeedFiles,
) -> tuple[Callable[[Coordinate], Coordinate], tuple[Axis, ...], str | None]:
    """Return how a coordinate that begins with the model-parallel index reads on the axes, and those axes."""
    mp = files.mp
    tp = 1 + max((file.at[1] for file in files.layers), default=-1)
    if mp == 1 or (tp and mp % tp == 0):
        tp = tp or 1
        why = "layer files" if files.layers else "mp_rank_00 alone"
        told = (
            Axis("tp", tp, Basis.INFERRED, why),
            Axis(
                "pp", mp // tp, Basis.INFERRED, f"{why}: {counted(mp, 'model-parallel index number')} over tp"
            ),
        )
        return lambda at: (at[0] % tp, at[0] // tp, *at[1:]), told, None
    axes = (
        Axis("tp", None, Basis.UNKNOWN, _UNTOLD),
        Axis("pp", None, Basis.UNKNOWN, _UNTOLD),
        _axis("mp", mp, "mp_rank_*"),
    )
    note = (
        "mp numbers pipeline stages and tensor-parallel ranks together (pp index x tp degree + tp index). Which they are is "
        "in the model states, which are opaque."
    )
    return lambda at: at, axes, note


def _experts(files: DeepSpeedFiles) -> tuple[Mesh, list[RankFiles]]:
    layers = {file.at[0] for file in files.experts}
    counts = Counter(file.at[1:] for file in files.experts)
    seen = [at for at, count in counts.items() if count >= len(layers)]
    sizes = [1 + max(along) for along in zip(*counts, strict=True)]
    grid = rank_grid(seen, (sizes[0], max(sizes[1], files.mp)))
    axes: tuple[Axis, ...] = (_axis("experts", grid.extents[0], "*expert_*"),)
    if grid.extents[1] > 1:
        axes = (_axis("mp", grid.extents[1], "mp_rank_*"), *axes)

    def place(at: Coordinate) -> Coordinate:
        return at[::-1] if grid.extents[1] > 1 else at[:1]

    untold = tuple(Axis(name, None, Basis.UNKNOWN, _UNTOLD) for name in ("ep", "edp"))
    double = [at for at, count in counts.items() if count > len(layers)]
    mesh = Mesh(
        "expert",
        (*axes, *untold),
        tuple(sorted(map(place, grid.seen))),
        tuple(sorted(map(place, grid.missing))),
        tuple(sorted(map(place, double))),
    )
    return mesh, _held("expert", ((place(file.at[1:]), file) for file in files.experts))


def _held(mesh: str, files: Iterable[tuple[Coordinate, Numbered]]) -> list[RankFiles]:
    by_rank: dict[Coordinate, list[str]] = defaultdict(list)
    for at, file in files:
        by_rank[at].append(file.entry.text)
    return [RankFiles(mesh, at, tuple(sorted(names))) for at, names in sorted(by_rank.items())]
