"""Weigh what the formats claim: one answer, or why there is none. Ambiguity fails closed."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.formats import FORMATS
from shardscope.engine.formats.folder import Folder, files_below
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Format
from shardscope.engine.formats.roles import is_companion
from shardscope.engine.formats.trackers import Tracker, trackers_in
from shardscope.engine.model.evidence import Alternative, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.text import display_name, path_text

STEP: Final = re.compile(r"(global_step|checkpoint|step|iter|epoch)[-_]?\d+.*|release", re.IGNORECASE)
"""Folders that trainers make, one for each save."""
_WEAK: Final = frozenset({EvidenceKind.NAME, EvidenceKind.STRUCTURE, EvidenceKind.TRACKER})
WEIGHT_SETS: Final = frozenset(
    {
        "bundle",
        "hf_safetensors",
        "hf_torch",
        "meta_consolidated",
        "mistral_consolidated",
        "vllm_sharded_state",
        "gguf",
        "keras",
        "onnx",
        "tensorflow",
    }
)
"""Formats that hold the same model twice where they stand in one folder."""
COPIES: Final = frozenset({b"original", b"onnx"})
"""Folders in which repositories keep the model of their parent in another format (meta-llama, transformers.js)."""
PIPELINE: Final = "model_index.json"
"""Marks a folder whose sub-folders are the parts of one pipeline (diffusers)."""

_FOLDERS: Final = tuple(prefix for item in FORMATS for prefix in item.hint.folders)
_BY_SUFFIX: Final[dict[str, list[int]]] = {}
for _number, _item in enumerate(FORMATS):
    for _suffix in _item.hint.suffixes:
        _BY_SUFFIX.setdefault(_suffix, []).append(_number)


class Candidate(Struct, frozen=True):
    """One of several saves that stand side by side."""

    folder: bytes
    formats: tuple[str, ...]
    files: int
    bytes: int
    tracker: str | None
    """The tracker that names it, neutralised."""


class Verdict(Struct, frozen=True):
    """What the folder is, by the claims that stand."""

    format: str
    """A format's name, or `composite`, `ambiguous`, `unknown`, `empty`."""
    claims: tuple[Claim, ...]
    alternatives: tuple[Alternative, ...]
    evidence: tuple[Evidence, ...] = ()
    candidates: tuple[Candidate, ...] = ()


def format_named(name: str) -> Format:
    """Return the format of that name."""
    return next(item for item in FORMATS if item.name == name)


def weigh(probe: Probe) -> Verdict:
    """Ask every format about every folder that no claim owns yet, parents first, and decide."""
    claims: list[Claim] = []
    alternatives: list[Alternative] = []
    trackers: list[Tracker] = []
    owned: set[bytes] = set()
    folders = sorted(path for path, entries in probe.inventory.by_folder.items() if entries)
    for done, path in enumerate(folders):
        probe.checkpoint("classify", done, len(folders))
        if owned and _within(path, owned):
            continue
        folder = probe.folder(path)
        trackers += trackers_in(probe, folder)
        found, rejected = _claims_in(probe, folder)
        claims += found
        alternatives += rejected
        owned.update(below for claim in found for below in claim.owned)
    return _decide(probe, claims, alternatives, trackers)


def _within(path: bytes, owned: set[bytes]) -> bool:
    while path:
        if path in owned:
            return True
        path = path.rpartition(b"/")[0]
    return False


def _claims_in(probe: Probe, folder: Folder) -> tuple[list[Claim], list[Alternative]]:
    claims: list[Claim] = []
    alternatives: list[Alternative] = []
    left, seen = folder, 0
    for item in asked(probe, folder):
        if item.general:
            if not folder.files:
                continue
            if len(claims) > seen:
                taken = [entry for claim in claims[seen:] for entry in claim.files]
                companions = [] if seen else [e for n, e in folder.files.items() if is_companion(n)]
                left, seen = left.without((*taken, *companions)), len(claims)
        answer = item.recognise(probe, left if item.general else folder)
        if isinstance(answer, Claim):
            claims.append(answer)
        elif answer is not None:
            alternatives.append(answer)
    return claims, alternatives


def asked(probe: Probe, folder: Folder) -> Sequence[Format]:
    """Return the formats whose hint fits a folder; a single file is shown to all of them."""
    if probe.inventory.root_is_file:
        return FORMATS
    wanted: set[int] = set()
    for suffix in folder.suffixes:
        wanted.update(_BY_SUFFIX.get(suffix.partition("-")[0], ()))
    for name in folder.folders:
        if name.startswith(_FOLDERS):
            wanted.update(n for n, item in enumerate(FORMATS) if name.startswith(item.hint.folders))
    return [FORMATS[number] for number in sorted(wanted)]


def _decide(
    probe: Probe, claims: Sequence[Claim], alternatives: list[Alternative], trackers: Sequence[Tracker]
) -> Verdict:
    evidence = tuple(tracker.evidence for tracker in trackers)
    if not claims:
        files = len(probe.inventory.files)
        if files:
            probe.report("layout.unknown", ".", count=files)
        else:
            probe.report("layout.empty", ".")
        return Verdict("unknown" if files else "empty", (), tuple(alternatives), evidence)
    rivals = _rivals(claims)
    if rivals:
        names = " and ".join(sorted({claim.format for claim in rivals}))
        probe.report("layout.ambiguous", _shown(rivals[0].folder), formats=names)
        reason = "claims the same files as another format"
        weighed = [Alternative(claim.format, reason, claim.evidence) for claim in rivals]
        return Verdict("ambiguous", (), (*alternatives, *weighed), evidence)
    candidates = _candidates(probe, claims, trackers)
    if candidates:
        first, last = (_shown(candidates[place].folder) for place in (0, -1))
        probe.report("layout.several_candidates", ".", count=len(candidates), first=first, last=last)
        return Verdict("ambiguous", (), tuple(alternatives), evidence, tuple(candidates))
    formats = sorted({claim.format for claim in claims})
    if len(formats) == 1 and not _is_root_with_steps(claims):
        return Verdict(formats[0], tuple(claims), tuple(alternatives), evidence)
    _report_composite(probe, claims, formats)
    return Verdict("composite", tuple(claims), tuple(alternatives), evidence)


def _rivals(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims that share a file with another one."""
    held: set[int] = set()  # entries are those of the inventory, so that their identity tells them apart
    for claim in claims:
        held.update(map(id, claim.files))
    if len(held) == sum(len(claim.files) for claim in claims):
        return []
    owners: dict[bytes, list[Claim]] = {}
    for claim in claims:
        for entry in claim.files:
            owners.setdefault(entry.path, []).append(claim)
    shared = [claim for holders in owners.values() if len(holders) > 1 for claim in holders]
    return list({id(claim): claim for claim in shared}.values())


def _candidates(probe: Probe, claims: Sequence[Claim], trackers: Sequence[Tracker]) -> list[Candidate]:
    """Return the saves that stand side by side, where nothing makes them one checkpoint."""
    folders = sorted({claim.folder for claim in claims})
    if len(folders) < 2 or b"" in folders or PIPELINE in probe.folder(b"").files:
        return []
    parent = _common_folder(folders)
    tops = sorted({_child(folder, parent) for folder in folders})
    steps = [top for top in tops if STEP.fullmatch(path_text(top.rpartition(b"/")[2]))]
    same = len({claim.format for claim in claims}) == 1
    if len(tops) < 2 or not (len(steps) > 1 or same):
        return []
    shown = steps if len(steps) > 1 else tops
    named = {tracker.target: tracker.entry.text for tracker in trackers}
    formats: dict[bytes, set[str]] = {top: set() for top in shown}
    for claim in claims:
        top = _child(claim.folder, parent)
        if top in formats:
            formats[top].add(claim.format)
    return [_candidate(probe, top, formats[top], named.get(top)) for top in shown]


def _candidate(probe: Probe, top: bytes, formats: set[str], tracker: str | None) -> Candidate:
    files = files_below(probe.inventory, top)
    size = sum(entry.identity.size for entry in files)
    return Candidate(top, tuple(sorted(formats)), len(files), size, tracker)


def _common_folder(folders: Sequence[bytes]) -> bytes:
    """Return the deepest folder that is a proper parent of all of `folders`."""
    parts = [folder.split(b"/") for folder in folders]
    common: list[bytes] = []
    for level in zip(*(p[:-1] for p in parts), strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return b"/".join(common)


def _child(folder: bytes, parent: bytes) -> bytes:
    """Return the child of `parent` that is, or leads to, `folder`."""
    start = len(parent) + 1 if parent else 0
    end = folder.find(b"/", start)
    return folder if end < 0 else folder[:end]


def _is_root_with_steps(claims: Sequence[Claim]) -> bool:
    """Tell whether a trainer left a final save in the root and its steps below it."""
    below = [claim.folder for claim in claims if claim.folder]
    steps = any(STEP.fullmatch(path_text(folder.split(b"/")[0])) for folder in below)
    return steps and len(below) < len(claims)


def _report_composite(probe: Probe, claims: Sequence[Claim], formats: Sequence[str]) -> None:
    beside: dict[bytes, set[str]] = {}
    for claim in claims:
        if claim.format in WEIGHT_SETS:
            parent, _, name = claim.folder.rpartition(b"/")
            beside.setdefault(parent if name in COPIES else claim.folder, set()).add(claim.format)
    for folder, here in sorted(beside.items()):
        if len(here) > 1:
            sets = ", ".join(sorted(here))
            probe.report("layout.weight_sets", _shown(folder), count=len(here), sets=sets)
    probe.report("layout.composite", ".", count=len(claims), formats=", ".join(formats))


def _shown(folder: bytes) -> str:
    return display_name(path_text(folder)) or "."


def capped(confidence: Confidence, evidence: Iterable[Evidence]) -> Confidence:
    """Return the confidence, at most `low` where names and their arrangement are all the evidence."""
    if all(item.kind in _WEAK for item in evidence):
        return min(confidence, Confidence.LOW, key=lambda value: value.rank)
    return confidence
