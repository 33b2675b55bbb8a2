"""Megatron-LM saves of one file a rank: `iter_*/mp_rank_*/model_optim_rng.pt` (Megatron-LM `training/checkpointing.py`).

A rank folder is named by its tensor-parallel rank, then its pipeline rank where there is more than one stage, then its
expert-parallel rank where there is more than one. So a second number can be either, and only the arguments in the files,
which are pickle-backed, tell.
"""

import re
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.rank_grid import Coordinate, rank_grid
from shardscope.engine.formats.scope import opaque_part
from shardscope.engine.formats.torch_files import containers, report_opaque
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry, Kind
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import counted, display_name, path_text
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology

MODEL: Final = "model_optim_rng.pt"
OPTIMIZER: Final = "distrib_optim.pt"
TRACKER: Final = "latest_checkpointed_iteration.txt"
_RANK: Final = re.compile(r"mp_rank_(\d{2,6})(?:_(\d{3,6}))?(?:_(\d{3,6}))?", re.ASCII)
_LAYER_WISE: Final = re.compile(r"layer_wise_optimizer_(\d{1,6})\.pt", re.ASCII)
_SECOND: Final = (
    "The second number of the folders is the pipeline rank, or the expert-parallel rank where there is one pipeline stage. "
    "Which it is stands in the model files, which are opaque."
)


class RankFolder(Struct, frozen=True):
    """One rank folder with the files of it that the layout knows."""

    path: bytes
    at: Coordinate
    """One number for each in the name: tp; tp and pp or ep; tp, pp and ep."""
    model: Entry | None
    optimizer: tuple[Entry, ...]
    layer_wise: tuple[int, ...]
    """The data-parallel ranks of `layer_wise_optimizer_*.pt`."""

    @property
    def files(self) -> tuple[Entry, ...]:
        """The known files, the model first."""
        return (*((self.model,) if self.model else ()), *self.optimizer)

    @property
    def text(self) -> str:
        """The folder's path, neutralised."""
        return display_name(path_text(self.path))


class MegatronLegacy:
    """The family `megatron_legacy`."""

    name = "megatron_legacy"
    general = False
    hint = Hint(folders=("mp_rank_",))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim the rank folders of one iteration."""
        ranks = rank_folders(probe, folder)
        if not ranks:
            return None
        files = tuple(entry for rank in ranks for entry in rank.files)
        says = f"{counted(len(ranks), 'folder')} named like Megatron-LM ranks"
        evidence = Evidence(EvidenceKind.NAME, ranks[0].text, says, Basis.INFERRED)
        if not files:
            return Alternative(self.name, f"{says}, none of which holds {MODEL}", (evidence,))
        held = f"{counted(len(files), 'file')} named {MODEL} or like its optimizer files in them"
        structure = Evidence(EvidenceKind.STRUCTURE, files[0].text, held, Basis.INFERRED)
        owned = tuple(rank.path for rank in ranks)
        return Claim(self.name, folder.path, files, Confidence.LOW, (evidence, structure), owned)

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Weigh the numbers in the names; look at the containers."""
        ranks = rank_folders(probe, probe.folder(claim.folder))
        _check(probe, claim.folder, ranks)
        found = containers(probe, claim.files)
        opaque = (*found.torch, *found.pickles)
        report_opaque(probe, opaque)
        models = [rank.model for rank in ranks if rank.model]
        optimizer = [entry for rank in ranks for entry in rank.optimizer]
        inside = opaque_part(models, f"named {MODEL}, which keep it too")
        return Facts(
            confidence=Confidence.LOW,  # torch containers do not tell who filled them
            evidence=found.evidence,
            components=tuple(
                Component(
                    kind=kind,
                    name=kind,
                    format=self.name,
                    files=tuple(entry.text for entry in entries),
                    bytes=sum(entry.size for entry in entries),
                    note="opaque: not examined in the safe plane",
                )
                for kind, entries in (("model states", models), ("optimizer", optimizer))
                if entries
            ),
            topology=_topology(ranks),
            state=StateScope(
                weights=opaque_part(models, f"named {MODEL}"),
                optimizer=opaque_part(optimizer or models, "that can hold optimizer state"),
                scheduler=inside,
                rng=inside,
                scaler=StatePart(Presence.UNKNOWN, Basis.UNKNOWN, "inside the files, where the run had one"),
                progress=inside,
            ),
            opaque=opaque,
        )


def rank_folders(probe: Probe, folder: Folder) -> list[RankFolder]:
    """Return the rank folders of an iteration, by their numbers."""
    found = []
    for name in folder.folders:
        if name.startswith("mp_rank_") and (match := _RANK.fullmatch(name)):
            path = folder.path + b"/" + name.encode() if folder.path else name.encode()
            at = tuple(int(number) for number in match.groups() if number is not None)
            found.append(_rank_folder(path, at, probe.inventory.by_folder.get(path, ())))
    return sorted(found, key=lambda rank: (rank.at, rank.path))


def _rank_folder(path: bytes, at: Coordinate, entries: list[Entry] | tuple[()]) -> RankFolder:
    model = None
    optimizer: list[Entry] = []
    layer_wise: list[int] = []
    for entry in entries:
        if entry.kind is not Kind.FILE:
            continue
        if entry.name == MODEL:
            model = entry
        elif entry.name == OPTIMIZER:
            optimizer.append(entry)
        elif match := _LAYER_WISE.fullmatch(entry.name):
            optimizer.append(entry)
            layer_wise.append(int(match[1]))
    return RankFolder(path, at, model, tuple(optimizer), tuple(layer_wise))


def _check(probe: Probe, path: bytes, ranks: list[RankFolder]) -> None:
    shown = display_name(path_text(path)) or "."
    lengths = sorted({len(rank.at) for rank in ranks})
    if len(lengths) > 1:
        probe.report("megatron.rank_names_mixed", shown, counts=" and ".join(map(str, lengths)))
    for length in lengths:
        these = [rank for rank in ranks if len(rank.at) == length]
        grid = rank_grid([rank.at for rank in these])
        if grid.missing:
            first = _name(grid.missing[0])
            probe.report(
                "megatron.rank_missing", shown, missing=grid.missing_count, total=grid.ranks, first=first
            )
        for at in grid.duplicate[:1]:
            double = [rank for rank in these if rank.at == at]
            probe.report("megatron.rank_duplicate", double[0].text, count=len(double), first=double[0].text)
    bare = [rank for rank in ranks if rank.model is None]
    if bare:
        probe.report("megatron.model_file_missing", bare[0].text, count=len(bare), total=len(ranks))
    _check_optimizer(probe, ranks)
    if path:
        parent = probe.folder(path.rpartition(b"/")[0])
        if TRACKER not in parent.files:
            probe.report("megatron.no_tracker", shown, folder=shown)


def _check_optimizer(probe: Probe, ranks: list[RankFolder]) -> None:
    kinds = (
        (OPTIMIZER, [rank for rank in ranks if any(entry.name == OPTIMIZER for entry in rank.optimizer)]),
        ("layer_wise_optimizer_*.pt", [rank for rank in ranks if rank.layer_wise]),
    )
    for name, having in kinds:
        if having and len(having) < len(ranks):
            lacking = next(rank for rank in ranks if rank not in having)
            missing = len(ranks) - len(having)
            probe.report(
                "megatron.optimizer_missing", lacking.text, count=missing, total=len(ranks), name=name
            )
    layer_wise = kinds[1][1]
    if not layer_wise:
        return
    grid = rank_grid([(place, number) for place, rank in enumerate(layer_wise) for number in rank.layer_wise])
    if grid.missing:
        place, number = grid.missing[0]
        first = f"{layer_wise[place].text}/layer_wise_optimizer_{number}.pt"
        probe.report(
            "megatron.layer_wise_missing", layer_wise[place].text, missing=grid.missing_count, first=first
        )


def _name(at: Coordinate) -> str:
    first, *more = at
    return "_".join((f"mp_rank_{first:02d}", *(f"{number:03d}" for number in more)))


def _topology(ranks: list[RankFolder]) -> Topology:
    length = max(len(rank.at) for rank in ranks)
    these = [rank for rank in ranks if len(rank.at) == length]
    every = rank_grid([rank.at for rank in these])
    grid = rank_grid([rank.at for rank in these if rank.model], every.extents)
    names = ("tp", "pp_or_ep") if length == 2 else ("tp", "pp", "ep")
    numbers = [
        Axis(name, size, Basis.INFERRED, f"the {word} number of the mp_rank_* folders")
        for name, size, word in zip(names, grid.extents, ("first", "second", "third"), strict=False)
    ]
    dp = _data_parallel(ranks)
    if length == 3:  # every file of a rank folder holds dense layers, and the experts of one ep rank
        dense = rank_grid([at[:2] for at in grid.seen], every.extents[:2])
        meshes: tuple[Mesh, ...] = (
            Mesh("dense", (*numbers[:2], dp), dense.seen, dense.missing),
            Mesh("expert", tuple(numbers), grid.seen, grid.missing, every.duplicate),
        )
    else:
        one = "the folders have one number: others are written above one alone"
        either = "the second number is its rank, or that of the other"
        more = (
            (Axis("pp", 1, Basis.INFERRED, one), Axis("ep", 1, Basis.INFERRED, one))
            if length == 1
            else (Axis("pp", None, Basis.UNKNOWN, either), Axis("ep", None, Basis.UNKNOWN, either))
        )
        tail = (0, 0) if length == 1 else ()
        seen, missing, double = (
            tuple((*at, *tail) for at in found) for found in (grid.seen, grid.missing, every.duplicate)
        )
        meshes = (Mesh("dense", (*numbers, dp, *more), seen, missing, double),)
    held = [
        RankFiles(
            meshes[-1].name,
            rank.at if length > 1 else (*rank.at, 0, 0),
            tuple(entry.text for entry in rank.files),
        )
        for rank in these
        if rank.files
    ]
    return Topology(meshes, tuple(held), _SECOND if length == 2 else None)


def _data_parallel(ranks: list[RankFolder]) -> Axis:
    numbers = [number for rank in ranks for number in rank.layer_wise]
    if not numbers:
        return Axis("dp", None, Basis.UNKNOWN, "the names do not tell")
    return Axis(
        "dp", None, Basis.INFERRED, f"{max(numbers) + 1:,} by the numbers of layer_wise_optimizer_*.pt"
    )


MEGATRON_LEGACY: Final = MegatronLegacy()
