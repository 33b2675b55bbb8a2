"""The runbook has its four parts, and an answer to every way in which a command ends."""

import re

import pytest

from shardscope.engine.model.codes import CODES
from shardscope.engine.model.exits import ExitCode
from tests.documents.pages import text

PAGE = text("docs/runbook.md")
PARTS = ("Triage", "Evidence", "Recovery", "Escalation")


def part(name: str) -> str:
    return PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]


# R117
def test_the_runbook_has_triage_evidence_recovery_and_escalation() -> None:
    assert re.findall(r"(?m)^## (.+)$", PAGE) == list(PARTS)
    for name in PARTS[:3]:
        assert "```console\nshardscope " in part(name), name
    for whom in ("whoever wrote the checkpoint", "whoever runs the machine", "this project", "SECURITY.md"):
        assert whom in part("Escalation")


# R117
@pytest.mark.parametrize("code", ExitCode, ids=lambda code: code.name.lower())
def test_triage_knows_every_exit_code(code: ExitCode) -> None:
    assert re.search(rf"(?m)^\| {code.value} \| \S.+ \| \S.+ \|$", part("Triage"))


# R117
def test_the_codes_that_triage_sorts_by_exist() -> None:
    rows = re.findall(r"(?m)^\| (`[^|]+) \|", part("Triage"))
    begins = {name for row in rows for name in re.findall(r"`([\w.]+)`", row) if "." in name}

    assert len(begins) > 10
    for name in begins:
        assert any(code.startswith(name) for code in CODES), name
