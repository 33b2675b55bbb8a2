"""DeepSpeed's affine maps, read and written as plain data."""

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.interchange.deepspeed import (
    exact_name,
    exact_pattern,
    read_affine_map,
    read_parameter,
    write_affine_map,
    write_parameter,
)
from shardscope.engine.geometry.pieces.budget import Budgets
from shardscope.engine.model.blocker import Fault, render
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.piece import IndexedPiece, Lowered, Piece, RankShard, Side
from tests.geometry.universal_data import WITH_MAPS, Saved

PIECE: dict[str, Any] = {
    "shape": [2, 4],
    "source": [0, [4, 1]],
    "dest": [0, [4, 1]],
    "locations": [0],
    "scale": 0.5,
}
ENTRY: dict[str, Any] = {"logical_shape": [2, 4], "ranks": {"0": {"shard_shape": [2, 4], "pieces": [PIECE]}}}


def refused(value: object, code: str, **options: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        read_affine_map(value, **options)
    assert caught.value.finding.code == code
    assert render(CODES[code].message, caught.value.finding.params)
    return caught.value


# R164 R185
@pytest.mark.parametrize("name", WITH_MAPS)
def test_a_container_is_written_as_it_was_read(name: str) -> None:
    container = Saved(name).info["affine_map"]
    maps = read_affine_map(container)

    assert maps
    assert json.dumps(write_affine_map(maps)) == json.dumps(container)
    assert all(check(lowered).ok for lowered in maps.values())


def test_pieces_are_kept_as_they_are_written() -> None:
    maps = read_affine_map(Saved("autotp2-codegen-heur-zero1-fp32").info["affine_map"])
    fused = maps["transformer.h.0.attn.qkv_proj.weight"]

    # Upstream joins neighbours in one dimension only: 11 for 12 blocks, whatever the size.
    assert [len(shard.pieces) for shard in fused.ranks] == [11, 11]


def test_numbers_may_come_as_tuples_and_ranks_as_numbers() -> None:
    entry = {"logical_shape": (2, 4), "ranks": {7: {"shard_shape": (2, 4), "pieces": (PIECE,)}}}
    found = read_parameter(entry, "w")

    assert found.ranks[0].rank == 7
    assert found.ranks[0].pieces[0] == Piece((2, 4), Side(0, (4, 1)), Side(0, (4, 1)), (0,), (1, 2))
    assert write_parameter(found, "w")["ranks"] == {7: {"shard_shape": [2, 4], "pieces": [PIECE]}}


# R180
def test_an_empty_piece_one_past_the_end_is_read_and_covers_nothing() -> None:
    empty = {"shape": [0, 4], "source": [8, [4, 1]], "dest": [0, [4, 1]], "locations": [1]}
    whole = {**PIECE, "scale": 1.0}
    entry = {
        "logical_shape": [2, 4],
        "ranks": {
            "0": {"shard_shape": [2, 4], "pieces": [whole]},
            "1": {"shard_shape": [0, 4], "pieces": [empty]},
        },
    }
    found = read_parameter(entry, "w")

    assert check(found).ok
    assert write_parameter(found, "w")["ranks"][1]["pieces"] == [empty]  # type: ignore[index]


# R167 R186
@pytest.mark.parametrize("version", [2, 0, -1, 10**30])
def test_another_version_is_refused(version: int) -> None:
    refused({"version": version, "params": {}}, "affine.version")


@pytest.mark.parametrize("version", [True, 1.0, None, "1", [1]])
def test_a_version_that_is_no_whole_number_is_refused(version: object) -> None:
    refused({"version": version, "params": {}}, "affine.malformed")


def test_a_container_without_a_version_is_of_version_1() -> None:
    assert read_affine_map({"params": {"^w$": ENTRY}}).keys() == {"w"}


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    entry = copy.deepcopy(ENTRY)
    change(entry)
    return {"version": 1, "params": {"^w$": entry}}


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.update(logical_shape=[2, True]),
        lambda e: e.update(logical_shape=[2, 4.0]),
        lambda e: e.update(logical_shape=[2, None]),
        lambda e: e.update(logical_shape=[2, "4"]),
        lambda e: e.update(logical_shape=[2, -4]),
        lambda e: e.update(logical_shape=[2, 1 << 63]),
        lambda e: e.update(logical_shape=8),
        lambda e: e.update(dtype="float32"),
        lambda e: e.pop("ranks"),
        lambda e: e.update(ranks=[]),
        lambda e: e["ranks"].update({"00": e["ranks"]["0"]}),
        lambda e: e["ranks"].update({"1_0": e["ranks"]["0"]}),
        lambda e: e["ranks"].update({" 1": e["ranks"]["0"]}),
        lambda e: e["ranks"].update({"-0": e["ranks"]["0"]}),
        lambda e: e["ranks"].update({"١": e["ranks"]["0"]}),
        lambda e: e["ranks"].update({"9" * 5000: e["ranks"]["0"]}),
        lambda e: e["ranks"].update({0: e["ranks"]["0"]}),
        lambda e: e["ranks"].update({True: e["ranks"]["0"]}),
        lambda e: e["ranks"]["0"].pop("shard_shape"),
        lambda e: e["ranks"]["0"].update(pieces={}),
        lambda e: e["ranks"]["0"]["pieces"].append(None),
        lambda e: e["ranks"]["0"]["pieces"][0].update(source=[0]),
        lambda e: e["ranks"]["0"]["pieces"][0].update(source=[0, [4]]),
        lambda e: e["ranks"]["0"]["pieces"][0].update(source=[-1, [4, 1]]),
        lambda e: e["ranks"]["0"]["pieces"][0].update(dest=[0, [-4, 1]]),
        lambda e: e["ranks"]["0"]["pieces"][0].update(locations=[0, 0]),
        lambda e: e["ranks"]["0"]["pieces"][0].update(locations=[False]),
        lambda e: e["ranks"]["0"]["pieces"][0].update(power=2),
    ],
)
def test_a_number_that_is_none_and_a_field_that_nobody_knows_are_refused(
    change: Callable[[dict[str, Any]], object],
) -> None:
    refused(changed(change), "affine.malformed")


# R178
@pytest.mark.parametrize("scale", [0, 0.0, -0.0, float("nan"), float("inf"), True, None, "1", 10**400, [1]])
def test_a_factor_that_cannot_be_undone_is_refused(scale: object) -> None:
    refused(
        changed(lambda e: e["ranks"]["0"]["pieces"][0].update(scale=scale)),
        "affine.malformed",
    )


@pytest.mark.parametrize("value", [None, [], {}, {"params": []}, {"params": {1: ENTRY}}, {"w": ENTRY}])
def test_what_is_no_container_is_refused(value: object) -> None:
    refused(value, "affine.malformed")


@pytest.mark.parametrize(
    "pattern",
    ["w", "^w", "w$", "^w.x$", r"^w\d$", "^(w)$", "^w|v$", "^w\\", r"^w\$", "^", "", "$", r"^\A$", "^w*$"],
)
def test_a_key_that_is_no_anchored_name_is_refused(pattern: str) -> None:
    assert exact_name(pattern) is None
    refused({"version": 1, "params": {pattern: ENTRY}}, "affine.key")


def test_two_keys_for_one_name_are_refused() -> None:
    refused({"version": 1, "params": {"^w-x$": ENTRY, r"^w\-x$": ENTRY}}, "affine.key")


def test_expert_layers_key_their_maps_by_plain_names() -> None:
    maps = read_affine_map({"version": 1, "params": {"mlp.experts.w1": ENTRY}}, keys_are_names=True)

    assert maps.keys() == {"mlp.experts.w1"}
    assert write_affine_map(maps, keys_are_names=True)["params"].keys() == {"mlp.experts.w1"}  # type: ignore[attr-defined]


@given(st.text())
def test_a_name_survives_its_pattern(name: str) -> None:
    assert exact_pattern(name) == f"^{re.escape(name)}$"
    assert exact_name(exact_pattern(name)) == name


@given(st.text(alphabet="a1.-^$\\/_ \n", max_size=8))
def test_an_exact_pattern_means_its_name_to_the_standard_library_too(pattern: str) -> None:
    name = exact_name(pattern)

    assert name is None or re.fullmatch(pattern, name)


# R187
def test_pieces_and_dimensions_are_bounded() -> None:
    many = changed(lambda e: e["ranks"]["0"].update(pieces=[PIECE] * 11))
    refused(many, "map.budget", budgets=Budgets(pieces=10))
    deep = changed(lambda e: e.update(logical_shape=[1] * 9))
    refused(deep, "map.budget")


@pytest.mark.parametrize(
    "shard",
    [
        RankShard(0, (3,), (), padding=3),
        RankShard(0, (1,), (), indexed=(IndexedPiece(bytes(8), bytes(8), (0,)),)),
        RankShard(0, (1,), (Piece((), Side(0, ()), Side(0, ()), (0,), (10**400, 1)),)),
        RankShard(0, (1,), (Piece((), Side(0, ()), Side(0, ()), (0,), (1, 10**400)),)),
        RankShard(0, (1,), (Piece((), Side(0, ()), Side(0, ()), (0,), (10**20, 10**20 + 1)),)),
    ],
)
def test_what_the_format_cannot_say_is_not_written(shard: RankShard) -> None:
    with pytest.raises(Fault) as caught:
        write_affine_map({"w": Lowered((4,), (shard,))})

    assert caught.value.finding.code == "affine.unwritable"


# R193
@given(st.floats(allow_nan=False, allow_infinity=False).filter(bool))
def test_a_factor_is_kept_exactly(scale: float) -> None:
    container = changed(lambda e: e["ranks"]["0"]["pieces"][0].update(scale=scale))
    written = write_affine_map(read_affine_map(container))["params"]["^w$"]  # type: ignore[index]

    assert written["ranks"][0]["pieces"][0].get("scale", 1.0) == scale
