"""DeepSpeed Universal decoded: payloads of every kind, and folders that do not say what their module copies say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.formats.decoding import Found, decode, value
from tests.formats.deepspeed_runs import (
    Array,
    File,
    contiguous_map,
    cut_rows,
    half,
    info_of,
    weights,
    write_states,
)

TENSORS = weights(40, a__weight=(4, 3), b=(5,))


def payload(array: Array, **beside: Any) -> tuple[File, Any]:
    """Return a file and what it holds: a mapping with the tensor in it."""
    file = File()
    return file, {**beside, "param": file.tensor(array)}


def bare(array: Array) -> tuple[File, Any]:
    """Return a file and what it holds: a tensor alone."""
    file = File()
    return file, file.tensor(array)


def universal(root: Path, states: dict[str, tuple[File, Any]]) -> Path:
    """Write state files by `parameter/state`, and what stands beside them; return the root."""
    tree = root / "global_step5_universal" / "zero"
    for name, (file, held) in states.items():
        file.write(tree / f"{name}.pt", held)
    file = File()
    file.write(tree / "optimizer_state.pt", {"param_groups": []})
    (root / "latest_universal").write_text("global_step5_universal")
    return root


def trained(tensors: dict[str, Array], **beside: Any) -> dict[str, tuple[File, Any]]:
    """Return state files of trained parameters as mappings."""
    found = {}
    for name, array in tensors.items():
        found[f"{name}/fp32"] = payload(array, **beside)
        found[f"{name}/exp_avg"] = payload(array * np.float32(2))
        found[f"{name}/step"] = bare(np.full((), 3, np.float32))
    return found


def copies(root: Path, tensors: dict[str, Array], *, stage: int = 1, **more: Any) -> None:
    """Write the copied model states of a single rank."""
    name = "zero_pp_rank_0_mp_rank_00" if stage == 3 else "mp_rank_00"
    module = {k: np.empty(0, np.float16) for k in tensors} if stage == 3 else half(tensors)
    write_states(
        root / "global_step5_universal" / f"{name}_model_states.pt",
        module | more.pop("extra", {}),
        [{k: v.shape for k, v in tensors.items()}],
        stage=stage,
        dp=1,
        **more,
    )


def numbers(found: Found, name: str) -> Array:
    """Return a tensor's values."""
    tensor = found.named(name)
    dtype = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}[tensor.dtype]
    return np.frombuffer(value(found, tensor), dtype).reshape(tensor.shape)


def code(found: Found, name: str) -> dict[str, Any]:
    """Return the parameters of the one blocker of that code."""
    (item,) = (item for item in found.blockers if item.code == name)
    return dict(item.params)


def test_mappings_and_steps_are_listed_by_what_they_are(tmp_path: Path) -> None:
    root = universal(tmp_path, trained(TENSORS, cat_dim=0))
    copies(root, TENSORS)
    found = decode(root)
    assert found.errors == set()
    for name, array in TENSORS.items():
        assert numbers(found, name).tobytes() == array.tobytes()
        assert numbers(found, f"exp_avg::{name}").tobytes() == (array * np.float32(2)).tobytes()
        assert numbers(found, f"step::{name}") == 3
    kinds = {
        tensor.name.partition("::")[0]: tensor.component for tensor in found.tensors if "::" in tensor.name
    }
    assert kinds == {"exp_avg": "optimizer", "step": "other"}
    assert [str(item.kind) for item in found.facts[0].evidence[-2:]] == ["pickle", "payload"]


def test_flat_tensors_get_the_shapes_of_the_copies_and_are_refused_without_them(tmp_path: Path) -> None:
    flat = {f"{name}/fp32": bare(array.reshape(-1)) for name, array in TENSORS.items()}
    root = universal(tmp_path, flat)
    alone = decode(root)
    assert {
        item.params["tensor"] for item in alone.blockers if item.code == "deepspeed.universal_flat"
    } == set(TENSORS)
    assert not alone.tensors
    copies(root, TENSORS, stage=3)
    found = decode(root)
    for name, array in TENSORS.items():
        assert numbers(found, name).tobytes() == array.tobytes()
        assert found.named(name).shape == array.shape


@pytest.mark.parametrize("rows", [3, 5])
def test_fewer_or_more_rows_than_the_module_copy_block_conversion(tmp_path: Path, rows: int) -> None:
    wrong = dict(TENSORS) | {"a.weight": np.ones((rows, 3), np.float32)}
    root = universal(tmp_path, trained(wrong))
    copies(root, TENSORS)
    found = decode(root)
    told = [item for item in found.blockers if item.code == "deepspeed.universal_shape"]
    assert {item.params["tensor"] for item in told} == {"a.weight", "exp_avg::a.weight"}
    assert all("convert" in item.blocks for item in told)
    assert found.named("a.weight").shape == (4, 3)
    assert found.named("a.weight").note == "from the copied model states"


def test_other_values_than_the_module_copy_block_conversion(tmp_path: Path) -> None:
    wrong = dict(TENSORS) | {"b": TENSORS["b"][::-1].copy()}
    root = universal(tmp_path, trained(wrong))
    copies(root, TENSORS)
    found = decode(root)
    assert found.errors == {"deepspeed.universal_values"}
    params = code(found, "deepspeed.universal_values")
    assert (params["count"], params["total"], params["first"]) == (1, 2, "b")


def test_frozen_tied_and_buffer_entries_come_from_the_copies(tmp_path: Path) -> None:
    states = trained(TENSORS)
    states["steps/fp32"] = payload(np.arange(4, dtype=np.float32))
    root = universal(tmp_path, states)
    copies(
        root,
        TENSORS,
        extra={"adapter": np.arange(3, dtype=np.float16), "steps": np.arange(4)},
        buffer_names=["steps"],
        shared_params={"head": "a.weight"},
    )
    found = decode(root)
    assert numbers(found, "steps").dtype == np.int64
    assert numbers(found, "adapter").tolist() == [0, 1, 2]
    assert found.named("head").alias_of == "a.weight"
    assert [found.named(name).role for name in ("steps", "adapter")] == ["buffer", "frozen"]
    assert "deepspeed.universal_moments_absent" not in found.codes, "what has no moments is a buffer"
    assert found.errors == set()


def test_parameters_that_no_copy_names_are_noticed(tmp_path: Path) -> None:
    root = universal(tmp_path, trained(dict(TENSORS) | {"stray": np.ones(2, np.float32)}))
    copies(root, TENSORS)
    found = decode(root)
    assert code(found, "deepspeed.universal_unknown")["first"] == "stray"
    assert found.named("stray").shape == (2,)


def test_a_file_without_a_tensor_is_named(tmp_path: Path) -> None:
    states = trained(TENSORS)
    states["b/fp32"] = (File(), {"param": "nothing"})
    root = universal(tmp_path, states)
    copies(root, TENSORS)
    found = decode(root)
    assert code(found, "deepspeed.universal_payload")["file"].endswith("zero/b/fp32.pt")


def test_shards_of_two_ranks_witness_a_whole_tensor_cut_by_columns(tmp_path: Path) -> None:
    tensors = weights(41, down__weight=(3, 9))
    whole = tensors["down.weight"]
    root = universal(tmp_path, trained(tensors))
    shards = cut_rows(whole, (5, 4), dim=1)
    for rank, shard in enumerate(shards):
        write_states(
            root / "global_step5_universal" / f"mp_rank_{rank:02d}_model_states.pt",
            half({"down.weight": shard}),
            [{"down.weight": shard.shape}],
            stage=1,
            dp=1,
            tp=2,
            info=info_of({"down.weight": contiguous_map(whole.shape, (5, 4), 1)}),
        )
    assert decode(root).errors == set()
    path = root / "global_step5_universal" / "zero" / "down.weight" / "fp32.pt"
    file = File()
    file.write(path, {"param": file.tensor(np.concatenate([shards[1], shards[0]], axis=1))})
    assert decode(root).errors == {"deepspeed.universal_values"}


def test_rows_of_padding_are_cut_off_where_the_size_of_the_vocabulary_is_known(tmp_path: Path) -> None:
    padded = weights(42, embed__weight=(8, 3))
    info = {
        "universal_checkpoint_version": 0.2,
        "vocabulary_parameter_patterns": [r"embed\.weight"],
        "original_vocab_size": 5,
    }
    true = {"embed.weight": padded["embed.weight"][:5].copy()}
    root = universal(tmp_path, trained(true, vocab_tensor=True))
    copies(root, padded, info=info)
    found = decode(root)
    assert found.errors == set()
    assert found.named("embed.weight").shape == (5, 3)
