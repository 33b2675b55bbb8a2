"""isolation: the contained worker that decodes, and the record that allows it."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

_STOPS: Final = (Blocks.DECODE, Blocks.CONVERT)


def _error(code: str, message: str, remedy: str, meaning: str, exits: ExitCode | None = None) -> Code:
    return Code(f"isolation.{code}", Severity.ERROR, Stage.DECODE, message, remedy, meaning, _STOPS, exits)


def _record(what: str, message: str, meaning: str) -> Code:
    return _error(
        f"escalation_{what}",
        message,
        "Ask for decoding again. If it happens again, tell the makers of shardscope: no file should be able to cause it.",
        f"{meaning} A record is made for one decoding of certain bytes for a certain operation, on this machine, by this runtime, "
        "in this containment, within these limits; both sides compare all of it before a byte is decoded.",
    )


TABLE: Final[tuple[Code, ...]] = (
    _error(
        "unavailable",
        "Decoding is refused: this machine does not give {facility:word}.",
        "Run it on Linux where processes may lock themselves in (libseccomp installed, no container profile that forbids it), "
        "or read the checkpoint in its producer's own environment, at your own risk.",
        "Pickles are decoded in a process that has given up files, network and other processes, and has tried that it has. "
        "Where that cannot be had nothing is decoded; no switch changes it.",
        ExitCode.NEEDS_DECODING,
    ),
    _error(
        "intent_spent",
        "Decoding was asked for once, for {operation:word}, and has taken place.",
        "Ask for it again: --decode on the command line, or the dialog of the explorer.",
        "A wish to decode holds for one invocation. It is not remembered, neither in a file nor in a setting.",
    ),
    _error(
        "crashed",
        "The contained worker ended ({how:word}) while it decoded {file:path}.",
        "Nothing of this file was decoded, the others were. SIGKILL is most often the kernel short of memory; for another end "
        "tell the makers of shardscope, if you can with the file.",
        "The worker is there to be lost: what brings it down costs the answer about one file.",
    ),
    _error(
        "failed",
        "The decoder itself failed ({kind:word}) while it decoded {file:path}.",
        "Nothing of this file was decoded, the others were. Tell the makers of shardscope, if you can with the file.",
        "An error in shardscope's decoder, met inside the worker. It says nothing about the file but that nobody has tried "
        "one like it.",
    ),
    _error(
        "bad_reply",
        "The contained worker gave an answer about {file:path} that does not hold: {problem:word}.",
        "Nothing of it was used. Treat the file as hostile, and tell the makers of shardscope.",
        "Answers of the worker are not believed: each number is checked to refer to something that is there. An answer that "
        "breaks the rules is an error in shardscope or the work of a file that took over the worker.",
    ),
    _record(
        "spent",
        "The record for decoding {file:path} was used before, or was never issued here.",
        "A record is good once.",
    ),
    _record(
        "bytes",
        "The record for decoding {file:path} is for other bytes.",
        "A single changed byte is another pickle.",
    ),
    _record(
        "operation",
        "The record for decoding {file:path} is for another operation.",
        "Who asked to look has not asked to convert.",
    ),
    _record(
        "host",
        "The record for decoding {file:path} was made on another machine.",
        "Containment that was tried on one machine says nothing about another.",
    ),
    _record(
        "runtime",
        "The record for decoding {file:path} was made for another version of Python or shardscope.",
        "What was agreed to for one decoder does not hold for the next.",
    ),
    _record(
        "profile",
        "The record for decoding {file:path} was made for another containment.",
        "The worker is contained otherwise than it was when decoding was asked for.",
    ),
    _record(
        "limits",
        "The record for decoding {file:path} was made with other limits.",
        "Limits belong to what was agreed to.",
    ),
)
