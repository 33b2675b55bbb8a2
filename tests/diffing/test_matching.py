"""Which tensors belong together: by name, by rule, and as a suggestion that is labelled so."""

from collections.abc import Sequence

import pytest

from shardscope.engine.diffing.adapter import fits
from shardscope.engine.diffing.pairing import Pair, paired
from shardscope.engine.diffing.structure import differences
from shardscope.engine.geometry.transfer.compose import whole
from shardscope.engine.model.catalogue import LogicalTensor


def tensor(
    name: str,
    shape: Sequence[int] = (4, 4),
    dtype: str = "F32",
    *,
    part_of: int | None = None,
    alias_of: str | None = None,
) -> LogicalTensor:
    shape = tuple(shape)
    return LogicalTensor(name, dtype, shape, whole(shape), None, (), part_of=part_of, alias_of=alias_of)


def named(*names: str) -> list[LogicalTensor]:
    return [tensor(name) for name in names]


def test_names_that_both_have_are_put_together_whatever_their_order() -> None:
    assert paired(named("a", "b", "c"), named("c", "a", "d.e.f")) == [
        Pair(0, 1),
        Pair(1, 2, "position"),
        Pair(2, 0),
    ]


def test_several_of_one_name_are_put_together_in_their_order() -> None:
    ranks = [tensor("w", part_of=rank) for rank in (0, 1)]
    assert paired(ranks, ranks[::-1]) == [Pair(0, 1), Pair(1, 0)]
    assert paired(named("w", "w"), named("w", "w", "w")) == [Pair(0, 0), Pair(1, 1), Pair(None, 2)]


def test_rules_come_before_guesses() -> None:
    found = paired(named("x.a", "x.b"), named("y.a", "y.b"), lambda name: name.replace("x.", "y."))
    assert found == [Pair(0, 0, "rules"), Pair(1, 1, "rules")]


def test_a_prefix_that_was_put_on_is_suggested_by_the_ends_of_names() -> None:
    here = named(*(f"layers.{n}.{part}.weight" for n in range(3) for part in ("q", "k")))
    there = named(*(f"model.layers.{n}.{part}.weight" for n in range(3) for part in ("k", "q")))
    found = paired(here, there)
    assert {pair.by for pair in found} == {"ending"}
    assert all(
        pair.a is not None and pair.b is not None and there[pair.b].name.endswith(here[pair.a].name)
        for pair in found
    )


def test_names_without_a_common_end_are_suggested_by_position_within_their_layer() -> None:
    here = named("layers.0.wq", "layers.0.wk", "layers.1.wq", "layers.1.wk")
    there = named("h.1.query", "h.1.key", "h.0.query", "h.0.key")
    found = paired(here, there)
    assert found == [
        Pair(0, 2, "position"),
        Pair(1, 3, "position"),
        Pair(2, 0, "position"),
        Pair(3, 1, "position"),
    ]


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (named("layers.0.w"), named("layers.32.w")),  # other layers
        (named("a.w"), [tensor("b.w", (8, 8))]),  # another shape
        (named("a", "b"), named("c", "d", "e")),  # which of three?
        ([tensor("a", part_of=0)], [tensor("b", part_of=1)]),  # parts of two ranks
    ],
)
def test_what_is_not_alike_is_not_suggested(here: list[LogicalTensor], there: list[LogicalTensor]) -> None:
    assert all(pair.a is None or pair.b is None for pair in paired(here, there))


def test_a_tie_that_one_side_writes_out_is_no_difference() -> None:
    tied = [tensor("embed"), tensor("head", alias_of="embed")]
    once = [tensor("embed")]
    for one, other in ((tied, once), (once, tied)):
        found = differences(one, other, paired(one, other))
        assert [item.state for item in found] == ["same", "same"]
        assert found[1].note == "tied to embed, which both have"
    lone = [tensor("head", alias_of="embed")]
    assert [item.state for item in differences(lone, [tensor("x", (2,))], [Pair(0, None)])] == ["missing"]


def test_shapes_and_types_that_change_are_told() -> None:
    one = [tensor("a"), tensor("b"), tensor("c")]
    other = [tensor("a", dtype="BF16"), tensor("b", (4, 5)), tensor("c")]
    assert [item.state for item in differences(one, other, paired(one, other))] == [
        "changed",
        "changed",
        "same",
    ]


BASE = [
    tensor("model.embed.weight", (100, 16)),
    tensor("model.layers.0.q.weight", (32, 16)),
    tensor("model.layers.0.norm.weight", (16,)),
]


@pytest.mark.parametrize(
    ("name", "shape", "state", "base"),
    [
        ("base_model.model.model.layers.0.q.lora_A.weight", (8, 16), "same", 1),
        ("base_model.model.model.layers.0.q.lora_B.default.weight", (32, 8), "same", 1),
        ("base_model.model.model.layers.0.q.lora_A.weight", (8, 32), "same", 1),  # stored transposed
        ("base_model.model.model.layers.0.q.lora_A.weight", (8, 17), "changed", 1),
        ("base_model.model.model.layers.9.q.lora_A.weight", (8, 16), "missing", None),
        ("base_model.model.layers.0.q.lora_A.weight", (8, 16), "same", 1),  # without its first module
        ("base_model.model.model.embed.lora_embedding_A", (4, 100), "same", 0),
        ("base_model.model.model.embed.lora_embedding_B", (16, 4), "same", 0),
        ("base_model.model.model.layers.0.norm.lora_A.weight", (8, 16), "changed", 2),
        ("base_model.model.model.embed.modules_to_save.default.weight", (100, 16), "same", 0),
        ("base_model.model.model.embed.weight", (99, 16), "changed", 0),
        ("base_model.model.score.weight", (2, 16), "missing", None),
    ],
)
def test_factors_are_held_against_their_module(
    name: str, shape: tuple[int, ...], state: str, base: int | None
) -> None:
    (found,) = fits([tensor(name, shape)], BASE)
    assert (found.state, found.base) == (state, base)
