"""resume: going on with what an earlier run to the same target left."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode


def _refusal(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(
        f"resume.{code}",
        Severity.ERROR,
        Stage.ADMIT,
        message,
        remedy,
        meaning,
        (Blocks.CONVERT,),
        ExitCode.OUTPUT,
    )


def _note(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(f"resume.{code}", Severity.INFO, Stage.MATERIALIZE, message, remedy, meaning)


TABLE: Final[tuple[Code, ...]] = (
    _refusal(
        "other_plan",
        "What an earlier run to {file:path} left in {staging:path} is of another plan.",
        "Give the source, the options and the version of that run; or start anew without --resume, and remove the rest with "
        "`shardscope clean`.",
        "Finished files are taken over only where source, choice of tensors, names, types, files and version of shardscope are the "
        "same as they were. Memory, workers and --verify may differ. A source whose files were touched since is another source.",
    ),
    _refusal(
        "foreign",
        "{staging:path} cannot be gone on with: {reason:word}.",
        "Start anew without --resume.",
        "Digests beside the files prove only that nobody damaged them. A folder that somebody else made, or could have written to, "
        "might hold files and digests that were made to fit each other.",
    ),
    _refusal(
        "running",
        "{staging:path} belongs to process {pid:count}, which still runs.",
        "Wait until it has ended, or end it.",
        "The lock of that run is gone although its process is not. What may still be written to is neither taken over nor removed.",
    ),
    _note(
        "nothing",
        "No earlier run to {file:path} has left anything to go on with: this one began anew.",
        "Nothing needs to be done.",
        "--resume may stand in a script that is started again and again, by a queue for example: its first run begins like any other.",
    ),
    _note(
        "taken",
        "{files:count file} with {size:bytes} in {staging:path} were verified, and not made again.",
        "Nothing needs to be done.",
        "Each file that an earlier run finished is read and hashed again before it is taken over, unless the machine still runs "
        "that made it and the kernel has seen no change of it since. One that does not hold its digest is made again.",
    ),
    _note(
        "available",
        "An earlier run of this plan left {files:count file} with {size:bytes} in {staging:path}.",
        "Add --resume to go on with them, or remove them with `shardscope clean`.",
        "The run was killed, or kept what it had. Without --resume a new one begins from nothing, beside it.",
    ),
)
