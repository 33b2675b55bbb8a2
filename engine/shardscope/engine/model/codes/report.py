"""Reports for strangers: what must not be in one, and bundles that come from elsewhere."""

from typing import Final

from shardscope.engine.model.blocker import Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode


def _row(
    code: str, message: str, remedy: str, meaning: str, exit_code: ExitCode, stage: Stage = Stage.COMMAND
) -> Code:
    return Code(code, Severity.ERROR, stage, message, remedy, meaning, exit=exit_code)


TABLE: Final = (
    _row(
        "report.identity",
        "The finished report holds something of this machine or session ({kind:word}, in {member:word}); nothing was written.",
        "Use --names hash, leave out --model-id, or look for it with --preview.",
        "After everything was replaced, the bundle is searched for the names, paths and environment values of this machine, and "
        "for the shapes of secrets. What is found is not shown here: this line may end in a log.",
        ExitCode.OUTPUT,
        Stage.VERIFY,
    ),
    _row(
        "report.inside",
        "{target:path} lies inside the checkpoint.",
        "Write the report somewhere else.",
        "A source is never written to.",
        ExitCode.USAGE,
    ),
    _row(
        "report.write_failed",
        "{target:path} cannot be written: {reason:word}.",
        "Give a place that can be written to.",
        "Nothing is left behind of a report that could not be written whole.",
        ExitCode.OUTPUT,
        Stage.PROMOTE,
    ),
    _row(
        "report.descriptor_other",
        "The descriptor in {file:path} is of other files: {count:count file} {count:verb differ}.",
        "Give the descriptor of this checkpoint, or leave --descriptor out.",
        "A descriptor that was made earlier goes into a report only where the names and sizes of the files are still those that it "
        "lists.",
        ExitCode.CHANGED,
        Stage.SOURCE,
    ),
    _row(
        "report.member",
        "{file:path} is no report bundle: {reason:word}.",
        "Give a zip or a folder that `shardscope report` made.",
        "A bundle comes from a stranger. Its files are few, their names are fixed, and nothing else is looked at.",
        ExitCode.UNREADABLE,
        Stage.PARSE,
    ),
    _row(
        "report.digest",
        "In {file:path} the file {member:word} is not what its manifest says.",
        "Ask for the bundle again.",
        "The manifest has the size and the SHA-256 of each file. It tells of accidents; it is no signature.",
        ExitCode.UNREADABLE,
        Stage.VERIFY,
    ),
)
