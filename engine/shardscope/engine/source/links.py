"""Where symbolic links lead, by their text and the listing alone: nothing is followed to find out."""

import threading
from enum import Enum, auto
from typing import Final

from shardscope.engine.model.progress import check
from shardscope.engine.model.source import Kind
from shardscope.engine.model.text import path_text
from shardscope.engine.source.found import Found
from shardscope.engine.source.hf_cache import looks_like_cache, repository_below
from shardscope.engine.source.walk import Listing

_HOPS: Final = 40
"""Links that one path may pass through on Linux (`MAXSYMLINKS`)."""
_STEPS: Final = 1_000_000
"""Names looked up for all links of one walk; links beyond it are reported without saying where they lead."""


class Leads(Enum):
    """Where a link ends."""

    INSIDE = auto()
    OUTSIDE = auto()
    NOWHERE = auto()
    BACK = auto()
    """To itself, to a folder that holds it, or through too many links."""
    UNKNOWN = auto()
    """Into a part of the tree that was not listed, or past the bound on steps."""


_CODES: Final = {
    Leads.INSIDE: "source.link",
    Leads.UNKNOWN: "source.link",
    Leads.OUTSIDE: "source.link_outside",
    Leads.NOWHERE: "source.link_broken",
    Leads.BACK: "source.link_loop",
}


def judge_links(
    listing: Listing, found: Found, *, suggest_cache: bool, cancel: threading.Event | None = None
) -> None:
    """Add to `found` one finding for each link of `listing`.

    `suggest_cache` names links that read like those of a Hugging Face cache, so that `--hf-cache` can be offered.
    """
    if not listing.targets:
        return
    paths = Paths(listing)
    for link, target in listing.targets.items():
        check(cancel)
        if suggest_cache and target is not None and looks_like_cache(link, target):
            found.add(link, "source.link_hf_cache")
        elif target is not None and (repository := repository_below(link, target)) is not None:
            found.add(link, "source.link_hf_below", repository=path_text(repository))
        else:
            shown = None if target is None else path_text(target)
            found.add(link, _CODES[paths.follow(link)], target=shown)


class Paths:
    """Resolves paths in a listing as the kernel would on the disk."""

    def __init__(self, listing: Listing) -> None:
        self._kinds = {entry.path: entry.kind for entry in listing.entries}
        self._targets = listing.targets
        self._unlisted = listing.unlisted
        self._steps = _STEPS

    def follow(self, link: bytes) -> Leads:
        """Return where `link` leads."""
        here = link.split(b"/")
        pending = [here.pop()]
        hops = 0
        while pending:
            self._steps -= 1
            if self._steps < 0:
                return Leads.UNKNOWN
            name = pending.pop()
            if name in {b"", b"."}:
                continue
            if name == b"..":
                if not here:
                    return Leads.OUTSIDE
                here.pop()
                continue
            here.append(name)
            kind = self._kinds.get(b"/".join(here))
            if kind is Kind.LINK:
                hops += 1
                target = self._targets.get(b"/".join(here))
                if hops > _HOPS or target is None:
                    return Leads.BACK if hops > _HOPS else Leads.UNKNOWN
                if target.startswith(b"/"):
                    return Leads.OUTSIDE
                here.pop()
                pending += reversed(target.split(b"/"))
            elif kind is not Kind.DIRECTORY:
                return self._end(here, kind, last=not pending)
        folder = b"/".join(here)
        return Leads.BACK if not folder or link.startswith(folder + b"/") else Leads.INSIDE

    def _end(self, here: list[bytes], kind: Kind | None, *, last: bool) -> Leads:
        """Return the verdict on a path that has come to something that is no folder, or to nothing."""
        if kind is None:
            return Leads.UNKNOWN if b"/".join(here[:-1]) in self._unlisted else Leads.NOWHERE
        return Leads.INSIDE if last else Leads.NOWHERE
