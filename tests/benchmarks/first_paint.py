"""How long until the explorer draws, by the time of a Textual application that draws one word.

Each is a fresh process on a pseudo-terminal, timed from its start to the bytes of the first frame: the explorer through the whole
command line, on a small real checkpoint. The bar is 1.5x. The time until the answer itself stands on the screen is
shown beside it.
"""

import fcntl
import os
import pty
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from textwrap import dedent

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.pairs import measure
from tests.checkpoints import write_sharded

BAR = 1.5
MINIMAL = dedent(
    """
    from textual.app import App
    from textual.widgets import Static

    class Minimal(App):
        def compose(self):
            yield Static("first frame")

    Minimal().run()
    """
)
SIZE = {"LINES": "24", "COLUMNS": "80"}


def until(awaited: bytes, *command: str) -> None:
    """Start `command` on a terminal of its own and return once it has written `awaited`.

    It is the controlling terminal: should this script be killed, the kernel hangs up, and no child runs on.
    """
    master, slave = pty.openpty()
    environment = {**os.environ, **SIZE, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        command,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    try:
        written = b""
        while awaited not in written:
            written += os.read(master, 1 << 16)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = str(write_sharded(Path(folder) / "checkpoint"))
        minimal = Path(folder) / "minimal.py"
        minimal.write_text(MINIMAL)

        def reference() -> None:
            until(b"first frame", sys.executable, str(minimal))

        def explorer() -> None:
            until(b"nothing decoded", sys.executable, "-m", "shardscope", checkpoint)

        def answer() -> None:
            until(b"whole?", sys.executable, "-m", "shardscope", checkpoint)

        first = measure("explorer, first frame", reference, explorer, 11, BAR)
        measure("explorer, the answer", reference, answer, 11)
    return int(first.median > BAR)


if __name__ == "__main__":
    sys.exit(main())
