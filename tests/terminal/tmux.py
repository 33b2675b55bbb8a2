"""A real terminal for tests: `shardscope` inside tmux, its keys, its screen, and every byte that it wrote."""

import os
import shlex
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

PATIENCE: Final = 30.0
"""Seconds that a screen may take to show what a test waits for."""


class Terminal:
    """One tmux server with one pane of `size`, gone when the test is over."""

    def __init__(self, folder: Path, size: tuple[int, int] = (120, 40)) -> None:
        """`folder` is where the server's socket and the record of bytes are kept."""
        self._socket = str(folder / "tmux.sock")
        self.folder = folder
        """Where a test may put what is typed for."""
        self._record = folder / "written"
        self._record.touch()
        # The pane waits for a line before it becomes the command, so that the record misses no byte.
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]),
            'read line; eval "$line"; echo "ended with $?"; sleep 60',
        )  # fmt: skip
        self._tmux("pipe-pane", "-O", f"exec cat > {shlex.quote(str(self._record))}")

    def _tmux(self, *words: str) -> str:
        environment = {**os.environ, "LANG": "C.UTF-8"}
        environment.pop("TMUX", None)
        ran = subprocess.run(
            ["tmux", "-u", "-S", self._socket, *words],
            capture_output=True,
            check=True,
            env=environment,
            timeout=20,
        )
        return ran.stdout.decode("utf-8", "backslashreplace")

    def run(self, *arguments: str, **environment: str) -> None:
        """Start `shardscope` with `arguments`; a variable that is empty is unset."""
        settings = {"NO_COLOR": "", "COLORTERM": "", "TERM": "xterm-256color", **environment}
        words = ["env"]  # which takes options before settings
        words += [word for name, value in settings.items() if not value for word in ("-u", name)]
        words += [f"{name}={value}" for name, value in settings.items() if value]
        words += [sys.executable, "-m", "shardscope", *arguments]
        self._tmux("send-keys", "-l", shlex.join(words))
        self._tmux("send-keys", "Enter")

    def press(self, *keys: str) -> None:
        """Send keys by tmux's names of them, each after the screen has come to rest as a person would."""
        for key in keys:
            self._tmux("send-keys", key)
            self._rest()

    def type(self, text: str) -> None:
        """Send text in one go, as if pasted key by key."""
        self._tmux("send-keys", "-l", text)
        self._rest()

    def strike(self, key: str) -> None:
        """Send a key and wait for nothing: what it starts may draw for long."""
        self._tmux("send-keys", key)

    def _rest(self) -> None:
        """Wait until nothing was written for a while."""
        size = -1
        while size != (now := self._record.stat().st_size):
            size = now
            time.sleep(0.15)

    @property
    def screen(self) -> str:
        """What stands on the screen."""
        return self._tmux("capture-pane", "-p")

    @property
    def written(self) -> bytes:
        """Every byte that reached the terminal."""
        return self._record.read_bytes()

    def until(self, *texts: str, gone: str | None = None) -> str:
        """Wait until all of `texts` stand on the screen and `gone` does not, and return it."""
        end = time.monotonic() + PATIENCE
        while True:
            screen = self.screen
            missing = [text for text in texts if text not in screen]
            if not missing and (gone is None or gone not in screen):
                return screen
            assert time.monotonic() < end, f"waited for {missing}, and for {gone!r} to go:\n{screen}"
            time.sleep(0.05)

    def escape(self, leaves: str) -> None:
        """Press escape, and wait until `leaves` has left the screen: with a key right after it, it would be Alt."""
        self.press("Escape")
        self.until(gone=leaves)

    def hang_up(self) -> None:
        """Take the terminal away from what runs in it."""
        self._tmux("kill-session")

    def close(self) -> None:
        """End the server and what runs in it, if that is still there."""
        with suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")
