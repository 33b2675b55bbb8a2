"""What the families have in common whose tensors are listed from headers and which nothing here converts."""

from collections.abc import Sequence

from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Basis, Confidence, Evidence
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.text import counted

_SHOWN = 1_000
"""Files that a component lists by name."""


def part_of(
    claim: Claim, name: str, files: Sequence[Entry], kind: str = "weights", note: str = ""
) -> Component:
    """Return a part of the checkpoint. Of very many files only the first are listed."""
    return Component(
        kind=kind,
        name=name,
        format=claim.format,
        files=tuple(entry.text for entry in files[:_SHOWN]),
        bytes=sum(entry.size for entry in files),
        note=note or None,
    )


def listed(
    probe: Probe,
    claim: Claim,
    tensors: int,
    size: int | None,
    *,
    confidence: Confidence,
    evidence: Sequence[Evidence] = (),
    components: Sequence[Component] = (),
    opaque: Sequence[Entry] = (),
    code_references: Sequence[str] = (),
    model: ModelFacts | None = None,
) -> Facts:
    """Report once that nothing here converts the format, and return what its headers told.

    `size` are the bytes of all tensors; null where they are not all known.
    """
    probe.report("layout.headers_only", claim.files[0], format=FORMAT_TITLES[claim.format], count=tensors)
    weights = StatePart(
        Presence.PRESENT if tensors else Presence.UNKNOWN,
        Basis.OBSERVED if tensors else Basis.UNKNOWN,
        f"{counted(tensors, 'tensor')} listed from headers",
    )
    return Facts(
        confidence=confidence,
        evidence=tuple(evidence),
        components=tuple(components),
        state=scope_of(probe.folder(claim.folder).files.values(), weights),
        opaque=tuple(opaque),
        code_references=tuple(code_references),
        weight_bytes=size,
        weight_reason=None if size is not None else "a header or a type is not known: see the blockers",
        model=model,
    )
