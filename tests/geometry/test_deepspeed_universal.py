"""DeepSpeed's categories, translated: what each means, what is refused, and what is never done unasked."""

import copy
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.geometry.checking.compare import same
from shardscope.engine.geometry.constructors.attention import HeadFacts, from_heads
from shardscope.engine.geometry.execution.execute import assemble
from shardscope.engine.geometry.interchange.universal import translate, translate_all, unused
from shardscope.engine.geometry.interchange.universal_info import UniversalInfo, read_universal
from shardscope.engine.geometry.pieces.budget import Budgets
from shardscope.engine.model.blocker import Fault, render
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.shardmap import Contiguous, Replicate, SubParamConcat, TensorMap, Trim
from shardscope.engine.model.translation import Translation
from tests.geometry.trees import Array
from tests.geometry.universal_data import WITH_MAPS, Saved

Shapes = Sequence[tuple[int, ...]]


def info(version: float = 0.4, **keys: Any) -> UniversalInfo:
    return read_universal({"universal_checkpoint_version": version, **keys})


def of(found: UniversalInfo, shards: Shapes, name: str = "w", **options: Any) -> Translation:
    """Translate, and make sure that there is either a map or a known reason."""
    made = translate(found, name, shards, **options)
    assert (made.lowered is None) == (made.refusal is not None)
    if made.refusal is not None:
        assert render(CODES[made.refusal.code].message, made.refusal.params)
        assert made.refusal.params.get("tensor", name) == name
    for warning in made.warnings:
        assert render(CODES[warning.code].message, warning.params)
    return made


def code(found: UniversalInfo, shards: Shapes, name: str = "w", **options: Any) -> str:
    made = of(found, shards, name, **options)
    assert made.refusal is not None
    return made.refusal.code


def assembled(made: Translation, shards: Sequence[Array]) -> Array:
    assert made.lowered is not None
    return assemble(made.lowered, dict(enumerate(shards)))


def data(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).integers(0, 1 << 40, shape)


# R164 Table 1 of the RFC, and the four categories that it leaves out


def test_replicated_is_a_whole_tensor_on_every_rank() -> None:
    made = of(info(tp_replicated_parameter_patterns=["w"]), [(3, 4)] * 4)

    assert made.map == TensorMap((3, 4), Replicate())
    assert made.category == "replicated"


def test_row_parallel_is_cut_on_dimension_1_with_the_widths_of_the_shards() -> None:
    found = info(parameter_with_row_parallelism_patterns=[r"l\.\d+\.w"])
    full = data(5, 9)
    cuts = np.split(full, [5, 5], axis=1)
    made = of(found, [(5, 5), (5, 0), (5, 4)], "l.3.w")

    assert made.map == TensorMap((5, 9), Contiguous("tp", 1, (5, 0, 4)))
    assert np.array_equal(assembled(made, cuts), full)


def test_sub_parameters_have_their_recorded_widths() -> None:
    found = info(
        parameter_with_sub_params=[{"patterns": ["w"], "shape": [[10, 6, 6], 4], "partition_dim": 0}],
        sub_param_shard_widths={"w": [[6, 4], [4, 2], [4, 2]]},
    )
    full = data(22, 4)
    q, k, v = np.split(full, [10, 16])
    shards = [np.concatenate([q[:6], k[:4], v[:4]]), np.concatenate([q[6:], k[4:], v[4:]])]
    made = of(found, [(14, 4), (8, 4)])

    assert isinstance(made.map and made.map.map, SubParamConcat)
    assert np.array_equal(assembled(made, shards), full)


def test_a_shard_may_be_another_view_of_the_same_sub_parameters() -> None:
    found = info(
        parameter_with_sub_params=[{"patterns": ["w"], "shape": [2, [4, 2], -1], "partition_dim": 1}],
        sub_param_shard_widths={"w": [[2, 2], [1, 1]]},
    )
    full = data(2, 6, 5)
    shards = [np.concatenate([full[:, 2 * r : 2 * r + 2], full[:, 4 + r : 5 + r]], axis=1) for r in range(2)]
    made = of(found, [(6, 5), (6, 5)])

    assert np.array_equal(assembled(made, shards), full)


@pytest.mark.parametrize("shape", [[3, -1], [[6, 6, 6], 4], [[6, 6, 6], -1]])
def test_before_version_0_4_sub_parameters_are_sizes_or_a_number_and_cut_evenly(shape: list[Any]) -> None:
    found = info(0.3, parameter_with_sub_params=[{"patterns": ["w"], "shape": shape, "partition_dim": 0}])
    full = data(18, 4)
    parts = np.split(full, 3)
    shards = [np.concatenate([part[3 * r : 3 * r + 3] for part in parts]) for r in range(2)]

    assert np.array_equal(assembled(of(found, [(9, 4), (9, 4)]), shards), full)


# R194
def test_before_version_0_4_sizes_that_do_not_divide_are_refused() -> None:
    said = [{"patterns": ["w"], "shape": [[6, 3, 3], 4], "partition_dim": 0}]

    assert code(info(0.3, parameter_with_sub_params=said), [(6, 4), (6, 4)]) == "universal.indivisible"


@pytest.mark.parametrize(
    ("version", "shape", "shards"),
    [
        (0.4, [3, -1], [(6, 4), (6, 4)]),
        (0.3, [3, -1], [(), ()]),
        (0.3, [5, -1], [(6, 4), (6, 4)]),
        (0.3, [[6, 6], 5, -1], [(6, 4), (6, 4)]),
        (0.3, [[6, 6], 0, -1], [(6, 4), (6, 4)]),
    ],
)
def test_shapes_that_do_not_come_out_are_refused(version: float, shape: list[Any], shards: Shapes) -> None:
    found = info(
        version,
        parameter_with_sub_params=[{"patterns": ["w"], "shape": shape, "partition_dim": 0}],
        sub_param_shard_widths={"w": [[2, 2], [2, 2], [2, 2]]},
    )

    assert code(found, shards) == "universal.shapes"


def test_copies_of_different_shapes_are_refused() -> None:
    assert code(info(tp_replicated_parameter_patterns=["w"]), [(3, 4), (4, 3)]) == "universal.shapes"


def test_since_version_0_4_missing_widths_are_refused() -> None:
    said = [{"patterns": ["w"], "shape": [[6, 6], 4], "partition_dim": 0}]

    assert code(info(parameter_with_sub_params=said), [(6, 4), (6, 4)]) == "universal.widths_missing"


@pytest.mark.parametrize(
    ("widths", "shards"),
    [
        ([[3, 3], [3, 2]], [(6, 4), (5, 4)]),
        ([[3, 3]], [(6, 4), (6, 4)]),
        ([[3, 3, 0], [3, 3, 0]], [(6, 4), (6, 4)]),
        ([[3, 3], [3, 3]], [(5, 4), (7, 4)]),
        ([[3, 3], [3, 3]], [(4, 6), (4, 6)]),
    ],
)
def test_widths_that_do_not_fit_sizes_or_shards_are_refused(widths: list[Any], shards: Shapes) -> None:
    found = info(
        parameter_with_sub_params=[{"patterns": ["w"], "shape": [[6, 6], 4], "partition_dim": 0}],
        sub_param_shard_widths={"w": widths},
    )

    assert code(found, shards) == "universal.shapes"


def test_two_sub_parameters_are_two_halves() -> None:
    found = info(0.2, parameter_with_2_sub_params_cat_dim_0=["w"])
    full = data(12, 3)
    gate, up = np.split(full, 2)
    shards = [np.concatenate([gate[3 * r : 3 * r + 3], up[3 * r : 3 * r + 3]]) for r in range(2)]

    assert np.array_equal(assembled(of(found, [(6, 3), (6, 3)]), shards), full)
    assert code(found, [(5, 3), (5, 3)]) == "universal.shapes"


# R155 R192
@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_the_padding_of_a_vocabulary_never_reaches_the_tensor(tp: int) -> None:
    found = info(0.2, vocabulary_parameter_patterns=["w"], original_vocab_size=53)
    full = data(53, 3)
    padded = np.concatenate([full, np.full((3, 3), -7)])
    shards = np.split(padded, tp)
    made = of(found, [shard.shape for shard in shards])

    assert made.map == TensorMap((53, 3), Contiguous("tp", 0, (56 // tp,) * tp, Trim(0, 53, 56)))
    assert made.padded_rows == 56
    assert np.array_equal(assembled(made, shards), full)


def test_a_vocabulary_cut_by_columns_is_trimmed_all_the_same() -> None:
    found = info(
        0.2,
        vocabulary_parameter_patterns=["w"],
        parameter_with_row_parallelism_patterns=["w"],
        original_vocab_size=5,
    )
    full = data(5, 6)
    padded = np.concatenate([full, np.full((3, 6), -7)])

    made = of(found, [(8, 3), (8, 3)])
    assert np.array_equal(assembled(made, np.split(padded, 2, axis=1)), full)


def test_a_vocabulary_needs_its_size_unless_there_is_nothing_to_cut_off() -> None:
    patterns: dict[str, Any] = {"vocabulary_parameter_patterns": ["w"]}

    assert code(info(**patterns), [(4, 3), (4, 3)]) == "universal.vocabulary_size"
    made = of(info(original_vocab_size=100, **patterns), [(4, 3), (4, 3)])
    assert made.map == TensorMap((8, 3), Contiguous("tp", 0, (4, 4)))
    assert made.padded_rows is None


def test_a_parameter_tied_across_pipeline_stages_is_marked() -> None:
    found = info(
        0.2, pipeline_replicated_parameter_patterns=["w"], tp_replicated_parameter_patterns=["w", "v"]
    )

    assert of(found, [(4,), (4,)]).pipeline_replicated
    assert not of(found, [(4,), (4,)], "v").pipeline_replicated


# R166
def test_an_average_is_refused_even_where_all_copies_have_one_shape() -> None:
    assert code(info(0.2, parameter_to_average_patterns=["w"]), [(4,), (4,)]) == "universal.average"


# R165
@pytest.mark.parametrize("shards", [[(4, 3), (4, 3)], [(5, 3), (4, 3)], [(4,), (4,)], [(4, 3), (3, 4)]])
def test_an_unmatched_parameter_is_never_joined_unasked(shards: Shapes) -> None:
    assert code(info(), shards) == "universal.unmatched"


def test_an_unmatched_parameter_is_joined_where_a_person_says_so() -> None:
    made = of(info(), [(5, 3), (4, 3)], unmatched_dim=0)

    assert made.map == TensorMap((9, 3), Contiguous("tp", 0, (5, 4)))
    assert "a person said" in made.decided
    assert code(info(), [(5, 3), (4, 3)], unmatched_dim=1) == "universal.shapes"
    assert code(info(), [(5,), (4,)], unmatched_dim=1) == "universal.shapes"


@pytest.mark.parametrize(
    ("shards", "shape"),
    [([(4, 3)], (4, 3)), ([(), ()], ()), ([(0, 3), (4, 3)], (4, 3)), ([(4, 3), (4, 0)], (4, 3))],
)
def test_shapes_that_leave_one_way_are_enough(shards: Shapes, shape: tuple[int, ...]) -> None:
    made = of(info(), shards)

    assert made.lowered is not None
    assert made.lowered.shape == shape
    assert made.decided


def test_empty_shards_of_another_form_prove_nothing() -> None:
    assert code(info(), [(0,), (4, 3)]) == "universal.shapes"
    assert code(info(), [(0, 3), (0, 3)]) == "universal.unmatched"
    assert code(info(), []) == "universal.shapes"


def test_what_the_writer_could_not_describe_is_refused_with_its_reason() -> None:
    found = info(autotp_unsupported_parameter_patterns={"^w$": "rows are interleaved"})
    made = of(found, [(4, 3), (4, 3)], unmatched_dim=0)

    assert made.refusal is not None
    assert made.refusal.code == "universal.unsupported"
    assert made.refusal.params["reason"] == "rows are interleaved"


def test_a_map_that_is_given_has_to_make_the_shards_that_are_there() -> None:
    found = info(autotp_unsupported_parameter_patterns={"^w$": "rows are interleaved"})
    given = TensorMap((8, 3), Contiguous("tp", 0, (4, 4)))

    assert of(found, [(4, 3), (4, 3)], given=given).decided
    assert of(info(), [(4, 3), (4, 3)], given=given).category == "unmatched"
    assert code(found, [(4, 3), (5, 3)], given=given) == "map.shard_size"
    assert code(found, [(4, 3)] * 3, given=given) == "map.invalid"


# R171
def test_experts_are_left_open_without_their_placement() -> None:
    found = info(expert_parameter_patterns=[r"experts\."])

    assert code(found, [(4, 3), (4, 3)], "experts.w1") == "universal.experts"
    given = TensorMap((8, 3), Contiguous("tp", 0, (4, 4)))
    assert of(found, [(4, 3), (4, 3)], "experts.w1", given=given).category == "experts"


@pytest.mark.parametrize(
    "keys",
    [
        {"tp_replicated_parameter_patterns": ["w", "^w$"]},
        {"tp_replicated_parameter_patterns": ["w"], "parameter_with_row_parallelism_patterns": ["w"]},
        {"vocabulary_parameter_patterns": ["w", ".$"], "original_vocab_size": 4},
        {"parameter_to_average_patterns": ["w"], "tp_replicated_parameter_patterns": ["w"]},
    ],
)
def test_more_than_one_match_is_refused(keys: dict[str, Any]) -> None:
    assert code(info(**keys), [(4, 3), (4, 3)]) == "universal.ambiguous"


def test_a_row_cut_may_be_said_of_its_sub_parameters_too() -> None:
    found = info(
        parameter_with_row_parallelism_patterns=["w"],
        parameter_with_sub_params=[{"patterns": ["w"], "shape": [3, [4, 4]], "partition_dim": -1}],
        sub_param_shard_widths={"w": [[2, 2], [2, 2]]},
    )

    assert of(found, [(3, 4), (3, 4)]).category == "sub_params"


def test_a_pattern_that_matches_nothing_is_told_in_strict_mode() -> None:
    found = info(
        tp_replicated_parameter_patterns=["w", "gone"],
        parameter_with_sub_params=[{"patterns": ["lost"], "shape": [[4], 4], "partition_dim": 0}],
        pipeline_replicated_parameter_patterns=["not asked for"],
    )
    strict = translate_all(found, {"w": [(4,), (4,)]})

    assert [finding.params["pattern"] for finding in strict.findings] == ["gone", "lost"]
    assert {finding.code for finding in strict.findings} == {"universal.pattern_unused"}
    assert translate_all(found, {"w": [(4,), (4,)]}, strict=False).findings == ()
    assert unused(found, ["w", "gone", "lost"]) == ()


# What real saves say


@pytest.mark.parametrize("name", WITH_MAPS)
def test_affine_maps_are_preferred_and_fit_the_shards(name: str) -> None:
    saved = Saved(name)
    found = translate_all(read_universal(saved.info), saved.shards)

    assert found.findings == ()
    assert found.refused == ()
    for tensor, made in found.parameters.items():
        assert made.category == "affine_map"
        assert made.lowered is not None
        assert made.lowered.shape == saved.expected[tensor]


def differing(name: str) -> set[str]:
    saved = Saved(name)
    found = translate_all(read_universal(saved.info), saved.shards)
    return {tensor for tensor, made in found.parameters.items() if made.warnings}


def test_categories_agree_with_maps_save_where_they_cannot_say_it() -> None:
    assert differing("autotp2-phi3-heur-zero1-fp32") == set()
    assert differing("autotp2-llama-gqa3-dp1-zero1-bf16") == set()
    assert differing("autotp2-bloom-zero1-fp32") == set()
    # Strided columns are listed as a plain row cut, a divided bias as a plain copy.
    assert differing("handbuilt-yuan-sharedqk-tp2") == {"layers.0.o_proj.weight"}
    assert differing("handbuilt-scaled-bias-tp2") == {"o_proj.bias"}


def test_categories_alone_say_the_same_for_all_but_plain_columns() -> None:
    saved = Saved("edited-phi3-categories-only-tp2")
    found = read_universal(saved.info)
    strict = translate_all(found, saved.shards)
    told = translate_all(found, saved.shards, unmatched_dim=0)

    assert {made.refusal and made.refusal.code for made in strict.refused} <= {"universal.unmatched"}
    assert all(
        made.lowered and made.lowered.shape == saved.expected[tensor]
        for tensor, made in told.parameters.items()
    )


def test_codegen_without_a_map_needs_its_heads() -> None:
    saved = Saved("edited-codegen-unsupported-tp2")
    fused = "transformer.h.0.attn.qkv_proj.weight"
    found = read_universal(saved.info)
    shards = saved.shards[fused]

    assert code(found, shards, fused) == "universal.unsupported"
    made = of(found, shards, fused, given=from_heads(HeadFacts("codegen", heads=8), shards))
    mapped = translate(read_universal(Saved("autotp2-codegen-heur-zero1-fp32").info), fused, shards)

    assert made.lowered is not None
    assert mapped.lowered is not None
    assert same(made.lowered, mapped.lowered)
    assert [len(shard.pieces) for shard in mapped.lowered.ranks] == [11, 11]
    assert max(len(shard.pieces) for shard in made.lowered.ranks) < 11


def test_a_save_of_version_0_2_is_translated_save_for_what_it_leaves_open() -> None:
    saved = Saved("handbuilt-legacy-categories-tp2-dp2")
    found = translate_all(read_universal(saved.info), saved.shards)
    refused = {made.name: made.refusal.code for made in found.refused if made.refusal is not None}

    assert found.findings == ()
    assert refused == {
        "layers.0.attn.qkv.weight": "universal.unmatched",
        "layers.0.attn.qkv.bias": "universal.unmatched",
        "layers.0.drift.weight": "universal.average",
    }
    for tensor, made in found.parameters.items():
        if made.lowered is not None:
            assert made.lowered.shape == saved.expected[tensor]


# Affine maps beside other things


def entry(shape: list[int], ranks: int) -> dict[str, Any]:
    """A cut of dimension 0 into equal parts."""
    rows, below = shape[0] // ranks, shape[1]
    held = {
        str(rank): {
            "shard_shape": [rows, below],
            "pieces": [
                {
                    "shape": [rows, below],
                    "source": [rank * rows * below, [below, 1]],
                    "dest": [0, [below, 1]],
                    "locations": [rank],
                }
            ],
        }
        for rank in range(ranks)
    }
    return {"logical_shape": shape, "ranks": held}


def with_map(**keys: Any) -> UniversalInfo:
    return info(affine_map={"version": 1, "params": {"^w$": entry([8, 3], 2)}}, **keys)


def test_a_map_of_other_shards_is_refused() -> None:
    assert code(with_map(), [(4, 3), (5, 3)]) == "map.shard_size"
    assert code(with_map(), [(4, 3)] * 3) == "map.shard_unknown"
    assert code(with_map(), []) == "map.shard_unknown"


def test_a_map_that_leaves_rows_out_is_refused() -> None:
    hole = entry([8, 3], 2)
    hole["logical_shape"] = [9, 3]
    found = info(affine_map={"version": 1, "params": {"^w$": hole}})

    assert code(found, [(4, 3), (4, 3)]) == "map.uncovered"


def test_a_map_of_what_is_listed_as_impossible_is_a_contradiction() -> None:
    found = with_map(autotp_unsupported_parameter_patterns={"^w$": "interleaved"})

    assert code(found, [(4, 3), (4, 3)]) == "universal.contradiction"


def test_a_map_does_not_hide_that_two_patterns_match() -> None:
    found = with_map(tp_replicated_parameter_patterns=["w", "^w$"])

    assert code(found, [(4, 3), (4, 3)]) == "universal.ambiguous"


def test_another_category_beside_a_map_is_told() -> None:
    made = of(with_map(parameter_with_row_parallelism_patterns=["w"]), [(4, 3), (4, 3)])

    assert [warning.code for warning in made.warnings] == ["universal.categories_differ"]


# The entry itself


@pytest.mark.parametrize("version", [0.5, 1, 10**400, float("inf")])
def test_a_newer_version_is_refused(version: float) -> None:
    with pytest.raises(Fault) as caught:
        read_universal({"universal_checkpoint_version": version})

    assert caught.value.finding.code == "universal.version"


@pytest.mark.parametrize(
    "keys",
    [
        {"universal_checkpoint_version": True},
        {"universal_checkpoint_version": "0.4"},
        {"universal_checkpoint_version": None},
        {"universal_checkpoint_version": float("nan")},
        {"universal_checkpoint_version": -0.2},
        {"tp_replicated_parameter_patterns": "w"},
        {"tp_replicated_parameter_patterns": [1]},
        {"autotp_unsupported_parameter_patterns": ["w"]},
        {"autotp_unsupported_parameter_patterns": {"w": 1}},
        {"original_vocab_size": 5.0},
        {"original_vocab_size": True},
        {"original_vocab_size": -1},
        {"sub_param_shard_widths": []},
        {"parameter_with_sub_params": {}},
        {"parameter_with_sub_params": [{"patterns": ["w"]}]},
        {"parameter_with_sub_params": [{"patterns": ["w"], "shape": [], "partition_dim": 0}]},
        {"parameter_with_sub_params": [{"patterns": ["w"], "shape": [3, -1], "partition_dim": 2}]},
        {"parameter_with_sub_params": [{"patterns": ["w"], "shape": [0, -1], "partition_dim": 0}]},
        {"parameter_with_sub_params": [{"patterns": ["w"], "shape": [[], 4], "partition_dim": 0}]},
        {"parameter_with_sub_params": [{"patterns": ["w"], "shape": [3, -1, -1], "partition_dim": 0}]},
        {"parameter_with_sub_params": [{"patterns": ["w"], "shape": [3, None], "partition_dim": 0}]},
        {
            "parameter_with_sub_params": [
                {"patterns": ["w"], "shape": [3, -1], "partition_dim": 0},
                {"patterns": ["w"], "shape": [2, -1], "partition_dim": 0},
            ]
        },
        {
            "universal_checkpoint_version": 0.4,
            "parameter_with_sub_params": [{"patterns": ["w"], "shape": [[4], 4], "partition_dim": 0}],
            "sub_param_shard_widths": {"w": [4]},
        },
    ],
)
def test_an_entry_that_is_not_what_it_has_to_be_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(Fault) as caught:
        read_universal(keys)

    assert caught.value.finding.code == "universal.malformed"


def test_what_is_no_entry_is_refused() -> None:
    with pytest.raises(Fault, match=r"universal\.malformed"):
        read_universal([])


def test_maps_that_cannot_be_compared_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unproven(*_: object) -> None:
        raise Fault("map.unproven", reason="the steps 2 and 3 do not divide each other")

    monkeypatch.setattr("shardscope.engine.geometry.interchange.universal.first_difference", unproven)
    made = of(with_map(parameter_with_row_parallelism_patterns=["w"]), [(4, 3), (4, 3)])

    assert made.lowered is not None
    assert made.warnings[0].params["reason"] == "the two cannot be compared"


def test_the_work_on_a_parameter_is_bounded() -> None:
    rows = info(parameter_with_row_parallelism_patterns=["w"])

    with pytest.raises(Fault, match=r"map\.budget"):
        translate(rows, "w", [(4, 3)] * 5, budgets=Budgets(pieces=4))


def test_a_pattern_that_cannot_be_matched_safely_is_refused() -> None:
    with pytest.raises(Fault, match=r"universal\.pattern"):
        read_universal({"vocabulary_parameter_patterns": [r"(?=w)w"]})


def test_unknown_keys_are_kept_in_sight() -> None:
    assert info(parameter_with_diagonals=["w"], padded_vocab_size=3).unknown == ("parameter_with_diagonals",)


# R147
@given(st.text(min_size=1, max_size=12))
def test_names_decide_nothing_but_which_entry_is_meant(renamed: str) -> None:
    saved = Saved("autotp2-phi3-heur-zero1-fp32")
    tensor = next(iter(saved.shards))
    other = copy.deepcopy(saved.info)
    text = json.dumps(other)
    before, after = (json.dumps(f"^{re.escape(name)}$")[1:-1] for name in (tensor, renamed))
    changed = json.loads(text.replace(before, after))
    made = translate(read_universal(saved.info), tensor, saved.shards[tensor])

    if renamed not in saved.shards:
        assert translate(read_universal(changed), renamed, saved.shards[tensor]).lowered == made.lowered
