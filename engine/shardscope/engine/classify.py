"""Weigh what the formats claim: one answer, or why there is none. Ambiguity fails closed."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.formats import FORMATS
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Format
from shardscope.engine.formats.roles import COMPANIONS, role_of
from shardscope.engine.model.evidence import Alternative, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry, Kind
from shardscope.engine.model.text import display_name, path_text

STEP: Final = re.compile(r"(global_step|checkpoint|step|iter|epoch)[-_]?\d+.*|release", re.IGNORECASE)
"""Folders that trainers make, one for each save."""
_WEAK: Final = frozenset({EvidenceKind.NAME, EvidenceKind.STRUCTURE})
WEIGHT_SETS: Final = frozenset({"hf_safetensors", "hf_torch"})
"""Formats that hold the same model twice where they stand in one folder."""
PIPELINE: Final = "model_index.json"
"""Marks a folder whose sub-folders are the parts of one pipeline (diffusers)."""


class Verdict(Struct, frozen=True):
    """What the folder is, by the claims that stand."""

    format: str
    """A format's name, or `composite`, `ambiguous`, `unknown`, `empty`."""
    claims: tuple[Claim, ...]
    alternatives: tuple[Alternative, ...]
    candidates: tuple[str, ...] = ()
    """Folders to choose from, where several saves stand side by side."""


def format_named(name: str) -> Format:
    """Return the format of that name."""
    return next(item for item in FORMATS if item.name == name)


def weigh(probe: Probe) -> Verdict:
    """Ask every format about every folder and decide."""
    claims: list[Claim] = []
    alternatives: list[Alternative] = []
    folders = sorted(path for path, entries in probe.inventory.by_folder.items() if _holds_files(entries))
    for done, path in enumerate(folders):
        probe.checkpoint("classify", done, len(folders))
        found, rejected = _claims_in(probe, probe.folder(path))
        claims += found
        alternatives += rejected
    return _decide(probe, claims, alternatives)


def _holds_files(entries: Iterable[Entry]) -> bool:
    return any(entry.kind is Kind.FILE for entry in entries)


def _claims_in(probe: Probe, folder: Folder) -> tuple[list[Claim], list[Alternative]]:
    claims: list[Claim] = []
    alternatives: list[Alternative] = []
    for item in FORMATS:
        view = folder
        if item.general and claims:
            taken = [entry for claim in claims for entry in claim.files]
            companions = [entry for name, entry in folder.files.items() if role_of(name) in COMPANIONS]
            view = folder.without((*taken, *companions))
        answer = item.recognise(probe, view)
        if isinstance(answer, Claim):
            claims.append(answer)
        elif answer is not None:
            alternatives.append(answer)
    return claims, alternatives


def _decide(probe: Probe, claims: Sequence[Claim], alternatives: list[Alternative]) -> Verdict:
    if not claims:
        files = len(probe.inventory.files)
        if files:
            probe.report("layout.unknown", ".", count=files)
        else:
            probe.report("layout.empty", ".")
        return Verdict("unknown" if files else "empty", (), tuple(alternatives))
    rivals = _rivals(claims)
    if rivals:
        names = " and ".join(sorted({claim.format for claim in rivals}))
        probe.report("layout.ambiguous", _shown(rivals[0].folder), formats=names)
        reason = "claims the same files as another format"
        weighed = [Alternative(claim.format, reason, claim.evidence) for claim in rivals]
        return Verdict("ambiguous", (), (*alternatives, *weighed))
    candidates = _candidates(probe, claims)
    if candidates:
        probe.report(
            "layout.several_candidates", ".", count=len(candidates), first=candidates[0], last=candidates[-1]
        )
        return Verdict("ambiguous", (), tuple(alternatives), tuple(candidates))
    formats = sorted({claim.format for claim in claims})
    if len(formats) == 1:
        return Verdict(formats[0], tuple(claims), tuple(alternatives))
    beside = [claim for claim in claims if claim.format in WEIGHT_SETS]
    for folder in sorted({claim.folder for claim in beside}):
        here = sorted(claim.format for claim in beside if claim.folder == folder)
        if len(here) > 1:
            probe.report("layout.weight_sets", _shown(folder), count=len(here), sets=", ".join(here))
    probe.report("layout.composite", ".", count=len(claims), formats=", ".join(formats))
    return Verdict("composite", tuple(claims), tuple(alternatives))


def _rivals(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims that share a file with another one."""
    owners: dict[bytes, list[Claim]] = {}
    for claim in claims:
        for entry in claim.files:
            owners.setdefault(entry.path, []).append(claim)
    shared = [claim for holders in owners.values() if len(holders) > 1 for claim in holders]
    return list({id(claim): claim for claim in shared}.values())


def _candidates(probe: Probe, claims: Sequence[Claim]) -> list[str]:
    """Return the folders of saves that stand side by side, where nothing makes them one checkpoint."""
    folders = sorted({claim.folder for claim in claims})
    if len(folders) < 2 or b"" in folders or PIPELINE in probe.folder(b"").files:
        return []
    tops = sorted({folder.split(b"/")[0] for folder in folders})
    steps = [top for top in tops if STEP.fullmatch(path_text(top))]
    if len(tops) > 1 and (len(steps) > 1 or len({claim.format for claim in claims}) == 1):
        return [display_name(path_text(top)) for top in (steps if len(steps) > 1 else tops)]
    return []


def _shown(folder: bytes) -> str:
    return path_text(folder) or "."


def capped(confidence: Confidence, evidence: Iterable[Evidence]) -> Confidence:
    """Return the confidence, at most `low` where names and their arrangement are all the evidence."""
    if all(item.kind in _WEAK for item in evidence):
        return min(confidence, Confidence.LOW, key=lambda value: value.rank)
    return confidence
