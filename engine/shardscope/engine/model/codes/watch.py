"""Watching a folder in which checkpoints appear."""

from typing import Final

from shardscope.engine.model.blocker import Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

TABLE: Final[tuple[Code, ...]] = (
    Code(
        "watch.not_folder",
        Severity.ERROR,
        Stage.COMMAND,
        "{file:path} is a file, and what is watched is a folder that holds the folders of steps.",
        "Name the folder that a training run saves into.",
        "`shardscope watch` looks at the folders directly below the one that is named, each a checkpoint of its own.",
        exit=ExitCode.UNREADABLE,
    ),
    Code(
        "watch.known_malformed",
        Severity.ERROR,
        Stage.COMMAND,
        "Line {line:count} of {file:path} is no event of `shardscope watch --json`.",
        "Give what an earlier watch printed with --json, and nothing else; without --known everything that is there is told again.",
        "The events of an earlier watch say which folders were told already. A line that ends without a line break was cut off "
        "with the process that wrote it and is passed over; any other must be an event.",
        exit=ExitCode.UNREADABLE,
    ),
)
