"""What an audit says: clean only where advisories were read for everything that is pinned."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.release import audit


def answer(*rows: Mapping[str, object]) -> str:
    return json.dumps({"dependencies": rows, "fixes": []})


LOOKED = {"name": "click", "version": "8.5.1", "vulns": []}
BAD = {"name": "click", "version": "8.5.1", "vulns": [{"id": "PYSEC-1", "fix_versions": []}]}
SKIPPED = {"name": "click", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("said", "pinned", "ends", "word"),
    [
        (answer(LOOKED), 1, audit.CLEAN, "No advisory is known today"),
        (answer(BAD), 1, audit.FOUND, "PYSEC-1"),
        (answer(BAD, SKIPPED), 2, audit.FOUND, "PYSEC-1"),
        (answer(SKIPPED), 1, audit.UNKNOWN, "0 of 1"),
        (answer(LOOKED, SKIPPED), 2, audit.UNKNOWN, "1 of 2"),
        (answer(), 1, audit.UNKNOWN, "Not audited"),
        ("", 1, audit.UNKNOWN, "no advisory data could be reached"),
        ("Traceback", 1, audit.UNKNOWN, "no advisory data could be reached"),
        ("[]", 1, audit.UNKNOWN, "no advisory data could be reached"),
    ],
)
def test_only_what_was_looked_up_is_called_clean(said: str, pinned: int, ends: int, word: str) -> None:
    found = audit.verdict(said, "ConnectionError: no route\n", pinned)

    assert found.exit == ends
    assert word in found.says
    assert ("clean" in found.says.lower()) is False


def test_a_tool_that_cannot_be_run_is_no_clean_audit(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_text(
        'click==8.5.1 \\\n    --hash=sha256:00\nnumpy==1 ; python_version < "3" \\\n    --hash=sha256:00\n'
    )

    assert audit.here(lock) == 1
    assert audit.audit(lock, [sys.executable, "-c", "raise SystemExit(1)"]).exit == audit.UNKNOWN
