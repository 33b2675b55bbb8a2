"""Standard output and standard error, and nobody else writes to either.

Documents (JSON, CSV) are UTF-8 whatever the locale; text for people is in the terminal's encoding, and what that
cannot hold stands as a visible escape. A reader that closes the pipe has seen enough: that is no failure.
"""

import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from msgspec import Struct

ASCII_GLYPHS: Final = str.maketrans({"·": "-", "…": "~", "→": ">", "─": "-"})
"""Our own glyphs, one ASCII character for each, so that columns stay aligned."""


class PipeClosed(Exception):  # noqa: N818 - an outcome, not an error
    """The reader of standard output closed the pipe."""


class OutputFailed(Exception):  # noqa: N818 - carries the reason to the exit code
    """Standard output refused the bytes; the argument says why."""


class Output:
    """The two streams of the process."""

    def __init__(self) -> None:
        self.wrote = False
        """Something stands on standard output, so no other document may follow it."""

    def write(self, data: bytes) -> None:
        """Write `data` to standard output and flush it.

        Raises `PipeClosed` when nobody reads any more and `OutputFailed` when the system refuses.
        """
        stream = sys.stdout
        if stream is None:
            raise OutputFailed("it is closed")
        self.wrote = True
        try:
            stream.flush()
            stream.buffer.write(data)
            stream.buffer.flush()
        except BrokenPipeError:
            abandon()
            raise PipeClosed from None
        except OSError as error:
            abandon()
            raise OutputFailed((error.strerror or type(error).__name__).lower()) from None

    def write_text(self, text: str) -> None:
        """Write `text` for people, in the encoding of standard output."""
        self.write(encoded(text, sys.stdout))

    def write_document(self, document: "Struct") -> None:
        """Write a document of one of our schemas as JSON."""
        from shardscope.engine.model.descriptor import to_json

        self.write(to_json(document).encode())

    def narrate(self, text: str) -> None:
        """Write a line to standard error. It has no say in the outcome: a failure to say it is passed over."""
        stream = sys.stderr
        if stream is None:
            return
        try:
            stream.flush()
            stream.buffer.write(encoded(text + "\n", stream))
            stream.buffer.flush()
        except (OSError, ValueError):
            return


def speaks_unicode(stream: TextIO | None) -> bool:
    """Tell whether `stream` shows characters beyond ASCII, by its encoding and by the locale that was asked for."""
    if stream is None:
        return False
    locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "")
    encoding = (stream.encoding or "ascii").lower().replace("-", "").replace("_", "")
    return encoding == "utf8" and locale not in ("C", "POSIX")


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a person sits at the other end of `stream`."""
    return stream is not None and not stream.closed and stream.isatty()


def wants_color(choice: str, stream: TextIO | None) -> bool:
    """Decide on colour: an explicit choice wins, then `NO_COLOR`, `TERM=dumb`, and whether it is a terminal."""
    if choice != "auto":
        return choice == "always"
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def encoded(text: str, stream: TextIO | None) -> bytes:
    """Return `text` as `stream` can show it: what it cannot show stands as a visible escape."""
    if speaks_unicode(stream):
        return text.encode("utf-8", "backslashreplace")
    return text.translate(ASCII_GLYPHS).encode("ascii", "backslashreplace")


def abandon(descriptor: int = 1) -> None:
    """Send what is still buffered for standard output nowhere, so that the interpreter ends without a word."""
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, descriptor)
    finally:
        os.close(sink)


def settle() -> None:
    """Let the interpreter end with the exit code that it is given: a terminal that went away takes nothing more, and says 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            abandon(stream.fileno())
        except ValueError:
            continue  # it is closed
