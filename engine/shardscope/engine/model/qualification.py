"""The seven items without which nothing is called supported: what was tried, with what, where, and what came of it."""

from typing import Annotated

from msgspec import Meta, Struct

Said = Annotated[str, Meta(min_length=1, max_length=400)]


class Qualification(Struct, frozen=True, forbid_unknown_fields=True):
    """What was retained of one qualification. Null is an item that was not retained."""

    producer_version: Said | None = None
    """The producer, exactly as it was installed."""
    adapter_version: Said | None = None
    fixture_digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")] | None = None
    """SHA-256 of the immutable fixture."""
    candidate_commit: Annotated[str, Meta(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$(?!\n)")] | None = None
    """The commit of this project that was tried."""
    environment: Said | None = None
    """Interpreter, libraries, kernel and machine."""
    topology: Said | None = None
    """The mesh that wrote the fixture."""
    retained_result: Said | None = None
    """Where the result is kept."""

    def missing(self) -> tuple[str, ...]:
        """Return the items that were not retained, by field name."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) is None)
