"""A fix in words, for texts and screens alike: what is wrong, every change old and new, what is lost.

Names and values of a fix are exact, so every one of them is neutralised here.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.model.fix import Action, Ailment, Change, FixDocument, Kind
from shardscope.engine.model.repair import Lost, Repair
from shardscope.engine.model.secrets import shown
from shardscope.widgets.figures import plural, size

NAME: Final = 120
VALUE: Final = 60
"""Characters of a name, and of a value."""
SIGNS: Final[dict[Action, str]] = {"added": "+", "removed": "-", "changed": "~"}
"""What a row begins with: a change is told without colour."""
TITLES: Final[dict[Kind, str]] = {
    "file": "Files",
    "tensor": "Tensors",
    "metadata": "Metadata",
    "header": "Headers",
    "index": "Index",
    "index metadata": "Index",
}
DOES: Final[dict[Repair, str]] = {
    "salvage": "write what is whole, list what is lost",
    "index": "make the index of what the headers say",
    "drop": "leave tensors out",
    "rename": "give tensors other names",
    "metadata": "change metadata of the headers",
    "split": "cut into files of a size",
    "merge": "put everything into one file",
    "header": "lay headers and tensors out as safetensors does",
}
"""What each operation does, in the order in which they are applied."""


class Row(Struct, frozen=True):
    """One line about a change."""

    sign: str
    """`+`, `-` or `~`."""
    says: str
    """What changes, from what to what."""
    why: str
    """Empty where it was asked for."""


class Section(Struct, frozen=True):
    """The changes of one kind."""

    title: str
    rows: tuple[Row, ...]


def summary(document: FixDocument) -> str:
    """Return what a fix does and makes, in one line."""
    plan = document.plan
    tensors = sum(len(file.tensors) for file in plan.files)
    needed = any(not item.mended for item in document.found)
    nothing = "nothing that is wrong is mended unasked" if needed else "nothing is needed"
    what = ", then ".join(document.what) or nothing
    written = sum(file.bytes for file in plan.files)
    return f"{what}: {plural(tensors, 'tensor')} in {plural(len(plan.files), 'file')}, {size(written)}"


def counts(document: FixDocument) -> str:
    """Return how much changes."""
    kinds: dict[str, int] = {}
    for change in document.changes:
        kinds[change.kind] = kinds.get(change.kind, 0) + 1
    words = [f"{plural(count, 'change')} of {_of(kind)}" for kind, count in kinds.items()]
    if document.kept:
        words.append(f"{plural(len(document.kept), 'file')} as in the source, byte for byte")
    if document.lost:
        words.append(f"{len(document.lost):,} lost")
    return ", ".join(words) or "no change"


def _of(kind: str) -> str:
    return {"file": "files", "tensor": "tensors", "header": "headers"}.get(kind, kind)


def mended(item: Ailment) -> str:
    """Return what becomes of something that is wrong."""
    if item.mended:
        return "mended"
    return "stays" if item.repair is None else f"needs --what {item.repair}"


def sections(document: FixDocument) -> Iterator[Section]:
    """Yield the changes by kind; the same change in many files is one row."""
    found: dict[str, list[Row]] = {}
    for changes in _alike(document.changes):
        first = changes[0]
        found.setdefault(TITLES[first.kind], []).append(_row(changes))
    for title, rows in found.items():
        yield Section(title, tuple(rows))


def _alike(changes: Iterable[Change]) -> Iterator[Sequence[Change]]:
    """Yield changes together that are one to a person: the same metadata in many files, entries that go from file to file."""
    groups: dict[tuple[object, ...], list[Change]] = {}
    for number, item in enumerate(changes):
        key: tuple[object, ...] = (number,)
        if item.kind == "metadata":
            key = (item.repair, item.action, item.name, item.old, item.new, item.why)
        elif item.kind == "index" and item.file is not None:
            key = (item.repair, item.action, item.old, item.new, item.why)
        groups.setdefault(key, []).append(item)
    yield from groups.values()


def _row(changes: Sequence[Change]) -> Row:
    item = changes[0]
    why = "" if item.why is None else shown(item.why, 2 * NAME)
    return Row(SIGNS[item.action], f"{_from_to(changes)}{_where(changes)}", why)


def _from_to(changes: Sequence[Change]) -> str:
    item = changes[0]
    name = shown(item.name, NAME)
    if item.kind == "index" and len(changes) > 1:
        name = f"{name} and {plural(len(changes) - 1, 'other tensor')}"
    if item.kind == "metadata":
        old, new = (
            None if value is None else f'"{shown(value, VALUE, possible=True)}"'
            for value in (item.old, item.new)
        )
    else:
        old, new = (None if value is None else shown(value, NAME) for value in (item.old, item.new))
    if item.action == "changed":
        return f"{old} -> {new}" if item.old == item.name else f"{name}: {old} -> {new}"
    said = old if new is None else new
    return name if said is None else f"{name}: {said}"


def _where(changes: Sequence[Change]) -> str:
    item = changes[0]
    if item.file is None or item.kind in ("index", "index metadata"):
        return ""
    if len(changes) > 1:
        return f" (in {plural(len(changes), 'file')})"
    return f" (in {shown(item.file, NAME)})"


def lost(item: Lost) -> str:
    """Return what is lost, of how much, and why."""
    name = "all tensors" if item.name is None else shown(item.name, NAME)
    amount = ""
    if item.bytes is not None and item.present is not None:
        amount = f", {item.present:,} of {item.bytes:,} bytes are there"
    elif item.bytes is not None:
        amount = f", {item.bytes:,} bytes"
    where = f" (in {shown(item.file, NAME)})" if item.file else ""
    return f"{name}{where}{amount}: {shown(item.why, NAME)}"
