"""The page about a model: its bar of letters, and what it says of what was not compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardscope.engine.anatomy.memory import memory
from shardscope.engine.model.anatomy import DtypeRow, Fact, ModelDocument, Parameters
from shardscope.engine.model.blocker import Finding, blocker
from shardscope.widgets.glyphs import ASCII, UNICODE, Glyphs
from shardscope.widgets.model_answer import ALIKE, TYPES, answer, findings, letters, types
from shardscope.widgets.model_memory import figures
from shardscope.widgets.paragraphs import Paragraph, wrap

COUNTS = Parameters(
    total=7_000_000_000,
    unknown=0,
    embeddings=0,
    experts=0,
    active=None,
    frozen=None,
    tied=(),
    buffers=0,
    companions=0,
)
NOTHING = ModelDocument(
    schema="shardscope.model/1",
    format="hf_safetensors",
    title=None,
    configuration=None,
    tensors=3,
    opaque_files=0,
    parameters=COUNTS,
    dtypes=(),
    families=(),
    facts=(),
    packed=(),
    declared_packing=None,
    adapter=None,
    memory=memory(14 << 30, COUNTS, None),
    findings=(),
)


def text(paragraphs: list[Paragraph], width: int = 78) -> str:
    return "\n".join("".join(piece for piece, _ in line) for each in paragraphs for line in wrap(each, width))


@given(st.lists(st.integers(0, 1 << 50), min_size=1, max_size=8), st.integers(8, 60))
def test_a_bar_is_full_and_leaves_nothing_out(counts: list[int], cells: int) -> None:
    found = letters(counts, cells)
    if not sum(counts):
        assert found == [0] * len(counts)
        return
    assert sum(found) == cells
    assert all((cell > 0) == (count > 0) for cell, count in zip(found, counts, strict=True))


def test_beyond_the_letters_all_other_types_are_one() -> None:
    rows = [DtypeRow(f"T{n}", 1, 100 - n) for n in range(TYPES + 3)]
    said = text(list(types(rows, 78)))
    assert "  *  4 others" in said
    assert f"T{TYPES - 1}" not in said


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_what_was_not_compared_is_not_said_to_fit(glyphs: Glyphs) -> None:
    declared = Fact("layers", 32, None, None, "")
    agreed = Fact("layers", 32, 32, True, "model.layers.{0-31}")
    wrong = Fact("vocabulary", 32_000, 64, False, "lm_head.weight")
    unread = replace(NOTHING, configuration="config.json", facts=(declared,))
    for document in (NOTHING, unread):
        assert glyphs.ok not in text(list(answer(document, "t", glyphs)))
    whole = replace(unread, facts=(agreed, declared))
    assert f"{glyphs.ok} 1 of 1 size agrees with" in text(list(answer(whole, "t", glyphs)))
    some = replace(unread, facts=(agreed, wrong))
    assert glyphs.ok not in text(list(answer(some, "t", glyphs)))


def test_findings_that_are_alike_are_counted() -> None:
    many = [
        blocker(
            Finding(
                "model.contradiction", {"fact": f"f{n}", "declared": "1", "tensor": f"t{n}", "found": "2"}
            )
        )
        for n in range(9)
    ]
    said = text(list(findings(many, UNICODE)))
    assert said.count(many[0].remedy) == 1
    assert said.count("the configuration asks for") == ALIKE
    assert f"{9 - ALIKE} more of model.contradiction" in said


# R115
def test_a_cache_that_cannot_be_counted_is_unknown_and_no_sum_is_made_of_it() -> None:
    said = text(list(figures(NOTHING.memory, 78)))
    assert "unknown  sizes of its heads are not declared" in said
    assert "together" not in said
    assert "Not in it: activations" in said
