"""Sentences of the table of codes."""

import re

import pytest

from shardscope.engine.model.blocker import parameter_kinds, render
from shardscope.engine.model.codes import CODES


@pytest.mark.parametrize(
    ("verb", "one"),
    [
        ("have", "has"),
        ("are", "is"),
        ("were", "was"),
        ("reach", "reaches"),
        ("hold", "holds"),
        ("lie", "lies"),
    ],
)
def test_a_verb_agrees_with_its_number(verb: str, one: str) -> None:
    template = f"{{n:count tensor}} {{n:verb {verb}}} it."
    assert render(template, {"n": 1}) == f"1 tensor {one} it."
    assert render(template, {"n": 2_000}) == f"2,000 tensors {verb} it."
    assert render(template, {"n": None}) == f"unknown {verb} it."
    assert parameter_kinds(template) == {"n": "count"}


def test_no_sentence_has_a_verb_for_several_behind_a_number_that_may_be_one() -> None:
    wrong = re.compile(
        r"\{\w+:count [a-z ]+\}( that| of it)? (have|are|were|hold|stand|differ|reach|lack|lie|do|need)\b"
    )
    assert not [code for code, row in CODES.items() if wrong.search(row.message)]
