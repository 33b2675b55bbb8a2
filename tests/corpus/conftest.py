"""The corpus of malformed inputs, written once for each run of the tests."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.expectations import Case

GENERATOR = Path(__file__).parent / "malformed_corpus.py"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the corpus. Sparse files in it claim up to a tebibyte: never copy it."""
    folder = tmp_path_factory.mktemp("malformed") / "corpus"
    subprocess.run([sys.executable, GENERATOR, folder], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def cases(corpus: Path) -> dict[str, list[Case]]:
    """The cases that could be written here, by group."""
    groups: dict[str, list[Case]] = {}
    manifest: dict[str, Any] = json.loads((corpus / "MANIFEST.json").read_bytes())
    for case in manifest["cases"]:
        if "skipped" not in case:
            groups.setdefault(case["group"], []).append(case)
    return groups
