"""Meta's release layout: `consolidated.00.pth` and on, one file for each model-parallel rank, beside `params.json`.

Names follow meta-llama (`llama/generation.py`); early releases of Mistral use the same. The files are torch files and stay
opaque. The degree is counted from names, or from `checklist.chk`, which lists the files of a release with their MD5.
"""

import re
from typing import Final

from shardscope.engine.formats import model_config
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.mistral_consolidated import PARAMS, model_facts, read_params
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.rank_grid import RankGrid, rank_grid
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.formats.torch_files import containers, report_opaque
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.text import counted
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology

_FILE: Final = re.compile(r"consolidated\.(\d{1,6})\.pth", re.ASCII)
_PATTERN: Final = "consolidated.*.pth"
_CHECKLIST: Final = "checklist.chk"
_LINE: Final = re.compile(r"([0-9a-fA-F]{32})\s+\*?(\S{1,255})")
_CHECKLIST_BYTES: Final = 1 << 20
_MESH: Final = "dense"


class MetaConsolidated:
    """The family `meta_consolidated`."""

    name = "meta_consolidated"
    general = False
    hint = Hint(("pth",))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim `consolidated.NN.pth` and the checklist beside them."""
        files = [entry for entry in folder.starting("consolidated.", "pth") if _FILE.fullmatch(entry.name)]
        if not files:
            return None
        says = f"{counted(len(files), 'file')} named consolidated.NN.pth"
        evidence = [Evidence(EvidenceKind.NAME, files[0].text, says, Basis.INFERRED)]
        declared = read_params(probe, folder)
        if declared is not None:
            evidence.append(declared)
        checklist = folder.files.get(_CHECKLIST)
        claimed = (*files, checklist) if checklist is not None else tuple(files)
        return Claim(self.name, folder.path, claimed, Confidence.LOW, tuple(evidence))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Count ranks, compare the containers; nothing in them is interpreted."""
        folder = probe.folder(claim.folder)
        ranks: dict[int, list[Entry]] = {}
        for entry in claim.files:
            match = _FILE.fullmatch(entry.name)
            if match is not None:
                ranks.setdefault(int(match[1]), []).append(entry)
        files = [entry for _, found in sorted(ranks.items()) for entry in found]
        listed = _checklist(probe, folder)
        degree = max(listed) + 1 if listed else None
        grid = rank_grid([(rank,) for rank, found in ranks.items() for _ in found], (degree,))
        if not probe.inventory.root_is_file:
            _report_ranks(probe, grid, ranks)
        found = containers(probe, files)
        opaque = (*found.torch, *found.pickles)
        report_opaque(probe, opaque)
        _compare(probe, found.torch)
        if len(files) > 1:
            probe.report("consolidated.dimensions", files[0], count=len(files))
        if PARAMS not in folder.files and not probe.inventory.root_is_file:
            probe.report("consolidated.params_missing", files[0])
        declared = any(item.kind is EvidenceKind.JSON for item in claim.evidence)
        sound = bool(found.torch) and not found.other
        size = sum(entry.size for entry in files)
        config = model_config.describe(probe, folder)
        weights = Component(
            "weights",
            "consolidated",
            self.name,
            tuple(entry.text for entry in claim.files),
            size,
            "opaque: not examined in the safe plane",
        )
        state = StatePart(
            Presence.OPAQUE if opaque else Presence.UNKNOWN,
            Basis.OBSERVED,
            f"{counted(len(opaque), 'pickle-backed file')}",
        )
        return Facts(
            confidence=Confidence.MEDIUM if sound and declared else Confidence.LOW,
            evidence=found.evidence,
            components=(weights, *config.components),
            topology=_topology(grid, ranks, declared=bool(listed)),
            state=scope_of(folder.files.values(), state),
            opaque=opaque,
            model=model_facts(probe, folder),
        )


def rank_of(name: str) -> int | None:
    """Return the rank that a file name tells; null where it is of another form."""
    match = _FILE.fullmatch(name)
    return int(match[1]) if match is not None else None


def _checklist(probe: Probe, folder: Folder) -> set[int]:
    """Return the ranks that the checklist lists; report files that it lists and that are not here."""
    entry = folder.files.get(_CHECKLIST)
    text = probe.text(entry, _CHECKLIST_BYTES) if entry is not None else None
    if entry is None or text is None:
        return set()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    matches = [_LINE.fullmatch(line) for line in lines]
    names = [match[2] for match in matches if match is not None]
    if not names or len(names) < len(lines):
        probe.report("consolidated.checklist", entry)
    gone = sorted({name for name in names if name not in folder.files})
    if gone:
        probe.report("consolidated.listed_missing", entry, count=len(gone), target=gone[0])
    return {int(match[1]) for name in names if (match := _FILE.fullmatch(name))}


def _report_ranks(probe: Probe, grid: RankGrid, ranks: dict[int, list[Entry]]) -> None:
    if grid.missing_count:
        probe.report(
            "consolidated.rank_missing",
            _PATTERN,
            missing=grid.missing_count,
            total=grid.ranks,
            pattern=_PATTERN,
            first=grid.missing[0][0],
        )
    for (rank,) in grid.duplicate[:8]:
        probe.report(
            "consolidated.rank_twice", ranks[rank][1], count=len(ranks[rank]), pattern=_PATTERN, number=rank
        )


def _compare(probe: Probe, files: tuple[Entry, ...]) -> None:
    """Report the first rank whose storages are not those of the first: all ranks hold parts of equal size."""
    known = [(entry, archive) for entry in files if (archive := probe.archive(entry)) is not None]
    for entry, archive in known[1:]:
        first, expected = known[0]
        if (archive.storages, archive.storage_bytes) != (expected.storages, expected.storage_bytes):
            probe.report(
                "consolidated.ranks_differ",
                entry,
                found=archive.storages,
                found_bytes=archive.storage_bytes,
                other=first.text,
                expected=expected.storages,
                expected_bytes=expected.storage_bytes,
            )
            return


def _topology(grid: RankGrid, ranks: dict[int, list[Entry]], *, declared: bool) -> Topology:
    says = (
        f"{_CHECKLIST} lists them"
        if declared
        else "numbers in the file names; a missing last rank leaves no trace"
    )
    basis = Basis.DECLARED if declared else Basis.INFERRED
    axis = Axis("tp", grid.extents[0], basis, says)
    mesh = Mesh(_MESH, (axis,), grid.seen, grid.missing, grid.duplicate)
    files = tuple(
        RankFiles(_MESH, (rank,), tuple(entry.text for entry in found))
        for rank, found in sorted(ranks.items())
    )
    return Topology((mesh,), files, "Along which dimension each tensor was cut is not recorded.")


META_CONSOLIDATED: Final = MetaConsolidated()
