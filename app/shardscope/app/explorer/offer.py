"""What is worth asking for: decoding, with the opaque files that it could read, and a fix, with the blockers that it would mend."""

from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.descriptor import Descriptor, PlaneState
from shardscope.engine.model.evidence import Status
from shardscope.engine.model.format_names import DECODED, FORMAT_TITLES
from shardscope.engine.model.repair import FIXED, MENDED
from shardscope.engine.model.source import Inventory
from shardscope.engine.model.text import counted

COMPOSITE: Final = "composite"


class Offer(Struct, frozen=True):
    """What decoding could read of a checkpoint."""

    title: str
    """What a person calls the format."""
    files: tuple[tuple[str, int], ...]
    """Opaque files with their bytes."""

    def words(self, key: str) -> str:
        """Return the offer in one clause; `key` is what to press, as it stands on the keyboard."""
        return f"{counted(len(self.files), 'opaque file')}: press {key} to decode as data"


def offer_of(found: Descriptor, inventory: Inventory) -> Offer | None:
    """Return what decoding could read that the safe plane did not; None where it has nothing to add, or has been asked for.

    Opaque files that are part of nothing (a stray optimizer beside safetensors) are none of its business.
    """
    classification = found.classification
    if found.planes.decoded is PlaneState.EXAMINED or classification.status is not Status.CONDITIONAL:
        return None
    if classification.format != COMPOSITE and classification.format not in DECODED:
        return None
    parts = {
        name
        for part in found.components
        if part.format is None or part.format in DECODED
        for name in part.files
    }
    files = tuple(
        (entry.text, entry.size)
        for entry, record in zip(inventory.entries, found.source.entries, strict=True)
        if record.opaque and entry.text in parts
    )
    title = FORMAT_TITLES.get(classification.format, classification.format)
    return Offer(title, files) if files else None


def mended_by(found: Descriptor) -> frozenset[str]:
    """Return the codes of the blockers that a fix would mend; how, it says itself."""
    formats = {found.classification.format, *(part.format for part in found.components)}
    if not formats & FIXED:
        return frozenset()
    codes = {item.code for item in found.blockers if item.severity is not Severity.INFO}
    return frozenset(code for code in codes if code.startswith(MENDED))
