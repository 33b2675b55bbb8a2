"""The lint of claims: sentences that say more than their sources, in data and pages."""

import re
from pathlib import Path

import pytest

from shardscope.engine.capabilities.checks import by_id
from shardscope.engine.capabilities.claims import cited, page_findings, sentences, wording_findings
from shardscope.engine.capabilities.published import sources
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.descriptor import Trust
from shardscope.engine.model.evidence import Classification

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
)
REGISTER = by_id(sources())


def rules(sentence: str) -> list[int | str | None]:
    return [finding.params["rule"] for finding in wording_findings("here", sentence)]


# R119 R122 R127 R128
@pytest.mark.parametrize("page", PAGES)
def test_the_pages_keep_the_rules(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")

    assert list(page_findings(page, text, REGISTER)) == []


# R127 R128
def test_the_sentences_of_the_codes_keep_the_rules() -> None:
    broken = [
        (code, finding.params["sentence"])
        for code, row in CODES.items()
        for text in (row.message, row.remedy, row.meaning)
        for sentence in sentences(text)
        for finding in wording_findings(code, sentence)
    ]
    assert broken == []


# R119
def test_the_guide_cites_and_its_citations_are_seen() -> None:
    text = (ROOT / "docs/intake.md").read_text(encoding="utf-8")
    ids = {name for sentence in sentences(text) for name in cited(sentence)}

    assert {"R08", "R10", "R14", "R19", "R27", "R33"} <= ids
    assert ids <= set(REGISTER)


# R119
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("It defines [R01].", ["R01"]),
        ("It defines [R01, R03].", ["R01", "R03"]),
        ("It defines [R27-R29].", ["R27", "R28", "R29"]),
        ("It defines [R04–R05, R07].", ["R04", "R05", "R07"]),
        ("It defines [R01](sources.md#r01).", []),
        ("Nothing [R1] here.", []),
    ],
)
def test_citations_are_spelled_out(text: str, ids: list[str]) -> None:
    assert list(cited(text)) == ids


# R119
@pytest.mark.parametrize("text", ["It documents this [R99].", "| a | [[R99](sources.md#r99)] |"])
def test_a_citation_that_leads_nowhere_is_found(text: str) -> None:
    assert [finding.code for finding in page_findings("p", text, REGISTER)] == ["claims.source_unknown"]


# R122 R124
@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("PyTorch documents resharding on load [R01].", True),
        ("DeepSpeed currently implements consolidation in a script [R10].", True),
        ("In our reading this is no topology [R14].", True),
        ("A process is contained, not proven harmless [R32].", True),
        ("Files are hashed as opaque bytes [R21].", True),
        ("DCP can reshard anything on load [R01].", False),
        ("Checkpoints move between topologies [R05].", False),
    ],
)
def test_vendor_behaviour_is_told_in_three_words(text: str, clean: bool) -> None:
    assert (list(page_findings("p", text, REGISTER)) == []) is clean


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("PyTorch guarantees that old saves load.", 1),  # R122
        ("DeepSpeed ensures the order of its files.", 1),  # R122
        ("Megatron checkpoints are fully supported.", 2),  # R123
        ("Old saves are guaranteed to load.", 4),  # R130
        ("The sandbox guarantees that decoding is harmless.", 5),  # R127
        ("Isolation proves that the file does nothing.", 5),  # R127
        ("With weights_only=True the file is safe.", 6),  # R128
        ("A matching checksum means that the file is trusted.", 6),  # R128
        ("The signature shows it is authentic.", 6),  # R144
        ("This checkpoint is safe to load.", 6),  # R128
        ("It runs in a universal sandbox.", 7),  # R129
    ],
)
def test_a_word_too_strong_is_found_with_its_rule(sentence: str, rule: int) -> None:
    assert rule in rules(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "A checkpoint that is described without complaint is not thereby safe to load.",
        "A checksum, a familiar name, an earlier scan or weights_only=True is not trust.",
        "Isolation is containment and never a proof.",
        "Nothing here is guaranteed.",
        "The digest is a SHA-256 of the bytes.",
    ],
)
def test_a_sentence_that_denies_it_passes(sentence: str) -> None:
    assert rules(sentence) == []


def test_code_blocks_are_no_claims() -> None:
    page = "Text.\n\n```json\nThis checkpoint is safe to load.\n```\n\n    PyTorch guarantees it.\n"

    assert list(page_findings("p", page, REGISTER)) == []


# R128 R139
def test_the_descriptor_says_what_is_no_trust_and_no_promise() -> None:
    trust = Trust((), (), (), "").note
    promise = Classification.__struct_defaults__[-1]

    assert re.search(r"checksum.*familiar name.*earlier scan.*weights_only=True is not trust", trust)
    assert "no promise" in promise


# R060 R061 R062
def test_the_guide_explains_placement_one_device_and_one_host() -> None:
    text = " ".join((ROOT / "docs/intake.md").read_text(encoding="utf-8").split())

    assert "a means of capacity" in text
    assert "it is not pipeline parallelism" in text
    assert "a gate of correctness" in text
    assert "one process on one other host; it coordinates no ranks" in text


# R115 R116 R134
def test_the_guide_gives_the_memory_warning_and_no_multiplier() -> None:
    text = " ".join((ROOT / "docs/intake.md").read_text(encoding="utf-8").split())

    assert "can take a great deal of CPU memory [R08]" in text
    assert "no multiplier is given" in text
    assert "will not be called exact resume" in text
