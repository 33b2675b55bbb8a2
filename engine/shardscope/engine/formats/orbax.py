"""Orbax checkpoints of JAX.

Names follow Orbax (`checkpoint/_src`): a step folder holds `_CHECKPOINT_METADATA` (version 1: an empty `orbax.checkpoint`) and a
folder for each item; an item holds `_METADATA` and either an OCDBT database (`manifest.ocdbt`, `d/`, `ocdbt.process_N/`) or a
zarr folder for each array. Zarr arrays are listed by their descriptions; a database is recognised only. A save is written under
a name with `.orbax-checkpoint-tmp` and renamed when it is whole.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from shardscope.engine.formats import orbax_tree
from shardscope.engine.formats.folder import Folder, files_below
from shardscope.engine.formats.headers_only import listed, part_of
from shardscope.engine.formats.orbax_tree import Description
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.recognised_only import named, part, unread
from shardscope.engine.formats.zarr_tree import V2, V3, Tree, read_tree
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted, path_text
from shardscope.engine.model.topology import Topology

_CHECKPOINT: Final = "_CHECKPOINT_METADATA"
_STEP: Final = (_CHECKPOINT, "orbax.checkpoint")
_TREE: Final = "_METADATA"
_SHARDING: Final = "_sharding"
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
        """Read the tree of each item and its zarr arrays; check that no part of a database is absent."""
        paths = [path for path in (claim.folder, *claim.owned) if is_item(probe, path)]
        items = [_Item(probe, claim, path) for path in paths]
        checkpoint = probe.folder(claim.folder).files.get(_CHECKPOINT)
        references = orbax_tree.check_step(probe, checkpoint) if checkpoint is not None else ()
        evidence = [each for item in items for each in item.evidence]
        components = [item.component for item in items] or [part(claim, claim.format, claim.files)]
        arrays = sum(len(item.tree.leaves) for item in items if item.tree is not None)
        opaque = [entry for item in items for entry in item.opaque]
        topology = Topology(note=next((item.mesh for item in items if item.mesh is not None), None))
        if not arrays:
            files = opaque or [entry for entry in claim.files if entry.name not in (*_STEP, _TREE)]
            facts = unread(
                probe,
                claim,
                files or claim.files,
                seen=bool(evidence),
                evidence=evidence,
                components=components,
            )
            return replace(facts, code_references=references, topology=topology)
        if opaque:
            size = sum(entry.size for entry in opaque)
            title = FORMAT_TITLES[claim.format]
            probe.report("layout.recognised_only", opaque[0], format=title, count=len(opaque), size=size)
        sound = not opaque and all(item.sound for item in items)
        facts = listed(
            probe,
            claim,
            arrays,
            sum(item.tree.bytes for item in items if item.tree is not None) if sound else None,
            confidence=Confidence.HIGH
            if sound and any(item.described for item in items)
            else Confidence.MEDIUM,
            evidence=evidence,
            components=components,
            opaque=opaque,
            code_references=references,
        )
        return replace(facts, topology=topology)


class _Item:
    """One item of a step: its tree, and its zarr arrays or its database."""

    def __init__(self, probe: Probe, claim: Claim, path: bytes) -> None:
        folder = probe.folder(path)
        self.evidence: list[Evidence] = []
        self.tree: Tree | None = None
        self.opaque: list[Entry] = []
        self.sound = True
        self.described = _TREE in folder.files
        sharding = folder.files.get(_SHARDING)
        self.mesh = None if sharding is None else orbax_tree.mesh_words(probe, sharding)
        description = self._description(probe, folder)
        files = [entry for entry in claim.files if not path or entry.path.startswith(path + b"/")]
        database = _MANIFEST in folder.files or _is_database(folder)
        if database:
            _check_database(probe, path)
            begin = len(path) + 1 if path else 0
            self.opaque = [entry for entry in files if _in_database(entry.path[begin:])]
        apart = {entry.path for entry in self.opaque}
        arrays = [entry for entry in files if entry.path not in apart]
        if any(entry.name in (V2, V3) for entry in arrays):
            self._arrays(probe, path, arrays, description, whole=not database)
        elif description is not None and description.leaves and not database:
            self.sound = orbax_tree.check_arrays(probe, description, None)
        self.component = self._component(claim, path_text(path.rpartition(b"/")[2]) or ".", files)

    def _description(self, probe: Probe, folder: Folder) -> Description | None:
        entry = folder.files.get(_TREE)
        if entry is None:
            probe.report("orbax.metadata_missing", path_text(folder.path) or ".")
            return None
        description = orbax_tree.read_description(probe, entry)
        if description is not None:
            says = f"declares a tree of {counted(len(description.leaves), 'array')}"
            self.evidence.append(Evidence(EvidenceKind.JSON, entry.text, says, Basis.DECLARED))
        return description

    def _arrays(
        self,
        probe: Probe,
        path: bytes,
        files: Sequence[Entry],
        description: Description | None,
        *,
        whole: bool,
    ) -> None:
        self.tree = read_tree(probe, path, files)
        self.sound = self.tree.sound and not self.tree.missing
        if self.tree.leaves:
            says = f"{counted(len(self.tree.leaves), 'array')} described, {counted(self.tree.chunks, 'chunk')} stored"
            first = self.tree.leaves[0].entry.text
            self.evidence.append(Evidence(EvidenceKind.JSON, first, says, Basis.DECLARED))
        orbax_tree.check_chunks(probe, self.tree, description)
        if description is not None and whole:
            self.sound = orbax_tree.check_arrays(probe, description, self.tree) and self.sound

    def _component(self, claim: Claim, name: str, files: Sequence[Entry]) -> Component:
        if self.tree is None:
            return part(claim, name, files, kind="item")
        return part_of(claim, name, files, kind="item", note=counted(len(self.tree.leaves), "array"))


def is_item(probe: Probe, path: bytes) -> bool:
    """Tell whether a folder of a step is an item of its own."""
    name = path_text(path.rpartition(b"/")[2])
    if name == "d" or name.startswith(_PROCESS):
        return False
    folder = probe.folder(path)
    processes = any(name.startswith(_PROCESS) for name in folder.folders)
    return processes or _TREE in folder.files or _MANIFEST in folder.files


def _is_database(folder: Folder) -> bool:
    return any(name.startswith(_PROCESS) for name in folder.folders)


def _in_database(path: bytes) -> bool:
    """Tell whether a file of an item, by its path below it, belongs to the OCDBT database."""
    first, below, _ = path.partition(b"/")
    if not below:
        return first == _MANIFEST.encode()
    return first == b"d" or first.startswith(_PROCESS.encode())


def _below(folder: Folder, name: str) -> bytes:
    raw = name.encode("utf-8", "surrogateescape")
    return folder.path + b"/" + raw if folder.path else raw


def _check_database(probe: Probe, path: bytes) -> None:
    """Report a database without its root. Folders of single processes are merged when a save is finished."""
    folder = probe.folder(path)
    data = "d" in folder.folders or any(name.startswith(_PROCESS) for name in folder.folders)
    if data and _MANIFEST not in folder.files:
        probe.report("orbax.manifest_missing", path_text(path) or ".")


ORBAX: Final = Orbax()
