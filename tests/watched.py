"""Runs inspection in an interpreter that tells on itself.

    python -B -P tests/watched.py inspect PATH...    inspect each path
    python -B -P tests/watched.py decode PATH...     inspect each path with a wish to decode
    python -B -P tests/watched.py trespass NAME...   do on purpose what must never happen, to prove that it shows

Prints one JSON document: for each path or name the events that must not occur, and what came out.
"""

import contextlib

# Before the watch begins: the standard library and numpy make their named tuples by compiling text.
import importlib.resources  # noqa: F401
import json
import os
import shutil  # noqa: F401
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401

from shardscope.engine import inspect
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.escalation import Intent

ROOT = Path(__file__).resolve().parent.parent
HOMES = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))
ROOMS = ("app", "engine", "styles", "tests", "widgets")
OURS = tuple(os.path.realpath(folder) + os.sep for folder in (*HOMES, *(str(ROOT / room) for room in ROOMS)))
"""Where code may come from. Modules that are imported late are compiled and executed from here."""

FRAMEWORKS = (
    "torch",
    "deepspeed",
    "megatron",
    "transformers",
    "accelerate",
    "peft",
    "jax",
    "tensorflow",
    "dask",
)
NEVER = (
    "pickle.", "socket.", "subprocess.", "pty.", "mmap.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn",
    "os.startfile", "os.system", "code.", "webbrowser.", "urllib.", "http.", "ftplib.", "smtplib.", "syslog.", "ensurepip.",
    "os.chflags", "os.chmod", "os.chown", "os.link", "os.mkdir", "os.putenv", "os.remove", "os.removexattr", "os.rename",
    "os.rmdir", "os.setxattr", "os.symlink", "os.truncate", "os.unsetenv", "os.utime", "shutil.", "tempfile.", "sqlite3.",
)  # fmt: skip
"""Audit events that inspection has no business to cause, by their beginning."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """Collects the events that must not occur while it is on. An audit hook cannot be taken out again."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.on = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on and self._is_trespass(event, arguments):
            self.seen.append(f"{event} {arguments!r:.200}")

    def _is_trespass(self, event: str, arguments: tuple[Any, ...]) -> bool:
        match event:
            case "open":
                path, mode, flags = arguments
                if path == os.devnull:
                    return False
                return bool((flags or 0) & WRITING) or any(letter in (mode or "") for letter in "wax+")
            case "exec":
                return not from_here(arguments[0].co_filename)
            case "compile":
                return not from_here(arguments[1])
            case "import":
                return arguments[0].partition(".")[0] in FRAMEWORKS
        return event.startswith(NEVER)


def from_here(filename: object) -> bool:
    return isinstance(filename, str) and (
        filename.startswith("<frozen ") or os.path.realpath(filename).startswith(OURS)
    )


def refuse(*_: object, **__: object) -> Any:
    raise AssertionError("something was unpickled")


def disarm() -> None:
    """Make every way into an unpickler raise, for what an audit event might miss."""
    import _pickle
    import pickle

    for module in (pickle, _pickle):
        for name in ("load", "loads", "Unpickler"):
            setattr(module, name, refuse)


def decoded(path: str) -> Any:
    return inspected(path, Decoding(Intent("inspect", "command line"), listed="all"))


def inspected(path: str, wish: Any = None) -> Any:
    try:
        descriptor = inspect(path, digest="all", decoding=wish).descriptor
    except Fault as fault:
        return {"fault": fault.finding.code}
    return {
        "format": descriptor.classification.format,
        "codes": sorted({item.code for item in descriptor.blockers}),
        "tensors": descriptor.tensors.count,
    }


def unpickle() -> None:
    import pickle

    pickle.loads(b"cbuiltins\nlen\n(S'x'\ntR.")


def connect() -> None:
    import socket

    socket.socket().close()


def start() -> None:
    import subprocess

    subprocess.run([sys.executable, "-c", ""], check=True)


def import_framework() -> None:
    with contextlib.suppress(ImportError):
        __import__("torch")


def load_module() -> None:
    Path("foreign.py").write_text("x = 1\n")
    sys.path.insert(0, os.getcwd())
    __import__("foreign")


TRESPASSES: dict[str, Callable[[], object]] = {
    "unpickle": unpickle,
    "connect": connect,
    "start": start,
    "spawn": lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0),
    "fork": lambda: os.fork() or os._exit(0),
    "system": lambda: os.system("true"),
    "eval": lambda: eval("1"),
    "exec": lambda: exec("x = 1"),
    "import_framework": import_framework,
    "load_module": load_module,
    "write": lambda: Path("written").write_text("x"),
    "append": lambda: open("written", "a").close(),
    "create": lambda: os.close(os.open("created", os.O_CREAT | os.O_RDONLY)),
    "mkdir": lambda: os.mkdir("folder"),
    "touch": lambda: os.utime("."),
}


def main(what: str, names: list[str]) -> None:
    watch = Watch()
    if what in ("inspect", "decode"):
        disarm()
        action: Callable[[str], Any] = inspected if what == "inspect" else decoded
    else:
        action = lambda name: TRESPASSES[name]() and None  # noqa: E731
    told = {}
    for name in names:
        watch.seen, watch.on = [], True
        try:
            result = action(name)
        finally:
            watch.on = False
        told[name] = {"seen": watch.seen, "result": result}
    json.dump({"told": told, "modules": sorted(sys.modules)}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
