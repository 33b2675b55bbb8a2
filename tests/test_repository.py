"""The repository keeps the promises it makes about itself."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("engine", "app", "widgets")
LAST_REQUIREMENT = 197
MODULE_LINES = 450
FILE_BYTES = 1 << 20

MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:work|root|home/[a-z]+|Users/\w+|opt/(?:pypi|wheels))/[A-Za-z.]")
WORKPLACE = re.compile(r"/work/(?:main|shared|\.)")
"""Tests may speak of a home folder that must not leak; nothing speaks of the folder it was written in."""
REGISTRIES = re.compile(
    r"pypi\.org|pythonhosted\.org|npmjs\.org|anaconda\.org|deb\.debian\.org|proxy\.golang\.org"
)

TOP_LEVEL = {
    ".ci", ".gitattributes", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md",
    "SECURITY.md", "app", "docs", "engine", "pyproject.toml", "requirements-dev.lock", "requirements-nightly.lock",
    "requirements-producers.txt", "requirements.lock", "snapshots", "styles", "tests", "widgets",
}  # fmt: skip


@cache
def tracked() -> tuple[str, ...]:
    """The files that git stores, relative to the root."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(path for path in listed.stdout.split("\0") if path and (ROOT / path).is_file())


@cache
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def product() -> list[str]:
    return [path for path in tracked() if path.startswith(ROOMS) and path.endswith(".py")]


def text_of(path: str) -> str | None:
    """The text of a tracked file, or null for binary ones and for what producers wrote."""
    if path.startswith("tests/fixtures/") and path != "tests/fixtures/README.md":
        return None
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def distribution(requirement: str) -> str:
    """The normalised name in `name>=1.2`."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None, requirement
    return re.sub(r"[-_.]+", "-", name.group()).lower()


def locked(name: str) -> dict[str, set[str]]:
    """The pinned versions in a lock, by distribution: two where they differ by Python."""
    pins: dict[str, set[str]] = {}
    for pin in re.finditer(
        r"^([a-z0-9-]+)==([^ ;\\]+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE
    ):
        pins.setdefault(pin[1], set()).add(pin[2])
    return pins


def test_the_top_level_is_the_agreed_one() -> None:
    assert {path.partition("/")[0] for path in tracked()} == TOP_LEVEL


def test_each_source_root_adds_one_typed_part_to_one_namespace() -> None:
    for part in ("app", "engine", "styles", "widgets"):
        assert f"{part}/shardscope/{part}/py.typed" in tracked()
        assert f"{part}/shardscope/__init__.py" not in tracked()


def test_nothing_names_a_path_of_a_machine_or_a_registry() -> None:
    found = []
    for path in tracked():
        text = text_of(path)
        if text is None:
            continue
        for pattern in (WORKPLACE if path.startswith("tests/") else MACHINE_PATHS, REGISTRIES):
            found += [f"{path}: {hit.group()}" for hit in pattern.finditer(text)]
    assert found == []


def test_no_file_outgrows_a_review() -> None:
    large = [path for path in tracked() if not path.startswith("tests/fixtures/") and size(path) > FILE_BYTES]
    long = {path: lines for path in product() if (lines := line_count(path)) > MODULE_LINES}
    assert (large, long) == ([], {})


def size(path: str) -> int:
    return (ROOT / path).stat().st_size


def line_count(path: str) -> int:
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def test_the_product_holds_no_unfinished_words() -> None:
    unfinished = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
    assert [path for path in product() if unfinished.search((ROOT / path).read_text(encoding="utf-8"))] == []


def test_the_version_has_one_source() -> None:
    path = project()["tool"]["hatch"]["version"]["path"]
    definitions = [path for path in tracked() if re.search(r"(?m)^__version__\s*=", text_of(path) or "")]
    version = re.search(r'__version__ = "(.+)"', (ROOT / path).read_text(encoding="utf-8"))

    assert definitions == [path]
    assert project()["project"]["dynamic"] == ["version"]
    assert version is not None
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def declared() -> tuple[set[str], set[str]]:
    """The distributions that running needs, and those that the checks need."""
    groups = project()["dependency-groups"]
    tools = [entry for group in groups.values() for entry in group if isinstance(entry, str)]
    return {distribution(row) for row in project()["project"]["dependencies"]}, {
        distribution(row) for row in tools
    }


def extras() -> set[str]:
    """The distributions that an extra brings."""
    return {
        distribution(row) for rows in project()["project"]["optional-dependencies"].values() for row in rows
    }


def test_every_dependency_is_justified_in_one_line() -> None:
    running, tools = declared()
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    justified = re.findall(r"(?m)^\| `([^`]+)` \| \S.+ \|$", page)

    assert sorted(justified) == sorted(running | tools | extras())


def test_the_product_imports_only_what_it_declares() -> None:
    imported = {
        (name.name if isinstance(node, ast.Import) else node.module or "").partition(".")[0]
        for path in product()
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"), path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    # `compression` is part of the standard library from 3.14 on.
    third_party = {
        distribution(name) for name in imported - sys.stdlib_module_names - {"shardscope", "compression"}
    }

    assert third_party <= declared()[0] | extras()


def test_widgets_are_kept_from_every_room_but_the_nouns() -> None:
    (contract,) = [
        contract
        for contract in project()["tool"]["importlinter"]["contracts"]
        if contract["name"].startswith("widgets know the nouns")
    ]
    inside = ROOT / "engine/shardscope/engine"
    rooms = {
        path.stem for path in inside.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    }

    assert set(contract["forbidden_modules"]) == {
        f"shardscope.engine.{room}" for room in rooms - {"__init__", "model"}
    }


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock", "requirements-nightly.lock"])
def test_a_lock_holds_names_versions_and_hashes_alone(lock: str) -> None:
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    allowed = re.compile(r" *#.*|[a-z0-9-]+==[^ ]+( ; [^\\]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")

    assert [line for line in lines if not allowed.fullmatch(line)] == []


def test_the_locks_cover_what_is_declared_and_agree() -> None:
    running, tools = declared()
    small, large = locked("requirements.lock"), locked("requirements-dev.lock")
    night = {distribution(row) for row in project()["dependency-groups"]["nightly"]}
    nightly = locked("requirements-nightly.lock")

    assert running | {"hatchling"} <= small.keys()
    assert running | tools - night <= large.keys()
    assert running | night <= nightly.keys()
    assert {name: large.get(name) for name in small} == small
    assert {name: nightly.get(name) for name in small} == small


def test_requirement_marks_name_requirements_that_exist() -> None:
    marks = re.compile(r"(?m)#(?: R\d+)+")
    numbers = {
        int(number)
        for path in tracked()
        if path.startswith("tests/") and path.endswith(".py")
        for mark in marks.findall(text_of(path) or "")
        for number in re.findall(r"R(\d+)", mark)
    }
    assert numbers
    assert numbers <= set(range(1, LAST_REQUIREMENT + 1))


def test_the_generated_pages_are_current() -> None:
    checked = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_links_between_documents_lead_somewhere() -> None:
    links = re.compile(r"\]\(([^)#: ]+)(?:#[^)]*)?\)")
    pages = [path for path in tracked() if path.endswith(".md") and not path.startswith("tests/fixtures/")]
    broken = [
        f"{path}: {target}"
        for path in pages
        for target in links.findall(text_of(path) or "")
        if not (ROOT / path).parent.joinpath(unquote(target)).exists()
    ]
    assert broken == []
