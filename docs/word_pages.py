"""The closed vocabulary of reports: every word that the engine's own sentences, tables and naming schemes are made of."""

import ast
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ENGINE = Path(__file__).resolve().parent.parent / "engine" / "shardscope" / "engine"
EXCLUDED = ("words.py", "secret_rules.py", "secrets.py", "openat2.py", "libseccomp.py")
"""What is generated from here, and what is about secrets and the kernel: no word of a checkpoint."""


def sentences(tree: ast.AST) -> Iterator[str]:
    """Every string of a module but its docstrings."""
    silent = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


def strings(value: Any) -> Iterator[str]:
    """Every string of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)


def texts() -> Iterator[str]:
    """Every text whose words are ours."""
    for path in sorted(ENGINE.rglob("*.py")):
        if path.name not in EXCLUDED:
            yield from sentences(ast.parse(path.read_text(encoding="utf-8")))
    for path in sorted((ENGINE / "mappings" / "data").glob("*.json")):
        yield from strings(json.loads(path.read_text(encoding="utf-8")))


def words() -> str:
    """The vocabulary as a module: a text file would take longer to find than to read."""
    found = set()
    for text in texts():
        for run in re.findall(r"[A-Za-z]+", text):
            if len(run) <= 24:
                found.add(run.lower())
                found |= {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", run)}
    lines = textwrap.wrap(" ".join(sorted(found)), 120)
    head = '"""Words of our own sentences and naming schemes: made by docs/generate.py."""'
    return "\n".join((head, "", "from typing import Final", "", 'WORDS: Final = """', *lines, '"""', ""))
