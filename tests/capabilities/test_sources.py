"""The register of sources: the authority that every claim cites, and what has to be said with each source."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from shardscope.engine.capabilities.checks import by_id, matrix_findings, register_findings
from shardscope.engine.capabilities.published import (
    SOURCES,
    glossary,
    packaged,
    sources,
    support_matrix,
)
from shardscope.engine.model.sources import SourceGroup, SourceKind, SourceRegister, Standing

ROOT = Path(__file__).resolve().parents[2]
REGISTER = by_id(sources())


def changed(**fields: Any) -> SourceRegister:
    return msgspec.convert(json.loads(packaged(SOURCES)) | fields, SourceRegister)


def test_the_register_is_valid_by_its_schema_and_its_rules() -> None:
    jsonschema.validate(json.loads(packaged(SOURCES)), json.loads(packaged("sources.schema.json")))

    assert register_findings(sources()) == []


# R119
def test_every_citation_in_the_data_is_in_the_register() -> None:
    cited = {name for row in support_matrix().rows for _, cell in row.each() for name in cell.sources}
    cited |= {name for term in glossary().terms for name in term.sources}

    assert cited <= set(REGISTER)
    assert all(cell.sources for row in support_matrix().rows for _, cell in row.each())


# R120
@pytest.mark.parametrize("field", ["artifact_id", "version", "status", "accessed", "baseline"])
def test_the_head_says_which_register_it_is(field: str) -> None:
    page = (ROOT / "docs/sources.md").read_text(encoding="utf-8")

    assert str(getattr(sources(), field)) in page
    with pytest.raises(msgspec.ValidationError):
        changed(**{field: ""})


# R121
@pytest.mark.parametrize("field", ["title", "kind", "confidence", "supported_use", "qualification"])
def test_an_entry_without_a_part_is_refused(field: str) -> None:
    entries = json.loads(packaged(SOURCES))["entries"]
    entries[0][field] = ""

    with pytest.raises(msgspec.ValidationError):
        changed(entries=entries)


# R121
def test_the_page_shows_each_entry_with_its_class_its_use_and_its_qualification() -> None:
    page = (ROOT / "docs/sources.md").read_text(encoding="utf-8")

    for entry in sources().entries:
        part = page.split(f"\n### {entry.id}\n")[1].split("\n### ")[0]
        for text in (
            entry.title,
            entry.kind,
            f"confidence {entry.confidence}",
            entry.supported_use,
            entry.qualification,
        ):
            assert text in part, entry.id


def test_an_id_means_one_source() -> None:
    entries = json.loads(packaged(SOURCES))["entries"]

    (finding,) = register_findings(changed(entries=[*entries, entries[3]]))
    assert (finding.code, finding.params["found"]) == ("register.twice", entries[3]["id"])


def test_the_rules_are_numbered() -> None:
    rules = json.loads(packaged(SOURCES))["rules"]

    assert [rule["number"] for rule in rules] == [1, 2, 3, 4, 5, 6, 7]
    assert [finding.code for finding in register_findings(changed(rules=rules[1:]))] == ["register.rules"]


# R123
def test_only_the_projects_own_entry_speaks_of_this_product() -> None:
    (own,) = [entry for entry in sources().entries if entry.group is SourceGroup.PROJECT]
    paths = re.findall(r"\b(?:app|engine|tests)/[\w/]+(?:\.py)?", own.supported_use)

    assert own.id == "R21"
    assert own.url is None
    assert paths
    assert all((ROOT / path).exists() for path in paths)


# R126
def test_a_historical_source_grounds_no_cell_alone() -> None:
    archived = {
        name: msgspec.structs.replace(entry, standing=Standing.HISTORICAL)
        if name in ("R01", "R03", "R18", "R21")
        else entry
        for name, entry in REGISTER.items()
    }
    weak = [item for item in matrix_findings(support_matrix(), archived) if item.code == "claims.source_weak"]

    assert {str(item.params["where"]).partition(" / ")[0] for item in weak} >= {"torch-dcp-fsdp"}
    assert "it is historical" in {item.params["problem"] for item in weak}


# R131
def test_a_tutorial_illustrates_and_grounds_nothing_alone() -> None:
    tutorials = {entry.id for entry in sources().entries if entry.kind is SourceKind.TUTORIAL}

    assert tutorials == {"R02", "R09", "R15"}
    for row in support_matrix().rows:
        for _, cell in row.each():
            assert not set(cell.sources) <= tutorials
    assert "illustrates" in REGISTER["R02"].qualification


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("R01", "no general backward compatibility"),  # R130
        ("R02", "no contract of a format"),  # R131
        ("R03", "neither follows from the other"),  # R132
        ("R04", "does not say what the tensor means"),  # R133
        ("R05", "not resuming a training run"),  # R134
        ("R06", "inferred and marked so"),  # R135
        ("R07", "does not say that a family of models"),  # R136
        ("R09", "neither safetensors in the manner of Hugging Face nor a converter"),  # R137
        ("R10", "names the exact revision"),  # R138
        ("R11", "says nothing about who wrote it, where its path leads or where it comes from"),  # R139
        ("R12", "for this project to do"),  # R140
        ("R16", "immutable revision or digest of the base is a rule of this project"),  # R141
        ("R17", "does not turn an arbitrary file into verified data"),  # R128
        ("R35", "or refuses to read with trust"),  # R142
        ("R33", "recorded on the exact host"),  # R143
        ("R27", "shows integrity only once a key or a source is trusted"),  # R144
        ("R29", "fixes the defect that is named and no other"),  # R145
    ],
)
def test_what_has_to_be_said_with_a_source_is_said(name: str, words: str) -> None:
    assert words in REGISTER[name].qualification


# R133
def test_the_terms_of_megatron_keep_their_names() -> None:
    for word in ("global_offset", "rank_offsets", "replica_id"):
        assert word in REGISTER["R04"].supported_use


# R129
@pytest.mark.parametrize(
    "entry",
    [entry for entry in sources().entries if entry.kind is SourceKind.OS_CONTROL],
    ids=lambda entry: entry.id,
)
def test_a_control_of_the_operating_system_is_bound_to_where_it_was_tried(entry: Any) -> None:
    assert re.search(r"exact (?:profile|host)|depends on the kernel", entry.qualification)
