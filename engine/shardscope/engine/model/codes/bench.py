"""Measuring this machine."""

from typing import Final

from shardscope.engine.model.blocker import Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

TABLE: Final[tuple[Code, ...]] = (
    Code(
        "bench.no_room",
        Severity.ERROR,
        Stage.COMMAND,
        "{file:path} has {free:bytes} free, and the measurement may take {needed:bytes}.",
        "Name another folder with --folder, or ask for less with --size.",
        "The files that are measured with are written, copied and removed; four times their size has to be free.",
        exit=ExitCode.OUTPUT,
    ),
    Code(
        "bench.failed",
        Severity.ERROR,
        Stage.COMMAND,
        "The files to measure with could not be written or read in {file:path}: {reason:text}.",
        "Name a folder that you may write into with --folder.",
        "What had been written was removed again, as far as the system let it.",
        exit=ExitCode.OUTPUT,
    ),
)
