"""A terminal with nothing around it: one pseudo-terminal, one process, and a master side that a test can close."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping


class LoneTerminal:
    """`shardscope` on a pseudo-terminal of its own, in a session of its own."""

    def __init__(self, *arguments: str, controlling: bool, nohup: bool = False) -> None:
        """`controlling` makes it the controlling terminal, whose end is told by SIGHUP; `nohup` ignores that."""
        self._master, slave = pty.openpty()

        def prepare() -> None:
            if controlling:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if nohup:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

        self.process = subprocess.Popen(
            [sys.executable, "-m", "shardscope", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**_settings(), "LINES": "24", "COLUMNS": "80", "TERM": "xterm-256color"},
            start_new_session=True,
            preexec_fn=prepare,
        )
        os.close(slave)
        self.written = b""

    def until(self, text: bytes) -> None:
        """Read until `text` was written."""
        while text not in self.written:
            self.written += os.read(self._master, 1 << 16)

    def read_on(self) -> None:
        """Read what else is written, as a terminal does, in the background."""
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        try:
            while piece := os.read(self._master, 1 << 16):
                self.written += piece
        except OSError:  # the other side is closed
            return

    def go_away(self) -> None:
        """Close the terminal under the process."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        """End what still runs."""
        self.process.kill()
        self.process.wait()
        if self._master >= 0:
            os.close(self._master)


def _settings() -> Mapping[str, str]:
    return {
        name: os.environ[name] for name in ("PATH", "HOME", "COVERAGE_PROCESS_START") if name in os.environ
    }
