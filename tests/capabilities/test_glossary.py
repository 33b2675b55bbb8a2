"""Eight terms, kept apart."""

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from shardscope.engine.capabilities.checks import TERMS, by_id, glossary_findings
from shardscope.engine.capabilities.published import GLOSSARY, glossary, packaged, sources
from shardscope.engine.model.glossary import Glossary, Reading

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {term.id: f"{term.meaning} {term.relevance}" for term in glossary().terms}


def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(packaged(GLOSSARY))
    return loaded


def codes(changed: dict[str, Any]) -> list[str]:
    try:
        read = msgspec.convert(changed, Glossary)
    except msgspec.ValidationError:
        return ["document.invalid"]
    return [finding.code for finding in glossary_findings(read, by_id(sources()))]


# R003
def test_there_are_exactly_eight_terms_each_with_its_meaning_and_its_relevance() -> None:
    jsonschema.validate(document(), json.loads(packaged("glossary.schema.json")))

    assert tuple(TEXTS) == TERMS
    assert len(TERMS) == 8
    assert all(term.meaning and term.relevance for term in glossary().terms)
    assert len({term.meaning for term in glossary().terms}) == 8
    assert codes(document()) == []


# R003
@pytest.mark.parametrize("change", ["seven", "nine", "twice", "no meaning", "no relevance"])
def test_one_more_or_less_is_refused(change: str) -> None:
    changed = document()
    terms = changed["terms"]
    match change:
        case "seven":
            terms.pop()
        case "nine":
            terms.append(terms[0])
        case "twice":
            terms[7] = terms[0]
        case "no meaning":
            terms[2]["meaning"] = ""
        case "no relevance":
            del terms[2]["relevance"]

    assert codes(changed) == (["glossary.terms"] if change == "twice" else ["document.invalid"])


# R003
def test_the_page_holds_the_eight_terms() -> None:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")

    assert page.count("\n## ") == 8
    assert all(term.meaning in page and term.relevance in page for term in glossary().terms)


@pytest.mark.parametrize(
    ("term", "words"),
    [
        ("hf-file-shard", "No coordinate of a rank is ever derived from the index"),  # R004
        ("safetensors-byte-range", "half-open range of bytes within the data of one file"),  # R005
        ("safetensors-byte-range", "nothing about which rank"),  # R005
        ("device-map", "never fills a fact of topology"),  # R006
        ("offload", "never called a distributed checkpoint"),  # R007
        ("dcp-fsdp-state", "There is no reader and no adapter"),  # R008
        ("dcp-fsdp-state", "two facts"),  # R132
        ("megatron-offset", "a mapping of the model is needed besides"),  # R009
        ("deepspeed-state", "told apart by structure"),  # R010
        ("deepspeed-state", "neither a Hugging Face format nor a converter"),  # R137
        ("live-multi-node", "Never offered"),  # R011
        ("device-map", "capacity"),  # R060
    ],
)
def test_a_term_keeps_its_distance_from_the_others(term: str, words: str) -> None:
    assert words in TEXTS[term]


# R122 R124
def test_a_meaning_is_documented_or_marked_as_ours() -> None:
    unmarked, unsupported = document(), document()
    unmarked["terms"][7]["reading"] = "documented"
    unsupported["terms"][7]["sources"] = ["R14"]
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    ours = [term.id for term in glossary().terms if term.reading is Reading.OURS]

    assert ours == ["live-multi-node"]
    assert page.count("*(our reading)*") == len(ours)
    assert codes(unmarked) == ["claims.wording"]
    assert codes(unsupported) == ["claims.source_foreign"]
