"""The support matrix: its shape, its words, and that nothing is called more than it is."""

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from shardscope.app.cli.root import COMMANDS
from shardscope.engine.capabilities.checks import by_id, matrix_findings
from shardscope.engine.capabilities.published import MATRIX, packaged, sources, support_matrix
from shardscope.engine.formats import FORMATS
from shardscope.engine.model.matrix import COLUMNS, SUBJECTS, Dependence, SupportMatrix, Word
from shardscope.engine.model.qualification import Qualification

ROOT = Path(__file__).resolve().parents[2]
REGISTER = by_id(sources())
DISTRIBUTED = ("torch-dcp-fsdp", "megatron", "deepspeed")

RETAINED = {
    "producer_version": "torch 2.9.1",
    "adapter_version": "0.1.0",
    "fixture_digest": "0" * 64,
    "candidate_commit": "1" * 40,
    "environment": "Linux 6.8, Python 3.11",
    "topology": "dp 2",
    "retained_result": "a file",
}


def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(packaged(MATRIX))
    return loaded


def codes(changed: dict[str, Any]) -> list[str]:
    """Return what the validator says of a matrix that was changed, its schema first."""
    try:
        matrix = msgspec.convert(changed, SupportMatrix)
    except msgspec.ValidationError:
        return ["document.invalid"]
    return [finding.code for finding in matrix_findings(matrix, REGISTER)]


def cell(changed: dict[str, Any], row: str, column: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in changed["rows"] if each["id"] == row)["cells"][column]
    return found


# R001 R002
def test_the_matrix_is_valid_by_its_types_by_the_schema_beside_it_and_by_its_rules() -> None:
    beside = json.loads(packaged("support-matrix.schema.json"))

    jsonschema.Draft202012Validator.check_schema(beside)
    jsonschema.validate(document(), beside)
    assert beside["title"] == "shardscope.matrix/1"
    assert codes(document()) == []


# R001
@pytest.mark.parametrize("page", ["docs/support-matrix.md", "README.md"])
def test_every_rendered_table_holds_the_words_of_the_data(page: str) -> None:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()

    for row in support_matrix().rows:
        words = " | ".join(found.word for _, found in row.each())
        assert f"| {row.title} | {words} |" in lines


# R001
def test_the_page_holds_each_cell_with_its_note_and_its_sources() -> None:
    text = (ROOT / "docs/support-matrix.md").read_text(encoding="utf-8")

    for row in support_matrix().rows:
        part = text.split(f"\n## {row.title}\n")[1].split("\n## ")[0]
        for _, found in row.each():
            assert found.note in part
            assert all(f"[{name}](sources.md#{name.lower()})" in part for name in found.sources)


# R012 R013
def test_there_are_seven_subjects_and_five_capabilities() -> None:
    matrix = support_matrix()

    assert [row.id for row in matrix.rows] == list(SUBJECTS)
    assert [column.id for column in matrix.columns] == list(COLUMNS)
    assert (len(SUBJECTS), len(COLUMNS)) == (7, 5)
    assert {row.id for row in matrix.rows if row.distributed} == {*DISTRIBUTED, "live-multi-node"}


# R012
@pytest.mark.parametrize("change", ["remove", "repeat", "swap"])
def test_a_row_more_or_less_or_elsewhere_is_refused(change: str) -> None:
    changed = document()
    rows = changed["rows"]
    if change == "remove":
        rows.pop()
    elif change == "repeat":
        rows.append(rows[0])
    else:
        rows[0], rows[1] = rows[1], rows[0]

    assert "matrix.shape" in codes(changed)


# R013
def test_a_sixth_column_or_a_missing_one_is_refused() -> None:
    more, less, unlisted = document(), document(), document()
    more["rows"][0]["cells"]["training"] = more["rows"][0]["cells"]["exact_resume"]
    del less["rows"][0]["cells"]["exact_resume"]
    unlisted["columns"].pop()

    assert codes(more) == codes(less) == ["document.invalid"]
    assert codes(unlisted) == ["matrix.shape"]


# R014
def test_the_vocabulary_is_closed_and_each_word_is_explained() -> None:
    changed = document()
    cell(changed, "megatron", "convert_to_hf")["word"] = "mostly"
    unexplained = document()
    unexplained["vocabulary"].pop()

    assert {word.value for word in Word} == {
        "supported", "experimental", "conditional", "deferred", "canonical", "preflight-only", "out-of-scope",
        "not-applicable", "no",
    }  # fmt: skip
    assert codes(changed) == ["document.invalid"]
    assert codes(unexplained) == ["matrix.shape"]


# R015
def test_every_conditional_cell_names_all_that_it_depends_on() -> None:
    conditional = [
        found for row in support_matrix().rows for _, found in row.each() if found.word is Word.CONDITIONAL
    ]

    assert len(conditional) >= 5
    assert all(set(found.depends_on) == set(Dependence) for found in conditional)
    for missing in Dependence:
        changed = document()
        cell(changed, "hf-safetensors", "load_or_surgery")["depends_on"].remove(missing.value)
        assert codes(changed) == ["matrix.dependence_missing"]


# R014 R016
def test_what_is_deferred_has_no_command_and_conversion_is_not_claimed() -> None:
    words = {row.id: row.cells.convert_to_hf for row in support_matrix().rows if row.id in DISTRIBUTED}
    converting = {"convert", "reshard", "materialize", "export"} & set(COMMANDS)

    assert {found.word for found in words.values()} == (
        {Word.EXPERIMENTAL} if converting else {Word.DEFERRED}
    )
    if not converting:
        assert all("not implemented in this release" in found.note for found in words.values())


# R017 R123
def test_no_distributed_row_is_called_supported() -> None:
    for row in support_matrix().rows:
        if row.distributed:
            assert Word.SUPPORTED not in [found.word for _, found in row.each()]
            assert row.qualification is None


def supported(**retained: Any) -> dict[str, Any]:
    changed = document()
    cell(changed, "torch-dcp-fsdp", "convert_to_hf")["word"] = "supported"
    next(row for row in changed["rows"] if row["id"] == "torch-dcp-fsdp")["qualification"] = retained or None
    return changed


# R017 R125
def test_a_supported_row_needs_what_was_retained() -> None:
    assert codes(supported()) == ["matrix.unqualified"]
    assert codes(supported(**RETAINED)) == []


# R125
@pytest.mark.parametrize("item", Qualification.__struct_fields__)
@pytest.mark.parametrize("how", ["absent", "null"])
def test_a_supported_row_falls_with_each_of_the_seven_items(item: str, how: str) -> None:
    assert set(RETAINED) == set(Qualification.__struct_fields__)
    retained = {name: value for name, value in RETAINED.items() if name != item or how == "null"}
    if how == "null":
        retained[item] = None  # type: ignore[assignment]

    assert codes(supported(**retained)) == ["matrix.unqualified"]


# R125
@pytest.mark.parametrize(
    ("item", "value"),
    [("fixture_digest", "abc"), ("candidate_commit", "main"), ("environment", ""), ("topology", "")],
)
def test_an_item_that_pins_nothing_is_none(item: str, value: str) -> None:
    assert codes(supported(**{**RETAINED, item: value})) == ["document.invalid"]


# R018 R019
def test_inspection_of_headers_is_called_that() -> None:
    rows = {row.id: row for row in support_matrix().rows}

    assert rows["hf-safetensors"].cells.structural_inspect.note.startswith("Header-only")
    assert rows["peft-lora"].cells.structural_inspect.note.startswith("Headers and JSON only")
    assert rows["peft-lora"].cells.convert_to_hf.word is Word.NOT_APPLICABLE
    assert "no fragments of ranks" in rows["peft-lora"].cells.convert_to_hf.note


# R007 R008 R009 R010 R011
def test_the_rows_say_what_the_guide_keeps_apart() -> None:
    rows = {row.id: row for row in support_matrix().rows}

    assert "never distributed" in rows["accelerate-placement"].cells.structural_inspect.note
    assert "names and structure" in rows["torch-dcp-fsdp"].cells.structural_inspect.note
    assert "a mapping of the model" in rows["megatron"].cells.structural_inspect.note
    assert "told apart" in rows["deepspeed"].cells.structural_inspect.note
    assert all(row.cells.live_multi_node.word in (Word.OUT_OF_SCOPE, Word.NO) for row in rows.values())
    assert rows["live-multi-node"].cells.load_or_surgery.word is Word.NO


# R037
def test_conditional_is_explained_as_no_promise() -> None:
    (meaning,) = [each.meaning for each in support_matrix().vocabulary if each.word is Word.CONDITIONAL]

    assert "Structural evidence" in meaning
    assert "no promise that a checkpoint loads or converts" in meaning


def test_every_row_speaks_for_formats_that_are_known() -> None:
    spoken = {name for row in support_matrix().rows for name in row.formats}
    changed = document()
    changed["rows"][0]["formats"].append("own_format")

    assert "hf_safetensors" in spoken & {item.name for item in FORMATS}
    assert codes(changed) == ["matrix.format_unknown"]


# R119 R123 R126 R131
@pytest.mark.parametrize(
    ("ids", "code"),
    [
        (["R21", "R99"], "claims.source_unknown"),
        (["R01"], "claims.source_foreign"),
        (["R02"], "claims.source_weak"),
        ([], "document.invalid"),
        (["21"], "document.invalid"),
    ],
)
def test_a_cell_rests_on_sources_that_carry_it(ids: list[str], code: str) -> None:
    changed = document()
    cell(changed, "torch-dcp-fsdp", "structural_inspect")["sources"] = ids

    assert code in codes(changed)
