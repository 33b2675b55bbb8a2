"""The bill of materials: what the lock pins for running, valid CycloneDX, the same bytes each time."""

import json
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.release import sbom

LOCK = (sbom.ROOT / "requirements.lock").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(sbom.document(LOCK))
    return document


def test_it_is_valid_by_the_schema_of_cyclonedx() -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(sbom.document(LOCK)) is None


def test_it_is_the_same_each_time_and_has_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    once = sbom.document(LOCK)

    assert sbom.document(LOCK) == once
    assert json.loads(once)["metadata"]["timestamp"] == "2020-02-02T00:00:00+00:00"


def test_it_names_every_pin_that_running_needs_with_its_hashes(bill: dict[str, Any]) -> None:
    pins = sbom.running(list(sbom.pins(LOCK)))
    found = {(each["name"], each["version"]): each for each in bill["components"]}

    assert found.keys() == {(pin.name, pin.version) for pin in pins}
    assert {"textual", "numpy", "safetensors", "typing-extensions"} <= {name for name, _ in found}
    for pin in pins:
        digests = {
            each["content"]
            for file in found[pin.name, pin.version]["externalReferences"]
            for each in file["hashes"]
        }
        assert digests == set(pin.hashes)
        assert digests


def test_what_only_builds_is_left_out(bill: dict[str, Any]) -> None:
    assert {pin.name for pin in sbom.pins(LOCK)} >= {"hatchling", "trove-classifiers"}
    assert not {each["name"] for each in bill["components"]} & {"hatchling", "trove-classifiers", "pluggy"}


def test_who_needs_what_is_told(bill: dict[str, Any]) -> None:
    needs = {each["ref"]: set(each.get("dependsOn", ())) for each in bill["dependencies"]}
    names = {each["bom-ref"]: each["name"] for each in bill["components"]}

    assert bill["metadata"]["component"]["version"] == sbom.version()
    assert {"click", "textual", "numpy"} <= {names[ref] for ref in needs["shardscope"]}
    rich = next(ref for ref, name in names.items() if name == "rich")
    assert {"pygments", "markdown-it-py"} == {names[ref] for ref in needs[rich]}


def test_another_lock_is_another_bill() -> None:
    assert sbom.document(LOCK.replace("click==8.", "click==9.")) != sbom.document(LOCK)
