"""The command itself: what is said where no checkpoint is at fault."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

TABLE: Final[tuple[Code, ...]] = (
    Code(
        "usage.invalid",
        Severity.ERROR,
        Stage.COMMAND,
        "{problem:word}",
        "Run `{help:word}` to see what the command takes.",
        "The command line asks for something that does not exist: an option, a command, a value. Nothing was read.",
        exit=ExitCode.USAGE,
    ),
    Code(
        "usage.no_terminal",
        Severity.ERROR,
        Stage.COMMAND,
        "The explorer needs a terminal, and {reason:word}.",
        "Run `{command:word}` for the same answer as text, or add --json for a document.",
        "The explorer draws on the whole screen and reads keys, so standard input, output and error must be a terminal "
        "that can move its cursor. Every screen has a command that prints the same.",
        exit=ExitCode.USAGE,
    ),
    Code(
        "tensors.opaque",
        Severity.ERROR,
        Stage.DESCRIBE,
        "No tensor can be listed: {files:count} of the files that would hold them need decoding.",
        "Run `{command:word}` to see what their names and containers tell without decoding.",
        "The tensors of pickled files are described inside the pickle, and the safe plane interprets no pickle byte. "
        "Not listed does not mean not there.",
        (Blocks.DECODE,),
        ExitCode.NEEDS_DECODING,
    ),
    Code(
        "tensors.unread",
        Severity.ERROR,
        Stage.DESCRIBE,
        "No tensor can be listed: {format:word} is recognised only, and {files:count file} {files:verb hold} what is in it.",
        "Use a tool of that format; `{command:word}` shows what names and first bytes tell.",
        "Nothing here reads more of the format, and decoding does not either. Not listed does not mean not there.",
        (Blocks.DECODE,),
        ExitCode.UNSUPPORTED,
    ),
    Code(
        "output.failed",
        Severity.ERROR,
        Stage.COMMAND,
        "Standard output could not be written: {reason:word}.",
        "Make room or give another target, then run the command again; the source was only read.",
        "What stands on standard output is incomplete. A pipe that the reader closes is no failure and is not reported.",
        exit=ExitCode.OUTPUT,
    ),
    Code(
        "command.cancelled",
        Severity.ERROR,
        Stage.COMMAND,
        "Stopped by {signal:word}; nothing was written.",
        "Run the command again when you want the answer.",
        "A person, or the end of the session, stopped the command before it had its answer. Inspection writes nothing, so "
        "there is nothing to clean up.",
        exit=ExitCode.CANCELLED,
    ),
    Code(
        "convert.cancelled",
        Severity.ERROR,
        Stage.COMMAND,
        "Stopped by {signal:word} while {doing:word}.",
        "Run the command again when you want the output; what is said beside this tells what is left of this run.",
        "A person, or the end of the session, stopped a conversion that had begun. An output appears by one rename at the very "
        "end, so what stands at the target is the old state or the new one, whole.",
        exit=ExitCode.CANCELLED,
    ),
)
