"""Runs `shardscope` in processes of its own and does things to them while they convert: `python -m tests.convert.fault_driver`.

Reads one order a line, forks a process for it, and answers with one line of JSON. Nothing in the product knows of it: the steps of
staging and the stages of a conversion are watched from outside.
"""

import errno
import hashlib
import json
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from shardscope.app.main import main as shardscope
from shardscope.engine.convert.copies import copying
from shardscope.engine.convert.executors import dispatch, threads
from shardscope.engine.convert.jobs import running, tasks
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.converting import materializing
from shardscope.engine.converting.staged import verify_staged
from shardscope.engine.model.course import Course

PRELOADED = (copying, dispatch, running, tasks, verify_staged)


class Order(msgspec.Struct, forbid_unknown_fields=True):
    """What to run, and what to do to it when."""

    arguments: list[str]
    said: str
    """File for what it writes."""
    step: str | int | None = None
    """Before which step it happens: its number, or the first of this name."""
    signal: int | None = None
    signals: list[int] | None = None
    """Several, one right after the other."""
    seconds: float | None = None
    """A signal comes at a random moment of so many seconds."""
    seed: int = 0
    fill: str | None = None
    """Fill this folder's disk."""
    limit: int | None = None
    """Files may not become larger."""
    touch: str | None = None
    grow: str | None = None
    cut: str | None = None
    swap: str | None = None
    remove: str | None = None
    make: str | None = None
    """Make this folder, or this file where its parent is there and it has a suffix."""
    alarm: float | None = None
    """Somebody stops it so many seconds later."""
    crowd: str | None = None
    """Fill this folder's file system with files."""
    descriptors: int | None = None
    """So many more may be open."""
    clock: float | None = None
    """The clock on the wall jumps by up to so many seconds at each look."""
    lie: int | None = None
    """Every file has a wrong byte, at a place that this number decides, and the digest of what it holds."""
    delay: float | None = None
    """Each read of the source takes so many seconds longer."""
    call: str | None = None
    """A function of `os` that fails from then on,"""
    error: str = "EIO"
    """like this,"""
    after: int = 0
    """after so many more calls."""


def _grow(path: str) -> None:
    with open(path, "ab") as file:
        file.write(b"\0")


def _swap(path: str) -> None:
    data = Path(path).read_bytes()
    os.rename(path, path + ".old")
    Path(path).write_bytes(data)
    os.unlink(path + ".old")


def _make(path: str) -> None:
    if Path(path).suffix:
        Path(path).write_bytes(b"")
    else:
        Path(path).mkdir()


def _fill(folder: str) -> None:
    with open(Path(folder) / "filler", "wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _crowd(folder: str) -> None:
    Path(folder).mkdir()
    with suppress(OSError):
        for number in range(1_000_000):
            (Path(folder) / str(number)).touch(exist_ok=False)


def _signals(numbers: list[int]) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)


def _descriptors(more: int) -> None:
    held = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (held + more, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def _clock(most: float) -> None:
    real, jumps = time.time, random.Random(most)
    time.time = lambda: real() + jumps.uniform(-most, most)


def _lie(seed: int) -> None:
    """Let copying write one wrong byte into each file, behind its header."""
    real = running.copy_task

    def lying(task: tasks.FileTask, output: Any, **named: Any) -> copying.Copied:
        copied = real(task, output, **named)
        at = random.Random(seed).randrange(len(task.header), task.size)
        wrong = bytes([os.pread(output.fileno(), 1, at)[0] ^ 0xFF])
        os.pwrite(output.fileno(), wrong, at)
        data = os.pread(output.fileno(), task.size, 0)
        return msgspec.structs.replace(copied, sha256=hashlib.sha256(data).hexdigest())

    for owner, name in ((threads, "copy_task"), (running, "copy_task")):
        setattr(owner, name, lying)


def _delay(seconds: float) -> None:
    def slow(real: Callable[..., Any]) -> Callable[..., Any]:
        def later(*given: Any) -> Any:
            time.sleep(seconds)
            return real(*given)

        return later

    for name in ("pread", "preadv", "copy_file_range"):
        setattr(os, name, slow(getattr(os, name)))


def _signal_each(numbers: Sequence[int]) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)


DOES: dict[str, Callable[[Any], object]] = {
    "signal": lambda number: os.kill(os.getpid(), number),
    "signals": _signals,
    "fill": _fill,
    "limit": _limit,
    "descriptors": _descriptors,
    "crowd": _crowd,
    "alarm": lambda seconds: threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM)).start(),
    "clock": _clock,
    "lie": _lie,
    "delay": _delay,
    "touch": lambda path: os.utime(path),
    "grow": _grow,
    "cut": lambda path: os.truncate(path, os.stat(path).st_size - 1),
    "swap": _swap,
    "remove": os.unlink,
    "make": _make,
}


def _fail(order: Order) -> None:
    """Let a function of the system fail."""
    assert order.call is not None
    real = getattr(os, order.call)
    left = order.after

    def failing(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        if left <= 0:
            number = getattr(errno, order.error)
            raise OSError(number, os.strerror(number))
        left -= 1
        return real(*arguments, **named)

    setattr(os, order.call, failing)


def _happen(order: Order) -> None:
    for name, does in DOES.items():
        value = getattr(order, name)
        if value is not None:
            does(value)
    if order.call is not None:
        _fail(order)


def run(order: Order) -> int:
    """Run `shardscope` in this process. Steps that were taken are written down at its end."""
    taken: list[str] = []
    turn = threading.Lock()

    def at(step: str) -> None:
        with turn:  # files are made side by side
            here = len(taken) if isinstance(order.step, int) else step
            first = step not in taken
            taken.append(step)
        if order.step is not None and here == order.step and (first or here != step):
            _happen(order)

    def staging(*arguments: Any, **named: Any) -> Staging:
        return Staging(*arguments, **named, at=at)

    begin = Course.begin

    def begun(course: Course, stage: str) -> None:
        begin(course, stage)
        at(stage)

    for owner, name, instead in ((materializing, "Staging", staging), (Course, "begin", begun)):
        setattr(owner, name, instead)
    file = os.open(order.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    code = shardscope(order.arguments)
    sys.stdout.flush()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.getrlimit(resource.RLIMIT_FSIZE)[1],) * 2)
    Path(order.said + ".steps").write_text(json.dumps(taken))
    return code


def main() -> None:
    assert all(PRELOADED)
    for line in sys.stdin:
        order = msgspec.json.decode(line, type=Order)
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            status = 99
            try:
                status = run(order)
            finally:
                os._exit(status)
        if order.seconds is not None:
            time.sleep(random.Random(order.seed).uniform(0, order.seconds))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        ended = None if killed else os.waitstatus_to_exitcode(status)
        print(json.dumps({"killed": killed, "ended": ended, "seconds": time.monotonic() - began}), flush=True)


if __name__ == "__main__":
    main()
