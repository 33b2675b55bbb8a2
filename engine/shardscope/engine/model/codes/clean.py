"""clean: removing what dead runs have left."""

from typing import Final

from shardscope.engine.model.blocker import Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

TABLE: Final[tuple[Code, ...]] = (
    Code(
        "clean.unreadable",
        Severity.ERROR,
        Stage.COMMAND,
        "{file:path} cannot be looked through: {reason:word}.",
        "Name a folder that holds outputs, or an output.",
        "What runs leave lies beside their targets. Nothing was removed.",
        (),
        ExitCode.UNREADABLE,
    ),
)
