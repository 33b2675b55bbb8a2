"""The whole group F of the malformed corpus: configurations, and secrets that no sentence may repeat."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.model.blocker import Fault, Finding, blocker
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.secrets import redact, shown, strings_in
from shardscope.engine.parse.config import check_adapter_config, check_config, check_json
from shardscope.engine.parse.json import parse_json, require_object
from tests.corpus.conftest import malformed

LIMITS = Limits()
OURS = {
    "CFG_FIELD_TYPE": {
        "config.field_type",
        "config.field_value",
        "config.dtype_unknown",
        "config.case_twins",
        "config.path_reference",
    },
    "CFG_CODE_REF": {"config.code_reference"},
    "CFG_SECRET": {"config.secret"},
}
"""The corpus's codes of configurations, and ours."""

Case = dict[str, Any]


@pytest.fixture(scope="module")
def malformed_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return malformed(tmp_path_factory)


@pytest.fixture(scope="module")
def group_f(malformed_corpus: Path) -> list[tuple[Case, Path]]:
    manifest = json.loads((malformed_corpus / "MANIFEST.json").read_bytes())
    cases = [(case, malformed_corpus / case["path"]) for case in manifest["cases"] if case["group"] == "F"]
    assert len(cases) > 100
    return cases


def documents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every JSON of a case: its JSON files, and the headers of its safetensors files."""
    for base, _, names in os.walk(folder):
        for name in names:
            data = (Path(base) / name).read_bytes()
            if name.endswith(".json"):
                yield name, data
            elif name.endswith(".safetensors"):
                yield name, data[8 : 8 + int.from_bytes(data[:8], "little")]


def findings_of(name: str, data: bytes) -> tuple[Finding, ...]:
    try:
        document = parse_json(data, LIMITS)
        value = require_object(document)
    except Fault as fault:
        return (fault.finding,)
    if name == "config.json":
        return document.notes + check_config(value).findings
    if name == "adapter_config.json":
        return document.notes + check_adapter_config(value).findings
    return document.notes + check_json(value)


def test_no_sentence_of_group_f_repeats_a_secret(group_f: list[tuple[Case, Path]]) -> None:  # R098
    for case, folder in group_f:
        texts: list[str] = []
        for name, data in documents(folder):
            for finding in findings_of(name, data):
                made = blocker(finding, name)
                texts += (made.message, made.remedy, str(made.subject), str(made.params))
        for needle in case.get("facts", {}).get("must_not_appear", ()):
            assert not any(needle in text for text in texts), (case["id"], needle)


def test_configurations_of_group_f_get_the_code_they_call_for(group_f: list[tuple[Case, Path]]) -> None:
    seen = set()
    for case, folder in group_f:
        expected = OURS.get(case["code"] or "")
        if expected is None or not (folder / "config.json").exists() or case["id"] == "F.secret-lookalikes":
            continue
        codes = {
            finding.code for finding in findings_of("config.json", (folder / "config.json").read_bytes())
        }
        assert codes & expected, (case["id"], codes)
        seen.add(case["code"])
    assert seen == set(OURS)


def test_secrets_quoted_in_a_sentence_leave_it_and_lookalikes_stay(group_f: list[tuple[Case, Path]]) -> None:
    redacted = 0
    for case, folder in group_f:
        facts = case.get("facts", {})
        # names of files and folders, as a blocker's subject gives them
        texts = [
            str((Path(base) / name).relative_to(folder))
            for base, _, names in os.walk(folder)
            for name in names
        ]
        for _, data in documents(folder):
            try:
                texts += (leaf.text for leaf in strings_in(parse_json(data, LIMITS).value))
            except Fault:
                continue
        if case["id"] == "F.secret-by-name":  # nothing but the names of the keys tells
            continue
        for needle in facts.get("must_not_appear", ()):
            redacted += any(needle in text for text in texts)
            assert not any(needle in shown(text, possible=True) for text in texts), (case["id"], needle)
        for wanted in facts.get("must_appear", ()):
            assert any(wanted in redact(text) for text in texts), (case["id"], wanted)
    assert redacted > 80
