"""Rows of differences that are listed: by state, by text, and parts of rows."""

from shardscope.engine.diffing.folding import folded
from shardscope.engine.model.difference import LETTERS, TensorDifference, TensorFacts
from shardscope.widgets.compare_filter import DiffFilter

FACTS = TensorFacts("F32", (2,), 8, "model")


def item(name: str, state: str = "changed", name_b: str | None = None) -> TensorDifference:
    found = next(each for each in LETTERS if each == state)
    return TensorDifference(found, name, FACTS, None if state == "missing" else FACTS, name_b=name_b)


ITEMS = [
    *(item(f"layers.{n}.Q.weight") for n in range(12)),
    item("norm", "same"),
    item("head", "renamed", "lm_head"),
    *(item(f"extra.{part}", "missing") for part in ("a", "b")),
]
FOLDS = folded(ITEMS, LETTERS)


def names(filtered: DiffFilter) -> list[str]:
    return [fold.name for fold in filtered.listed(FOLDS, ITEMS)]


def test_a_text_leaves_the_part_of_a_row_that_has_it() -> None:
    found = DiffFilter()
    assert names(found) == ["layers.{0-11}.Q.weight", "norm", "head", "extra"]
    assert not found.on
    found.text = "layers.1"
    (fold,) = found.listed(FOLDS, ITEMS)
    assert (fold.name, fold.members) == ("layers.{1,10-11}.Q.weight", (1, 10, 11))
    found.text = "q.weight"
    assert names(found) == ["layers.{0-11}.Q.weight"]
    found.text = "lm_"
    assert names(found) == ["head"]
    found.text = "extra.b"
    (fold,) = found.listed(FOLDS, ITEMS)
    assert (fold.name, fold.module, len(fold.members)) == ("extra", True, 1)
    found.clear()
    assert len(names(found)) == 4


def test_states_are_gone_through_and_those_that_are_not_there_are_left_out() -> None:
    found = DiffFilter()
    seen = []
    for _ in range(5):
        found.step(FOLDS, 1)
        seen.append(found.state)
    assert seen == ["same", "changed", "missing", "renamed", None]
    found.step(FOLDS, -1)
    assert names(found) == ["head"]
    assert found.words(1, 4)[1][0].strip() == "> renamed alone"
