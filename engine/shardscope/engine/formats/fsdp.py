"""FSDP rank files: one torch.save file for each rank, with nothing beside them that puts them together.

Names: verl (`utils/checkpoint/fsdp_checkpoint_manager.py`) writes `model_world_size_W_rank_R.pt`, `optim_...` and
`extra_state_...` with `fsdp_config.json` and, for people, a folder `huggingface`; Accelerate (`utils/fsdp_utils.py`) writes
`pytorch_model_fsdp_rankR.bin`, or `pytorch_model_fsdp_0_rankR.bin` and `optimizer_0_rankR.bin`; scripts write
`model_rankR.bin`, `rank_R.pt`, `checkpoint-rank-R.pth` and the like. Where each piece belongs is pickled in the files, if it is
there at all.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from shardscope.engine.formats import accelerate_names
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.rank_grid import RankGrid, rank_grid
from shardscope.engine.formats.scope import opaque_part, scope_of
from shardscope.engine.formats.torch_files import containers, report_opaque
from shardscope.engine.model.descriptor import Component, ProducerFact
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology

CONFIG: Final = "fsdp_config.json"
_WORLD: Final = re.compile(
    r"(?P<stem>model|optim|extra_state)_world_size_(?P<world>\d{1,9})_rank_(?P<rank>\d{1,9})\.pt"
)
_RANK: Final = re.compile(r"(?P<stem>.+)_rank(?P<rank>\d{1,9})\.bin")
_SCRIPTED: Final = re.compile(
    r"(?P<head>(?:(?P<stem>.{0,200}?[^_.-])[_.-])?rank[_.-]?)(?P<rank>\d{1,9})(?P<tail>\.(?:pt|pth|ckpt))"
)
"""What scripts call them; one such file may be anything, and two are rank files."""
_AXES: Final = re.compile(r"(?:.*_)?(?:mp|tp|pp|dp|ep|cp|expp)")
"""Stems of the ranks of one axis, which are no ranks of the world."""
_LOCAL: Final = re.compile(r"pytorch_model_fsdp")
_HIGHEST: Final = 1 << 30
_OPTIMIZER: Final = re.compile(r"optim.*", re.IGNORECASE)
_EXTRA: Final = re.compile(
    r"(?:extra|rng|random|scheduler|lr_scheduler|dataloader|trainer|metrics?)(?:[_.-].*)?"
)


class RankFile(Struct, frozen=True):
    """One file by its name."""

    entry: Entry
    rank: int
    world: int | None


class RankSet(Struct, frozen=True):
    """The files of one stem: one for each rank."""

    stem: str
    pattern: str
    files: tuple[RankFile, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The files, by path."""
        return tuple(item.entry for item in self.files)

    @property
    def worlds(self) -> list[int]:
        """The sizes of the world that the names declare, sorted."""
        return sorted({item.world for item in self.files if item.world is not None})

    @property
    def kind(self) -> str:
        """What its name says is in it."""
        if _OPTIMIZER.fullmatch(self.stem):
            return "optimizer"
        return "extra state" if _EXTRA.fullmatch(self.stem) else "weights"


def rank_sets(folder: Folder) -> list[RankSet]:
    """Return the rank files of a folder by stem: `model_world_size_2_rank_0.pt`, `model_rank0.bin`, `rank_0.pt`."""
    found: dict[tuple[str, str], list[RankFile]] = {}
    for entry, match in folder.matching(_WORLD, "pt", holding="_rank_"):
        pattern = f"{match['stem']}_world_size_*_rank_*.pt"
        item = RankFile(entry, int(match["rank"]), int(match["world"]))
        found.setdefault((match["stem"], pattern), []).append(item)
    for entry, match in folder.matching(_RANK, "bin", holding="_rank"):
        item = RankFile(entry, int(match["rank"]), None)
        found.setdefault((match["stem"], f"{match['stem']}_rank*.bin"), []).append(item)
    for key, files in _scripted(folder).items():
        if len(files) > 1:
            found.setdefault(key, []).extend(files)
    return [RankSet(stem, pattern, tuple(files)) for (stem, pattern), files in sorted(found.items())]


def _scripted(folder: Folder) -> dict[tuple[str, str], list[RankFile]]:
    found: dict[tuple[str, str], list[RankFile]] = {}
    for entry, match in folder.matching(_SCRIPTED, "pt", "pth", "ckpt", holding="rank"):
        stem = match["stem"] or ""
        if not _WORLD.fullmatch(match.string) and not _AXES.fullmatch(stem):
            key = (stem, f"{match['head']}*{match['tail']}")
            found.setdefault(key, []).append(RankFile(entry, int(match["rank"]), None))
    return found


class FsdpRankFiles:
    """The family `fsdp_rank_files`."""

    name = "fsdp_rank_files"
    general = False
    hint = Hint(("pt", "bin", "pth", "ckpt"))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim files that are numbered by rank, unless they are a part of an Accelerate state."""
        sets = rank_sets(folder)
        if all(each.kind == "extra state" for each in sets):
            return None
        files = [entry for found in sets for entry in found.entries]
        says = f"{counted(len(files), 'file')} named for the rank that wrote them"
        evidence = Evidence(EvidenceKind.NAME, files[0].text, says, Basis.INFERRED)
        if accelerate_names.is_state(folder):
            return Alternative(self.name, "they are a part of an Accelerate state", (evidence,))
        config = folder.files.get(CONFIG)
        owned = (*files, *([config] if config is not None else []))
        return Claim(self.name, folder.path, owned, Confidence.LOW, (evidence,))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Count the ranks; what the files hold stays opaque."""
        folder = probe.folder(claim.folder)
        sets = rank_sets(folder)
        config = read_config(probe, folder)
        grid = check_ranks(probe, sets, config.world)
        _check_world(probe, folder, sets, config.world)
        files = [entry for found in sets for entry in found.entries]
        found = containers(probe, files)
        opaque = (*found.torch, *found.pickles)
        report_opaque(probe, opaque)
        agrees = config.world is not None and all(each.worlds == [config.world] for each in sets)
        confidence = Confidence.MEDIUM if agrees and found.torch and not found.other else Confidence.LOW
        weights = [entry for each in sets if each.kind == "weights" for entry in each.entries]
        state = scope_of(folder.files.values(), opaque_part(weights, "named like weights of one rank"))
        extra = [entry for each in sets if each.kind == "extra state" for entry in each.entries]
        if extra:
            part = opaque_part(extra, "of extra state, which holds scheduler and random state in verl")
            state = msgspec.structs.replace(state, scheduler=part, rng=part)
        return Facts(
            confidence=confidence,
            evidence=(*config.evidence, *found.evidence),
            components=tuple(component(each, self.name) for each in sets),
            producer=config.producer,
            topology=topology(sets, grid, config.world),
            state=state,
            opaque=opaque,
        )


class ConfigReading(Struct, frozen=True):
    """What `fsdp_config.json` declares."""

    world: int | None = None
    evidence: tuple[Evidence, ...] = ()
    producer: tuple[ProducerFact, ...] = ()


def read_config(probe: Probe, folder: Folder) -> ConfigReading:
    """Return what `fsdp_config.json` of the folder declares: `FSDP_version` and `world_size`."""
    entry = folder.files.get(CONFIG)
    document = probe.json(entry) if entry is not None else None
    if entry is None or document is None or not isinstance(document.value, dict):
        return ConfigReading()
    world, version = document.value.get("world_size"), document.value.get("FSDP_version")
    if not _is_count(world):
        return ConfigReading()
    says = f"declares a world of {world:,}"
    producer: tuple[ProducerFact, ...] = ()
    if _is_count(version):
        says += f" and FSDP {version:,}"
        producer = (ProducerFact(f"FSDP {version:,}", None, Basis.DECLARED, f"{entry.text}: FSDP_version"),)
    return ConfigReading(world, (Evidence(EvidenceKind.JSON, entry.text, says, Basis.DECLARED),), producer)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < _HIGHEST


def check_ranks(probe: Probe, sets: Sequence[RankSet], declared: int | None = None) -> RankGrid | None:
    """Report ranks that are missing, there twice or beyond the world; return the ranks of all sets together."""
    together: set[int] = set()
    for each in sets:
        together.update(item.rank for item in each.files)
    highest = max(together, default=_HIGHEST)
    for each in sets:
        _check_set(probe, each, declared, together)
    if highest >= _HIGHEST:
        return None
    worlds = [world for each in sets for world in each.worlds if world < _HIGHEST]
    return rank_grid(((rank,) for rank in together), [max([declared or 0, *worlds])])


def _check_set(probe: Probe, each: RankSet, declared: int | None, together: set[int]) -> None:
    subject = each.entries[0]
    worlds = each.worlds
    if len(worlds) > 1:
        words = ", ".join(f"{world:,}" for world in worlds[:8])
        probe.report("fsdp.worlds_mixed", subject, pattern=each.pattern, worlds=words)
        return
    total = worlds[0] if worlds else declared
    if total is not None and (extra := [item for item in each.files if item.rank >= total]):
        probe.report(
            "fsdp.rank_extra",
            extra[0].entry,
            count=len(extra),
            pattern=each.pattern,
            total=total,
            first=extra[0].entry.text,
        )
    ranks = [item.rank for item in each.files if total is None or item.rank < total]
    # Without a declaration every set should have the ranks that the others have.
    size = total if total is not None else 1 + max(together)
    if ranks and size < _HIGHEST and not probe.inventory.root_is_file:
        grid = rank_grid(((rank,) for rank in ranks), [size])
        if grid.missing_count:
            probe.report(
                "fsdp.rank_missing",
                subject,
                missing=grid.missing_count,
                total=size,
                pattern=each.pattern,
                first=grid.missing[0][0],
            )
        if grid.duplicate:
            probe.report(
                "fsdp.rank_duplicate",
                subject,
                count=len(grid.duplicate),
                pattern=each.pattern,
                first=grid.duplicate[0][0],
            )
    if total is None:
        probe.report("fsdp.world_unproven", subject, pattern=each.pattern, last=max(together))
    if _LOCAL.fullmatch(each.stem):
        probe.report("fsdp.flat_pieces", subject, pattern=each.pattern)


def _check_world(probe: Probe, folder: Folder, sets: Sequence[RankSet], declared: int | None) -> None:
    worlds = sorted({world for each in sets for world in each.worlds})
    if declared is not None and any(world != declared for world in worlds):
        words = " and ".join(f"{world:,}" for world in worlds[:8])
        probe.report("fsdp.world_disagrees", folder.files[CONFIG], declared=declared, found=words)
    elif len(worlds) > 1 and all(len(each.worlds) == 1 for each in sets):
        words = ", ".join(f"{world:,}" for world in worlds[:8])
        probe.report("fsdp.worlds_mixed", sets[0].entries[0], pattern="*_world_size_*", worlds=words)


def component(each: RankSet, name: str) -> Component:
    """Return one set of rank files as a part of a checkpoint."""
    return Component(
        kind=each.kind,
        name=each.pattern,
        format=name,
        files=tuple(entry.text for entry in each.entries),
        bytes=sum(entry.size for entry in each.entries),
        note="opaque: not examined in the safe plane",
    )


def topology(sets: Sequence[RankSet], grid: RankGrid | None, declared: int | None = None) -> Topology:
    """Return the ranks that names show; `declared` is the size of the world that a configuration gives."""
    if grid is None:
        return Topology()
    worlds = sorted({world for each in sets for world in each.worlds})
    if declared is not None:
        world = Axis("world", declared, Basis.DECLARED, f"{CONFIG}: world_size")
    elif len(worlds) == 1:
        world = Axis("world", worlds[0], Basis.INFERRED, "world_size in the names")
    elif worlds:
        world = Axis("world", None, Basis.UNKNOWN, "names give several sizes")
    else:
        says = f"rank {grid.seen[-1][0]:,} is the highest in the names; a higher one would leave no gap"
        world = Axis("world", grid.extents[0], Basis.INFERRED, says)
    by_rank: dict[int, list[str]] = {}
    for each in sets:
        for item in each.files:
            by_rank.setdefault(item.rank, []).append(item.entry.text)
    mesh = Mesh(
        name="world",
        axes=(world, Axis("rank", grid.extents[0], Basis.INFERRED, "the number after rank in the names")),
        ranks_seen=grid.seen,
        ranks_missing=grid.missing,
    )
    files = tuple(RankFiles("world", (rank,), tuple(by_rank[rank])) for (rank,) in grid.seen)
    return Topology((mesh,), files, "Names tell which rank wrote a file, not how the ranks were arranged.")


FSDP_RANK_FILES: Final = FsdpRankFiles()
