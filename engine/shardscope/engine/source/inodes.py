"""What statuses alone tell about the entries: names of one inode, holes, odd times, things that are no files."""

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from shardscope.engine.model.source import Entry, Kind
from shardscope.engine.model.text import path_text
from shardscope.engine.source.found import Found
from shardscope.engine.source.identity import WORDS

_SPECIAL: Final = frozenset({Kind.FIFO, Kind.SOCKET, Kind.DEVICE})
_YEAR_1980: Final = 315_532_800 * 10**9
_YEAR_2100: Final = 4_102_444_800 * 10**9
_HOLE_BYTES: Final = 64 << 10
"""Below this, file systems differ in what they count as blocks (small files can live in the inode)."""


def judge_inodes(entries: Sequence[Entry], found: Found) -> None:
    """Add to `found` what the statuses of `entries` say."""
    shared: defaultdict[tuple[int, int], list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.kind in _SPECIAL:
            found.add(entry.path, "source.not_regular", what=WORDS[entry.kind])
        if entry.kind is not Kind.FILE:
            continue
        identity = entry.identity
        if entry.links > 1 and entry.admitted is None:
            shared[identity.device, identity.inode].append(entry)
        if entry.allocated * 2 < identity.size and identity.size - entry.allocated >= _HOLE_BYTES:
            found.add(entry.path, "source.hole", allocated=entry.allocated, size=identity.size)
        if not _YEAR_1980 <= identity.mtime_ns < _YEAR_2100:
            when = "before 1980" if identity.mtime_ns < _YEAR_1980 else "after 2099"
            found.add(entry.path, "source.mtime_odd", when=when)
    for names in shared.values():
        first, *others = sorted(names, key=attrgetter("path"))
        if others:
            other = path_text(others[0].path)
            found.add(first.path, "source.hardlink_alias", names=len(names), other=other)
        if first.links > len(names):
            found.add(first.path, "source.hardlink_outside", outside=first.links - len(names))
