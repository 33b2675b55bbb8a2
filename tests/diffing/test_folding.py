"""Differences in rows: modules, layers and experts."""

from shardscope.engine.diffing.folding import folded
from shardscope.engine.model.difference import State, TensorDifference, TensorFacts

F32 = TensorFacts("F32", (4,), 16, "model")
BF16 = TensorFacts("BF16", (4,), 8, "model")


def item(
    name: str, state: State, a: TensorFacts | None = F32, b: TensorFacts | None = F32
) -> TensorDifference:
    return TensorDifference(state, name, a, b)


def rows(*items: TensorDifference) -> list[tuple[str, str, int, bool]]:
    return [(fold.state, fold.name, len(fold.members), fold.module) for fold in folded(items)]


def test_layers_that_differ_alike_are_one_row_and_others_are_not() -> None:
    items = [item(f"layers.{n}.w", "changed", b=BF16) for n in range(4)]
    items += [
        item("layers.4.w", "changed", b=TensorFacts("F16", (4,), 8, "model")),
        item("layers.5.w", "same"),
    ]
    assert rows(*items) == [("changed", "layers.{0-3}.w", 4, False), ("changed", "layers.4.w", 1, False)]


def test_a_module_that_is_missing_as_a_whole_is_one_row() -> None:
    items = [item(f"layers.{n}.{part}.w", "same") for n in range(2) for part in "ab"]
    items += [item(f"layers.{n}.{part}.w", "missing", b=None) for n in range(2, 5) for part in "ab"]
    items += [item("head.w", "extra", a=None)]
    assert rows(*items) == [("missing", "layers.{2-4}", 6, True), ("extra", "head.w", 1, False)]


def test_a_module_of_which_something_stays_is_not_called_missing() -> None:
    found = rows(item("m.a", "missing", b=None), item("m.b", "missing", b=None), item("m.c", "same"))
    assert [name for _, name, _, _ in found] == ["m.a", "m.b"]


def test_a_row_tells_whether_any_of_its_experts_is_left_out() -> None:
    names = [f"layers.{n}.experts.{m}.w" for n in range(2) for m in range(3)]
    assert folded([item(name, "changed") for name in names])[0].complete
    assert not folded([item(name, "changed") for name in names[:-1]])[0].complete


def test_a_name_without_end_is_folded_in_bounded_time() -> None:
    name = "a." * 100_000 + "w"
    assert rows(item(name, "missing", b=None), item("b", "same"))[0][2] == 1
