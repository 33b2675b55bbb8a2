"""The worker as its parent sees it: a process that is started, talked to against the clock, and ended.

It is a new program (exec) and no copy of this one, whose threads and open files it must not have: an interpreter that reads no
environment, no settings of the site and no folder of a person's, in `/`, with two pipes and nothing else.
"""

import contextlib
import fcntl
import gc
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from shardscope.engine.isolation import frames
from shardscope.engine.isolation.escalation import Lacking
from shardscope.engine.isolation.frames import Answer, Greeting
from shardscope.engine.model import progress
from shardscope.engine.model.escalation import Facility

_MAIN: Final = (
    "import sys; sys.path += sys.argv[2:]; from shardscope.engine.isolation.worker import main; "
    "main(int(sys.argv[1]))"
)
_PACKAGES: Final = ("msgspec", "pyseccomp", "landlock")

_START_SECONDS: Final = 60
"""For an interpreter to start and lock itself in, on a machine with other work to do."""
_END_SECONDS: Final = 2
_TICK_MS: Final = 50
"""Between two looks at `cancel`."""
_F_SETPIPE_SZ: Final = 1031
"""`linux/fcntl.h`; the constant is in `fcntl` since Python 3.10 where the C library has it."""


class Ended(Exception):  # noqa: N818 - an outcome, not an error
    """The worker ended, or was ended, before it had answered."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


class Broken(Exception):  # noqa: N818 - an outcome, not an error
    """The worker said something that is no answer."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class TooSlow(Exception):  # noqa: N818 - an outcome, not an error
    """The clock ran out."""


class Process:
    """One worker. It lives no longer than the thread that made it."""

    def __init__(self, start: frames.Start) -> None:
        """Start the worker and tell it what it is for. Raises `Lacking` where no interpreter can be started."""
        line = command(os.getpid())
        pipes: list[int] = []
        try:
            pipes += os.pipe()
            pipes += os.pipe()
            self._child = subprocess.Popen(  # noqa: S603 - our own interpreter and our own module
                line,
                stdin=pipes[0],
                stdout=pipes[3],
                stderr=subprocess.DEVNULL,
                close_fds=True,
                cwd="/",
                env={},
                start_new_session=True,  # an interrupt from the terminal is for us to handle
            )
        except OSError:
            for descriptor in pipes:
                os.close(descriptor)
            raise Lacking(Facility.INTERPRETER) from None
        theirs_in, self._requests, self._answers, theirs_out = pipes
        os.close(theirs_in)
        os.close(theirs_out)
        for descriptor in (self._requests, self._answers):
            os.set_blocking(descriptor, False)
            with contextlib.suppress(OSError):  # a larger pipe is only quicker
                fcntl.fcntl(descriptor, _F_SETPIPE_SZ, frames.TRANSFER_BYTES)
        with contextlib.suppress(BrokenPipeError):  # it ended at once, as will be seen when it should answer
            os.write(self._requests, frames.framed(frames.encode(start)))

    @property
    def pid(self) -> int:
        """Return its number among the processes."""
        return self._child.pid

    def alive(self) -> bool:
        """Tell whether it is running and has nothing to say that nobody asked for."""
        poll = select.poll()
        poll.register(self._answers, select.POLLIN)
        return self._child.poll() is None and not poll.poll(0)

    def greeting(self, cancel: threading.Event | None) -> Greeting:
        """Return the first that the worker says: what it is, or what it lacks. Raises `Lacking` where it says nothing, `Cancelled`."""
        try:
            return frames.greeting_of(self._exchange([], frames.WORD_BYTES, _START_SECONDS, cancel))
        except (Ended, Broken, TooSlow, msgspec.DecodeError):
            raise Lacking(Facility.INTERPRETER) from None

    def ask(
        self,
        request: frames.Request,
        data: bytes,
        reply_bytes: int,
        seconds: float,
        cancel: threading.Event | None,
    ) -> Answer:
        """Return the answer to one request. Raises `Ended`, `Broken`, `TooSlow` or `Cancelled`: the worker is then of no more use."""
        document = self._exchange(
            [frames.framed(frames.encode(request)), data],
            max(reply_bytes, frames.WORD_BYTES),
            seconds,
            cancel,
        )
        collecting = gc.isenabled()
        gc.disable()  # millions of nodes that all stay: looking through them would take most of the time
        try:
            return frames.answer_of(document)
        except (msgspec.DecodeError, RecursionError):
            raise Broken("it is no document of the known form") from None
        finally:
            if collecting:
                gc.enable()

    def end(self) -> None:
        """End a worker that is idle: without its pipes it has nothing to wait for. One that does not go is killed."""
        self._close()
        try:
            self._child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End a worker at once: it is busy, or not believed any more."""
        self._close()
        self._child.kill()
        self._child.wait()

    def _close(self) -> None:
        if self._requests >= 0:
            os.close(self._requests)
            os.close(self._answers)
        self._requests = self._answers = -1

    def _exchange(
        self, parts: Sequence[bytes], most: int, seconds: float, cancel: threading.Event | None
    ) -> bytearray:
        """Send all parts, and return the document of the frame that comes back."""
        until = time.monotonic() + seconds
        outgoing = [memoryview(part) for part in parts]
        poll = select.poll()
        poll.register(self._answers, select.POLLIN)
        if outgoing:
            poll.register(self._requests, select.POLLOUT)
        incoming = bytearray()
        length: int | None = None
        while length is None or len(incoming) < length:
            progress.check(cancel)
            if time.monotonic() > until:
                raise TooSlow
            for descriptor, _ in poll.poll(_TICK_MS):
                if descriptor == self._requests:
                    if not self._sent(outgoing):
                        poll.unregister(self._requests)
                    continue
                wanted = frames.PREFIX_BYTES - len(incoming) if length is None else length - len(incoming)
                incoming += self._received(wanted)
                if length is None and len(incoming) == frames.PREFIX_BYTES:
                    length = int.from_bytes(incoming, "big")
                    incoming.clear()
                    if length > most:
                        raise Broken(f"it announces {length:,} bytes")
        if outgoing:
            raise Broken("it came before the question was complete")
        return incoming

    def _sent(self, outgoing: list[memoryview]) -> bool:
        """Send what the pipe takes; tell whether there is more."""
        try:
            count = os.write(self._requests, outgoing[0][: frames.TRANSFER_BYTES])
        except BlockingIOError:
            return True
        except BrokenPipeError:
            raise Ended(self._how()) from None
        outgoing[0] = outgoing[0][count:]
        if not outgoing[0]:
            outgoing.pop(0)
        return bool(outgoing)

    def _received(self, wanted: int) -> bytes:
        try:
            data = os.read(self._answers, min(wanted, frames.TRANSFER_BYTES))
        except BlockingIOError:
            return b""
        if not data:
            raise Ended(self._how())
        return data

    def _how(self) -> str:
        """Return how a worker ended that has closed its pipes."""
        try:
            status = self._child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return "it closed its pipes"
        if status >= 0:
            return f"exit status {status}"
        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"


def command(parent: int) -> list[str]:
    """Return the command line of a worker for the process `parent`. Raises `Lacking` where this program knows no interpreter."""
    if sys.platform != "linux":
        raise Lacking(Facility.LINUX)
    if not sys.executable:
        raise Lacking(Facility.INTERPRETER)
    return [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _MAIN, str(parent), *_folders()]


def _folders() -> list[str]:
    """Return where the worker's code lies: our own, and that of the packages it needs, as this program would find them.

    Never the working folder, which may be the checkpoint.
    """
    avoided = _working_folder()
    entries = [entry for entry in sys.path if os.path.isabs(entry) and os.path.realpath(entry) != avoided]
    ours = os.path.abspath(__file__)
    found = [ours.removesuffix(__name__.replace(".", os.sep) + ".py").rstrip(os.sep)]
    for name in _PACKAGES:
        place = next((entry for entry in entries if _holds(entry, name)), None)
        if place is not None and place not in found:
            found.append(place)
    return found


def _working_folder() -> str | None:
    try:
        return os.path.realpath(os.getcwd())
    except OSError:  # it was removed
        return None


def _holds(folder: str, package: str) -> bool:
    return os.path.isfile(os.path.join(folder, f"{package}.py")) or os.path.isfile(
        os.path.join(folder, package, "__init__.py")
    )
