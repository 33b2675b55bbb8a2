"""Capabilities: what a named adapter would need, and why naming one settles nothing."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

_USE: Final = (Blocks.CONVERT,)
_NO_INSTALL: Final = "Nothing was installed and nothing was imported: versions are read from the metadata of installed distributions."

TABLE: Final[tuple[Code, ...]] = (
    Code(
        "capability.ambiguous",
        Severity.ERROR,
        Stage.CLASSIFY,
        "{count:count} of the capabilities that were named match this checkpoint: {ids:word}.",
        "Name the one that is meant, in a run of its own.",
        "Two adapters that both fit would read the same bytes in two ways. Neither is chosen, and order decides nothing.",
        _USE,
        ExitCode.UNSUPPORTED,
    ),
    Code(
        "capability.dependency_missing",
        Severity.WARNING,
        Stage.CLASSIFY,
        "{capability:word} needs {distribution:word} {required:word}, and it is not installed.",
        "The extra that would bring it is `{extra:word}` of shardscope {project:word}.",
        _NO_INSTALL,
        _USE,
    ),
    Code(
        "capability.dependency_mismatch",
        Severity.WARNING,
        Stage.CLASSIFY,
        "{capability:word} needs {distribution:word} {required:word}, and {observed:word} is installed.",
        "The extra that would bring it is `{extra:word}` of shardscope {project:word}.",
        f"{_NO_INSTALL} An adapter is qualified with exact versions; a neighbour of one is another one.",
        _USE,
    ),
    Code(
        "capability.project_mismatch",
        Severity.WARNING,
        Stage.CLASSIFY,
        "{capability:word} was made for shardscope {required:word}, and this is {observed:word}.",
        "Use the release that it names, or have it qualified again for this one.",
        "What was retained of a qualification speaks of one version of this tool.",
        _USE,
    ),
    Code(
        "capability.no_match",
        Severity.INFO,
        Stage.CLASSIFY,
        "{capability:word} is for {wanted:word}, and this is {found:word}.",
        "Leave it out, or name one for this format.",
        "A capability stands for one format. It changes nothing about what the checkpoint is found to be.",
    ),
    Code(
        "capability.contradicted",
        Severity.INFO,
        Stage.CLASSIFY,
        "{capability:word} is for {producer:word} {wanted:word}, and the checkpoint says {found:text}.",
        "Name a capability for the version that wrote it.",
        "The format is the same and the version is not. An adapter is for one exact version of one producer.",
    ),
    Code(
        "capability.format_unknown",
        Severity.ERROR,
        Stage.VALIDATE,
        "{file:path} is for the format {found:text}, which is none of the formats that are recognised.",
        "Use the name that `classification.format` has in a descriptor.",
        "The list of formats is closed, so that a capability cannot bring a format of its own.",
    ),
    Code(
        "capability.revision_missing",
        Severity.ERROR,
        Stage.VALIDATE,
        "{file:path} names a version of {producer:word} and not the revision of its source.",
        "Add producer_revision: the commit, in full.",
        "The layout of this producer moves between releases and its reading code with it, so a version alone does not "
        "pin what an adapter was made for.",
    ),
    Code(
        "capability.unqualified",
        Severity.ERROR,
        Stage.VALIDATE,
        "The registry's row {capability:word} was not retained with {items:word}.",
        "Take the row out until all seven items are there.",
        "A row stands in the registry only with evidence of one exact producer and version that somebody can look at "
        "again: versions, fixture, commit, environment, topology and result.",
    ),
)
