"""What a process says when it ends. The numbers are part of the interface and never change their meaning."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """The exit codes of every `shardscope` command."""

    OK = 0
    BLOCKED = 1
    """A blocker blocks inspection, or stands at or above `--fail-on`; a difference found by diff or verify; something incomplete by watch --once."""
    USAGE = 2
    UNREADABLE = 3
    """The source cannot be examined: missing, unreadable, not a file or folder."""
    LIMIT = 4
    CHANGED = 5
    """The source changed while it was being read."""
    DENIED = 6
    """Admission denied or unknown."""
    NEEDS_DECODING = 7
    UNSUPPORTED = 8
    """An invalid, ambiguous or unsupported layout or map."""
    OUTPUT = 9
    INTERNAL = 70
    CANCELLED = 130


_PRECEDENCE = (
    ExitCode.CANCELLED,
    ExitCode.INTERNAL,
    ExitCode.USAGE,
    ExitCode.UNREADABLE,
    ExitCode.CHANGED,
    ExitCode.LIMIT,
    ExitCode.UNSUPPORTED,
    ExitCode.NEEDS_DECODING,
    ExitCode.DENIED,
    ExitCode.OUTPUT,
    ExitCode.BLOCKED,
)


def most_specific(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the code that wins where several apply: the specific beats the general."""
    present = set(codes)
    return next((code for code in _PRECEDENCE if code in present), ExitCode.OK)


MEANINGS: Final[dict[ExitCode, str]] = {
    ExitCode.OK: "Done, and nothing at or above `--fail-on` was found.",
    ExitCode.BLOCKED: "A blocker blocks inspection or stands at or above `--fail-on`, `diff` or `verify` found a difference, or `watch --once` something incomplete.",
    ExitCode.USAGE: "The command line is wrong, or the explorer has no terminal. Nothing was read.",
    ExitCode.UNREADABLE: "The source cannot be examined: missing, unreadable, neither file nor folder.",
    ExitCode.LIMIT: "A limit was reached; the blocker names it and `--limit` raises it.",
    ExitCode.CHANGED: "The source changed while it was being read.",
    ExitCode.DENIED: "Admission was denied, or could not be decided. Nothing was started.",
    ExitCode.NEEDS_DECODING: "The answer is inside files that need decoding.",
    ExitCode.UNSUPPORTED: "The layout or the map is invalid, ambiguous or not supported.",
    ExitCode.OUTPUT: "The output could not be written.",
    ExitCode.INTERNAL: "An error in shardscope itself.",
    ExitCode.CANCELLED: "Stopped by Ctrl-C, SIGTERM or SIGHUP. Nothing was written.",
}
"""One sentence for each code, as help, documentation and man page show it."""


def precedence() -> tuple[ExitCode, ...]:
    """Return the codes other than OK from the most specific to the most general."""
    return _PRECEDENCE
