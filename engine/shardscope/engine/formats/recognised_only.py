"""What the families have in common that are recognised and not read further: one blocker, and nothing claimed beyond it."""

from collections.abc import Sequence
from typing import Final

from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.text import counted

NOTE: Final = "recognised only: not read further"
INSIDE: Final = "the files of the weights may hold it too; they are not read"
_SHOWN: Final = 1_000
"""Files that a component lists by name."""


def part(claim: Claim, name: str, files: Sequence[Entry], kind: str = "weights", note: str = "") -> Component:
    """Return a part of the checkpoint that is not read. Of very many files only the first are listed."""
    return Component(
        kind=kind,
        name=name,
        format=claim.format,
        files=tuple(entry.text for entry in files[:_SHOWN]),
        bytes=sum(entry.size for entry in files),
        note=f"{note}; {NOTE}" if note else NOTE,
    )


def unread(
    probe: Probe,
    claim: Claim,
    files: Sequence[Entry],
    *,
    seen: bool,
    evidence: Sequence[Evidence] = (),
    components: Sequence[Component] = (),
) -> Facts:
    """Report once that `files` are not read further, and return what is known all the same.

    `seen` says whether bytes of the format were seen, so that the confidence is more than that of a name.
    """
    size = sum(entry.size for entry in files)
    probe.report(
        "layout.recognised_only",
        files[0] if files else claim.files[0],
        format=FORMAT_TITLES[claim.format],
        count=len(files),
        size=size,
    )
    says = f"{counted(len(files), 'file')} recognised only"
    weights = StatePart(
        Presence.OPAQUE if files else Presence.UNKNOWN,
        Basis.OBSERVED if seen else Basis.INFERRED,
        says,
        tuple(entry.text for entry in files[:8]),
    )
    return Facts(
        confidence=Confidence.MEDIUM if seen else Confidence.LOW,
        evidence=tuple(evidence),
        components=tuple(components),
        state=scope_of(probe.folder(claim.folder).files.values(), weights, inside=INSIDE),
        opaque=tuple(files),
        weight_reason="the format is recognised only",
    )


def named(entry: Entry, says: str) -> Evidence:
    """Return the evidence of a name."""
    return Evidence(EvidenceKind.NAME, entry.text, says, Basis.INFERRED)


def magic(entry: Entry, says: str) -> Evidence:
    """Return the evidence of first bytes."""
    return Evidence(EvidenceKind.MAGIC, entry.text, says, Basis.OBSERVED)
