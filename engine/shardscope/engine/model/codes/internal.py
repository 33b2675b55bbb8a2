"""internal: errors of shardscope itself, which no checkpoint should be able to cause."""

from typing import Final

from shardscope.engine.model.blocker import Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

TABLE: Final[tuple[Code, ...]] = (
    Code(
        code="internal.error",
        severity=Severity.ERROR,
        stage=Stage.COMMAND,
        message="shardscope itself failed while {doing:word}: {kind:word}.",
        remedy="Nothing was written. Look at the parts that are shown with care, and send the makers of shardscope the page about "
        "it: kind, lines of ours and versions, without any path, name or value.",
        meaning="An error in shardscope, not a statement about the checkpoint. What was shown before it happened still "
        "holds; what was being worked on then was not examined.",
        exit=ExitCode.INTERNAL,
    ),
)
