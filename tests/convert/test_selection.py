"""What is written, under which name and type, and what is left out: every choice is told."""

from math import prod

import pytest

from shardscope.engine.convert.plans.selection import Selection, select
from shardscope.engine.converting.preparing import explained
from shardscope.engine.geometry.constructors.dcp import chunk_list
from shardscope.engine.model.blocker import Fault, Finding, blocker
from shardscope.engine.model.catalogue import Catalogue, Fragment, LogicalTensor, Record
from shardscope.engine.model.plan import PlanOptions, RenameRule


def tensor(name: str, shape: tuple[int, ...] = (2, 3), dtype: str = "F32", **fields: object) -> LogicalTensor:
    map_, mesh = chunk_list(shape, [((0,) * len(shape), shape)])
    fragment = Fragment(0, shape, Record("file", 0, 4 * prod(shape), 4 * prod(shape)), 0)
    return LogicalTensor(name, dtype, shape, map_, mesh, (fragment,), **fields)  # type: ignore[arg-type]


def chosen(*tensors: LogicalTensor, **options: object) -> Selection:
    return select(Catalogue(tensors), PlanOptions(**options), lambda item: 4 * prod(item.shape))  # type: ignore[arg-type]


def names(selection: Selection) -> list[str]:
    return [item.name for item in selection.chosen]


def kinds(selection: Selection) -> set[str]:
    return {item.kind for item in selection.decisions}


MOMENT = tensor("w.exp_avg", component="optimizer", role="state")


# R090
def test_model_weights_alone_are_written_unless_more_is_asked_for() -> None:
    found = chosen(tensor("w"), MOMENT)

    assert names(found) == ["w"]
    (left,) = found.left_out
    assert (left.what, left.tensors, left.bytes) == ("optimizer", 1, 24)
    assert names(chosen(tensor("w"), MOMENT, component="all")) == ["w", "w.exp_avg"]


def test_state_that_is_kept_apart_is_listed_by_its_component_alone() -> None:
    moment = tensor("exp_avg::w", component="optimizer", role="state", apart=True)
    found = chosen(tensor("w"), moment, component="all")

    assert names(found) == ["w"]
    assert [(left.what, left.tensors) for left in found.left_out] == [("optimizer", 1)]
    assert names(chosen(tensor("w"), moment, component="optimizer")) == ["exp_avg::w"]


def test_runtime_state_among_weights_is_left_out_and_said() -> None:
    found = chosen(tensor("l.weight"), tensor("l._extra_state"))

    assert names(found) == ["l.weight"]
    assert "extra_state" in kinds(found)
    assert names(chosen(tensor("l.weight"), tensor("l._extra_state"), include=("*_extra_state",))) == [
        "l._extra_state"
    ]


def test_globs_choose_and_what_they_leave_is_counted() -> None:
    found = chosen(tensor("a.w"), tensor("a.b"), tensor("c"), include=("a.*",), exclude=("*.b",))

    assert names(found) == ["a.w"]
    assert [(item.what, item.tensors) for item in found.left_out] == [("excluded", 2)]


# R081
def test_ties_are_written_once_with_the_alias_recorded_or_under_each_name() -> None:
    tensors = (tensor("embed"), tensor("head", alias_of="embed"))
    once, both = chosen(*tensors), chosen(*tensors, ties="both")

    assert names(once) == ["embed"]
    assert [(alias.name, alias.tensor) for alias in once.aliases] == [("head", "embed")]
    assert names(both) == ["embed", "head"]
    assert not both.aliases
    assert "ties" in kinds(once) & kinds(both)


def test_a_tie_to_something_that_is_not_written_is_written_itself() -> None:
    found = chosen(tensor("embed"), tensor("head", alias_of="embed"), exclude=("embed",))

    assert names(found) == ["head"]
    assert not found.aliases


def test_floats_are_cast_and_nothing_else() -> None:
    found = chosen(tensor("f"), tensor("i", dtype="I64"), tensor("q", dtype="F8_E4M3"), dtype="BF16")

    assert [item.dtype for item in found.chosen] == ["BF16", "I64", "F8_E4M3"]
    assert [item.choice for item in found.decisions] == ["to BF16, round to nearest even", "left as they are"]


def test_two_tensors_that_renaming_makes_one_are_refused() -> None:
    with pytest.raises(Fault) as caught:
        chosen(tensor("a.w"), tensor("w"), renames=(RenameRule("", prefix="a."),))

    assert caught.value.finding.code == "convert.rename_collision"
    assert {caught.value.finding.params["first"], caught.value.finding.params["second"]} == {"a.w", "w"}


def test_two_tensors_of_one_name_are_refused() -> None:
    with pytest.raises(Fault) as caught:
        chosen(tensor("w"), tensor("w"))

    assert caught.value.finding.code == "convert.name_repeated"


def test_prefixes_of_wrappers_are_shown_and_kept() -> None:
    found = chosen(tensor("_orig_mod.a"), tensor("_orig_mod.b"))

    assert names(found) == ["_orig_mod.a", "_orig_mod.b"]
    assert [item.option for item in found.decisions if item.kind == "prefix"] == ["--rename FILE"]


@pytest.mark.parametrize(
    ("item", "word"),
    [
        (tensor("c", dtype="complex128"), "complex128"),
        (LogicalTensor("m", "F32", (2,), *chunk_list((2,), [((0,), (2,))]), ()), "no bytes"),
    ],
)
def test_what_safetensors_does_not_hold_has_a_reason(item: LogicalTensor, word: str) -> None:
    assert word in (item.unwritable or "")


def test_an_empty_tensor_needs_no_bytes() -> None:
    map_, mesh = chunk_list((0, 4), [((0, 0), (0, 4))])

    assert LogicalTensor("e", "F32", (0, 4), map_, mesh, ()).unwritable is None


def test_a_note_of_inspection_is_no_reason_why_names_are_repeated() -> None:
    repeated = Fault("convert.name_repeated", tensor="w")
    note = blocker(Finding("adapter.base_model"), "style/adapter_config.json")
    reason = blocker(Finding("layout.weight_sets", {"count": 2, "sets": "a, b"}), ".")
    assert explained(repeated, [note]) is repeated
    assert explained(repeated, [note, reason]).finding.code == "layout.weight_sets"
