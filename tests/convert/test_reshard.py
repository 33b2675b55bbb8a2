"""Resharding by numbers: what each rank gets, and that nothing is lost on the way from topology to topology."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from shardscope.engine import inspect, verify
from shardscope.engine.geometry.mapping.targets import Numbers, Sharding
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.bundle import FILE
from tests.convert.reshards import (
    FIXTURES,
    aim,
    assert_equal,
    header_of,
    llama,
    planned,
    ranks_of,
    resharded,
    whole,
)
from tests.convert.targets import fault

LAYER = "model.layers.0."


def test_tensor_parallel_ranks_hold_heads_rows_columns_and_all_of_a_norm(tmp_path: Path) -> None:
    full = llama(tmp_path / "hf", heads=8, groups=4, size=2, ffn=24)

    resharded(tmp_path / "hf", tmp_path / "out", aim(Numbers(tp=4)))
    ranks = ranks_of(tmp_path / "out")

    assert sorted(ranks) == [0, 1, 2, 3]
    for rank, held in ranks.items():
        for name, axis, step in (
            ("self_attn.q_proj", 0, 4),
            ("self_attn.k_proj", 0, 2),
            ("self_attn.o_proj", 1, 4),
            ("mlp.gate_proj", 0, 6),
            ("mlp.down_proj", 1, 6),
        ):
            value = full[f"{LAYER}{name}.weight"]
            part = value.take(range(rank * step, (rank + 1) * step), axis)
            assert np.array_equal(held[f"{LAYER}{name}.weight"], part), name
        assert np.array_equal(held["model.norm.weight"], full["model.norm.weight"])


def test_a_vocabulary_is_padded_with_zeros_which_no_reader_gets_to_see(tmp_path: Path) -> None:
    full = llama(tmp_path / "hf", vocabulary=30)

    done = resharded(tmp_path / "hf", tmp_path / "out", aim(Numbers(tp=4, vocabulary_multiple=10)))
    held = np.concatenate([ranks_of(tmp_path / "out")[rank]["lm_head.weight"] for rank in range(4)])

    assert held.shape == (40, 16)
    assert np.array_equal(held[:30], full["lm_head.weight"])
    assert not held[30:].any()
    assert "30 rows padded with zeros to 40" in [item.choice for item in done.plan.decisions]
    assert_equal(whole(tmp_path / "out", tmp_path / "back"), full)


def test_fewer_key_heads_than_ranks_are_held_by_several_and_never_cut(tmp_path: Path) -> None:
    full = llama(tmp_path / "hf", heads=8, groups=2, size=2)

    resharded(tmp_path / "hf", tmp_path / "out", aim(Numbers(tp=4)))
    ranks = ranks_of(tmp_path / "out")

    key = full[LAYER + "self_attn.k_proj.weight"]
    for rank in range(4):
        assert np.array_equal(ranks[rank][LAYER + "self_attn.k_proj.weight"], key[rank // 2 * 2 :][:2])


def test_stages_hold_their_layers_and_the_ends_what_is_in_none(tmp_path: Path) -> None:
    full = llama(tmp_path / "hf", layers=4)

    resharded(tmp_path / "hf", tmp_path / "out", aim(Numbers(tp=2, pp=2, dp=2)))
    ranks = ranks_of(tmp_path / "out")

    assert len(ranks) == 8
    first = {name for name in full if ".0." in name or ".1." in name} | {"model.embed_tokens.weight"}
    for rank, held in ranks.items():
        assert set(held) == (first if rank < 4 else full.keys() - first)
        assert np.array_equal(held[min(held)], ranks[rank ^ 2][min(held)])  # the other data-parallel rank


def test_experts_are_on_their_own_ranks(tmp_path: Path) -> None:
    source = FIXTURES / "hf/mixtral_moe_sharded/checkpoint"

    resharded(source, tmp_path / "out", aim(Numbers(dp=4, ep=2)))
    ranks = ranks_of(tmp_path / "out")

    for rank, held in ranks.items():
        found = {int(name.split("experts.")[1].split(".")[0]) for name in held if "experts." in name}
        assert found == ({0, 1} if rank % 2 == 0 else {2, 3})
    assert_equal(ranks[0], ranks[2])


@pytest.mark.parametrize("sharding", ["zero3", "fsdp"])
def test_data_parallel_ranks_share_elements_or_slices(tmp_path: Path, sharding: Sharding) -> None:
    full = llama(tmp_path / "hf", vocabulary=31)

    resharded(tmp_path / "hf", tmp_path / "out", aim(Numbers(dp=3, sharding=sharding)))
    ranks = ranks_of(tmp_path / "out")

    value = full["lm_head.weight"]
    held = [ranks[rank]["lm_head.weight"] for rank in range(3)]
    if sharding == "fsdp":
        assert [part.shape[0] for part in held] == [11, 11, 9]
        assert np.array_equal(np.concatenate(held), value)
    else:
        flat = np.concatenate(held)
        assert np.array_equal(flat[: value.size], value.reshape(-1))
        assert not flat[value.size :].any()


numbers = st.builds(
    Numbers,
    tp=st.sampled_from([1, 2, 4]),
    pp=st.sampled_from([1, 2]),
    dp=st.sampled_from([1, 2, 3]),
    sharding=st.sampled_from(["none", "zero1", "zero3", "fsdp"]),
    vocabulary_multiple=st.sampled_from([1, 7, 64]),
)


@settings(max_examples=12, deadline=None)
@given(one=numbers, two=numbers, vocabulary=st.sampled_from([30, 32, 41]))
def test_any_topology_after_any_other_gives_the_source_bit_for_bit(
    one: Numbers, two: Numbers, vocabulary: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        full = llama(root / "hf", vocabulary=vocabulary)

        resharded(root / "hf", root / "one", aim(one))
        resharded(root / "one", root / "two", aim(two))

        assert len(list((root / "two").glob("rank-*"))) == two.ranks
        assert_equal(whole(root / "two", root / "back"), full)
        assert verify(root / "two", root / "hf").same


def test_eight_ranks_to_four_to_the_whole(tmp_path: Path) -> None:
    full = llama(tmp_path / "hf", heads=16, groups=8, size=2)

    resharded(tmp_path / "hf", tmp_path / "tp8", aim(Numbers(tp=8)))
    resharded(tmp_path / "tp8", tmp_path / "tp4", aim(Numbers(tp=4)))
    resharded(tmp_path / "hf", tmp_path / "direct", aim(Numbers(tp=4)))

    assert_equal(whole(tmp_path / "tp4", tmp_path / "back"), full)
    for rank, held in ranks_of(tmp_path / "direct").items():
        assert_equal(ranks_of(tmp_path / "tp4")[rank], held)


def test_what_appears_says_what_it_is(tmp_path: Path) -> None:
    llama(tmp_path / "hf")
    resharded(tmp_path / "hf", tmp_path / "out", aim(Numbers(tp=2)))

    metadata = header_of(tmp_path / "out" / "rank-00001.safetensors")["__metadata__"]
    maps = json.loads(metadata["shardscope.shardmap"])

    assert (metadata["shardscope.rank"], metadata["shardscope.document"]) == ("1", FILE)
    assert maps["tensors"]["lm_head.weight"]["map"] == {
        "node": "contiguous",
        "axis": "tp",
        "dim": 0,
        "widths": [15, 15],
    }
    found = inspect(tmp_path / "out", with_catalogue=True)
    assert found.descriptor.classification.format == "bundle"
    assert not found.descriptor.blockers


def test_two_runs_write_the_same_bytes(tmp_path: Path) -> None:
    llama(tmp_path / "hf")
    for name in ("one", "two"):
        resharded(tmp_path / "hf", tmp_path / name, aim(Numbers(tp=2, dp=2, sharding="zero3")), workers=3)

    names = {path.name for path in (tmp_path / "one").iterdir()} - {"shardscope-run.json"}
    assert names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_a_cast_and_a_rename_go_with_it(tmp_path: Path) -> None:
    full = llama(tmp_path / "hf")
    resharded(tmp_path / "hf", tmp_path / "out", aim(Numbers(tp=2)), dtype="F16")

    held = ranks_of(tmp_path / "out")[1][LAYER + "mlp.up_proj.weight"]
    assert np.array_equal(held, full[LAYER + "mlp.up_proj.weight"][12:].astype(np.float16))


def test_a_tie_is_written_once_and_read_back_under_both_names(tmp_path: Path) -> None:
    full = llama(tmp_path / "hf", tied=True)
    save_file(
        {**full, "lm_head.weight": full["model.embed_tokens.weight"]}, tmp_path / "hf/model.safetensors"
    )

    resharded(tmp_path / "hf", tmp_path / "out", aim(Numbers(tp=2)))
    assert_equal(
        whole(tmp_path / "out", tmp_path / "back"),
        {**full, "lm_head.weight": full["model.embed_tokens.weight"]},
    )


@pytest.mark.parametrize("name", ["lm_head.weight", "model.norm.weight"])
def test_a_changed_byte_in_a_rank_file_is_found(tmp_path: Path, name: str) -> None:
    llama(tmp_path / "hf")
    resharded(tmp_path / "hf", tmp_path / "out", aim(Numbers(tp=2)), digest="none")
    path = tmp_path / "out" / "rank-00001.safetensors"
    data = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(data[:8], "little") + header_of(path)[name]["data_offsets"][0]
    data[begin + 5] ^= 1
    path.write_bytes(data)

    found = verify(tmp_path / "out", tmp_path / "hf")

    assert not found.same
    assert [item.name for item in found.differences] == [name]


@pytest.mark.parametrize(
    ("code", "numbers", "options"),
    [
        ("reshard.cut", Numbers(tp=3), {}),
        ("reshard.cut", Numbers(tp=16), {}),
        ("reshard.target", Numbers(tp=2, pp=3), {}),
        ("reshard.target", Numbers(dp=3, ep=2), {}),
        ("reshard.target", Numbers(tp=1 << 20, dp=8), {}),
        ("reshard.target", Numbers(tp=0), {}),
        ("reshard.unplaced", Numbers(tp=2), {"cuts": "hf-gpt2"}),
        ("convert.mapping_unknown", Numbers(tp=2), {"cuts": "vllm-llama"}),
        ("convert.mapping_unknown", Numbers(tp=2), {"cuts": "none-such"}),
        ("reshard.names", Numbers(tp=2), {"layout": "vllm"}),
    ],
)
def test_numbers_that_do_not_fit_are_refused(
    tmp_path: Path, code: str, numbers: Numbers, options: dict[str, Any]
) -> None:
    llama(tmp_path / "hf", layers=2, groups=4)
    with fault(code):
        planned(tmp_path / "hf", aim(numbers, **options))


def test_a_tensor_without_a_rule_is_never_cut_by_guess(tmp_path: Path) -> None:
    full = llama(tmp_path / "hf")
    save_file({**full, "model.layers.0.adapter.weight": np.ones((8, 8))}, tmp_path / "hf/model.safetensors")

    with fault("reshard.no_table") as caught:
        planned(tmp_path / "hf", aim(Numbers(tp=2)))
    assert caught.value.finding.params == {"table": "hf-llama", "tensor": "model.layers.0.adapter.weight"}
    left = planned(tmp_path / "hf", aim(Numbers(tp=2)), exclude=("*adapter*",))
    assert len(left.plan.files) == 2
    # Where no name matters, none is asked for.
    assert len(planned(tmp_path / "hf", aim(Numbers(dp=2, sharding="fsdp"))).plan.files) == 2


def test_without_a_configuration_heads_are_not_guessed(tmp_path: Path) -> None:
    llama(tmp_path / "hf")
    (tmp_path / "hf" / "config.json").unlink()
    with fault("mapping.fact_missing"):
        planned(tmp_path / "hf", aim(Numbers(tp=2)))


def test_a_kind_without_a_layer_or_a_stage_has_no_place_in_a_pipeline(tmp_path: Path) -> None:
    full = llama(tmp_path / "hf")
    table = json.loads(
        (Path(__file__).parents[2] / "engine/shardscope/engine/mappings/data/hf-llama.json").read_text()
    )
    for kind in table["table"]["kinds"]:
        kind.pop("stage", None)
    (tmp_path / "own.json").write_text(json.dumps(table))

    with fault("reshard.stage"):
        planned(tmp_path / "hf", aim(Numbers(pp=2), cuts=str(tmp_path / "own.json")))
    resharded(tmp_path / "hf", tmp_path / "out", aim(Numbers(tp=2), cuts=str(tmp_path / "own.json")))
    assert_equal(whole(tmp_path / "out", tmp_path / "back"), full)


def test_no_target_is_a_refusal(tmp_path: Path) -> None:
    llama(tmp_path / "hf")
    with fault("reshard.no_target"):
        planned(tmp_path / "hf", aim())


def test_nothing_is_left_of_a_plan_that_was_declined(tmp_path: Path) -> None:
    from shardscope.engine import materialize

    llama(tmp_path / "hf")
    with pytest.raises(Fault, match=r"admission\.declined"):
        materialize(
            tmp_path / "hf",
            tmp_path / "out",
            planned(tmp_path / "hf", aim(Numbers(tp=2))),
            confirm=lambda _: False,
        )
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]
    assert load_file(tmp_path / "hf/model.safetensors")


def test_other_executors_write_the_same_bytes(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from shardscope.engine import materialize

    llama(tmp_path / "hf")
    target = aim(Numbers(tp=2, dp=2, sharding="zero3", vocabulary_multiple=64))
    resharded(tmp_path / "hf", tmp_path / "one", target)
    with ThreadPoolExecutor(2) as executor:
        materialize(
            tmp_path / "hf",
            tmp_path / "two",
            planned(tmp_path / "hf", target),
            confirm=lambda _: True,
            executor=executor,
        )

    for path in (tmp_path / "one").glob("*.safetensors"):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_a_lost_run_is_gone_on_with(tmp_path: Path) -> None:
    from shardscope.engine import materialize
    from shardscope.engine.model.progress import Cancelled, Progress

    llama(tmp_path / "hf")
    target = aim(Numbers(tp=2, pp=2))
    resharded(tmp_path / "hf", tmp_path / "one", target)
    stages: list[str] = []

    def lose(report: Progress) -> None:
        stages.append(report.stage)
        if report.stage == "verify":
            raise Cancelled

    options: Any = {"confirm": lambda _: True, "resume": True}
    with pytest.raises(Cancelled):
        materialize(
            tmp_path / "hf", tmp_path / "two", planned(tmp_path / "hf", target), progress=lose, **options
        )
    assert not (tmp_path / "two").exists()
    done = materialize(tmp_path / "hf", tmp_path / "two", planned(tmp_path / "hf", target), **options)

    assert done.run.resumed_bytes > 0
    for path in (tmp_path / "one").glob("*.safetensors"):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
