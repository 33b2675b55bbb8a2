"""Every difference between a source and what a fix makes of it, as rows that a person can read before a byte is written."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from shardscope.engine.convert.plans.sharding import index
from shardscope.engine.mending.edits import Edits
from shardscope.engine.mending.headers import Stored, WeightFile
from shardscope.engine.mending.holdings import Survey
from shardscope.engine.model.fix import Change
from shardscope.engine.model.plan import PlannedFile
from shardscope.engine.model.repair import Repair, Scalar
from shardscope.engine.model.text import counted


class Outcome(Struct, frozen=True):
    """What a fix makes of a survey."""

    what: tuple[Repair, ...]
    edits: Edits
    files: tuple[PlannedFile, ...]
    sources: tuple[tuple[int, ...], ...]
    """Of each file: the files of the survey that its tensors come from."""
    index: str | None
    index_metadata: Mapping[str, Scalar]


def changes(survey: Survey, outcome: Outcome) -> tuple[Change, ...]:
    """Return the rows: files, tensors, metadata, headers, index."""
    return (
        *_files(survey, outcome),
        *_tensors(survey, outcome),
        *_metadata(survey, outcome),
        *_headers(survey, outcome),
        *_index(survey, outcome),
    )


def _grouping(outcome: Outcome) -> Repair:
    return "merge" if "merge" in outcome.what else "split" if "split" in outcome.what else "index"


def _files(survey: Survey, outcome: Outcome) -> Iterator[Change]:
    for entry in survey.strays:
        says = f"{entry.size:,} bytes"
        why = "not chosen" if survey.chosen else "it is not of the weight set"
        yield Change("index", "file", "removed", entry.name, None, says, None, why)
    used = {number for homes in outcome.sources for number in homes}
    names = {file.name for file in outcome.files}
    for number, file in enumerate(survey.files):
        if number not in used:
            why = "none of its tensors is written"
            repair: Repair = "drop" if file.tensors and "drop" in outcome.what else "salvage"
            yield Change(repair, "file", "removed", file.entry.name, None, _of_file(file), None, why)
    repair = _grouping(outcome)
    if {"merge", "split"} & set(outcome.what):
        gone = [
            survey.files[number] for number in sorted(used) if survey.files[number].entry.name not in names
        ]
        for file in gone:
            yield Change(repair, "file", "removed", file.entry.name, None, _of_file(file), None)
        there = {survey.files[number].entry.name for number in used}
        for made in outcome.files:
            if made.name not in there:
                yield Change(repair, "file", "added", made.name, None, None, _of_planned(made))
        return
    for made, homes in zip(outcome.files, outcome.sources, strict=True):
        old = survey.files[homes[0]].entry.name
        if made.name != old:
            yield Change(repair, "file", "changed", old, None, old, made.name, "counted anew")


def _tensors(survey: Survey, outcome: Outcome) -> Iterator[Change]:
    for held in outcome.edits.dropped:
        file = survey.files[held.file].entry.name
        yield Change("drop", "tensor", "removed", held.tensor.name, file, _of_tensor(held.tensor), None)
    homes = {held.tensor.name: held for held in outcome.edits.held}
    for old, new in outcome.edits.names.items():
        file = survey.files[homes[old].file].entry.name
        yield Change("rename", "tensor", "changed", old, file, old, new)
    for tensor, number, kept in survey.copies_left:
        name = tensor.name
        if name not in homes:
            continue
        file, other = (survey.files[each].entry.name for each in (number, kept))
        sent = survey.entries.get(name) == kept
        why = (
            f"a copy; the index sends loaders to {other}"
            if sent
            else f"also in {other}, compared before anything is written"
        )
        yield Change("index", "tensor", "removed", name, file, _of_tensor(tensor), None, why)


def _metadata(survey: Survey, outcome: Outcome) -> Iterator[Change]:
    for made, homes in zip(outcome.files, outcome.sources, strict=True):
        if made.kept is not None:
            continue
        for number in homes:
            for key, text in survey.files[number].unread.items():
                yield Change("metadata", "metadata", "removed", key, made.name, text, None, "it is no text")
        old = [survey.files[number].metadata for number in homes]
        new = made.metadata or {}
        for key in sorted({key for metadata in old for key in metadata} | new.keys()):
            before = list(dict.fromkeys(metadata[key] for metadata in old if key in metadata))
            if before == ([new[key]] if key in new else []):
                continue
            yield _of_key(outcome, made.name, key, before, new.get(key))


def _of_key(outcome: Outcome, file: str, key: str, before: Sequence[str], new: str | None) -> Change:
    edited: Repair = "metadata" if "metadata" in outcome.what else "rename"
    old = " | ".join(before) if before else None
    if len(before) > 1 and new is None:
        why = f"the files that become one say {len(before):,} different things; --set gives one"
        return Change(_grouping(outcome), "metadata", "removed", key, file, old, None, why)
    action = "added" if old is None else "removed" if new is None else "changed"
    return Change(edited, "metadata", action, key, file, old, new)  # type: ignore[arg-type]  # one of Action


def _headers(survey: Survey, outcome: Outcome) -> Iterator[Change]:
    """Yield the headers that are made anew, where the tensors of the file stay those of one file of the source."""
    for made, homes in zip(outcome.files, outcome.sources, strict=True):
        if made.kept is not None or len(homes) > 1 or {"merge", "split"} & set(outcome.what):
            continue
        file = survey.files[homes[0]]
        wrong = [flaw.finding.code for flaw in file.flaws if flaw.repair in ("header", "metadata")]
        old = f"{file.entry.size:,} bytes, data from byte {file.data_begin:,}"
        data = sum(item.bytes for item in made.tensors)
        new = f"{made.bytes:,} bytes, data from byte {made.bytes - data:,}"
        why = ", ".join(wrong) if wrong else None
        yield Change(_why_anew(outcome, file), "header", "changed", made.name, None, old, new, why)


def _why_anew(outcome: Outcome, file: WeightFile) -> Repair:
    """Return the operation that makes a file's header anew: the first of those that were asked for and concern it."""
    gone = {held.tensor.name for held in outcome.edits.dropped}
    concerns: dict[Repair, bool] = {
        "header": "header" in outcome.what,
        "salvage": bool(file.lost),
        "drop": any(tensor.name in gone for tensor in file.tensors),
        "rename": any(tensor.name in outcome.edits.names for tensor in file.tensors),
        "metadata": "metadata" in outcome.what,
    }
    return next((repair for repair, does in concerns.items() if does), "index")


def _index(survey: Survey, outcome: Outcome) -> Iterator[Change]:
    old = None if survey.index is None else survey.index.name
    repair = _grouping(outcome)
    entries = sum(len(file.tensors) for file in outcome.files)
    if outcome.index is None:
        if old is not None:
            says = counted(len(survey.entries), "tensor")
            yield Change(repair, "index", "removed", old, None, says, None, "one file needs none")
        return
    says = counted(entries, "tensor")
    if old is None:
        yield Change(repair, "index", "added", outcome.index, None, None, says)
        return
    if not survey.entries:
        yield Change("index", "index", "changed", outcome.index, None, "not readable, or empty", says)
    else:
        yield from _entries(survey, outcome)
    made = index(outcome.files, outcome.index_metadata)["metadata"]
    new = {key: str(value) for key, value in made.items()} if isinstance(made, dict) else {}
    before = {key: str(value) for key, value in survey.index_metadata.items()}
    for key in sorted(before.keys() | new.keys()):
        if before.get(key) == new.get(key):
            continue
        action = "added" if key not in before else "removed" if key not in new else "changed"
        yield Change(
            "index",
            "index metadata",
            action,  # type: ignore[arg-type]  # one of Action
            key,
            outcome.index,
            before.get(key),
            new.get(key),
        )


def _entries(survey: Survey, outcome: Outcome) -> Iterator[Change]:
    """Yield the entries that an index gets, loses or has corrected, by the names of the output."""
    targets = {name: survey.targets.get(name, "(no file)") for name in survey.entries}
    made = {item.source: (item.name, file.name) for file in outcome.files for item in file.tensors}
    for source, (name, file) in made.items():
        old = targets.get(source)
        if old is None:
            why = "the index did not have it"
            yield Change("index", "index", "added", name, outcome.index, None, file, why)
        elif file != old:
            yield Change(_grouping(outcome), "index", "changed", name, outcome.index, old, file)
    for source, old in targets.items():
        if source not in made:
            yield Change("index", "index", "removed", source, outcome.index, old, None)


def _of_file(file: WeightFile) -> str:
    return f"{file.entry.size:,} bytes, {counted(len(file.tensors), 'whole tensor')}"


def _of_planned(file: PlannedFile) -> str:
    return f"{file.bytes:,} bytes, {counted(len(file.tensors), 'tensor')}"


def _of_tensor(tensor: Stored) -> str:
    shape = ", ".join(map(str, tensor.shape))
    return f"{tensor.dtype} [{shape}], {tensor.end - tensor.begin:,} bytes"
