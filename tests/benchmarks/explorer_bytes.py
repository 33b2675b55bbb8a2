"""What a key press costs a slow link: the bytes that the explorer writes to a terminal of 120 x 40, and what it does when idle.

The explorer runs whole on a pseudo-terminal, on a checkpoint of a few hundred tensors in sixty files. The keys are those of
triage: through the panels, down and up in the file tree and in the table of tensors, a search typed letter by letter, the help.
A press is what was written until nothing came for a while. The bar is 4 KB a press on average. Idle is the processor time over
twenty seconds in which nothing is pressed; the bar is 1 % of a core.
"""

import fcntl
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import psutil  # type: ignore[import-untyped]
from tests.checkpoints import write_sharded

BAR = 4_096
IDLE_BAR = 0.01
IDLE = float(os.environ.get("IDLE", "20"))
QUIET = 0.25
"""Seconds without a byte after which a press is answered."""
SIZE = (120, 40)
SHAPES = {
    "panels": (*"123456", "tab", "tab", *"21"),
    "file tree": ("f", *"jjjjjjjjkkkkGgjj", "f"),
    "blockers": ("3", *"jjkk"),
    "tensors": ("6", *"jjjjjjjjjjjjkkkkkkkk", "pagedown", "pagedown", "pageup", "G", "g"),
    "search": ("/", *"q_proj", "backspace", "backspace", "enter", *"jjj", "escape"),
    "help": ("?", *"theme", "escape"),
    "back": ("1",),
}
SENT = {
    "tab": "\t",
    "pagedown": "\x1b[6~",
    "pageup": "\x1b[5~",
    "backspace": "\x7f",
    "enter": "\r",
    "escape": "\x1b",
}


class Running:
    """The explorer on a terminal of its own."""

    def __init__(self, checkpoint: str) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (SIZE[1], SIZE[0]))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "shardscope", checkpoint],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def read(self, quiet: float = QUIET) -> bytes:
        """Return what is written until nothing comes for `quiet` seconds."""
        written = b""
        while select.select([self._master], [], [], quiet)[0]:
            written += os.read(self._master, 1 << 16)
        return written

    def until(self, awaited: bytes) -> None:
        """Wait until `awaited` was written."""
        written = b""
        while awaited not in written:
            written += os.read(self._master, 1 << 16)

    def press(self, key: str) -> int:
        """Send a key and return how many bytes answered it."""
        os.write(self._master, SENT.get(key, key).encode())
        return len(self.read())

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()
        os.close(self._master)


def checkpoint(folder: Path) -> str:
    """Write a Llama of some size."""
    tensors = {
        f"model.layers.{layer}.{part}.weight": ("BF16", (64, 64))
        for layer in range(60)
        for part in (
            "self_attn.q_proj",
            "self_attn.k_proj",
            "self_attn.v_proj",
            "self_attn.o_proj",
            "mlp.gate_proj",
            "mlp.up_proj",
            "mlp.down_proj",
            "input_layernorm",
            "post_attention_layernorm",
        )
    }
    return str(write_sharded(folder, tensors, shards=60))


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        running = Running(checkpoint(Path(folder) / "checkpoint"))
        try:
            running.until(b"whole?")
            running.read(1.0)
            every: list[int] = []
            for name, keys in SHAPES.items():
                counts = [running.press(key) for key in keys]
                every += counts
                print(
                    f"{name:10} {len(keys):3} presses: {statistics.mean(counts):7,.0f} bytes on average, {max(counts):7,} at most"
                )
                if "-v" in sys.argv:
                    print(
                        "          ",
                        ", ".join(f"{key} {count:,}" for key, count in zip(keys, counts, strict=True)),
                    )
            average = statistics.mean(every)
            print(
                f"{len(every)} presses: {average:,.0f} bytes on average, median {statistics.median(every):,.0f}; bar {BAR:,}"
            )
            running.read(1.0)
            process = psutil.Process(running.process.pid)
            before, begun = sum(process.cpu_times()[:2]), time.monotonic()
            spoken = running.read(IDLE) if "--quick" not in sys.argv else b""
            idle = (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - begun)
            print(f"idle: {idle:.3%} of a core, {len(spoken)} bytes written; bar {IDLE_BAR:.0%}")
        finally:
            running.end()
    return int(average > BAR or idle > IDLE_BAR)


if __name__ == "__main__":
    sys.exit(main())
