"""Ctrl-C, SIGTERM and SIGHUP: one way to stop for all three."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Turns signals into a set event while the engine works, and into `KeyboardInterrupt` everywhere else.

    The engine looks at the event at least every 100 ms. A second signal does not wait for it.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self.name = "Ctrl-C"
        """What stopped the work, in words."""
        self.hung_up = False
        """The terminal went away, whatever else its end sends, and nobody pressed Ctrl-C since."""
        self._cooperative = False

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        again = self.event.is_set() and number != signal.SIGHUP  # shells repeat it, and nobody is impatient
        self.hung_up = number != signal.SIGINT and (self.hung_up or number == signal.SIGHUP)
        self.name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        self.event.set()
        if again or not self._cooperative:
            raise KeyboardInterrupt

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle the signals inside the block. One that is ignored (`nohup`, a background job) stays ignored."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, self._handle)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def cooperative(self) -> Iterator[threading.Event]:
        """The event for engine calls inside the block, which raise `Cancelled` once it is set."""
        self._cooperative = True
        try:
            yield self.event
        finally:
            self._cooperative = False

    @contextmanager
    def abrupt(self) -> Iterator[None]:
        """Inside the block, within `cooperative`, a person is asked something: the first signal ends it at once."""
        before, self._cooperative = self._cooperative, False
        try:
            if self.event.is_set():  # it came just before, and nobody has looked yet
                raise KeyboardInterrupt
            yield
        finally:
            self._cooperative = before
