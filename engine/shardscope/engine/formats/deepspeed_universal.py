"""DeepSpeed Universal checkpoints: one folder for each parameter under `zero/` (deepspeed `checkpoint/ds_to_universal.py`).

The layout is free of ranks, and it is DeepSpeed's own: what was converted still needs DeepSpeed's meaning of each file. A
parameter's name is the name of its folder and nothing more; shapes are in the files, which are pickle-backed.
"""

from collections import Counter
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.deepspeed_names import STATES, named_files, sorted_files
from shardscope.engine.formats.deepspeed_ranks import check_ranks
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.scope import opaque_part
from shardscope.engine.formats.torch_files import containers, report_opaque
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry, Kind
from shardscope.engine.model.state import StateScope
from shardscope.engine.model.text import counted, display_name, path_text
from shardscope.engine.model.topology import Topology

TREE: Final = "zero"
WEIGHT: Final = "fp32.pt"
OPTIMIZER: Final = "optimizer_state.pt"
_ADAM: Final = frozenset({"exp_avg.pt", "exp_avg_sq.pt", "step.pt"})
_MARKS: Final = frozenset({WEIGHT, "exp_avg.pt", "exp_avg_sq.pt"})
_SUFFIX: Final = "_universal"


class Tree(Struct, frozen=True):
    """What stands under `zero/`."""

    path: bytes
    parameters: dict[str, dict[str, Entry]]
    """By the parameter's name: its files by name. Empty folders are there with nothing."""
    optimizer: Entry | None
    unexpected: tuple[Entry, ...]


class DeepSpeedUniversal:
    """The family `deepspeed_universal`."""

    name = "deepspeed_universal"
    general = False
    hint = Hint(folders=(TREE,))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim the tree under `zero/` and the copies of model states beside it."""
        if not is_universal(probe, folder):
            return None
        tree = tree_in(probe, folder)
        copies = _copies(folder)
        states = [entry for held in tree.parameters.values() for entry in held.values()]
        files = (*states, *((tree.optimizer,) if tree.optimizer else ()), *copies)
        says = (
            f"{counted(len(tree.parameters), 'folder')} named like parameters, with one file for each state"
        )
        shown = display_name(path_text(tree.path))
        evidence = [Evidence(EvidenceKind.STRUCTURE, shown, says, Basis.INFERRED)]
        if copies:
            says = f"{counted(len(copies), 'file')} of model states beside the tree"
            evidence.append(Evidence(EvidenceKind.NAME, copies[0].text, says, Basis.INFERRED))
        return Claim(self.name, folder.path, files, Confidence.LOW, tuple(evidence), owned=(tree.path,))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Compare the states of the parameters; look at the containers."""
        folder = probe.folder(claim.folder)
        tree = tree_in(probe, folder)
        copies = _copies(folder)
        _check(probe, claim.folder, tree, copies)
        if copies:
            check_ranks(probe, claim.folder, sorted_files(copies), copies=True)
        found = containers(probe, claim.files)
        opaque = (*found.torch, *found.pickles)
        report_opaque(probe, opaque)
        weights = [held[WEIGHT] for held in tree.parameters.values() if WEIGHT in held]
        moments = [e for held in tree.parameters.values() for name, e in held.items() if name != WEIGHT]
        if tree.optimizer:
            moments.append(tree.optimizer)
        return Facts(
            confidence=Confidence.LOW,  # torch containers do not tell who filled them
            evidence=found.evidence,
            components=tuple(
                _component(kind, entries)
                for kind, entries in (
                    ("weights", weights),
                    ("optimizer", moments),
                    ("model states", copies),
                )
                if entries
            ),
            topology=Topology(
                note="Free of ranks: each parameter is whole, and the model states beside it are copies from the source."
            ),
            state=_scope(tree, weights, moments, copies),
            opaque=opaque,
        )


def is_universal(probe: Probe, folder: Folder) -> bool:
    """Tell whether `zero/` holds the states of at least one parameter, or stands in a folder that is named for it."""
    if TREE not in folder.folders:
        return False
    if path_text(folder.path).endswith(_SUFFIX):
        return True
    path = _below(folder.path, TREE)
    by_folder = probe.inventory.by_folder
    return any(
        below.name in _MARKS
        for entry in by_folder.get(path, ())
        if entry.kind is Kind.DIRECTORY
        for below in by_folder.get(entry.path, ())
    )


def tree_in(probe: Probe, folder: Folder) -> Tree:
    """Return what stands under `zero/`, in one pass over it."""
    path = _below(folder.path, TREE)
    by_folder = probe.inventory.by_folder
    parameters: dict[str, dict[str, Entry]] = {}
    optimizer = None
    unexpected: list[Entry] = []
    for entry in by_folder.get(path, ()):
        if entry.kind is Kind.DIRECTORY:
            held = parameters[entry.name] = {}
            for below in by_folder.get(entry.path, ()):
                if below.kind is Kind.FILE and below.name.endswith(".pt"):
                    held[below.name] = below
                else:
                    unexpected.append(below)
        elif entry.kind is Kind.FILE and entry.name == OPTIMIZER:
            optimizer = entry
        else:
            unexpected.append(entry)
    return Tree(path, parameters, optimizer, tuple(unexpected))


def _below(folder: bytes, name: str) -> bytes:
    return folder + b"/" + name.encode() if folder else name.encode()


def _copies(folder: Folder) -> list[Entry]:
    named = named_files(folder)
    return sorted((entry for field in STATES for entry in named.get(field, ())), key=lambda entry: entry.path)


def _check(probe: Probe, path: bytes, tree: Tree, copies: list[Entry]) -> None:
    shown = display_name(path_text(tree.path))
    _check_parameters(probe, shown, tree)
    if tree.unexpected:
        first = tree.unexpected[0].text
        probe.report("deepspeed.universal_unexpected", first, count=len(tree.unexpected), first=first)
    if not tree.optimizer:
        probe.report("deepspeed.universal_optimizer_missing", shown, folder=shown)
    if not copies:
        probe.report("deepspeed.universal_model_states_missing", shown, folder=shown)
    if path and "latest_universal" not in probe.folder(path.rpartition(b"/")[0]).files:
        folder = display_name(path_text(path))
        probe.report("deepspeed.no_latest", folder, tracker="latest_universal", folder=folder)


def _check_parameters(probe: Probe, shown: str, tree: Tree) -> None:
    parameters = tree.parameters
    if not parameters:
        probe.report("deepspeed.universal_no_parameters", shown, folder=shown)
        return
    empty = [name for name, held in parameters.items() if not held]
    if empty:
        probe.report(
            "deepspeed.universal_empty", shown, count=len(empty), folder=shown, first=display_name(empty[0])
        )
    weightless = [name for name, held in parameters.items() if held and WEIGHT not in held]
    if weightless:
        probe.report(
            "deepspeed.universal_weights_missing",
            shown,
            count=len(weightless),
            folder=shown,
            first=display_name(weightless[0]),
        )
    # A file of another name under one parameter must not make all others incomplete: it counts where most have it.
    trained = {name: held.keys() - {WEIGHT} for name, held in parameters.items() if held.keys() - {WEIGHT}}
    counts = Counter(state for states in trained.values() for state in states)
    usual = {state for state, count in counts.items() if state in _ADAM or 2 * count > len(trained)}
    partial = [(name, usual - states) for name, states in trained.items() if usual - states]
    if partial:
        name, lacking = partial[0]
        probe.report(
            "deepspeed.universal_states_missing",
            shown,
            count=len(partial),
            folder=shown,
            first=display_name(name),
            state=min(lacking),
        )
    bare = [name for name, held in parameters.items() if held.keys() == {WEIGHT}]
    if bare and trained:
        probe.report(
            "deepspeed.universal_moments_absent",
            shown,
            count=len(bare),
            total=len(parameters),
            first=display_name(bare[0]),
        )


def _component(kind: str, entries: list[Entry]) -> Component:
    return Component(
        kind=kind,
        name=kind,
        format=DeepSpeedUniversal.name,
        files=tuple(entry.text for entry in entries),
        bytes=sum(entry.size for entry in entries),
        note="opaque: not examined in the safe plane",
    )


def _scope(tree: Tree, weights: list[Entry], moments: list[Entry], copies: list[Entry]) -> StateScope:
    inside = opaque_part(copies, "of model states, which keep it too")
    return StateScope(
        weights=opaque_part(
            weights, f"named {WEIGHT}, for {counted(len(tree.parameters), 'parameter folder')}"
        ),
        optimizer=opaque_part(moments, "named like optimizer states"),
        scheduler=inside,
        scaler=opaque_part(
            [tree.optimizer] if tree.optimizer else [], "of optimizer state, which keeps it too"
        ),
        progress=inside,
    )


DEEPSPEED_UNIVERSAL: Final = DeepSpeedUniversal()
