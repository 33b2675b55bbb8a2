"""vLLM's sharded_state: the memory of each tensor-parallel worker in files of its own.

Files are `model-rank-0-part-0.safetensors` and on (vllm `model_loader/sharded_state_loader.py`, `DEFAULT_PATTERN`; the part before
`-rank-` can be chosen), ranks and parts counted from 0. Headers are readable. Names are those of the running model, with
projections fused, and neither how a tensor was cut nor its whole shape is recorded.
"""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.formats import model_config
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.rank_grid import RankGrid, rank_grid
from shardscope.engine.formats.safetensors_sets import SUFFIX
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.formats.set_checks import report_sets
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.text import counted, display_name
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology

_FILE: Final = re.compile(
    r"(?P<stem>.+)-rank-(?P<rank>\d{1,9})-part-(?P<part>\d{1,9})\.safetensors", re.ASCII
)
_FUSED: Final = re.compile(r".+\.(qkv_proj|gate_up_proj|fused_qkv_a_proj|in_proj_qkvz|w13_weight)(\..+)?")
_MESH: Final = "dense"
_OUTPUT: Final = "lm_head.weight"
_EMBEDDING: Final = "model.embed_tokens.weight"

Stored = tuple[str, tuple[int, ...]]
"""Dtype and shape."""


class _Part(Struct, frozen=True):
    """One file: a part of what one rank holds."""

    entry: Entry
    rank: int
    number: int


class _Held(Struct):
    """What the headers of one rank say."""

    rank: int
    tensors: dict[str, Stored]
    readable: bool = True


class VllmShardedState:
    """The family `vllm_sharded_state`."""

    name = "vllm_sharded_state"
    general = False
    hint = Hint((SUFFIX,))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim the files named by rank and part."""
        files = [
            entry
            for name, entry in folder.named(SUFFIX).items()
            if "-rank-" in name and _FILE.fullmatch(name)
        ]
        if not files:
            return None
        says = f"{counted(len(files), 'file')} named by rank and part"
        evidence = Evidence(EvidenceKind.NAME, files[0].text, says, Basis.INFERRED)
        return Claim(self.name, folder.path, tuple(files), Confidence.LOW, (evidence,))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """List the tensors of each rank as they are stored; compare the ranks of each save with each other."""
        saves: dict[str, list[_Part]] = {}
        for entry in claim.files:
            match = _FILE.fullmatch(entry.name)
            if match is not None:
                part = _Part(entry, int(match["rank"]), int(match["part"]))
                saves.setdefault(match["stem"], []).append(part)
        report_sets(probe, claim.folder, list(saves))
        held: list[_Held] = []
        for stem, parts in saves.items():
            if not probe.inventory.root_is_file:
                _report_files(probe, stem, parts)
            found = [_read(probe, rank, parts) for rank in sorted({part.rank for part in parts})]
            _compare(probe, _pattern(stem), found)
            held += found
        names = {name for item in held for name in item.tensors}
        tensors = sum(len(item.tensors) for item in held)
        folder = probe.folder(claim.folder)
        facts = _model(probe, folder, names)
        if names:
            known = _fitting(self.name, facts)
            probe.report("vllm.geometry", claim.files[0], count=len(names), ranks=len(held), fitting=known)
        config = model_config.describe(probe, folder)
        sound = bool(names) and all(item.readable for item in held)
        weights = StatePart(
            Presence.PRESENT if tensors else Presence.UNKNOWN,
            Basis.OBSERVED if tensors else Basis.UNKNOWN,
            f"{counted(tensors, 'tensor')}, as {counted(len(held), 'rank')} stored them",
        )
        return Facts(
            confidence=Confidence.MEDIUM if sound else Confidence.LOW,
            evidence=(*_evidence(claim, tensors, names), *config.evidence),
            components=(*(_component(self.name, *save) for save in saves.items()), *config.components),
            producer=config.producer,
            topology=_topology(next(iter(saves.values()))),
            state=scope_of(folder.files.values(), weights),
            code_references=config.code_references,
            weight_reason="which tensors are parts of a whole and which are copies is not recorded",
            model=facts,
        )


def _model(probe: Probe, folder: Folder, names: set[str]) -> ModelFacts:
    """Return what is known of the model, for mapping tables.

    Of tensors that share their memory the saver keeps the smallest name (`_filter_subtensors`): an output layer without an
    embedding is both.
    """
    facts = model_config.model_facts(probe, folder) or ModelFacts()
    return replace(facts, tied=_OUTPUT in names and _EMBEDDING not in names)


def _fitting(format_name: str, facts: ModelFacts) -> str:
    from shardscope.engine.formats.fitting import (
        fitting_tables,
        in_words,
    )  # tables are read for this family alone

    return in_words(fitting_tables(format_name, facts))


def rank_of(name: str) -> int | None:
    """Return the rank that a file name tells; null where it is of another form."""
    match = _FILE.fullmatch(name)
    return int(match["rank"]) if match is not None else None


def _grid(parts: Sequence[_Part]) -> RankGrid:
    return rank_grid({(part.rank,) for part in parts})


def _pattern(stem: str) -> str:
    return f"{display_name(stem)}-rank-*-part-*.{SUFFIX}"


def _report_files(probe: Probe, stem: str, parts: Sequence[_Part]) -> None:
    """Report ranks without a file, gaps among the parts of a rank, and one part in two files."""
    pattern = _pattern(stem)
    grid = _grid(parts)
    if grid.missing_count:
        probe.report(
            "vllm.rank_missing",
            pattern,
            missing=grid.missing_count,
            total=grid.ranks,
            pattern=pattern,
            first=grid.missing[0][0],
        )
    by_rank: dict[int, dict[int, Entry]] = {}
    for part in parts:
        numbers = by_rank.setdefault(part.rank, {})
        other = numbers.setdefault(part.number, part.entry)
        if other is not part.entry:
            probe.report("vllm.file_twice", part.entry, other=other.text, part=part.number, rank=part.rank)
    for rank, numbers in sorted(by_rank.items()):
        missing = max(numbers) + 1 - len(numbers)
        if missing:
            first = next(number for number in range(len(numbers) + 1) if number not in numbers)
            probe.report(
                "vllm.part_missing", pattern, rank=rank, missing=missing, pattern=pattern, first=first
            )


def _read(probe: Probe, rank: int, parts: Sequence[_Part]) -> _Held:
    held = _Held(rank, {})
    own = [part.entry for part in parts if part.rank == rank]
    for done, entry in enumerate(own):
        probe.checkpoint("headers", done, len(own), entry)
        header = probe.header(entry)
        if header is None:
            held.readable = False
            continue
        model_config.check_metadata(probe, entry, header.metadata)
        probe.catalogue(entry, header)
        twice = [name for name in header.names if name in held.tensors]
        if twice:
            probe.report(
                "index.tensor_duplicate",
                entry,
                count=len(twice),
                tensor=twice[0],
                target="another part of the same rank",
            )
        held.tensors.update(zip(header.names, zip(header.dtypes, header.shapes, strict=True), strict=True))
    return held


def _compare(probe: Probe, pattern: str, held: Sequence[_Held]) -> None:
    """Report tensors that a rank lacks or holds in another shape; say how many look the same on every rank."""
    ranks = [item for item in held if item.readable]
    if len(ranks) < 2:
        return
    union: dict[str, tuple[int, Stored]] = {}
    odd: dict[str, int] = {}
    for item in ranks:
        for name, stored in item.tensors.items():
            if union.setdefault(name, (item.rank, stored))[1] != stored:
                odd.setdefault(name, item.rank)
    for item in ranks:
        lacking = [name for name in union if name not in item.tensors]
        if lacking:
            probe.report(
                "vllm.tensors_differ", pattern, rank=item.rank, missing=len(lacking), tensor=lacking[0]
            )
    if odd:
        name, second = next(iter(odd.items()))
        first = union[name][0]
        probe.report("vllm.shapes_differ", pattern, count=len(odd), tensor=name, first=first, second=second)
    same = sum(name not in odd and all(name in item.tensors for item in ranks) for name in union)
    if same:
        probe.report("vllm.same_on_ranks", pattern, count=same, ranks=len(ranks))


def _evidence(claim: Claim, tensors: int, names: set[str]) -> list[Evidence]:
    if not tensors:
        return []
    fused = [name for name in names if _FUSED.fullmatch(name)]
    says = f"valid safetensors headers, {counted(tensors, 'tensor')}"
    evidence = [Evidence(EvidenceKind.HEADER, claim.files[0].text, says, Basis.OBSERVED)]
    if fused:
        says = f"{counted(len(fused), 'name')} of fused projections, as vLLM gives them"
        evidence.append(Evidence(EvidenceKind.HEADER, display_name(min(fused), 120), says, Basis.OBSERVED))
    return evidence


def _component(format_name: str, stem: str, parts: Sequence[_Part]) -> Component:
    return Component(
        kind="weights",
        name=display_name(stem),
        format=format_name,
        files=tuple(part.entry.text for part in parts),
        bytes=sum(part.entry.size for part in parts),
        note="parts of each rank; how they make a whole is not recorded",
    )


def _topology(parts: Sequence[_Part]) -> Topology:
    grid = _grid(parts)
    axis = Axis(
        "tp",
        grid.extents[0],
        Basis.INFERRED,
        "numbers in the file names; a missing last rank leaves no trace",
    )
    by_rank: dict[int, list[str]] = {}
    for part in parts:
        by_rank.setdefault(part.rank, []).append(part.entry.text)
    files = tuple(RankFiles(_MESH, (rank,), tuple(names)) for rank, names in sorted(by_rank.items()))
    mesh = Mesh(_MESH, (axis,), grid.seen, grid.missing, grid.duplicate)
    return Topology((mesh,), files, "How the tensors of the ranks make a whole is not recorded.")


VLLM_SHARDED_STATE: Final = VllmShardedState()
