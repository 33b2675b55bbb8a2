"""Megatron Core distributed checkpoints: `metadata.json` with a `sharded_backend`, `common.pt`, and shards.

Facts from Megatron Core (`core/dist_checkpointing/core.py`, `strategies/`). The backend `torch_dist` writes the files of
PyTorch's DCP, so what tells the two apart is `metadata.json`; without it both fit. `zarr` writes a folder for each key.
Megatron-LM's formats `torch_dcp` and `fsdp_dtensor` have no `metadata.json` and are DCP in every way.
"""

from typing import Final

from shardscope.engine.formats.dcp_save import names_in, read_save, sharded_backend
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.megatron_legacy import TRACKER
from shardscope.engine.formats.megatron_zarr import ARRAY, Arrays, Key, keys_in, read_arrays
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.scope import opaque_part
from shardscope.engine.formats.torch_files import containers, report_opaque
from shardscope.engine.model.descriptor import Component, ProducerFact
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import counted, display_name, path_text
from shardscope.engine.model.topology import Axis, Mesh, Topology

METADATA: Final = "metadata.json"
COMMON: Final = "common.pt"
TORCH_DIST: Final = "torch_dist"
ZARR: Final = "zarr"
_INSIDE: Final = "the items of a distributed save are named only in its metadata, which is not examined"


class MegatronDist:
    """The family `megatron_dist`."""

    name = "megatron_dist"
    general = False
    hint = Hint(("json", "pt", "metadata"))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim a folder whose `metadata.json` names a backend, or that holds `common.pt` beside shards."""
        metadata = folder.files.get(METADATA)
        common = folder.files.get(COMMON)
        backend = sharded_backend(probe, folder) if metadata is not None else None
        if backend is None and common is None:
            return self._alternative(folder, metadata)
        names = names_in(folder)
        keys = keys_in(probe, folder)
        if backend is None and not names.files and not any(key.array for key in keys):
            return self._alternative(folder, metadata)
        evidence = []
        if metadata is not None and backend is not None:
            says = f"declares the sharded backend {display_name(backend, 40)}"
            evidence.append(Evidence(EvidenceKind.JSON, metadata.text, says, Basis.DECLARED))
        if common is not None:
            says = "named like the state that all ranks share"
            evidence.append(Evidence(EvidenceKind.NAME, common.text, says, Basis.INFERRED))
        if keys:
            says = f"{counted(len(keys), 'folder')} of arrays or objects by key"
            evidence.append(Evidence(EvidenceKind.STRUCTURE, keys[0].text, says, Basis.INFERRED))
        own = [entry for entry in (metadata if backend is not None else None, common) if entry is not None]
        below = [e for key in keys for e in (*([key.array] if key.array else ()), *key.files)]
        files = (*own, *names.files, *below)
        confidence = Confidence.LOW if backend is None else Confidence.MEDIUM
        owned = tuple(key.path for key in keys)
        return Claim(self.name, folder.path, files, confidence, tuple(evidence), owned)

    def _alternative(self, folder: Folder, metadata: Entry | None) -> Alternative | None:
        if metadata is not None:
            return Alternative(self.name, f"{METADATA} without the name of a sharded backend")
        if ".metadata" in folder.files and path_text(folder.path.rpartition(b"/")[2]).startswith("iter_"):
            reason = (
                "an iteration without metadata.json and common.pt: Megatron-LM's formats torch_dcp and fsdp_dtensor write it "
                "so, and are plain DCP"
            )
            return Alternative(self.name, reason)
        return None

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Read the arrays' descriptions; look at names and first bytes of the rest."""
        folder = probe.folder(claim.folder)
        shown = display_name(path_text(claim.folder)) or "."
        backend = sharded_backend(probe, folder) if METADATA in folder.files else None
        keys = keys_in(probe, folder)
        _check_files(probe, folder, shown, backend, keys)
        probe.report("megatron.model_mapping", shown)
        common = folder.files.get(COMMON)
        if backend == ZARR or (backend is None and not names_in(folder).files):
            return self._zarr(probe, claim, common, keys)
        return self._shards(probe, folder, claim, common)

    def _shards(self, probe: Probe, folder: Folder, claim: Claim, common: Entry | None) -> Facts:
        save = read_save(probe, folder)
        found = containers(probe, [common] if common else [])
        opaque = (*found.torch, *found.pickles, *save.opaque)
        report_opaque(probe, opaque)
        _check_threads(probe, folder)
        inside = StatePart(Presence.UNKNOWN, Basis.UNKNOWN, _INSIDE)
        shared = opaque_part([common], "of common state, which keeps it") if common else inside
        says = f"{counted(len(save.names.payload), 'shard file')}, not examined"
        whole = bool(save.names.shared and save.names.payload and found.torch)
        return Facts(
            confidence=Confidence.MEDIUM if whole else Confidence.LOW,
            evidence=(*found.evidence, *save.evidence),
            components=_components(common, "shards", list(save.names.files)),
            producer=_producer(folder),
            topology=save.topology,
            state=StateScope(
                weights=StatePart(Presence.OPAQUE, Basis.INFERRED, says),
                optimizer=inside,
                scheduler=shared,
                rng=inside,
                progress=shared,
            ),
            opaque=opaque,
        )

    def _zarr(self, probe: Probe, claim: Claim, common: Entry | None, keys: list[Key]) -> Facts:
        arrays = read_arrays(probe, keys)
        objects = [entry for key in keys for entry in key.objects]
        found = containers(probe, [*([common] if common else []), *objects])
        opaque = (*found.torch, *found.pickles)
        report_opaque(probe, opaque)
        whole = arrays.whole and bool(found.torch) and not found.other
        confidence = Confidence.HIGH if whole else Confidence.MEDIUM if arrays.count else Confidence.LOW
        folder = probe.folder(claim.folder)
        held = [entry for key in keys for entry in (*([key.array] if key.array else ()), *key.files)]
        evidence = list(found.evidence)
        if arrays.count:
            says = f"{counted(arrays.count, 'array')} described, in {counted(arrays.chunks, 'chunk')} by element offset"
            evidence.append(Evidence(EvidenceKind.JSON, f"{keys[0].text}/{ARRAY}", says, Basis.DECLARED))
        return Facts(
            confidence=confidence,
            evidence=tuple(evidence),
            components=_components(common, "arrays", held),
            producer=_producer(folder),
            topology=_zarr_topology(arrays.axes),
            state=_zarr_scope(arrays, common, keys),
            opaque=opaque,
            weight_bytes=arrays.bytes if arrays.whole else None,
            weight_reason=None if arrays.whole else "arrays or chunks are missing or not understood",
        )


def _check_files(probe: Probe, folder: Folder, shown: str, backend: str | None, keys: list[Key]) -> None:
    names = names_in(folder)
    if backend is None:
        probe.report("megatron.metadata_missing", shown, folder=shown)
    elif backend not in (TORCH_DIST, ZARR):
        probe.report("megatron.backend_unknown", folder.files[METADATA], backend=backend)
    if COMMON not in folder.files:
        probe.report("megatron.common_missing", shown, folder=shown)
    arrays = [key for key in keys if key.array is not None]
    if backend == ZARR and not arrays:
        probe.report("megatron.arrays_missing", shown, folder=shown)
    foreign = names.files if backend == ZARR else [key.array for key in arrays if key.array]
    if backend in (TORCH_DIST, ZARR) and foreign:
        first = foreign[0]
        probe.report("megatron.backends_mixed", first, backend=backend, count=len(foreign), first=first.text)
    if folder.path and TRACKER not in probe.folder(folder.path.rpartition(b"/")[0]).files:
        parent = path_text(folder.path.rpartition(b"/")[2])
        if parent.startswith("iter_") or parent == "release":
            probe.report("megatron.no_tracker", shown, folder=shown)


def _check_threads(probe: Probe, folder: Folder) -> None:
    """Report ranks that have fewer files than others: each has one for each writer thread that had data."""
    data = names_in(folder).data
    most = max(map(len, data.values()), default=0)
    short = [rank for rank, files in sorted(data.items()) if len(files) < most]
    if short:
        first = data[short[0]][0]
        probe.report("megatron.writer_uneven", first, count=len(short), most=most, first=short[0])


def _components(common: Entry | None, kind: str, shards: list[Entry]) -> tuple[Component, ...]:
    opaque = "opaque: not examined in the safe plane"
    arrays = "one folder for each key; pickled objects stay opaque"
    kinds = (
        ("common state", [common] if common else [], opaque),
        (kind, shards, arrays if kind == "arrays" else opaque),
    )
    return tuple(
        Component(
            kind=name,
            name=name,
            format=MegatronDist.name,
            files=tuple(entry.text for entry in entries),
            bytes=sum(entry.size for entry in entries),
            note=note,
        )
        for name, entries, note in kinds
        if entries
    )


def _producer(folder: Folder) -> tuple[ProducerFact, ...]:
    if METADATA not in folder.files:
        return ()
    says = f"{folder.files[METADATA].text} has the fields that Megatron Core writes"
    return (ProducerFact("megatron-core", None, Basis.INFERRED, says),)


def _zarr_topology(axes: tuple[Axis, ...]) -> Topology:
    if not axes:
        return Topology(note="Chunks are the shards of ranks, but no name says which rank wrote which.")
    dp = Axis("dp", None, Basis.UNKNOWN, "the names do not tell")
    return Topology((Mesh("dense", (*axes, dp)),), note="No name says which rank wrote which chunk.")


def _zarr_scope(arrays: Arrays, common: Entry | None, keys: list[Key]) -> StateScope:
    shared = (
        opaque_part([common], "of common state, which keeps it") if common else StatePart(Presence.UNKNOWN)
    )
    optimizer = (
        StatePart(
            Presence.PRESENT,
            Basis.OBSERVED,
            f"{counted(len(arrays.optimizer), 'array')} named like optimizer state",
            arrays.optimizer[:8],
        )
        if arrays.optimizer
        else StatePart(Presence.ABSENT, Basis.INFERRED, "no array is named like optimizer state")
    )
    weights = arrays.count - len(arrays.optimizer)
    random = [entry for key in keys if key.name.startswith("rng_state") for entry in key.objects]
    return StateScope(
        weights=StatePart(Presence.PRESENT, Basis.OBSERVED, f"{counted(weights, 'array')} described by JSON")
        if weights > 0
        else StatePart(Presence.UNKNOWN),
        optimizer=optimizer,
        scheduler=shared,
        rng=opaque_part(random, "named like random state"),
        progress=shared,
    )


MEGATRON_DIST: Final = MegatronDist()
