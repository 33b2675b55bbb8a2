"""States that Accelerate saves: weights, optimizer, random states and more, in one folder.

Layout after Accelerate (`accelerator.py` `save_state`, `checkpointing.py`, `utils/fsdp_utils.py`): weights as
`pytorch_model_fsdp_0/` (a distributed save), `pytorch_model_fsdp.bin`, rank files, or Hugging Face weights; the optimizer
likewise; `random_states_R.pkl`, which is a zip of torch.save despite its name, for each process. The Trainer of transformers
leaves the same folders under FSDP. Parts are described by the families that they belong to.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from shardscope.engine.formats import accelerate_names as names
from shardscope.engine.formats import dcp_save, fsdp, trackers
from shardscope.engine.formats.dcp import TORCH_DCP
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.hf_safetensors import HF_SAFETENSORS
from shardscope.engine.formats.hf_torch import HF_TORCH
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.rank_grid import RankGrid, rank_grid
from shardscope.engine.formats.roles import COMPANIONS, role_of
from shardscope.engine.formats.scope import opaque_part, scope_of
from shardscope.engine.formats.torch_files import containers, report_opaque
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import counted, display_name, path_text
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology


class Parts(Struct, frozen=True):
    """The files and folders of a state, by what their names say."""

    folders: tuple[Folder, ...]
    """`pytorch_model_fsdp_0`, `optimizer_0`, ..."""
    ranks: tuple[fsdp.RankSet, ...]
    full: tuple[Entry, ...]
    """`pytorch_model_fsdp.bin`."""
    weights: tuple[Entry, ...]
    """Hugging Face weights and their index."""
    random: tuple[Entry, ...]
    rest: tuple[Entry, ...]
    """Optimizer, scheduler, sampler, ... in files of their own."""

    @property
    def single(self) -> tuple[Entry, ...]:
        """The files that are nothing but themselves."""
        return (*self.full, *self.random, *self.rest)

    @property
    def files(self) -> Iterator[Entry]:
        """Every file, those of the folders included."""
        for folder in self.folders:
            yield from folder.files.values()
        for found in self.ranks:
            yield from found.entries
        yield from self.weights
        yield from self.single


def parts_in(probe: Probe, folder: Folder) -> Parts:
    """Sort what stands in a folder by the names that Accelerate gives."""
    prefix = folder.path + b"/" if folder.path else b""
    ranks = tuple(fsdp.rank_sets(folder))
    taken = {entry.path for found in ranks for entry in found.entries}
    full, weights, random, rest = [], [], [], []
    for name, entry in folder.files.items():
        if entry.path in taken:
            continue
        if names.FULL.fullmatch(name):
            full.append(entry)
        elif names.RANDOM.fullmatch(name):
            random.append(entry)
        elif names.OTHER.fullmatch(name) or role_of(name) in COMPANIONS:
            rest.append(entry)
        elif names.WEIGHTS.fullmatch(name):
            weights.append(entry)
    return Parts(
        folders=tuple(
            probe.folder(prefix + name.encode())
            for name in sorted(folder.folders)
            if names.SHARDED.fullmatch(name)
        ),
        ranks=ranks,
        full=tuple(full),
        weights=tuple(weights),
        random=tuple(random),
        rest=tuple(rest),
    )


class AccelerateState:
    """The family `accelerate_state`."""

    name = "accelerate_state"
    general = False
    hint = Hint(("pkl", "bin"), folders=("pytorch_model_fsdp",))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim the folder's state files and the folders of its distributed saves, whole."""
        if not names.is_state(folder):
            return None
        parts = parts_in(probe, folder)
        files = tuple(parts.files)
        if not files:
            return Alternative(self.name, "folders of its name, and nothing in them")
        shown = [
            *(display_name(path_text(found.path)) + "/" for found in parts.folders),
            *(entry.text for entry in (*parts.full, *parts.random)),
        ]
        says = f"{counted(len(shown), 'part')} named as Accelerate names a saved state"
        evidence = [Evidence(EvidenceKind.NAME, shown[0], says, Basis.INFERRED)]
        if parts.random and (parts.folders or parts.full or parts.ranks or parts.weights):
            says = "random states stand beside a model"
            evidence.append(Evidence(EvidenceKind.STRUCTURE, shown[0], says, Basis.OBSERVED))
        return Claim(
            self.name,
            folder.path,
            files,
            Confidence.LOW,
            tuple(evidence),
            owned=tuple(found.path for found in parts.folders),
        )

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Describe each part as what it is."""
        folder = probe.folder(claim.folder)
        parts = parts_in(probe, folder)
        saves = [
            (found, dcp_save.read_save(probe, found)) for found in parts.folders if _is_save(probe, found)
        ]
        grid = fsdp.check_ranks(probe, parts.ranks) if parts.ranks else None
        files = [*(entry for each in parts.ranks for entry in each.entries), *parts.single]
        opened = containers(probe, [entry for entry in files if not entry.name.endswith(".json")])
        inner = _hf_weights(probe, folder, parts.weights)
        opaque = (
            *(entry for _, save in saves for entry in save.opaque),
            *opened.torch,
            *opened.pickles,
            *(entry for found in inner for entry in found.opaque),
        )
        said = {entry.path for found in inner for entry in found.opaque}
        report_opaque(probe, [entry for entry in opaque if entry.path not in said])
        held = [save for found, save in saves if part_of(found) == "weights"]
        _report_parts(probe, folder, parts, held)
        return Facts(
            confidence=Confidence.LOW,
            evidence=(
                *opened.evidence,
                *(item for _, save in saves for item in save.evidence),
                *(item for found in inner for item in found.evidence),
            ),
            components=(*_components(parts, saves), *(c for found in inner for c in found.components)),
            producer=tuple(item for found in inner for item in found.producer),
            topology=_topology(parts, held, grid),
            state=_state(folder, parts, inner),
            opaque=opaque,
            code_references=tuple(item for found in inner for item in found.code_references),
            weight_bytes=inner[0].weight_bytes if len(inner) == 1 and not held and not parts.full else None,
        )


def _is_save(probe: Probe, folder: Folder) -> bool:
    if dcp_save.names_in(folder).files:
        return True
    probe.report("accelerate.folder_empty", display_name(path_text(folder.path)))
    return False


def part_of(folder: Folder) -> str:
    """Return which part of a state the distributed save in a folder is: `optimizer` or `weights`."""
    name = path_text(folder.path.rpartition(b"/")[2])
    return "optimizer" if name.startswith("optimizer") else "weights"


def _topology(parts: Parts, held: Sequence[dcp_save.Save], grid: RankGrid | None) -> Topology:
    """Return the ranks that wrote the model, or at least those that wrote a random state."""
    if held:
        return held[0].topology
    if grid is not None:
        return fsdp.topology(parts.ranks, grid)
    by_rank = _random_ranks(parts)
    if not by_rank:
        return Topology()
    writers = rank_grid((rank,) for rank in by_rank)
    says = f"random_states_{writers.seen[-1][0]}.pkl is the highest; each process writes one"
    mesh = Mesh(
        name="world",
        axes=(
            Axis("world", writers.extents[0], Basis.INFERRED, says),
            Axis("rank", writers.extents[0], Basis.INFERRED, "the number of random_states_R.pkl"),
        ),
        ranks_seen=writers.seen,
        ranks_missing=writers.missing,
    )
    files = tuple(RankFiles("world", (rank,), (entry.text,)) for rank, entry in sorted(by_rank.items()))
    return Topology(
        (mesh,), files, "The weights are not cut by rank: each process left only its random state."
    )


def _random_ranks(parts: Parts) -> dict[int, Entry]:
    """Return the random states by rank; nothing where a name carries a number that no rank can have."""
    found = {
        int(match["rank"]): entry
        for entry in parts.random
        if (match := names.RANDOM.fullmatch(entry.name)) is not None
    }
    return found if max(found, default=0) < 1 << 30 else {}


def _hf_weights(probe: Probe, folder: Folder, files: Sequence[Entry]) -> list[Facts]:
    """Return what the Hugging Face families say of weights in the state."""
    view = folder.only(files)
    found = []
    for item in (HF_SAFETENSORS, HF_TORCH):
        claim = item.recognise(probe, view) if files else None
        if isinstance(claim, Claim):
            found.append(item.describe(probe, claim))
    return found


def _report_parts(probe: Probe, folder: Folder, parts: Parts, held: Sequence[dcp_save.Save]) -> None:
    shown = display_name(path_text(folder.path)) or "."
    weights = [
        *(path_text(f.path.rpartition(b"/")[2]) for f in parts.folders if part_of(f) == "weights"),
        *(each.pattern for each in parts.ranks if each.kind == "weights"),
        *(entry.name for entry in parts.full),
        *(["Hugging Face weights"] if parts.weights else []),
    ]
    elsewhere = any(name in folder.files for name in trackers.NAMES)  # DeepSpeed or Megatron saved the model
    if not weights and not elsewhere:
        probe.report("accelerate.weights_missing", shown, folder=shown)
    if len(weights) > 1 and not all(names.SHARDED.fullmatch(name) for name in weights):
        words = ", ".join(weights[:6])
        probe.report("layout.weight_sets", shown, count=len(weights), sets=words)
    optimizer = (
        any(part_of(found) == "optimizer" for found in parts.folders)
        or any(each.kind == "optimizer" for each in parts.ranks)
        or any(role_of(entry.name) == "optimizer" for entry in parts.rest)
    )
    if parts.random and not optimizer and not elsewhere:
        probe.report("accelerate.optimizer_missing", shown, folder=shown)
    ranks = _random_ranks(parts)
    if not ranks:
        return
    grid = rank_grid((rank,) for rank in ranks)
    if grid.missing_count:
        probe.report(
            "accelerate.random_states_gap",
            shown,
            folder=shown,
            missing=grid.missing_count,
            total=grid.ranks,
            first=grid.missing[0][0],
        )
    for save in held:
        if save.names.data and save.grid is not None and save.grid.ranks != grid.ranks:
            probe.report(
                "accelerate.ranks_disagree",
                shown,
                folder=shown,
                states=len(grid.seen),
                data=len(save.grid.seen),
            )


def _components(parts: Parts, saves: Sequence[tuple[Folder, dcp_save.Save]]) -> Iterator[Component]:
    for found, save in saves:
        yield dcp_save.save_component(save, TORCH_DCP.name, part_of(found), found.path)
    for each in parts.ranks:
        yield fsdp.component(each, fsdp.FSDP_RANK_FILES.name)
    for entry in parts.single:
        role = role_of(entry.name)
        kind = "weights" if entry in parts.full else role if role != "pickle" else "custom state"
        yield Component(
            kind=kind,
            name=display_name(entry.name),
            format="torch_save" if not entry.name.endswith(".json") else None,
            files=(entry.text,),
            bytes=entry.size,
            note=None if entry.name.endswith(".json") else "opaque: not examined in the safe plane",
        )


def _state(folder: Folder, parts: Parts, inner: Sequence[Facts]) -> StateScope:
    by_part: dict[str, list[Entry]] = {"weights": [*parts.full], "optimizer": []}
    for found in parts.folders:
        by_part[part_of(found)] += found.files.values()
    for each in parts.ranks:
        by_part.setdefault(each.kind, []).extend(each.entries)
    weights = opaque_part(by_part["weights"], "of weights in FSDP's layouts")
    if inner and inner[0].state.weights.presence is not Presence.UNKNOWN:
        weights = inner[0].state.weights
    state = scope_of(folder.files.values(), weights)
    if by_part["optimizer"]:
        part: StatePart = opaque_part(by_part["optimizer"], "of optimizer state")
        state = msgspec.structs.replace(state, optimizer=part)
    return state


ACCELERATE_STATE: Final = AccelerateState()
