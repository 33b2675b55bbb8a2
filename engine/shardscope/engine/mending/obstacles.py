"""What stands between a source and a fix: what has to be asked for, what nothing decides, and what is mended in passing."""

from collections.abc import Iterator, Sequence
from typing import Final

from shardscope.engine.mending.edits import Edits
from shardscope.engine.mending.headers import Stored
from shardscope.engine.mending.holdings import Found, Survey
from shardscope.engine.model.blocker import Blocker, Finding, Param, Severity, blocker
from shardscope.engine.model.fix import Ailment
from shardscope.engine.model.repair import REPAIRS, Repair

IN_PASSING: Final = frozenset(
    {"index.absent", "index.total_size", "index.total_size_type", "layout.weight_sets"}
)
"""What is wrong beside the tensors and decides nothing about them: every output has it right, whatever was asked for."""


def counts(found: Found) -> bool:
    """Tell whether something is wrong enough to be mended."""
    return found.blocker.severity is not Severity.INFO


def alike(one: Stored, other: Stored) -> bool:
    """Tell whether two tensors have the same type and shape."""
    return (one.dtype, one.shape) == (other.dtype, other.shape)


def in_the_way(looked: Survey, edits: Edits, what: Sequence[Repair]) -> Iterator[Blocker]:
    """Yield what has to be asked for before anything starts."""
    if edits.lost and "salvage" not in what:
        first = edits.lost[0]
        name = first.name if first.name is not None else "a whole file"
        finding = Finding("fix.damaged", {"count": len(edits.lost), "name": name, "why": first.why})
        yield blocker(finding, first.file)
    for repair in ("index", "header", "metadata"):
        if repair in what:
            continue
        for found in looked.found:
            if found.repair == repair and counts(found) and found.blocker.code not in IN_PASSING:
                said: dict[str, Param] = {"repair": repair, "code": found.blocker.code}
                yield blocker(Finding("fix.unasked", said), found.blocker.subject)
                break
    unlike = [
        (item, copy, number)
        for item in edits.held
        for number, copy in item.copies
        if not alike(item.tensor, copy)
    ]
    if unlike:
        item, copy, number = unlike[0]
        yield blocker(
            Finding(
                "fix.copies_unlike",
                {
                    "count": len({held.tensor.name for held, _, _ in unlike}),
                    "tensor": item.tensor.name,
                    "first": f"{item.tensor.dtype} {list(item.tensor.shape)}",
                    "second": f"{copy.dtype} {list(copy.shape)}",
                    "other": looked.files[number].entry.text,
                },
            ),
            looked.files[item.file].entry.text,
        )


def ailments(looked: Survey, edits: Edits, what: Sequence[Repair]) -> Iterator[Ailment]:
    """Yield what is wrong with a source, and whether these operations mend it: what is damaged may be dropped by name, too."""
    for found in looked.found:
        mended = found.repair in what or found.blocker.code in IN_PASSING
        mended = mended or (found.repair == "salvage" and not edits.lost)
        yield Ailment(found.repair, mended, found.blocker)


def needs(looked: Survey) -> tuple[Repair, ...]:
    """Return what would mend all that is wrong, in the order in which it is applied."""
    wanted = {found.repair for found in looked.found if counts(found)}
    return tuple(repair for repair in REPAIRS if repair in wanted)
