"""What a person asked to change, held against what there is: names that go, names that change, metadata."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from shardscope.engine.convert.plans.renaming import Renaming
from shardscope.engine.convert.plans.selection import matcher
from shardscope.engine.mending.holdings import Held, Survey
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.fix import FixOptions
from shardscope.engine.model.plan import RenameRule
from shardscope.engine.model.repair import Lost, Repair

FORMAT: Final = "format"
"""The key of metadata by which loaders know whose tensors they read."""
OUTPUT: Final = "lm_head.weight"
TIED: Final = ("embed_tokens.weight", "wte.weight", "tok_embeddings.weight", OUTPUT)
"""Ends of the names of the two tensors that a configuration ties: embeddings, and the output layer."""


class Edits(Struct, frozen=True):
    """What is left of a survey, and what it is called."""

    held: tuple[Held, ...]
    """The tensors that are written."""
    dropped: tuple[Held, ...]
    lost: tuple[Lost, ...]
    """What could not be written, less what was dropped by name."""
    names: Mapping[str, str]
    """From old to new, those that change."""
    metadata: tuple[Mapping[str, str], ...]
    """Of each file of the survey, after the edits."""


def edited(survey: Survey, what: Sequence[Repair], options: FixOptions, *, tied: bool | None) -> Edits:
    """Return what the edits leave. `tied` is whether the configuration ties embedding and output layer.

    Raises `Fault`: `fix.no_match`, `fix.tied`, `convert.rename_rule`.
    """
    drops = matcher(options.drop) if "drop" in what else None
    held, lost = survey.held, survey.lost
    dropped: tuple[Held, ...] = ()
    if drops is not None:
        _check_globs(options.drop, survey)
        dropped = tuple(item for item in held if drops(item.tensor.name))
        held = tuple(item for item in held if not drops(item.tensor.name))
        lost = tuple(item for item in lost if item.name is None or not drops(item.name))
        if not options.untie:
            _check_ties(survey, held, dropped, tied=tied)
    names = _renamed([item.tensor.name for item in held], options.renames) if "rename" in what else {}
    metadata = [_with_ties(survey, file.metadata, names) for file in survey.files]
    if "metadata" in what:
        _check_unset(options.unset, metadata)
        metadata = [_set(found, options) for found in metadata]
    return Edits(held, dropped, lost, names, tuple(metadata))


def _check_globs(globs: Iterable[str], survey: Survey) -> None:
    names = [item.tensor.name for item in survey.held] + [item.name for item in survey.lost if item.name]
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in names):
            raise Fault("fix.no_match", option="--tensor", pattern=glob, count=len(names))


def _check_ties(survey: Survey, held: Sequence[Held], dropped: Sequence[Held], *, tied: bool | None) -> None:
    """Raise `fix.tied` where a tensor goes that another name stands for: as metadata say, or as a configuration does."""
    gone = {item.tensor.name for item in dropped}
    for name, stored in ties(survey).items():
        if stored in gone:
            raise Fault("fix.tied", tensor=stored, other=name, says="metadata of its file")
    if not tied:
        return
    if any(item.tensor.name.endswith(TIED) for item in held):
        return  # the other one of the two is still there
    for name in sorted(gone):
        if name.endswith(TIED):
            other = "the embedding" if name.endswith(OUTPUT) else OUTPUT
            raise Fault("fix.tied", tensor=name, other=other, says="tie_word_embeddings of config.json")


def ties(survey: Survey) -> dict[str, str]:
    """Return the names that metadata say are another tensor, as safetensors' `save_model` records them."""
    names = {item.tensor.name for item in survey.held}
    return {
        key: value
        for file in survey.files
        for key, value in file.metadata.items()
        if value in names and key not in names
    }


def _with_ties(survey: Survey, metadata: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Return metadata in which the tensors of ties have their new names."""
    if not names or not metadata:
        return dict(metadata)
    tied = ties(survey)
    return {
        key: names.get(value, value) if tied.get(key) == value else value for key, value in metadata.items()
    }


def _renamed(names: Sequence[str], rules: Sequence[RenameRule]) -> dict[str, str]:
    """Return the names that change. Raises `fix.no_match` for a rule that fits none of them."""
    new = list(names)
    for number, rule in enumerate(rules, 1):
        step = Renaming([rule])
        after = [step(name) for name in new]
        if after == new:
            given = next(item for item in (rule.name, rule.prefix, rule.pattern) if item is not None)
            option = f"rule {number} of the renaming"
            raise Fault("fix.no_match", option=option, pattern=given, count=len(names))
        new = after
    return {old: name for old, name in zip(names, new, strict=True) if old != name}


def _check_unset(keys: Iterable[str], metadata: Sequence[Mapping[str, str]]) -> None:
    for key in keys:
        if not any(key in found for found in metadata):
            count = len({key for found in metadata for key in found})
            raise Fault("fix.no_match", option="--unset", pattern=key, count=count)


def _set(metadata: Mapping[str, str], options: FixOptions) -> dict[str, str]:
    """Return metadata after everything was taken away, and then set."""
    kept = {key: value for key, value in metadata.items() if key not in options.unset}
    if options.strip:
        kept = {key: value for key, value in kept.items() if key == FORMAT}
    return kept | dict(options.set)
