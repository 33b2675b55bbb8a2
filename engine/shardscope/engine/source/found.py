"""Findings of one walk, kept up to a bound for each code and counted beyond it."""

from collections import Counter

from shardscope.engine.model.blocker import Blocker, Finding, Param, blocker
from shardscope.engine.model.text import path_text


class Found:
    """Collects findings about paths. A hostile folder can earn a million of one kind; `limit` of each are kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: list[tuple[bytes, Finding]] = []
        self._seen: Counter[str] = Counter()

    def add(self, path: bytes, code: str, **params: Param) -> None:
        """Note that `code` is found at `path`; the empty path is the root."""
        self._seen[code] += 1
        if self._seen[code] <= self._limit:
            self._kept.append((path, Finding(code, params)))

    def blockers(self) -> tuple[Blocker, ...]:
        """Return everything found, by path, then by code; then how many more there were of which code."""
        listed = [
            blocker(finding, path_text(path) or ".")
            for path, finding in sorted(self._kept, key=lambda pair: (pair[0], pair[1].code))
        ]
        rest = [
            blocker(Finding("source.more", {"code": code, "count": seen - self._limit}))
            for code, seen in sorted(self._seen.items())
            if seen > self._limit
        ]
        return (*listed, *rest)
