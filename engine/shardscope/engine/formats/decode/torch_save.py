"""Any file of torch.save, decoded: tensors by the keys that lead to them, each a stretch of the file."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from shardscope.engine.formats.decode.torch_components import parts_of
from shardscope.engine.formats.decode.torch_listing import Listing, list_file
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.roles import role_of
from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import counted, display_name

OPAQUE: Final = "trust.opaque_pickle"
_ROLES: Final = {
    "optimizer": "optimizer",
    "scheduler": "scheduler",
    "rng": "rng",
    "scaler": "scaler",
    "progress": "progress",
    "data position": "data_position",
}


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """List the tensors of every file that the safe plane found to be pickle-backed."""
    return settled(decoder, claim, facts, list_files(decoder, facts.opaque))


def list_files(decoder: Decoder, files: Sequence[Entry], note: str | None = None) -> list[Listing]:
    """Decode files and add their tensors to the catalogue; those that cannot be read are reported and left out.

    `note` is what all tensors are noted for that nothing else is to be said of.
    """
    listings = []
    for done, entry in enumerate(files):
        decoder.probe.checkpoint("decode", done, len(files), entry)
        file = decoder.torch(entry)
        if file is None:
            continue
        listing = list_file(decoder, file)
        for tensor in listing.tensors:
            decoder.add(tensor if note is None or tensor.note else replace(tensor, note=note))
        listings.append(listing)
    return listings


def settled(decoder: Decoder, claim: Claim, facts: Facts, listings: Sequence[Listing], *codes: str) -> Facts:
    """Return the facts of a claim of which some files were decoded, and take back what the safe plane said of them.

    `codes` are those that decoding has answered beside the one that files are opaque.
    """
    if not listings:
        return facts
    read = [listing.file.entry for listing in listings]
    tensors = [tensor for listing in listings for tensor in listing.tensors]
    done = {entry.path for entry in read}
    left = tuple(entry for entry in facts.opaque if entry.path not in done)
    decoder.settle(claim, OPAQUE, *codes)
    if left:
        size = sum(entry.size for entry in left)
        decoder.probe.report(OPAQUE, left[0], count=len(left), size=size, first=left[0].text)
    says = f"decoded without running it: {counted(len(tensors), 'tensor')} in {counted(len(read), 'file')}"
    evidence = Evidence(EvidenceKind.CONTAINER, read[0].text, says, Basis.OBSERVED)
    return replace(
        facts,
        confidence=facts.confidence if left or _broken(decoder, read) else _raised(facts.confidence),
        evidence=(*facts.evidence, evidence),
        components=tuple(_seen(item, {entry.text for entry in left}) for item in facts.components),
        state=_scope(facts.state, listings, tensors, left),
        opaque=left,
    )


def _broken(decoder: Decoder, read: Sequence[Entry]) -> bool:
    """Tell whether something is wrong with files that were read."""
    subjects = {shown(entry.text) for entry in read}
    return any(
        item.severity is Severity.ERROR and item.subject in subjects for item in decoder.probe.blockers
    )


def _raised(confidence: Confidence) -> Confidence:
    """Return what a container that spoke for itself is worth once its content agrees; a name alone stays a name."""
    return Confidence.HIGH if confidence is Confidence.MEDIUM else confidence


def _seen(component: Component, opaque: set[str]) -> Component:
    """Return a component without the word that it is opaque, where none of its files is any more."""
    note = component.note
    if note is None or not note.startswith("opaque") or opaque.intersection(component.files):
        return component
    return replace(component, note=None)


def _scope(
    state: StateScope, listings: Sequence[Listing], tensors: Iterable[LogicalTensor], left: Sequence[Entry]
) -> StateScope:
    """Return the state scope with what was found: tensors of model and optimizer, keys at the top, files by their role."""
    found: dict[str, StatePart] = {}
    for listing in listings:
        entry = listing.file.entry
        for part, key in parts_of(listing.top).items():
            says = f"{entry.text} has the key {display_name(key, 80)}"
            found.setdefault(part, StatePart(Presence.PRESENT, Basis.OBSERVED, says, (entry.text,)))
        role = _ROLES.get(role_of(entry.name))
        if role is not None:
            says = f"{entry.text} was decoded"
            found.setdefault(role, StatePart(Presence.PRESENT, Basis.OBSERVED, says, (entry.text,)))
    components = [tensor.component for tensor in tensors]
    weights, optimizer = components.count("model"), components.count("optimizer")
    if weights:
        more = f"; {counted(len(left), 'file')} not decoded" if left else ""
        says = f"{counted(weights, 'tensor')}{more}"
        found["weights"] = StatePart(Presence.PRESENT, Basis.OBSERVED, says)
    elif not left:
        found["weights"] = StatePart(Presence.ABSENT, Basis.OBSERVED, "no tensor of a model was found")
    if optimizer:
        says = counted(optimizer, "tensor")
        found["optimizer"] = StatePart(Presence.PRESENT, Basis.OBSERVED, says)
    return replace(state, **found)
