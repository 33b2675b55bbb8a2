"""Orbax checkpoints of JAX: recognised only.

Names follow Orbax (`checkpoint/_src`): a step folder holds `_CHECKPOINT_METADATA` (version 1: an empty `orbax.checkpoint`) and a
folder for each item; an item holds `_METADATA` and either an OCDBT database (`manifest.ocdbt`, `d/`, `ocdbt.process_N/`) or a
zarr folder for each array. A save is written under a name with `.orbax-checkpoint-tmp` and renamed when it is whole.
"""

from typing import Final

from shardscope.engine.formats.folder import Folder, files_below
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.recognised_only import named, part, unread
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted, path_text

_STEP: Final = ("_CHECKPOINT_METADATA", "orbax.checkpoint")
_TREE: Final = "_METADATA"
_MANIFEST: Final = "manifest.ocdbt"
_PROCESS: Final = "ocdbt.process_"
_UNFINISHED: Final = b".orbax-checkpoint-tmp"


class Orbax:
    """The family `orbax`."""

    name = "orbax"
    general = False
    hint = Hint(("_checkpoint_metadata", "checkpoint", "_metadata", "ocdbt"), folders=(_PROCESS,))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim a step with its items, or an item on its own, with everything below it."""
        marks = [folder.files[name] for name in (*_STEP, _TREE, _MANIFEST) if name in folder.files]
        processes = [name for name in folder.folders if name.startswith(_PROCESS)] if folder.folders else []
        if not marks and not processes:
            return None
        if (
            not marks
            and "d" not in folder.folders
            and not any(self._data(probe, folder, p) for p in processes)
        ):
            return Alternative(self.name, f"{processes[0]}/ without the files of an OCDBT database")
        owned = tuple(_below(folder, name) for name in sorted(folder.folders))
        below = (entry for path in owned for entry in files_below(probe.inventory, path))
        files = [*folder.files.values(), *sorted(below, key=lambda entry: entry.path)]
        for path in (folder.path, *owned):
            if _UNFINISHED in path.rpartition(b"/")[2]:
                probe.report("orbax.unfinished", path_text(path))
        evidence = [named(entry, f"named {entry.name}") for entry in marks]
        if processes or (_MANIFEST in folder.files and "d" in folder.folders):
            says = f"the folders of an OCDBT database, {counted(len(processes), 'process folder')}"
            subject = path_text(folder.path) or "."
            evidence.append(Evidence(EvidenceKind.STRUCTURE, subject, says, Basis.INFERRED))
        return Claim(self.name, folder.path, tuple(files), Confidence.LOW, tuple(evidence), owned)

    def _data(self, probe: Probe, folder: Folder, name: str) -> bool:
        below = probe.folder(_below(folder, name))
        return "d" in below.folders or _MANIFEST in below.files

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Read the description of the tree, which is JSON; check that no part of the database is absent."""
        items = [path for path in (claim.folder, *claim.owned) if self._is_item(probe, path)]
        evidence: list[Evidence] = []
        components = []
        for path in items:
            tree = probe.folder(path).files.get(_TREE)
            if tree is None:
                probe.report("orbax.metadata_missing", path_text(path) or ".")
            elif (leaves := _leaves(probe, tree)) is not None:
                says = f"declares a tree of {counted(leaves, 'array')}"
                evidence.append(Evidence(EvidenceKind.JSON, tree.text, says, Basis.DECLARED))
            _check_database(probe, path)
            files = [entry for entry in claim.files if not path or entry.path.startswith(path + b"/")]
            components.append(part(claim, path_text(path.rpartition(b"/")[2]) or ".", files, kind="item"))
        files = [entry for entry in claim.files if entry.name not in (*_STEP, _TREE)]
        return unread(
            probe,
            claim,
            files or claim.files,
            seen=bool(evidence),
            evidence=evidence,
            components=components or [part(claim, claim.format, claim.files)],
        )

    def _is_item(self, probe: Probe, path: bytes) -> bool:
        name = path_text(path.rpartition(b"/")[2])
        if name == "d" or name.startswith(_PROCESS):
            return False
        folder = probe.folder(path)
        processes = any(name.startswith(_PROCESS) for name in folder.folders)
        return processes or _TREE in folder.files or _MANIFEST in folder.files


def _below(folder: Folder, name: str) -> bytes:
    raw = name.encode("utf-8", "surrogateescape")
    return folder.path + b"/" + raw if folder.path else raw


def _leaves(probe: Probe, entry: Entry) -> int | None:
    """Return how many leaves the tree has; None where the file does not describe one."""
    document = probe.json(entry)
    if document is None or not isinstance(document.value, dict):
        return None
    tree = document.value.get("tree_metadata")
    return len(tree) if isinstance(tree, dict) else None


def _check_database(probe: Probe, path: bytes) -> None:
    """Report a database without its root. Folders of single processes are merged when a save is finished."""
    folder = probe.folder(path)
    data = "d" in folder.folders or any(name.startswith(_PROCESS) for name in folder.folders)
    if data and _MANIFEST not in folder.files:
        probe.report("orbax.manifest_missing", path_text(path) or ".")


ORBAX: Final = Orbax()
