"""DCP written as safetensors: each rank's fragments with their offsets in the header, readable in the safe plane.

Names and header keys follow torch (`distributed/checkpoint/hf_storage.py`, `_hf_utils.py`): `shard-SSSSS-model-FFFFF-of-NNNNN`
holds the fragments of one rank (S counts from 1) for output file F, `model-FFFFF-of-NNNNN` those of a save that one rank
made, and consolidated files stand beside a folder `sharded`. The header's metadata has `DCP_SHARDING_INFO`, the offset of
every fragment. Fragments must make up whole tensors; how far those reach is recorded nowhere (see `dcp_tensors`).

Names decide nothing: a file of either name is claimed for its header. Where an index names whole tensors and every fragment
begins at the origin in one file only, the folder is an ordinary Hugging Face save that DCP happened to write.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.formats import model_config
from shardscope.engine.formats.dcp_headers import read_fragments
from shardscope.engine.formats.dcp_tensors import Declaration, Tensors
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.rank_grid import rank_grid
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.model.blocker import Fault, Severity
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.text import counted, display_name, path_text
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology
from shardscope.engine.parse.dcp_sharding import SHARDING, parse_sharding

SUFFIX: Final = "safetensors"
_NAME: Final = re.compile(
    r"(?:shard-(?P<shard>\d{1,9})-)?model-(?P<file>\d{1,9})-of-(?P<total>\d{1,9})\.safetensors"
)
_INDEX: Final = "model.safetensors.index.json"
_SHARDED: Final = b"sharded"
"""The folder of the fragments where consolidated files are asked for as well."""
_PEEKED: Final = 8
"""Files that are looked at for the first header with sharding information."""


class Numbered(Struct, frozen=True):
    """One file by its name."""

    entry: Entry
    shard: int | None
    """From 1; null in the names of a save that one rank made."""
    file: int
    total: int


def numbered(folder: Folder) -> list[Numbered]:
    """Return the files of a folder that are named as DCP names its safetensors, by path."""
    return [
        Numbered(entry, int(m["shard"]) if m["shard"] else None, int(m["file"]), int(m["total"]))
        for entry, m in folder.matching(_NAME, SUFFIX, holding="-of-")
    ]


class TorchDcpSafetensors:
    """The family `torch_dcp_safetensors`."""

    name = "torch_dcp_safetensors"
    general = False
    hint = Hint((SUFFIX,))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim numbered files whose headers say where their tensors lie in larger ones."""
        named = numbered(folder)
        shards = [item.entry for item in named if item.shard is not None]
        whole = [item.entry for item in named if item.shard is None]
        index = folder.files.get(_INDEX)
        if shards:
            return self._shards(probe, folder, shards, whole, index)
        if not whole or not _mentions(probe, whole[0]):
            return None
        if index is not None and (reason := _whole_tensors(probe, whole)) is not None:
            return Alternative(self.name, reason, (_declares(whole[0]),))
        return self._claim(folder, [*whole, *([index] if index else [])], [_named(whole)])

    def _shards(
        self, probe: Probe, folder: Folder, shards: list[Entry], whole: list[Entry], index: Entry | None
    ) -> Claim | Alternative:
        evidence = [_named(shards)]
        headers = [probe.peek_header(entry) for entry in shards[:_PEEKED]]
        readable = [header for header in headers if header is not None]
        if readable and not any(SHARDING in header.metadata for header in readable):
            reason = f"named like its shards, but no header of the first {len(headers):,} has {SHARDING}"
            return Alternative(self.name, reason, tuple(evidence))
        # An index belongs to consolidated files where they are here, too.
        return self._claim(folder, [*shards, *([index] if index and not whole else [])], evidence)

    def _claim(self, folder: Folder, files: list[Entry], evidence: list[Evidence]) -> Claim:
        return Claim(self.name, folder.path, tuple(files), Confidence.LOW, tuple(evidence))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """List the fragments of every file and compare them exactly with the tensors that they should make up."""
        folder = probe.folder(claim.folder)
        named = numbered(folder.only(claim.files))
        before = len(probe.blockers)
        for entry in claim.files:
            if entry.name == _INDEX and any(item.shard is not None for item in named):
                probe.report("dcp.index_beside", entry)
        shards = _check_numbers(probe, claim, named)
        reading = read_fragments(probe, [item.entry for item in named])
        config = model_config.describe(probe, folder)
        tensors = reading.tensors
        declared = declared_shapes(probe, folder)
        tensors.check(probe, shards=len(shards), declared=declared)
        clean = not any(item.severity is Severity.ERROR for item in probe.blockers[before:])
        evidence = [*reading.evidence, *tensors.evidence, *config.evidence]
        confidence = Confidence.LOW
        if reading.declaring:
            confidence = Confidence.HIGH if clean else Confidence.MEDIUM
        says = f"{counted(len(tensors), 'tensor')} in {counted(tensors.count, 'fragment')}"
        note = says if clean else f"{says}; see the blockers"
        if tensors.twins(declared):
            note += "; the same tensors as in the consolidated files"
        found = Presence.PRESENT if len(tensors) else Presence.UNKNOWN
        return Facts(
            confidence=confidence,
            evidence=tuple(evidence),
            components=(_component(claim, note), *config.components),
            producer=(*reading.producer, *config.producer),
            topology=_topology(named),
            state=scope_of(
                folder.files.values(),
                StatePart(found, Basis.OBSERVED, says if len(tensors) else "not examined"),
            ),
            code_references=config.code_references,
            model=model_config.model_facts(probe, folder),
            weight_bytes=_weight_bytes(tensors, declared) if clean else None,
            weight_reason=None if clean else "the fragments do not make up whole tensors, see the blockers",
        )


def _weight_bytes(tensors: Tensors, declared: Mapping[str, Declaration]) -> int | None:
    """Return the bytes of the whole tensors: none of their own where consolidated files hold the same ones."""
    if not len(tensors):
        return None
    return 0 if tensors.twins(declared) else tensors.logical_bytes


def _check_numbers(probe: Probe, claim: Claim, named: Sequence[Numbered]) -> list[int]:
    """Report files that the numbers in names leave out; return the shard numbers that are here."""
    shards = sorted({item.shard for item in named if item.shard is not None})
    totals = sorted({item.total for item in named})
    shown = display_name(path_text(claim.folder)) or "."
    if len(totals) > 1:
        words = ", ".join(f"{total:,}" for total in totals[:8])
        probe.report("layout.totals_mixed", shown, pattern="*model-*-of-*", totals=words)
    odd = [item for item in named if item.shard == 0 or not 1 <= item.file <= item.total]
    for item in odd[:8]:
        probe.report("layout.shard_number", item.entry, number=item.file, total=item.total)
    if odd or len(totals) != 1 or probe.inventory.root_is_file:
        return shards
    grid = rank_grid(((item.shard or 1) - 1, item.file - 1) for item in named) if named else None
    if grid is None or max(grid.extents) >= 1 << 30:
        return shards
    total = totals[0]
    grid = rank_grid(grid.seen, (None, total)) if total < 1 << 30 else grid
    if grid.missing_count:
        shard, file = grid.missing[0]
        prefix = f"shard-{shard + 1:05d}-" if shards else ""
        first = f"{prefix}model-{file + 1:05d}-of-{total:05d}.{SUFFIX}"
        probe.report(
            "dcp.shard_gap", shown, missing=grid.missing_count, total=grid.ranks, folder=shown, first=first
        )
    if twice := len(named) - len(grid.seen):
        copies: dict[tuple[int | None, int], Entry] = {}
        first = next(
            item.entry.text
            for item in named
            if copies.setdefault((item.shard, item.file), item.entry) is not item.entry
        )
        probe.report("dcp.shard_duplicate", shown, count=twice, first=first)
    return shards


def declared_shapes(probe: Probe, folder: Folder) -> dict[str, Declaration]:
    """Return the shapes of whole tensors that something beside the fragments declares.

    Consolidated files hold the tensors whole: beside the fragments, or beside their folder `sharded`. Otherwise a
    configuration gives the shape of embeddings and output heads.
    """
    above = folder.path.rpartition(b"/")
    holder = probe.folder(above[0]) if above[2] == _SHARDED else folder
    found: dict[str, Declaration] = {}
    for item in numbered(holder):
        header = probe.peek_header(item.entry) if item.shard is None else None
        if header is not None and SHARDING not in header.metadata:
            shapes = zip(header.names, header.shapes, strict=True)
            found |= {name: Declaration(shape, item.entry.text) for name, shape in shapes}
    if found:
        return found
    return {
        name: Declaration(shape, source, padded=True)
        for name, (shape, source) in model_config.embedding_shapes(probe, holder).items()
    }


def _mentions(probe: Probe, entry: Entry) -> bool:
    """Tell whether the first bytes of a header hold the key of the sharding information.

    The writer's library puts metadata first, so that an ordinary Hugging Face save costs one small read.
    """
    return SHARDING in (probe.text(entry) or "")


def _whole_tensors(probe: Probe, files: Sequence[Entry]) -> str | None:
    """Return why files with an index hold whole tensors; null where a header shows fragments."""
    seen: set[str] = set()
    for entry in files:
        header = probe.peek_header(entry)
        text = header.metadata.get(SHARDING) if header is not None else None
        if header is None or text is None:
            continue
        try:
            saved = parse_sharding(text, probe.limits).saved
        except Fault:
            return None
        if any(any(item.offset) for item in saved.values()) or not seen.isdisjoint(header.names):
            return None
        seen.update(header.names)
    return f"{SHARDING} places every tensor at the origin, in one file each, and an index names them: they are whole"


def _named(files: Sequence[Entry]) -> Evidence:
    says = f"{counted(len(files), 'file')} named like safetensors of DCP"
    return Evidence(EvidenceKind.NAME, files[0].text, says, Basis.INFERRED)


def _declares(entry: Entry) -> Evidence:
    return Evidence(EvidenceKind.HEADER, entry.text, f"its metadata has {SHARDING}", Basis.OBSERVED)


def _component(claim: Claim, note: str) -> Component:
    return Component(
        kind="weights",
        name=display_name(path_text(claim.folder.rpartition(b"/")[2])) or "model",
        format=claim.format,
        files=tuple(entry.text for entry in claim.files),
        bytes=sum(entry.size for entry in claim.files),
        note=note,
    )


def _topology(named: Sequence[Numbered]) -> Topology:
    by_rank: dict[int, list[str]] = {}
    for item in named:
        if item.shard:
            by_rank.setdefault(item.shard - 1, []).append(item.entry.text)
    if not by_rank or max(by_rank) >= 1 << 30:
        return Topology(note="No rank is named: each file holds what one writer saved.")
    grid = rank_grid((rank,) for rank in by_rank)
    size = grid.extents[0]
    says = f"shard {size:,} is the highest in the names; a higher one would leave no gap"
    mesh = Mesh(
        name="world",
        axes=(
            Axis("world", size, Basis.INFERRED, says),
            Axis("rank", size, Basis.INFERRED, "the number after shard- in the names, less one"),
        ),
        ranks_seen=grid.seen,
        ranks_missing=grid.missing,
    )
    files = tuple(RankFiles("world", (rank,), tuple(by_rank[rank])) for rank in sorted(by_rank))
    return Topology((mesh,), files, "Offsets in headers place fragments in tensors, not ranks on a mesh.")


TORCH_DCP_SAFETENSORS: Final = TorchDcpSafetensors()
