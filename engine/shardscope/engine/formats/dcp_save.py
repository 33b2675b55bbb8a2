"""The files of one distributed save in a folder: sorted by name, checked against each other, and their first bytes.

Shared by every family that keeps such saves: PyTorch's own, Megatron-core's `torch_dist`, the states of Accelerate.
"""

import re
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.rank_grid import RankGrid, rank_grid
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Basis, Evidence, EvidenceKind
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted, display_name, path_text
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology

METADATA: Final = ".metadata"
BACKEND_BYTES: Final = 64 << 10
"""A `metadata.json` above this is another tool's: Megatron-core writes four fields, about 110 bytes."""
_UNFINISHED: Final = re.compile(r"(__\d{1,9})?\.metadata\.tmp")
_RANK_METADATA: Final = re.compile(r"__(?P<rank>\d{1,9})\.metadata")
_DATA: Final = re.compile(r"(?P<hint>.*?)__(?P<rank>\d{1,9})_(?P<number>\d{1,9})\.distcp")
_PAYLOAD: Final = (Nature.ZIP, Nature.ZSTD, Nature.SAFETENSORS)


class Names(Struct, frozen=True):
    """The files of one folder that are named like parts of a distributed save."""

    shared: Entry | None
    """`.metadata`."""
    unfinished: tuple[Entry, ...]
    """`.metadata.tmp` and its like."""
    by_rank: dict[int, list[Entry]]
    """`__R.metadata`."""
    data: dict[int, list[Entry]]
    """`__R_N.distcp`, by rank."""
    unnamed: tuple[Entry, ...]
    """`.distcp` files without a rank in their name."""
    payload: tuple[Entry, ...]
    """Every `.distcp` file, by path."""
    metadata: tuple[Entry, ...]
    """Every file of metadata: the shared one first, unfinished ones last."""

    @property
    def files(self) -> tuple[Entry, ...]:
        """All of them, metadata first."""
        return (*self.metadata, *self.payload)


class Save(Struct, frozen=True):
    """What the safe plane tells of one distributed save."""

    names: Names
    evidence: tuple[Evidence, ...]
    grid: RankGrid | None
    topology: Topology
    opaque: tuple[Entry, ...]
    safetensors: bool
    """A data file that was looked at begins like a safetensors file."""


def names_in(folder: Folder) -> Names:
    """Sort the files of a folder by what their names say in DCP."""
    by_rank: dict[int, list[Entry]] = {}
    for entry, match in folder.matching(_RANK_METADATA, "metadata"):
        by_rank.setdefault(int(match["rank"]), []).append(entry)
    data: dict[int, list[Entry]] = {}
    unnamed: list[Entry] = []
    payload = folder.named("distcp")
    for name, entry in payload.items():
        found = _DATA.fullmatch(name)
        if found is None:
            unnamed.append(entry)
        else:
            data.setdefault(int(found["rank"]), []).append(entry)
    shared = folder.files.get(METADATA)
    unfinished = tuple(entry for entry, _ in folder.matching(_UNFINISHED, "tmp"))
    single = (entry for files in by_rank.values() for entry in files)
    return Names(
        shared=shared,
        unfinished=unfinished,
        by_rank=by_rank,
        data=data,
        unnamed=tuple(unnamed),
        payload=tuple(payload.values()),
        metadata=(*([shared] if shared else []), *single, *unfinished),
    )


def sharded_backend(probe: Probe, folder: Folder) -> str | None:
    """Return the `sharded_backend` of a `metadata.json` of the folder: Megatron-core writes it, and other trainers do not."""
    entry = folder.files.get("metadata.json")
    document = probe.json(entry) if entry is not None and entry.size <= BACKEND_BYTES else None
    if document is None or not isinstance(document.value, dict):
        return None
    backend = document.value.get("sharded_backend")
    return backend if isinstance(backend, str) else None


def read_save(probe: Probe, folder: Folder) -> Save:
    """Return what names and first bytes tell of the distributed save in a folder; report what is wrong with it."""
    names = names_in(folder)
    shown = display_name(path_text(folder.path)) or "."
    _report_files(probe, names, shown)
    ranks = sorted({*names.data, *names.by_rank})
    grid = rank_grid((rank,) for rank in ranks) if ranks and max(ranks) < 1 << 30 else None
    _report_ranks(probe, names, grid, shown)
    natures, evidence = _first_bytes(probe, names, shown)
    return Save(
        names=names,
        evidence=evidence,
        grid=grid,
        topology=_topology(names, grid) if grid is not None else Topology(),
        opaque=names.files,
        safetensors=Nature.SAFETENSORS in natures,
    )


def save_component(save: Save, name: str, kind: str, folder: bytes) -> Component:
    """Return a distributed save as a part of a checkpoint."""
    files = save.names.files
    return Component(
        kind=kind,
        name=display_name(path_text(folder.rpartition(b"/")[2])) or kind,
        format=name,
        files=tuple(entry.text for entry in files),
        bytes=sum(entry.size for entry in files),
        note="opaque: not examined in the safe plane",
    )


def name_evidence(names: Names) -> tuple[Evidence, ...]:
    """Return what names and arrangement say."""
    evidence = []
    payload, metadata = names.payload, names.metadata
    if payload:
        ranks = f" of {counted(len(names.data), 'rank')}" if names.data else ""
        says = f"{counted(len(payload), 'file')}{ranks} named like DCP data"
        evidence.append(Evidence(EvidenceKind.NAME, payload[0].text, says, Basis.INFERRED))
    if metadata:
        says = f"{counted(len(metadata), 'file')} named like DCP metadata"
        evidence.append(Evidence(EvidenceKind.NAME, metadata[0].text, says, Basis.INFERRED))
    if payload and metadata:
        says = "metadata and data files stand together"
        evidence.append(Evidence(EvidenceKind.STRUCTURE, metadata[0].text, says, Basis.OBSERVED))
    return tuple(evidence)


def _report_files(probe: Probe, names: Names, shown: str) -> None:
    payload = names.payload
    finished = names.shared is not None or bool(names.by_rank)
    if names.unfinished:
        code = "dcp.resave_interrupted" if finished else "dcp.save_interrupted"
        probe.report(code, names.unfinished[0], folder=shown, found=names.unfinished[0].name)
    elif not finished:
        probe.report("dcp.metadata_missing", shown, folder=shown, count=len(payload))
    if not payload:
        probe.report("dcp.data_missing", shown, folder=shown)
    if names.unnamed:
        first = names.unnamed[0]
        probe.report("dcp.name_unknown", first, folder=shown, count=len(names.unnamed), first=first.text)
    if names.by_rank:
        count = sum(map(len, names.by_rank.values()))
        code = "dcp.rank_metadata" if names.shared is None else "dcp.metadata_mixed"
        probe.report(code, shown, folder=shown, count=count)


def _report_ranks(probe: Probe, names: Names, grid: RankGrid | None, shown: str) -> None:
    if names.data and not names.by_rank:
        probe.report("dcp.set_unproven", shown, folder=shown, count=len(names.payload))
    if grid is not None and grid.missing_count:
        probe.report(
            "dcp.rank_gap",
            shown,
            folder=shown,
            missing=grid.missing_count,
            first=grid.missing[0][0],
            last=grid.seen[-1][0],
        )
    unpaired = sorted(names.data.keys() ^ names.by_rank.keys()) if names.by_rank and names.data else []
    if unpaired and names.shared is None:
        lacks = "data" if unpaired[0] in names.by_rank else "metadata"
        probe.report(
            "dcp.rank_unpaired", shown, folder=shown, count=len(unpaired), first=unpaired[0], lacks=lacks
        )


def _first_bytes(probe: Probe, names: Names, shown: str) -> tuple[dict[Nature, Entry], tuple[Evidence, ...]]:
    """Return what one file of metadata and two of data are by their first bytes: the first, and the smallest.

    A pointer or an error page in the place of a data file is small.
    """
    evidence = []
    finished = [*([names.shared] if names.shared else []), *(files[0] for files in names.by_rank.values())]
    if finished and (found := probe.sniff(finished[0])):
        probe.expect(finished[0], Nature.PICKLE)
        if found.nature is Nature.PICKLE:
            says = "begins like a pickle"
            evidence.append(Evidence(EvidenceKind.MAGIC, finished[0].text, says, Basis.OBSERVED))
    filled = [entry for entry in names.payload if entry.size]
    looked = {entry.path: entry for entry in (*filled[:1], *_smallest(filled))}
    natures: dict[Nature, Entry] = {}
    for entry in looked.values():
        if (found := probe.sniff(entry)) is not None:
            natures.setdefault(found.nature, entry)
            probe.expect(entry, *_PAYLOAD)
    for nature, says in (
        (Nature.ZIP, "begins with a record of torch.save"),
        (Nature.ZSTD, "begins with a zstd frame"),
        (Nature.SAFETENSORS, "begins like a safetensors file"),
    ):
        if nature in natures:
            evidence.append(Evidence(EvidenceKind.MAGIC, natures[nature].text, says, Basis.OBSERVED))
    for nature, code in (
        (Nature.ZSTD, "dcp.payload_compressed"),
        (Nature.SAFETENSORS, "dcp.payload_safetensors"),
    ):
        if nature in natures:
            probe.report(code, natures[nature], folder=shown, first=natures[nature].text)
    return natures, tuple(evidence)


def _smallest(entries: list[Entry]) -> list[Entry]:
    return [min(entries, key=lambda entry: (entry.size, entry.path))] if entries else []


def _topology(names: Names, grid: RankGrid) -> Topology:
    size = grid.extents[0]
    says = f"rank {size - 1:,} is the highest in the names; a higher one would leave no gap"
    mesh = Mesh(
        name="world",
        axes=(
            Axis("world", size, Basis.INFERRED, says),
            Axis("rank", size, Basis.INFERRED, "the first number of __RANK_NUMBER.distcp"),
        ),
        ranks_seen=grid.seen,
        ranks_missing=grid.missing,
    )
    return Topology(
        meshes=(mesh,),
        rank_files=tuple(
            RankFiles("world", (rank,), tuple(e.text for e in _of_rank(names, rank))) for (rank,) in grid.seen
        ),
        note="Names tell which rank wrote a file, not how the ranks were arranged.",
    )


def _of_rank(names: Names, rank: int) -> list[Entry]:
    return [*names.by_rank.get(rank, ()), *names.data.get(rank, ())]
