"""Two bundles side by side: every place where they say different things."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from shardscope.engine.model import schemas
from shardscope.engine.model.reports import ReportBundle, ReportChange, ReportDifference

_TITLES: Final = ("path", "name", "dtype", "field", "code")
"""What tells the members of a list apart, so that one more of them does not move all the others."""


def difference(one: ReportBundle, other: ReportBundle) -> ReportDifference:
    """Return where two bundles differ, in the order of the first."""
    mine, theirs = (dict(_leaves("", msgspec.to_builtins(each))) for each in (one, other))
    changes = tuple(
        ReportChange(place, mine.get(place), theirs.get(place))
        for place in dict.fromkeys((*mine, *theirs))
        if mine.get(place) != theirs.get(place)
    )
    return ReportDifference(schemas.REPORT_DIFFERENCE, not changes, changes)


def _leaves(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield each plain value of a document with the way to it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(f"{place}.{key}" if place else str(key), item)
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        seen: dict[str, int] = {}
        for number, item in enumerate(value):
            title = next((str(item[key]) for key in _TITLES if item.get(key) is not None), str(number))
            seen[title] = seen.get(title, 0) + 1
            label = title if seen[title] == 1 else f"{title} #{seen[title]}"
            yield from _leaves(f"{place}[{label}]", item)
    elif isinstance(value, list | tuple):
        yield place, msgspec.json.encode(value).decode()
    elif value is not None:
        yield place, value if isinstance(value, str) else msgspec.json.encode(value).decode()
