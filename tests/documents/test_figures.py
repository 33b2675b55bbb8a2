"""Figures in the documents rest on something that was run: a script that prints them again, named beside them."""

import re
from collections.abc import Iterator

import pytest

from tests.documents.pages import ROOT, pages, text

SPEED = re.compile(
    r"\b\d[\d.,]* ?[KMGT]i?B/s|\b\d[\d.,]* ?(?:times|x) (?:as )?(?:fast|quick|slow)|\b(?:faster|quicker|slower) than\b"
    r"|\bof (?:a whole run's|the) time of\b|\b\d[\d.,]* ?(?:k|M)?(?:tensors|files|rows|bytes)/s|\bper second\b",
    re.IGNORECASE,
)
"""Words that claim how quick something is."""
SIZE = re.compile(
    r"\b\d[\d.,]*(?: ?(?:billion|trillion) parameters|B (?:model|parameters))|\b\d[\d.,]* ?T(?:i?)B\b"
)
"""Words that claim something of a large model."""
SCRIPT = re.compile(
    r"\btests/(?:benchmarks|campaigns|producers|geometry|convert)/\w+\.py|`make (?:campaign|fuzz|bench)"
)
NOT_DONE = re.compile(r"\bNothing of this size was converted\b|\bsimulat", re.IGNORECASE)


def sections(page: str) -> Iterator[str]:
    """The parts of a page between headings of two and three levels, without blocks of code and questions of others."""
    plain = re.sub(r"(?ms)^```.*?^```$", "", text(page))
    yield from re.split(r"(?m)^(?=#{2,3} )", plain)


def unbacked(claim: re.Pattern[str]) -> list[str]:
    return [
        f"{page}: {found.group()}"
        for page in pages()
        for section in sections(page)
        if (found := claim.search(section)) and not SCRIPT.search(section)
    ]


# R174
def test_no_speed_is_claimed_without_the_script_that_measures_it() -> None:
    assert unbacked(SPEED) == []


# R114
def test_nothing_is_claimed_of_large_models_that_was_not_measured() -> None:
    assert unbacked(SIZE) == []
    large = [section for page in pages() for section in sections(page) if SIZE.search(section)]
    assert large
    for section in large:
        assert NOT_DONE.search(section), section[:200]


# R114 R174
def test_the_scripts_that_are_named_exist() -> None:
    named = {
        found
        for page in pages()
        for found in re.findall(r"\btests/(?:benchmarks|campaigns|producers)/\w+\.py", text(page))
    }
    assert len(named) >= 5
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize(
    "sentence",
    [
        "It copies 3 GiB/s.",
        "It is 3 times as fast.",
        "Headers open faster than elsewhere.",
        "A thousand files per second.",
    ],
)
def test_a_claim_of_speed_would_be_found(sentence: str) -> None:
    assert SPEED.search(sentence)


@pytest.mark.parametrize(
    "sentence", ["It converts 405B models.", "Tried with 70 billion parameters.", "A save of 2 TiB."]
)
def test_a_claim_of_size_would_be_found(sentence: str) -> None:
    assert SIZE.search(sentence)
