"""DeepSpeed saves: ZeRO stage 0 to 3, with pipeline layers and experts (deepspeed `runtime/engine.py`).

A save is a tag folder of rank files; `latest` and the recovery scripts stand beside it. All files are pickle-backed, so
what is said here follows from names and from how the files stand together.
"""

from collections.abc import Sequence
from typing import Final

from shardscope.engine.formats.deepspeed_names import (
    STATES,
    DeepSpeedFiles,
    Numbered,
    named_files,
    sorted_files,
)
from shardscope.engine.formats.deepspeed_ranks import check_ranks, topology_of
from shardscope.engine.formats.deepspeed_universal import is_universal
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.scope import opaque_part
from shardscope.engine.formats.torch_files import containers, report_opaque
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import counted, display_name, path_text
from shardscope.engine.model.topology import Axis

SCRIPTS: Final = ("zero_to_fp32.py", "zero_to_torch.py")
"""The programs that DeepSpeed copies beside saves that have partitions."""
OFFLOADED: Final = "offloaded_tensors"
_NAMED: Final = {
    "model": "named mp_rank_*_model_states.pt: model states of ZeRO stage 0 to 2",
    "partitioned": "named zero_pp_rank_*_model_states.pt: model states of ZeRO stage 3",
    "optimizer": "named zero_pp_rank_*_optim_states.pt: ZeRO partitions",
    "layers": "named layer_*-model_states.pt: layers of a pipeline",
    "experts": "named *expert_*_model_states.pt: experts",
    "expert_optimizer": "named expp_rank_*_optim_states.pt: optimizer states of experts",
}


class DeepSpeedZero:
    """The family `deepspeed_zero`."""

    name = "deepspeed_zero"
    general = False
    hint = Hint(("pt",))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim the rank files of one tag folder."""
        named = named_files(folder)
        if not named:
            return None
        if probe.inventory.root_is_file:
            return Alternative(
                self.name, "the file of one rank on its own: inspect the folder that holds them all"
            )
        if named.keys() <= set(STATES) and is_universal(probe, folder):
            return Alternative(
                self.name, "the model states are copies beside the parameters of a Universal checkpoint"
            )
        entries = sorted((entry for held in named.values() for entry in held), key=lambda entry: entry.path)
        evidence = tuple(
            Evidence(
                EvidenceKind.NAME,
                held[0].text,
                f"{counted(len(held), 'file')} {_NAMED[field]}",
                Basis.INFERRED,
            )
            for field, held in named.items()
        )
        return Claim(self.name, folder.path, tuple(entries), Confidence.LOW, evidence)

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Weigh the numbers in the names; look at the containers."""
        folder = probe.folder(claim.folder)
        parent = probe.folder(claim.folder.rpartition(b"/")[0]) if claim.folder else folder
        scripts = [parent.files[name] for name in SCRIPTS if name in parent.files]
        files = sorted_files(claim.files)
        check_ranks(probe, claim.folder, files)
        _check_tag(probe, claim.folder, folder, parent, files, scripts)
        found = containers(probe, claim.files)
        opaque = (*found.torch, *found.pickles)
        report_opaque(probe, opaque)
        return Facts(
            confidence=Confidence.LOW,  # torch containers do not tell who filled them
            evidence=found.evidence,
            components=tuple(_components(files, scripts)),
            topology=topology_of(files, _stage(files, scripts)),
            state=_scope(files),
            opaque=opaque,
        )


def _stage(files: DeepSpeedFiles, scripts: list[Entry]) -> Axis:
    if files.partitioned and files.model:
        return Axis("zero_stage", None, Basis.UNKNOWN, "files of stage 3 and of a lower stage are mixed")
    if files.partitioned:
        return Axis(
            "zero_stage", 3, Basis.INFERRED, "zero_pp_rank_*_model_states.pt files are of stage 3 alone"
        )
    if files.optimizer:
        return Axis("zero_stage", None, Basis.INFERRED, "1 or 2: both write the same names")
    if scripts:
        return Axis("zero_stage", None, Basis.UNKNOWN, "a recovery script stands here and no partition")
    return Axis("zero_stage", 0, Basis.INFERRED, "no partition files")


def _check_tag(
    probe: Probe, path: bytes, folder: Folder, parent: Folder, files: DeepSpeedFiles, scripts: list[Entry]
) -> None:
    shown = display_name(path_text(path)) or "."
    if OFFLOADED in folder.folders:
        offloaded = f"{shown}/{OFFLOADED}" if path else OFFLOADED
        probe.report("deepspeed.offloaded", offloaded, folder=offloaded)
    if path and "latest" not in parent.files:
        probe.report("deepspeed.no_latest", shown, tracker="latest", folder=shown)
    if scripts and not files.partitions and not files.partitioned:
        probe.report("deepspeed.optimizer_absent", shown, script=scripts[0].text)
    if files.partitioned or files.optimizer:
        stage = "ZeRO stage 3" if files.partitioned else "ZeRO stage 1 or 2"
        probe.report("deepspeed.consolidation_memory", shown, stage=stage)


def _components(files: DeepSpeedFiles, scripts: list[Entry]) -> list[Component]:
    opaque = "opaque: not examined in the safe plane"
    kinds = (
        ("model states", (*files.model, *files.partitioned), opaque),
        ("pipeline layers", files.layers, opaque),
        ("experts", files.experts, opaque),
        ("ZeRO partitions", files.optimizer, opaque),
        ("expert optimizer", files.expert_optimizer, opaque),
    )
    found = [_component(kind, [file.entry for file in held], note) for kind, held, note in kinds if held]
    if scripts:
        found.append(_component("recovery scripts", scripts, "programs: listed, never run"))
    return found


def _component(kind: str, entries: list[Entry], note: str) -> Component:
    return Component(
        kind=kind,
        name=kind,
        format=DeepSpeedZero.name,
        files=tuple(entry.text for entry in entries),
        bytes=sum(entry.size for entry in entries),
        note=note,
    )


def _scope(files: DeepSpeedFiles) -> StateScope:
    """Return the scope: model states also keep scheduler and progress, partitions also keep the loss scaler."""
    states = _part(files.states, "of model states")
    inside = _part((*files.model, *files.partitioned), "of model states, which keep it too")
    weights = states
    if files.partitioned:
        weights = _part(files.optimizer, "of partitions, which hold the fp32 weights in stage 3")
    return StateScope(
        weights=weights,
        optimizer=_part(files.partitions, "of optimizer states")
        if files.partitions
        else StatePart(
            Presence.UNKNOWN, Basis.INFERRED, "without partitions it can be inside the model states"
        ),
        scheduler=inside,
        scaler=_part(files.optimizer, "of partitions, which keep it too") if files.optimizer else inside,
        progress=inside,
    )


def _part(files: Sequence[Numbered], what: str) -> StatePart:
    return opaque_part([file.entry for file in files], what)


DEEPSPEED_ZERO: Final = DeepSpeedZero()
