"""What the screens say of support, of terms and of the six steps is what the data says, all of it."""

import pytest
from msgspec.structs import replace
from tests.app.fakes import a_blocker, entry, inspection
from tests.widgets.stage import Stage

from shardscope.engine import glossary, sources, support_matrix
from shardscope.engine.model.workflow import StepName
from shardscope.widgets.glossary_panel import GlossaryPanel
from shardscope.widgets.matrix_panel import MatrixPanel
from shardscope.widgets.paragraphs import Paragraphs
from shardscope.widgets.summary_panel import SummaryPanel


async def said(panel: Paragraphs, width: int) -> str:
    """Return everything that a panel says, joined to one line, single spaces."""
    async with Stage(panel).run_test(size=(width, 40)) as pilot:
        await pilot.pause()
        return " ".join(" ".join(panel.text_lines).split())


@pytest.mark.parametrize("width", [80, 120])
async def test_the_matrix_is_drawn_cell_by_cell(width: int) -> None:  # R001 R012 R013
    matrix = support_matrix()
    titles = {str(column.id): column.title for column in matrix.columns}
    text = await said(MatrixPanel(matrix, sources()), width)
    at = 0
    for row in matrix.rows:
        for name, cell in row.each():
            at = text.find(f"{titles[name]} {cell.word.value} {cell.note}", at)
            assert at >= 0, (row.id, name)
            assert text.find(f"[{', '.join(cell.sources)}]", at) > at
    for each in matrix.vocabulary:
        used = any(cell.word is each.word for row in matrix.rows for _, cell in row.each())
        assert (f"{each.word.value} {each.meaning}" in text) is used


async def test_where_there_is_room_the_matrix_stands_at_a_glance_before_the_reasons() -> None:
    matrix = support_matrix()
    text = await said(MatrixPanel(matrix, sources()), 120)
    at = 0
    for row in matrix.rows:
        words = " ".join(cell.word.value for _, cell in row.each())
        at = text.find(f"{row.title} {words}", at)
        assert at >= 0, row.id
    assert f"{matrix.rows[0].title} conditional" not in await said(MatrixPanel(matrix, sources()), 80)


async def test_the_subject_of_the_checkpoint_in_hand_comes_first() -> None:
    text = await said(MatrixPanel(support_matrix(), sources(), "megatron_dist"), 80)
    mine = text.index("Megatron distributed state the checkpoint in hand")
    assert mine < text.index("Compatible Hugging Face safetensors")
    assert "in hand" not in await said(MatrixPanel(support_matrix(), sources(), "gguf"), 80)


async def test_all_eight_terms_are_told_apart() -> None:  # R003
    text = await said(GlossaryPanel(glossary()), 80)
    terms = glossary().terms
    places = [text.find(f"{term.term} {term.meaning}") for term in terms]
    assert -1 not in places
    assert places == sorted(places)
    assert all(f"here {term.relevance}" in text for term in terms)
    assert text.count("our reading") == sum(term.reading == "our reading" for term in terms)


async def test_the_summary_says_how_the_six_steps_stand() -> None:  # R063 R064
    found = inspection([entry("model.safetensors", 8)], blockers=(a_blocker(),)).descriptor
    text = await said(SummaryPanel(found), 110)
    text = text[text.index("Steps") :]
    places = [text.find(f"{step.name.value} ") for step in found.workflow.steps]
    assert [step.name for step in found.workflow.steps] == list(StepName)
    assert -1 not in places
    assert places == sorted(places)
    assert "validate ✗ stopped files or shapes do not hold layout.shard_missing" in text
    assert "Steps" not in await said(
        SummaryPanel(replace(found, workflow=replace(found.workflow, steps=()))), 110
    )
