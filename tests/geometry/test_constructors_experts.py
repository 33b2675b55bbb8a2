"""Expert placements, and two grids over one set of ranks."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.checking.compare import same
from shardscope.engine.geometry.constructors.experts import (
    Placement,
    placed,
    read_layer,
    read_placement,
    side_by_side,
    uniform_placement,
    write_placement,
)
from shardscope.engine.geometry.interchange.deepspeed import write_affine_map
from shardscope.engine.geometry.interchange.expert_layers import read_expert_layers
from shardscope.engine.geometry.interchange.universal import translate
from shardscope.engine.geometry.interchange.universal_info import read_universal
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.shardmap import Contiguous, TensorMap
from tests.geometry.trees import elements_of

DESCRIPTOR: dict[str, Any] = {
    "version": 1,
    "num_experts": 4,
    "ep_size": 2,
    "ranks": [{"rank": 1, "experts": [3, 0]}, {"rank": 0, "experts": [1, 2, 3]}],
}


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    experts = draw(st.integers(1, 6))
    ranks = draw(st.integers(1, 4))
    held = [draw(st.lists(st.integers(0, experts - 1), unique=True, max_size=experts)) for _ in range(ranks)]
    lacking = [expert for expert in range(experts) if not any(expert in one for one in held)]
    held[draw(st.integers(0, ranks - 1))] += lacking
    return Placement(experts, tuple(tuple(one) for one in held))


@given(placements(), st.lists(st.integers(0, 3), max_size=2))
def test_each_rank_packs_its_experts_in_its_own_order(placement: Placement, inner: list[int]) -> None:
    full = np.arange(placement.experts * int(np.prod(inner)), dtype=np.int64).reshape(
        placement.experts, *inner
    )
    lowered = placed(placement, full.shape)

    assert check(lowered).findings == ()
    for rank, held in enumerate(placement.held):
        assert elements_of(lowered)[rank] == full[list(held)].reshape(-1).tolist()
        assert lowered.ranks[rank].shape == (len(held), *inner)


@given(placements())
def test_a_descriptor_survives_reading_and_writing(placement: Placement) -> None:
    assert read_placement(write_placement(placement)) == placement


def test_a_descriptor_is_read_by_rank() -> None:
    assert read_placement(DESCRIPTOR).held == ((1, 2, 3), (3, 0))


def test_an_expert_on_two_ranks_has_two_holders() -> None:
    lowered = placed(read_placement(DESCRIPTOR), (4, 5))
    holders = {(p.source.offset // 5, p.holders) for shard in lowered.ranks for p in shard.pieces}

    assert holders == {(1, (0,)), (3, (0, 1)), (0, (1,))}


def test_older_writers_place_experts_evenly() -> None:
    legacy = {"num_experts": 8, "num_local_experts": 2, "ep_size": 4, "expert_key_prefix": "m.experts"}
    even = placed(read_layer(legacy), (8, 3, 2))
    tree = TensorMap((8, 3, 2), Contiguous("ep", 0, (2, 2, 2, 2)))

    assert read_layer(legacy) == uniform_placement(8, 4)
    assert same(even, lower(tree, side_by_side({"tp": 4}, {"ep": 4})["expert"]))


def test_a_recorded_placement_comes_before_the_even_one() -> None:
    layer = {"num_experts": 4, "num_local_experts": 2, "ep_size": 2, "expert_placement": DESCRIPTOR}

    assert read_layer(layer).held == ((1, 2, 3), (3, 0))


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    descriptor = copy.deepcopy(DESCRIPTOR)
    change(descriptor)
    return descriptor


# R167
def test_another_version_is_refused() -> None:
    with pytest.raises(Fault, match=r"experts\.version"):
        read_placement(changed(lambda d: d.update(version=2)))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(version=True),
        lambda d: d.pop("version"),
        lambda d: d.update(num_experts=0),
        lambda d: d.update(num_experts=5),
        lambda d: d.update(num_experts=4.0),
        lambda d: d.update(num_experts=10**12),
        lambda d: d.update(ep_size=3),
        lambda d: d.update(ranks={}),
        lambda d: d["ranks"].__setitem__(0, None),
        lambda d: d["ranks"][0].update(rank=0),
        lambda d: d["ranks"][0].update(rank=2),
        lambda d: d["ranks"][0].update(experts="30"),
        lambda d: d["ranks"][0].update(experts=[3, 3, 0]),
        lambda d: d["ranks"][0].update(experts=[3, 4]),
        lambda d: d["ranks"][0].update(experts=[3, -1]),
        lambda d: d["ranks"][0].update(experts=[3]),
    ],
)
def test_a_descriptor_that_contradicts_itself_is_refused(change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(Fault) as caught:
        read_placement(changed(change))

    assert caught.value.finding.code == "experts.malformed"
    assert caught.value.finding.code in CODES


@pytest.mark.parametrize(
    "layer",
    [
        None,
        {"num_experts": 8, "num_local_experts": 3, "ep_size": 4},
        {"num_experts": 8, "ep_size": 4},
        {"num_experts": 8, "num_local_experts": 2, "ep_size": 3},
        {"num_experts": 8, "ep_size": 2, "expert_placement": DESCRIPTOR},
        {"num_experts": 4, "ep_size": 2, "expert_placement": []},
    ],
)
def test_a_layer_that_contradicts_itself_is_refused(layer: object) -> None:
    with pytest.raises(Fault, match=r"experts\.malformed"):
        read_layer(layer)


def test_a_tensor_has_to_begin_with_its_experts() -> None:
    for shape in ((), (5, 3), (4, -1)):
        with pytest.raises(Fault, match=r"map\.invalid"):
            placed(read_placement(DESCRIPTOR), shape)


# R197
def test_one_set_of_ranks_carries_a_dense_and_an_expert_grid() -> None:
    meshes = side_by_side({"dp": 2, "tp": 4}, {"edp": 1, "ep": 4, "etp": 2}, range(10, 18))
    dense = lower(TensorMap((8, 3), Contiguous("tp", 0, (2, 2, 2, 2))), meshes["dense"])
    expert = lower(TensorMap((8, 3), Contiguous("ep", 0, (2, 2, 2, 2)), mesh="expert"), meshes["expert"])

    assert (
        [shard.rank for shard in dense.ranks] == [shard.rank for shard in expert.ranks] == list(range(10, 18))
    )
    assert dense.ranks[0].pieces[0].holders == (10, 14)
    assert expert.ranks[0].pieces[0].holders == (10, 11)


def test_grids_over_different_numbers_of_ranks_are_refused() -> None:
    for dense, expert, ranks in (
        ({"tp": 4}, {"ep": 3}, None),
        ({"tp": 0}, {"ep": 0}, None),
        ({"tp": 2}, {"ep": 2}, [1]),
        ({"tp": 2}, {"ep": 2}, [1, 1]),
    ):
        with pytest.raises(Fault, match=r"map\.invalid"):
            side_by_side(dense, expert, ranks)


def layer(**changes: object) -> dict[str, object]:
    lowered = placed(read_placement(DESCRIPTOR), (4, 3, 2))
    maps = write_affine_map({"m.experts.w1": lowered}, keys_are_names=True)
    known = {"expert_key_prefix": "m.experts", "num_experts": 4, "num_local_experts": 2, "ep_size": 2}
    return {**known, "expert_placement": DESCRIPTOR, "affine_maps": maps, **changes}


def test_layers_have_their_placement_and_maps_that_agree_with_it() -> None:
    layers = read_expert_layers([layer(), layer(expert_key_prefix="n.experts", affine_maps=None)])

    assert layers["m.experts"].placement == layers["n.experts"].placement == read_placement(DESCRIPTOR)
    assert layers["m.experts"].maps.keys() == {"m.experts.w1"}
    assert layers["n.experts"].maps == {}


def test_a_map_of_experts_serves_a_parameter_that_patterns_leave_open() -> None:
    lowered = read_expert_layers([layer()])["m.experts"].maps["m.experts.w1"]
    info = read_universal({"expert_parameter_patterns": [r"m\.experts\."]})
    made = translate(info, "m.experts.w1", [(3, 3, 2), (2, 3, 2)], given=lowered)

    assert made.lowered is lowered
    assert made.category == "experts"
    refused = translate(info, "m.experts.w1", [(3, 3, 2), (3, 3, 2)], given=lowered)
    assert refused.refusal is not None
    assert refused.refusal.code == "map.shard_size"


@pytest.mark.parametrize(
    "layers",
    [
        None,
        [None],
        [layer(expert_key_prefix="")],
        [layer(expert_key_prefix=7)],
        [layer(), layer()],
        [layer(expert_placement=None)],  # the map is not that of an even placement
        [layer(num_experts=2, num_local_experts=1, expert_placement=None)],
    ],
)
def test_layers_that_contradict_themselves_are_refused(layers: object) -> None:
    with pytest.raises(Fault, match=r"experts\.malformed"):
        read_expert_layers(layers)


def test_an_unsound_map_of_experts_is_refused() -> None:
    unsound = layer()
    unsound["affine_maps"]["params"]["m.experts.w1"]["logical_shape"][1] = 4  # type: ignore[index]

    with pytest.raises(Fault, match=r"map\."):
        read_expert_layers([unsound])
