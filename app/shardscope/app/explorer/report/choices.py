"""The rows of what goes into a report, from what is known of a checkpoint. Nothing here needs a screen."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from shardscope.app.explorer.report.wanted import WISHES, Wanted
from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.reports import PARTS, ReportPart
from shardscope.widgets.figures import plural
from shardscope.widgets.report_form import Choice
from shardscope.widgets.safe import Tone

_LEFT_OUT: Final[dict[ReportPart, str]] = {
    "descriptor": "left out, and with it what it holds",
    "tree": "left out; how many files there are stays",
    "topology": "left out",
    "blockers": "left out, but their codes stay",
    "versions": "left out",
}


def is_decoded(descriptor: Descriptor) -> bool:
    """Tell whether a descriptor was made by decoding."""
    return descriptor.decoded is not UNSET


def choices(wanted: Wanted, descriptor: Descriptor) -> tuple[Choice, ...]:
    """Return the rows, from the top."""
    return tuple(_choices(wanted, descriptor))


def changed(wanted: Wanted, choice: str, by: int) -> Wanted:
    """Return what is wanted once the row `choice` has moved on by some."""
    if choice in PARTS:
        return replace(wanted, without=wanted.without ^ {choice})
    if choice == "decoded":
        return replace(wanted, decoded=not wanted.decoded)
    if choice == "names":
        return replace(wanted, hashed=not wanted.hashed)
    place = (WISHES.index(wanted.desired) + by) % len(WISHES)
    return replace(wanted, desired=WISHES[place])


def _choices(wanted: Wanted, found: Descriptor) -> Iterator[Choice]:
    yield _part("descriptor", "descriptor", "what was found, as `inspect --json` tells it", wanted)
    if is_decoded(found):
        says = "what decoding found" if wanted.decoded else "looked at anew, without decoding"
        yield Choice("decoded", "  decoded", _box(wanted.decoded), says)
    files = plural(found.source.files, "file")
    yield _part("tree", "  file tree", f"{files} with sizes, and digests from 1 MiB on", wanted)
    yield _part("topology", "topology", _topology(found), wanted)
    yield _part("blockers", "blockers", _blockers(found), wanted)
    yield _part("versions", "versions", "system, Python, torch and others, from metadata", wanted)
    hashed = "no word of a name stays" if wanted.hashed else "common words stay in names; hash: none does"
    yield Choice("names", "names", "hash" if wanted.hashed else "keep", hashed)
    wish = wanted.desired
    yield Choice("desired", "you want to", wish or "not said", "what should come of the checkpoint")


def _part(part: ReportPart, label: str, says: str, wanted: Wanted) -> Choice:
    inside = part == "tree" and "descriptor" in wanted.without
    there = part not in wanted.without and not inside
    said = says if there else _LEFT_OUT["descriptor" if inside else part]
    return Choice(part, label, _box(there), said, Tone.PLAIN if there else Tone.CAUTION)


def _box(there: bool) -> str:
    return "[x]" if there else "[ ] left out"


def _topology(found: Descriptor) -> str:
    axes = dict.fromkeys(
        f"{axis.name} {axis.size}"
        for mesh in found.topology.meshes
        for axis in mesh.axes
        if axis.size is not None
    )
    return ", ".join(axes) or "no ranks are known"


def _blockers(found: Descriptor) -> str:
    counts = [
        plural(count, word, words)
        for severity, word, words in (
            (Severity.ERROR, "error", "errors"),
            (Severity.WARNING, "warning", "warnings"),
            (Severity.INFO, "note", "notes"),
        )
        if (count := sum(item.severity is severity for item in found.blockers))
    ]
    return ", ".join(counts) or "none was found"
