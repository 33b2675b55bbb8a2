"""What the changes of a fix come to for a screen: put together in a worker, so that a million of them block nothing."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from shardscope.app.explorer.fix.draft import Draft
from shardscope.engine.model.fix import FixDocument
from shardscope.widgets.fix_rows import Line, changing, lines_of
from shardscope.widgets.fix_words import counts, summary

if TYPE_CHECKING:
    from shardscope.engine.converting.fixing import FixLook

SHOWN: Final = 200
"""Names that a page lists before the rest is counted."""


class Matched(Struct, frozen=True):
    """What a pattern fits."""

    pattern: str
    count: int
    first: tuple[str, ...]
    """Exact names of tensors."""


class Made(Struct, frozen=True):
    """The changes of a fix, as far as a screen shows them."""

    lines: tuple[Line, ...]
    summary: str
    """What is done and made, in one line."""
    counts: str
    """How much changes, by what it is a change of."""
    changing: str
    """How many rows there are of each kind."""
    renamed: tuple[tuple[str, str], ...]
    """The first of them, old and new, exact."""
    renames: int


def matched(look: "FixLook", draft: Draft) -> tuple[Matched, ...]:
    """Return what each pattern of names to drop fits, lost tensors included."""
    if "drop" not in draft.chosen or not draft.drop:
        return ()
    held = [item.tensor.name for item in look.survey.held]
    names = [*held, *(item.name for item in look.survey.lost if item.name is not None)]
    return tuple(_fitting(pattern, names) for pattern in draft.drop)


def _fitting(pattern: str, names: Iterable[str]) -> Matched:
    fit = [name for name in names if fnmatchcase(name, pattern)]
    return Matched(pattern, len(fit), tuple(fit[:SHOWN]))


def made_of(document: FixDocument) -> Made:
    """Return the changes of a fix."""
    renames = list(_renames(document))
    lines = tuple(lines_of(document))
    return Made(
        lines,
        summary(document),
        counts(document),
        changing(lines),
        tuple(renames[:SHOWN]),
        len(renames),
    )


def _renames(document: FixDocument) -> Iterator[tuple[str, str]]:
    for change in document.changes:
        if change.repair == "rename" and change.kind == "tensor":
            yield change.old or change.name, change.new or ""
