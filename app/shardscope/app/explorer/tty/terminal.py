"""The terminal of the explorer: what Textual's driver does not say about its end.

A terminal can go without a word. Where it is not the controlling one, or where SIGHUP is ignored (`nohup`), no signal comes;
reads then answer at once with nothing and writes fail. Textual goes on reading for ever, which costs a third of a core,
and a failed write ends its writer, after which the screen waits for it. So one thread sleeps in `poll` until the
terminal hangs up, writes that fail are passed over, and the application hears of it once. The signals that end a
command reach it the same way, so that workers stop and the terminal is given back.
"""

import asyncio
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from textual.drivers.linux_driver import LinuxDriver

from shardscope.app.explorer.messages import Ended

if TYPE_CHECKING:
    from textual.app import App

ENDS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end the explorer as ctrl+c does."""


class Outlet:
    """Where the driver writes: standard error, until it fails."""

    def __init__(self, gone: Callable[[], None]) -> None:
        self._gone = gone

    def write(self, text: str) -> None:
        """Write `text`, or nothing once the terminal is gone."""
        try:
            sys.__stderr__.write(text)  # type: ignore[union-attr]  # the command line made sure that it is a terminal
        except OSError:
            self._gone()

    def flush(self) -> None:
        """Send what is buffered."""
        try:
            sys.__stderr__.flush()  # type: ignore[union-attr]  # as above
        except OSError:
            self._gone()

    def fileno(self) -> int:
        """Return the descriptor of standard error."""
        return 2


class Terminal(LinuxDriver):
    """The driver of Textual, with an end."""

    def __init__(self, app: "App[Any]", **options: Any) -> None:
        super().__init__(app, **options)
        self._loop = asyncio.get_running_loop()
        self._told = threading.Lock()
        self._file = Outlet(self._gone)  # type: ignore[assignment]  # the three methods that the writer calls
        threading.Thread(target=self._watch, name="terminal-watch", daemon=True).start()
        self._before = {int(number): signal.getsignal(number) for number in ENDS}
        for number, handler in self._before.items():
            if handler != signal.SIG_IGN:  # `nohup`, a background job
                signal.signal(number, self._signalled)

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        signal.signal(number, self._before[number])  # a second one does not wait
        self._tell(hung_up=number == signal.SIGHUP)

    def _tell(self, *, hung_up: bool) -> None:
        self._loop.call_soon_threadsafe(self._app.post_message, Ended(hung_up=hung_up))

    def _watch(self) -> None:
        line = select.poll()
        line.register(self.fileno, 0)  # a hang-up is told in any case, and nothing else
        while True:
            for _, event in line.poll():
                if event & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
                    self._gone()
                    return

    def _gone(self) -> None:
        """Tell the application once. What is still written goes nowhere, so that nothing fails on its way out."""
        if not self._told.acquire(blocking=False):
            return
        sink = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(sink, descriptor)
        os.close(sink)
        self._tell(hung_up=True)

    def run_input_thread(self) -> None:
        """Read keys; a terminal that went away in the middle of it is no error of ours."""
        try:
            super().run_input_thread()
        except OSError:
            self._gone()
