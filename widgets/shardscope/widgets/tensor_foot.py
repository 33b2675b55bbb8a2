"""What stands below the tensors: how many are listed and selected, and the one under the cursor in full."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.widgets.figures import plural
from shardscope.widgets.safe import Part, Tone


class Listing(Struct, frozen=True):
    """What is listed."""

    shown: int
    total: int
    typed: int | None = None
    """How many hold the words of the search as they were typed; null where nothing was ranked."""
    selected: str = ""
    offer: str = ""
    """What could be done about files that are not listed."""


def first_line(listing: Listing, width: int, facts: Sequence[tuple[str, Tone]] = ()) -> list[Part]:
    """Return how much is listed and selected, then what could be done, then as many `facts` as there is room for."""
    parts: list[tuple[str, Tone]] = list(_counts(listing))
    if listing.offer:
        facts = (*facts, (f"  {listing.offer}", Tone.HERE))
    for fact in facts:
        if sum(len(text) for text, _ in (*parts, fact)) <= width:
            parts.append(fact)
    return list(parts)


def _counts(listing: Listing) -> Iterator[tuple[str, Tone]]:
    """Yield how many tensors are listed, how well they answer a search, and what is selected."""
    if listing.shown == listing.total:
        yield plural(listing.total, "tensor"), Tone.MUTED
    else:
        yield f"{listing.shown:,} of {listing.total:,}", Tone.HERE
        yield " tensors", Tone.MUTED
    if listing.typed is not None and listing.typed < listing.shown:
        loose = listing.shown - listing.typed
        yield (f" ({listing.typed:,} as typed, then {loose:,} looser)", Tone.MUTED)
    if listing.selected:
        yield f"  * {listing.selected}", Tone.HERE


def made_of(whole: LogicalTensor | None) -> list[tuple[str, Tone]]:
    """Return in a few words what a decoded tensor is made of."""
    if whole is None:
        return []
    words = plural(len(whole.fragments), "fragment")
    if whole.replicas:
        words += f" + {plural(len(whole.replicas), 'copy', 'copies')}"
    parts = [(f"  {words}, enter lists them", Tone.MUTED)]
    if whole.alias_of is not None:
        parts.insert(0, ("  alias", Tone.CAUTION))
    if whole.role in ("frozen", "buffer"):
        parts.insert(0, (f"  {whole.role}", Tone.MUTED))
    return parts
