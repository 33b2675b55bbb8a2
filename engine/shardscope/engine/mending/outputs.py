"""The files of an output: which tensors go together, what each file is called, and whose header can stay as it is."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from shardscope.engine.convert.plans import header
from shardscope.engine.convert.plans.selection import Chosen
from shardscope.engine.convert.plans.sharding import STEM, as_planned, shard
from shardscope.engine.mending.edits import Edits
from shardscope.engine.mending.headers import WeightFile
from shardscope.engine.mending.holdings import NUMBERED, Survey
from shardscope.engine.model.fix import FixOptions
from shardscope.engine.model.plan import PlannedFile, PlannedTensor
from shardscope.engine.model.repair import Repair, Scalar
from shardscope.engine.model.text import is_altered

_WIDTH: Final = 5
_COUNTED: Final = frozenset({"total_size", "total_parameters"})
"""What an index counts: made anew, or left out where it cannot be."""


class Arranging:
    """Puts tensors into files; the last answer is kept for whoever asks what came of it."""

    def __init__(self, survey: Survey, edits: Edits, what: Sequence[Repair], options: FixOptions) -> None:
        self._survey = survey
        self._edits = edits
        self._what = what
        self._options = options
        self._home = {item.tensor.name: item.file for item in edits.held}
        self.sources: tuple[tuple[int, ...], ...] = ()

    def __call__(self, chosen: Sequence[Chosen]) -> tuple[PlannedFile, ...]:
        """Return the output files. Raises `Fault`: those of `header.canonical`."""
        groups = self._groups(chosen)
        names = self._names(groups)
        self.sources = tuple(tuple(sorted({self._home[item.source] for item in group})) for group in groups)
        return tuple(
            self._file(name, group, homes)
            for name, group, homes in zip(names, groups, self.sources, strict=True)
        )

    def _groups(self, chosen: Sequence[Chosen]) -> list[list[PlannedTensor]]:
        if "merge" in self._what:
            return [[as_planned(item) for item in chosen]] if chosen else []
        if "split" in self._what:
            cut = shard(chosen, self._options.max_shard_bytes, _length, header.MOST_BYTES)
            return [list(file.tensors) for file in cut] if chosen else []
        groups: dict[int, list[PlannedTensor]] = {}
        for item in chosen:
            groups.setdefault(self._home[item.tensor.name], []).append(as_planned(item))
        return [groups[number] for number in sorted(groups)]

    def _names(self, groups: Sequence[Sequence[PlannedTensor]]) -> list[str]:
        """Return the names of the files: those of the source where they are whole in themselves, otherwise counted anew."""
        if not {"merge", "split"} & set(self._what):
            homes = [self._home[group[0].source] for group in groups]
            names = [self._survey.files[number].entry.name for number in homes]
            if self._stay(homes, names):
                return names
        total = len(groups)
        stem = stem_of(self._survey)
        if total == 1:
            return [f"{stem}.safetensors"]
        return [
            NUMBERED.format(stem=stem, number=number, total=total, width=_WIDTH)
            for number in range(1, total + 1)
        ]

    def _stay(self, homes: Sequence[int], names: Sequence[str]) -> bool:
        if len(set(names)) < len(names) or any(
            is_altered(name) or not name.endswith(".safetensors") for name in names
        ):
            return False
        numbered = self._survey.numbered
        paths = [self._survey.files[number].entry.path for number in homes]
        if not any(path in numbered for path in paths):
            return True
        group = self._survey.group
        if group is None or group.total != len(homes):
            return False
        found = {each.entry.path: each for each in group.shards}
        shards = [found[path] for path in paths if path in found]
        return {each.number for each in shards} == set(range(1, group.total + 1)) and all(
            each.plain for each in shards
        )

    def _file(self, name: str, group: Sequence[PlannedTensor], homes: Sequence[int]) -> PlannedFile:
        metadata = together([self._edits.metadata[number] for number in homes])
        if len(homes) == 1 and (kept := self._kept(name, group, homes[0], metadata)) is not None:
            return kept
        metadata = dict(sorted(metadata.items()))
        lying = header.canonically(group)
        return PlannedFile(name, header.canonical(lying, metadata).size, tuple(lying), metadata=metadata)

    def _kept(
        self, name: str, group: Sequence[PlannedTensor], number: int, metadata: Mapping[str, str]
    ) -> PlannedFile | None:
        """Return a file that is one of the source byte for byte; null where it is not."""
        file = self._survey.files[number]
        if not file.sound or len(group) != len(file.tensors) or metadata != file.metadata:
            return None
        if any(flaw.repair == "metadata" for flaw in file.flaws) or any(
            item.name != item.source for item in group
        ):
            return None
        if "header" in self._what and not _is_canonical(file, group):
            return None
        return PlannedFile(name, file.entry.size, tuple(group), kept=file.entry.text)


def _is_canonical(file: WeightFile, group: Sequence[PlannedTensor]) -> bool:
    """Tell whether a header is laid out as the library does it, which has its metadata in any order."""
    made = header.canonical(header.canonically(group), file.metadata)
    return hashlib.sha256(made.data).hexdigest() == file.head_sha256


def _length(tensors: Sequence[PlannedTensor]) -> int:
    return len(header.canonical(tensors, {}).data)


def stem_of(survey: Survey) -> str:
    """Return what output files are called before their numbers."""
    stem = survey.key
    return STEM if not stem or is_altered(stem) or "/" in stem else stem


def together(some: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return what files that become one say alike: a key that only some of them have stays, one that they disagree about does not."""
    values: dict[str, set[str]] = {}
    for metadata in some:
        for key, value in metadata.items():
            values.setdefault(key, set()).add(value)
    return {key: min(found) for key, found in values.items() if len(found) == 1}


def index_of(survey: Survey, files: Sequence[PlannedFile], what: Sequence[Repair]) -> str | None:
    """Return the name of the index of an output; null where its one file needs none."""
    if len(files) == 1:
        numbered = survey.group is not None and files[0].name != f"{stem_of(survey)}.safetensors"
        if not numbered and (survey.index is None or "merge" in what):
            return None
    if survey.index is not None and not is_altered(survey.index.name):
        return survey.index.name
    stem, dot, variant = stem_of(survey).partition(".")
    return f"{stem}.safetensors.index{dot}{variant}.json"


def index_metadata(survey: Survey, edits: Edits) -> dict[str, Scalar]:
    """Return what an index says beside its total: what it said, less what is true of other tensors or is no plain value."""
    whole = not edits.dropped and not edits.lost and not survey.copies_left
    return {
        key: value
        for key, value in survey.index_metadata.items()
        if isinstance(value, str | int | float | bool | None)
        and key != "total_size"
        and (whole or key not in _COUNTED)
    }
