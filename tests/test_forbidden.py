"""Nothing that could run a checkpoint's code, or leave this machine, is reachable from the product's source.

The rules read the syntax tree, so they also see what is imported inside a function or under another name. What
happens at run time is watched by tests/test_inert.py.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("engine", "app", "widgets")
SOURCES = sorted(path.relative_to(ROOT).as_posix() for room in ROOMS for path in (ROOT / room).rglob("*.py"))

UNPICKLERS = (
    "pickle",
    "_pickle",
    "cPickle",
    "pickletools",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
)
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
    "distributed",
)
NETWORK = (
    "socket", "_socket", "socketserver", "ssl", "http", "urllib.request", "urllib3", "ftplib", "smtplib", "imaplib",
    "poplib", "xmlrpc", "requests", "httpx", "aiohttp", "textual_serve", "webbrowser", "asyncio.open_connection",
)  # fmt: skip
BY_NAME = (
    "importlib.import_module", "importlib.__import__", "importlib.util", "importlib.machinery", "importlib.reload",
    "importlib.metadata.entry_points", "importlib.metadata.EntryPoint", "importlib.metadata", "pkgutil", "runpy", "imp", "zipimport",
    "pydoc.locate", "pkg_resources", "builtins",
)  # fmt: skip
CODE = ("code", "codeop", "types.FunctionType", "types.CodeType", "operator.methodcaller")
PROCESSES = (
    "subprocess", "multiprocessing", "concurrent.futures.ProcessPoolExecutor", "pty", "os.system", "os.popen",
    "os.fork", "os.forkpty", "os.posix_spawn", "os.posix_spawnp", "os.startfile",
    *(f"os.{verb}{kind}" for verb in ("exec", "spawn") for kind in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
)  # fmt: skip
MAPPINGS = ("mmap", "numpy.memmap", "numpy.fromfile", "numpy.load")
"""A mapped file that shrinks kills the process, and `numpy.load` may unpickle."""

FORBIDDEN_NAMES = (*UNPICKLERS, *FRAMEWORKS, *NETWORK, *BY_NAME, *CODE, *PROCESSES, *MAPPINGS, "ctypes")
FORBIDDEN_BUILTINS = ("eval", "exec", "compile", "__import__", "breakpoint")

ALLOWED = {
    "aiohttp": (
        "app/shardscope/app/serving/server.py",  # `shardscope serve`, on this machine, where a person asked for it
    ),
    "textual_serve": ("app/shardscope/app/serving/server.py",),
    "ctypes": (
        "engine/shardscope/engine/source/",  # openat2 has no wrapper in Python
        "engine/shardscope/engine/isolation/libseccomp.py",  # how the bindings find their library
        "engine/shardscope/engine/isolation/lockdown.py",  # prctl and Landlock have none either
        "engine/shardscope/engine/convert/disk/kernel.py",  # nor have renameat2, fallocate and quotactl_fd
    ),
    "distributed": (
        "engine/shardscope/engine/converting/cluster.py",  # Dask's own client, where a person named a scheduler
    ),
    "importlib.metadata": (
        "engine/shardscope/engine/capabilities/installed.py",  # versions, and no entry point
    ),
    "subprocess": (
        "engine/shardscope/engine/isolation/process.py",
    ),  # the contained worker, and nothing else
    "os.fork": ("engine/shardscope/engine/isolation/lockdown.py",),  # tried by the worker: it must fail
    "os.execv": ("engine/shardscope/engine/isolation/lockdown.py",),
}
"""What may be used nevertheless, and the only folders or files where."""


def called(dotted: str) -> str | None:
    """Return the forbidden name that `dotted` is or lies in."""
    return next((name for name in FORBIDDEN_NAMES if dotted == name or dotted.startswith(name + ".")), None)


def dotted_name(node: ast.expr, aliases: dict[str, str]) -> str | None:
    """Return what `a.b.c` stands for, with the first name resolved through the imports."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return None
    return ".".join([aliases[node.id], *reversed(parts)])


def uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every imported or dotted name of a module with its line, and every built-in that runs code."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
                root = name.name.partition(".")[0]
                aliases[name.asname or root] = name.name if name.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                yield node.lineno, f"{node.module}.{name.name}"
                aliases[name.asname or name.name] = f"{node.module}.{name.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            dotted = dotted_name(node, aliases)
            if dotted is not None:
                yield node.lineno, dotted
        elif isinstance(node, ast.Name) and node.id in FORBIDDEN_BUILTINS:
            yield node.lineno, node.id
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            yield node.value.lineno, "pickle (allow_pickle)"


def violations(source: str, path: str) -> list[str]:
    """Return `line: name` for each forbidden use in a module."""
    found = []
    for line, used in uses(ast.parse(source, path)):
        name = called(used) or (used if used in FORBIDDEN_BUILTINS or used.startswith("pickle ") else None)
        if name is not None and not path.startswith(ALLOWED.get(name, ())):
            found.append(f"{line}: {used}")
    return sorted(set(found))


# R031 R032 R033 R034 R035 R036 R056
@pytest.mark.parametrize("path", SOURCES)
def test_no_module_uses_what_is_forbidden(path: str) -> None:
    assert violations((ROOT / path).read_text(encoding="utf-8"), path) == []


SEEDED = [
    "import torch",  # R031
    "import deepspeed.checkpoint as ds",
    "from megatron.core import dist_checkpointing",
    "def f():\n    from transformers import AutoModel",
    "import accelerate",
    "import peft",
    "import pickle",  # R032
    "from pickle import Unpickler as Reader",
    "import cPickle",
    "import dill",
    "import cloudpickle",
    "import shelve",
    "import marshal",
    "import numpy as np\nnp.load('x.npy')",
    "read(file, allow_pickle=True)",
    "import torch.distributed as dist",  # R033
    "from importlib import import_module",  # R034
    "import importlib\nimportlib.import_module(name)",
    "import importlib.metadata as md\nmd.entry_points()",
    "from importlib.metadata import entry_points",
    "import importlib.resources\nimportlib.util.find_spec(name)",
    "import pkgutil",
    "__import__(name)",
    "load = __import__",
    "eval(text)",  # R035
    "exec(code)",
    "run = exec",
    "compile(text, 'x', 'exec')",
    "import builtins\nbuiltins.eval(text)",
    "import runpy",
    "import subprocess",
    "import os\nos.system('x')",
    "import os as system\nsystem.execvp('x', [])",
    "from os import posix_spawn",
    "import multiprocessing",
    "from concurrent.futures import ProcessPoolExecutor",
    "import socket",  # R036
    "import ssl",
    "import http.client",
    "from urllib.request import urlopen",
    "import urllib.request",
    "import requests",
    "import webbrowser",
    "import mmap",
    "import ctypes",
]


@pytest.mark.parametrize("source", SEEDED)
def test_a_seeded_violation_is_caught(source: str) -> None:
    assert violations(source, "engine/shardscope/engine/parse/seeded.py") != []


@pytest.mark.parametrize(
    "source",
    [
        "import re\nre.compile('x')",
        "import os\nos.open('x', os.O_RDONLY)",
        "from importlib.resources import files",
        "from urllib.parse import quote",
        "from concurrent.futures import ThreadPoolExecutor",
        "def f(self):\n    return self.compile() + self.eval",
        "codes = 1\nfrom shardscope.engine.model import codes as table",
    ],
)
def test_what_is_harmless_passes(source: str) -> None:
    assert violations(source, "engine/shardscope/engine/parse/harmless.py") == []


def test_an_allowance_holds_only_where_it_was_given() -> None:
    assert violations("import ctypes", ALLOWED["ctypes"][0] + "openat2.py") == []
    assert violations("import ctypes", "app/shardscope/app/main.py") == ["1: ctypes"]
    metadata = "from importlib.metadata import distributions"
    assert violations(metadata, ALLOWED["importlib.metadata"][0]) == []
    for name in ("import subprocess", "import os\nos.fork()", "import os\nos.execv('/', [])"):
        assert violations(name, "engine/shardscope/engine/isolation/worker.py") != []
    assert violations("import subprocess", "engine/shardscope/engine/isolation/process.py") == []
    assert (
        violations("from distributed import Client", "engine/shardscope/engine/converting/cluster.py") == []
    )
    for name in ("import aiohttp", "from textual_serve.server import Server"):
        assert violations(name, "app/shardscope/app/serving/server.py") == []
        assert violations(name, "app/shardscope/app/cli/serve.py") != []
        assert violations(name, "engine/shardscope/engine/inspecting/inspection.py") != []
    assert violations("import dask", "engine/shardscope/engine/converting/cluster.py") != []
    assert violations("import distributed", "engine/shardscope/engine/convert/executors/dispatch.py") != []
    assert violations(metadata, "engine/shardscope/engine/formats/folder.py") != []


# R034 R050 R052
def test_where_versions_are_read_entry_points_are_not() -> None:
    for source in (
        "from importlib.metadata import entry_points",
        "import importlib.metadata\nimportlib.metadata.entry_points()",
        "import importlib.metadata as md\nmd.EntryPoint",
    ):
        assert violations(source, ALLOWED["importlib.metadata"][0]) != []


@pytest.mark.parametrize(
    "source",
    ["import pickle", "import torch", "import socket", "import importlib\nimportlib.import_module('x')", "eval('1')",
     "exec('1')", "import subprocess", "import engine"],
)  # fmt: skip
def test_the_linter_knows_the_same_rules(source: str) -> None:
    seen = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--output-format=concise", "--no-cache", "--stdin-filename",
         "engine/shardscope/engine/parse/seeded.py", "-"],
        cwd=ROOT, input=source, text=True, capture_output=True, check=False,
    )  # fmt: skip

    assert seen.returncode == 1
    assert any(rule in seen.stdout for rule in ("TID251", "S102", "S307")), seen.stdout
