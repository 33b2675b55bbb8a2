"""A model's maps, each different one planned once."""

import pytest

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.pieces.budget import Budgets
from shardscope.engine.geometry.transfer import planning
from shardscope.engine.geometry.transfer.compose import compose
from shardscope.engine.geometry.transfer.planning import Planner
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.shardmap import Contiguous, Replicate, Scale, TensorMap
from tests.geometry.trees import mesh_of


def split(ranks: int, dtype: str | None = None) -> TensorMap:
    return TensorMap((8, 4), Contiguous("tp", 0, (8 // ranks,) * ranks), dtype=dtype)


def test_equal_maps_are_worked_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(name: str, work: object) -> object:
        def counting(*arguments: object, **options: object) -> object:
            asked.append(name)
            return work(*arguments, **options)  # type: ignore[operator]

        return counting

    for name, work in (("lower", lower), ("check", check), ("compose", compose)):
        monkeypatch.setattr(planning, name, counted(name, work))
    planner = Planner()
    plans = []
    for layer in range(5):
        source = planner.lower(split(2, dtype=f"F{layer}"), mesh_of(tp=2))
        target = planner.lower(split(4), mesh_of(tp=4))
        assert planner.check(source).invertible
        plans.append(planner.compose(target, source))
    assert sorted(asked) == ["check", "compose", "lower", "lower"]
    assert plans[0] == compose(lower(split(4), mesh_of(tp=4)), lower(split(2), mesh_of(tp=2)))
    assert all(plan is plans[0] for plan in plans)


def test_maps_that_differ_in_mesh_or_shape_are_kept_apart() -> None:
    planner = Planner()
    one = planner.lower(split(2), mesh_of(tp=2))
    assert planner.lower(split(2), mesh_of(ranks=(7, 3), tp=2)) != one
    assert planner.lower(TensorMap((4,), Replicate()), mesh_of(tp=2)) != one


def test_budgets_choice_and_factors_are_those_of_every_tensor() -> None:
    whole = TensorMap((4,), Replicate())
    planner = Planner(Budgets(pieces=4), lambda holders, rank: holders[-1], factors=False)
    for _ in range(3):  # each tensor has the whole budget
        one = planner.lower(whole, mesh_of(tp=2))
    assert [pair.source_rank for pair in planner.compose(one, one).traffic] == [1, 1]
    scaled = planner.lower(TensorMap((4,), Scale(2)), mesh_of(tp=2))
    for _ in range(2):
        with pytest.raises(Fault, match=r"map\.scaled"):
            planner.compose(one, scaled)
