"""What shardscope writes and what the producers' own consolidation makes of the same files are the same, wherever theirs works and is right.

Where theirs is wrong without saying so is the matter of test_silent_errors.py.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.formats.deepspeed_runs import Group, weights, write_three, write_zero
from tests.producers import peers

torch = pytest.importorskip("torch")
pytest.importorskip("deepspeed")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

BOTH = ("--ties", "both")


def same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ours
    assert not peers.different(ours, theirs)


# R081
@pytest.mark.parametrize(
    "name",
    [
        "zero1-w2-fp32",
        "zero2-w2-fp32-emptyparam",
        "zero2-w4-bf16",
        "zero2-w4-bf16-roundrobin",
        "zero2-w4-fp32",
        "zero3-w2-bf16",
        "zero3-w3-fp32",
    ],
)
def test_zero_to_fp32_gives_the_same(name: str, tmp_path: Path) -> None:
    save = peers.source(f"deepspeed/{name}")
    same(peers.converted(save, tmp_path / "out", *BOTH), peers.zero_to_fp32(save))


SHAPES = {"a__weight": (37, 18), "a__bias": (37,), "deep__w": (3, 5, 7), "odd": (1,), "z__weight": (64, 33)}


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_zero_to_fp32_gives_the_same_of_made_runs(ranks: int, tmp_path: Path) -> None:
    """The runs that other tests and the benchmark make are such as the producer's tool accepts."""
    want = weights(ranks, **SHAPES)
    names = list(want)
    groups = [Group({name: want[name] for name in part}) for part in (names[:2], names[2:])]
    two = write_zero(tmp_path / "two", {(0, 0): groups}, dp=ranks, stage=2)
    three = write_three(tmp_path / "three", {0: [group.parameters for group in groups]}, dp=ranks)
    for save in (two, three):
        ours, theirs = peers.converted(save, save.with_name(f"{save.name}-out")), peers.zero_to_fp32(save)
        same(ours, theirs)
        assert all((theirs[name].numpy() == array).all() for name, array in want.items())


@pytest.mark.parametrize(
    "name", ["zero1-w2-bf16-fp32grad", "pipe2-zero1-fp32", "moe-ep2-zero2-bf16", "zero0-w2-bf16"]
)
def test_what_zero_to_fp32_cannot_read_is_converted(name: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, AttributeError, TypeError)):
        peers.zero_to_fp32(peers.source(f"deepspeed/{name}"))

    same(
        peers.converted(peers.source(f"deepspeed/{name}"), tmp_path / "out", *BOTH),
        peers.truth(f"deepspeed/{name}"),
    )


def test_ties_stop_zero_to_fp32_from_writing_safetensors(tmp_path: Path) -> None:
    from deepspeed.utils.zero_to_fp32 import convert_zero_checkpoint_to_fp32_state_dict

    save = peers.source("deepspeed/zero2-w4-bf16")
    with pytest.raises(RuntimeError, match="share memory"):
        convert_zero_checkpoint_to_fp32_state_dict(
            str(save), str(tmp_path / "theirs"), safe_serialization=True
        )

    written = peers.converted(save, tmp_path / "once")
    assert peers.different(written, peers.truth("deepspeed/zero2-w4-bf16")) == {"head.weight"}


@pytest.mark.parametrize(
    "name",
    [
        "zero1-w2-fp32",
        "zero2-w2-fp32-emptyparam",
        "autotp2-llama-gqa3-dp2-zero2-fp32",
        "autotp2-bloom-zero1-fp32",
    ],
)
def test_ds_to_universal_gives_the_same(name: str, tmp_path: Path) -> None:
    save = peers.copy(peers.source(f"deepspeed/{name}"), tmp_path / "save")
    theirs = peers.universal(peers.ds_to_universal(save, tmp_path / "universal"))
    ours = peers.converted(save, tmp_path / "ours", *BOTH)
    shared = ours.keys() & theirs.keys()
    wrong = {
        key
        for key in shared
        if not torch.equal(ours[key].float(), theirs[key].float().reshape(ours[key].shape))
    }
    assert len(shared) > 10
    assert not wrong
    again = peers.converted(tmp_path / "universal", tmp_path / "again", *BOTH)
    assert not peers.different(again, ours)


@pytest.mark.parametrize(
    "name",
    [
        "dcp/dtensor_2d_dp2_tp2",
        "dcp/fsdp1_sharded_world2",
        "dcp/fsdp2_file_per_item_world2",
        "dcp/fsdp2_flat_world2",
        "dcp/fsdp2_odd_world2",
        "dcp/fsdp2_zstd_world2",
        "dcp/metadata_no_planner_data",
        "dcp/metadata_torch22_names",
        "dcp/model_optim_world2",
        "dcp/stale_files_world3_then_world2",
        "accelerate/fsdp1_sharded_world2/pytorch_model_fsdp_0",
        "accelerate/fsdp2_sharded_world2/pytorch_model_fsdp_0",
        "accelerate/fsdp2_sharded_world2/optimizer_0",
    ],
)
def test_dcp_to_torch_save_gives_the_same(name: str, tmp_path: Path) -> None:
    family, fixture, *rest = name.split("/")
    save = peers.source(f"{family}/{fixture}").joinpath(*rest)
    ours = peers.converted(save, tmp_path / "out", "--component", "all", *BOTH)
    same(ours, peers.dcp_to_torch_save(save, tmp_path / "theirs.pt"))


@pytest.mark.parametrize("name", ["hf_writer_sharded_world2", "hf_writer_consolidated_world2/sharded"])
def test_consolidation_gives_the_same(name: str, tmp_path: Path) -> None:
    fixture, *rest = name.split("/")
    save = peers.source(f"dcp/{fixture}").joinpath(*rest)
    same(peers.converted(save, tmp_path / "out"), peers.consolidate(save, tmp_path / "theirs"))


def test_consolidation_refuses_integers_that_are_converted(tmp_path: Path) -> None:
    save = peers.source("dcp/hf_writer_scalar_int_world2")
    with pytest.raises(TypeError, match="finfo"):
        peers.consolidate(save, tmp_path / "theirs")

    same(peers.converted(save, tmp_path / "out"), peers.truth("dcp/hf_writer_scalar_int_world2"))


def test_accelerate_merges_the_same(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate.utils")
    save = peers.source("accelerate/fsdp2_sharded_world2") / "pytorch_model_fsdp_0"
    accelerate.merge_fsdp_weights(str(save), str(tmp_path / "theirs"))
    theirs = peers.tensors(tmp_path / "theirs")
    ours = peers.converted(save, tmp_path / "out", *BOTH)
    same({name.removeprefix("model."): tensor for name, tensor in ours.items()}, theirs)
