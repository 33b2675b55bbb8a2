"""The threat model names what stands against each threat and where that is tried; what it names is there."""

import re

from tests.documents.pages import ROOT, text

PAGE = text("SECURITY.md")


def rows(heading: str) -> list[list[str]]:
    part = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    table = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in table[2:]]


def test_every_threat_has_a_defence_and_a_place_where_it_is_tried() -> None:
    threats = rows("Threat by threat")

    assert len(threats) >= 12
    for threat, defence, tried in threats:
        assert len(threat) > 10, threat
        assert len(defence) > 20, threat
        paths = re.findall(r"`(tests/[\w/.]+)`|\((docs/[\w-]+\.md)\)", tried)
        assert paths, threat
        assert all((ROOT / (test or page)).exists() for test, page in paths), tried


def test_what_is_promised_and_what_is_not_both_have_their_part() -> None:
    parts = re.findall(r"(?m)^## (.+)$", PAGE)

    assert {"Who is feared, and for what", "What is promised", "What is not promised", "Telling us"} <= set(
        parts
    )
    assert len(rows("Who is feared, and for what")) >= 4
