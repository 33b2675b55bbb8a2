"""The corpus of malformed inputs, written once for each run of the tests."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.app.terminal import environment
from tests.corpus.expectations import Case
from tests.once import once

GENERATOR = Path(__file__).parent / "malformed_corpus.py"
DRIVER = Path(__file__).parent / "driver.py"


@dataclass(frozen=True)
class Answer:
    """How one command ended."""

    exit: int
    """Its exit code."""
    seconds: float
    """Of processor time, which other work on the machine does not lengthen."""
    peak: int
    """Bytes of memory of the process at their peak, until then: no less than what this command needed."""
    out: str
    err: str
    """What it wrote, each byte a character (Latin-1)."""

    @property
    def text(self) -> str:
        """Standard output; raises where it is no UTF-8."""
        return self.out.encode("latin-1").decode()

    @property
    def complaint(self) -> str:
        """Standard error; raises where it is no UTF-8."""
        return self.err.encode("latin-1").decode()


Answers = dict[str, Answer]


def malformed(factory: pytest.TempPathFactory) -> Path:
    """Return the folder that holds the corpus; nothing in it may be changed."""

    def write(folder: Path) -> None:
        subprocess.run([sys.executable, GENERATOR, folder / "corpus"], check=True, capture_output=True)

    return once(factory, "malformed", write) / "corpus"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the corpus. Sparse files in it claim up to a tebibyte: never copy it."""
    return malformed(tmp_path_factory)


@pytest.fixture(scope="session")
def cases(corpus: Path) -> dict[str, list[Case]]:
    """The cases that could be written here, by group."""
    groups: dict[str, list[Case]] = {}
    manifest: dict[str, Any] = json.loads((corpus / "MANIFEST.json").read_bytes())
    for case in manifest["cases"]:
        if "skipped" not in case:
            groups.setdefault(case["group"], []).append(case)
    return groups


@pytest.fixture(scope="session")
def documents(
    tmp_path_factory: pytest.TempPathFactory, corpus: Path, cases: dict[str, list[Case]]
) -> Answers:
    """What `inspect --json` says to every case, by its id."""
    return _kept(tmp_path_factory, "documents", lambda: _answers(corpus, cases, "--json"))


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory, corpus: Path, cases: dict[str, list[Case]]) -> Answers:
    """What `inspect` tells a person about the cases of A, E and F, by their ids."""
    return _kept(
        tmp_path_factory, "reports", lambda: _answers(corpus, {group: cases[group] for group in "AEF"})
    )


def _kept(factory: pytest.TempPathFactory, name: str, ask_all: Callable[[], Answers]) -> Answers:
    def write(folder: Path) -> None:
        (folder / "answers.json").write_bytes(msgspec.json.encode(ask_all()))

    return msgspec.json.decode((once(factory, name, write) / "answers.json").read_bytes(), type=Answers)


def _answers(corpus: Path, groups: dict[str, list[Case]], *options: str) -> Answers:
    cases = [case for group in groups.values() for case in group if not needs_another_user(case)]
    said = ask(corpus, [["inspect", case["path"], *options] for case in cases])
    others = [case for group in groups.values() for case in group if needs_another_user(case)]
    said += ask(corpus, [["inspect", case["path"], *options] for case in others], "--unprivileged")
    return {case["id"]: answer for case, answer in zip((*cases, *others), said, strict=True)}


def needs_another_user(case: Case) -> bool:
    return case.get("requires") == "non-root"


def ask(corpus: Path, commands: list[list[str]], *options: str) -> list[Answer]:
    """Run commands in one other process (see `driver.py`); their paths are relative to the corpus."""
    ran = subprocess.run(
        [sys.executable, "-P", DRIVER, corpus, *options],
        input="".join(json.dumps(command) + "\n" for command in commands),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, (ran.returncode, ran.stderr[-2_000:])
    return [Answer(**json.loads(line)) for line in ran.stdout.splitlines()]
