"""The checkpoints under tests/fixtures are the bytes that their producers wrote."""

import hashlib
import json
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "fixtures"
PRODUCERS = sorted(FIXTURES.glob("*/*/PRODUCER.json"))


def name_of(producer: Path) -> str:
    return producer.parent.relative_to(FIXTURES).as_posix()


@pytest.mark.parametrize("producer", PRODUCERS, ids=name_of)
def test_a_fixture_holds_exactly_the_recorded_bytes(producer: Path) -> None:
    recorded = json.loads(producer.read_bytes())
    present = {
        path.relative_to(producer.parent).as_posix(): path
        for path in producer.parent.rglob("*")
        if path.is_file() and path != producer
    }

    assert name_of(producer).endswith(recorded.get("fixture") or recorded["name"])
    assert present.keys() == recorded["files"].keys()
    for path, facts in recorded["files"].items():
        content = present[path].read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (facts["bytes"], facts["sha256"]), path


def test_every_fixture_folder_names_its_producer() -> None:
    folders = {path for path in FIXTURES.glob("*/*") if path.is_dir()}

    assert folders == {producer.parent for producer in PRODUCERS}
    assert {folder.parent.name for folder in folders} >= {"hf", "peft", "torch", "dcp", "deepspeed"}
