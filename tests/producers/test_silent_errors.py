"""Where the usual tools give wrong data and say nothing: both sides, the real tool and shardscope, on the same files.

docs/silent-errors.md tells of each case; its commands are run here too.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.producers import peers

torch = pytest.importorskip("torch")
pytest.importorskip("deepspeed")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "silent-errors.md").read_text(encoding="utf-8")
ROUND_ROBIN = "deepspeed/zero2-w4-bf16-roundrobin"
TIED_VOCABULARY = "deepspeed/autotp2-llama-tied-vocab-zero1-bf16"
FROZEN = "deepspeed/zero1-w2-bf16"
CODEGEN = "deepspeed/autotp2-codegen-heur-zero1-fp32"


def refused(checkpoint: Path, out: Path, code: str, *options: object) -> None:
    """shardscope says so, with this code, and writes nothing; the page quotes it."""
    said = peers.convert(checkpoint, out, *options)
    assert (said.exit == 0, said.code) == (False, code), said.text
    assert not out.exists()
    assert code in PAGE


# --- DeepSpeed


# R064
def test_round_robin_gradients_scramble_what_ds_to_universal_writes(tmp_path: Path) -> None:
    save = peers.copy(peers.source(ROUND_ROBIN), tmp_path / "save")
    made = peers.ds_to_universal(save, tmp_path / "universal")
    want = peers.truth(ROUND_ROBIN)
    theirs = peers.universal(made)
    wrong = {
        name
        for name in theirs.keys() & want.keys()
        if not peers.equal(theirs[name].float(), want[name].float())
    }
    assert len(wrong) >= 26
    assert max((theirs[name].float() - want[name].float()).abs().max() for name in wrong) > 0.5

    refused(tmp_path / "universal", tmp_path / "out", "deepspeed.universal_values")
    assert not peers.different(peers.converted(save, tmp_path / "ours", "--ties", "both"), want)


def test_a_tied_vocabulary_loses_its_second_half_in_a_universal_checkpoint(tmp_path: Path) -> None:
    save = peers.copy(peers.source(TIED_VOCABULARY), tmp_path / "save")
    made = peers.ds_to_universal(save, tmp_path / "universal")
    want = peers.truth(TIED_VOCABULARY)
    assert want["lm_head.weight"].shape == (53, 24)
    assert peers.universal(made)["lm_head.weight"].shape == (27, 24)

    refused(tmp_path / "universal", tmp_path / "out", "deepspeed.universal_shape", "--ties", "both")
    once = peers.converted(tmp_path / "universal", tmp_path / "once")
    assert peers.different(once, want) == {"lm_head.weight"}  # written once, under the name that is whole
    assert not peers.different(peers.converted(save, tmp_path / "ours", "--ties", "both"), want)


def test_a_tied_name_is_rounded_in_a_universal_checkpoint(tmp_path: Path) -> None:
    save = peers.copy(peers.source(FROZEN), tmp_path / "save")
    theirs = peers.universal(peers.ds_to_universal(save, tmp_path / "universal"))
    assert theirs["head.weight"].dtype == theirs["embed.weight"].dtype == torch.float32
    assert 0 < (theirs["head.weight"] - theirs["embed.weight"]).abs().max() < 0.01

    ours = peers.converted(tmp_path / "universal", tmp_path / "out", "--ties", "both")
    assert torch.equal(ours["head.weight"], ours["embed.weight"])
    assert torch.equal(ours["embed.weight"], peers.truth(FROZEN)["embed.weight"])


def test_buffers_become_floats_in_a_universal_checkpoint(tmp_path: Path) -> None:
    save = peers.copy(peers.source(FROZEN), tmp_path / "save")
    theirs = peers.universal(peers.ds_to_universal(save, tmp_path / "universal"))
    assert theirs["mask"].dtype == theirs["token_counts"].dtype == torch.float32

    ours = peers.converted(tmp_path / "universal", tmp_path / "out")
    assert (ours["mask"].dtype, ours["token_counts"].dtype) == (torch.bool, torch.int64)
    want = peers.truth(FROZEN)
    assert torch.equal(ours["mask"], want["mask"])
    assert torch.equal(ours["token_counts"], want["token_counts"])


def test_zero_to_fp32_leaves_frozen_weights_of_stage_1_out(tmp_path: Path) -> None:
    theirs = peers.zero_to_fp32(peers.source(FROZEN))
    want = peers.truth(FROZEN)
    assert want.keys() - theirs.keys() == {"frozen_adapter.weight"}

    ours = peers.converted(peers.source(FROZEN), tmp_path / "out", "--ties", "both")
    assert not peers.different(ours, want)


@pytest.mark.skipif(not peers.OLD_DEEPSPEED.is_dir(), reason="`make test-producers` puts it there")
def test_an_older_converter_joins_permuted_blocks_in_their_order_of_ranks(tmp_path: Path) -> None:
    save = peers.copy(peers.source(CODEGEN), tmp_path / "save")
    want = peers.truth(CODEGEN)
    made = peers.ds_to_universal(save, tmp_path / "universal", package=peers.OLD_DEEPSPEED)
    wrong = peers.different(peers.universal(made), want)
    assert wrong == {f"transformer.h.{layer}.attn.qkv_proj.weight" for layer in (0, 1)}

    refused(tmp_path / "universal", tmp_path / "out", "deepspeed.universal_values")
    assert not peers.different(peers.converted(save, tmp_path / "ours", "--ties", "both"), want)
    newer = peers.ds_to_universal(save, tmp_path / "newer")
    assert not peers.different(peers.universal(newer), want)


# --- torch


# R066
def test_a_save_without_collectives_is_read_as_if_rank_0_had_written_all(tmp_path: Path) -> None:
    save = peers.source("dcp/fsdp2_no_collectives_world2")
    want = peers.truth("dcp/fsdp2_no_collectives_world2")
    theirs = peers.dcp_to_torch_save(save, tmp_path / "theirs.pt")
    assert theirs.keys() == want.keys()
    assert len(peers.different(theirs, want)) == 8

    said = peers.convert(save, tmp_path / "out")
    assert said.exit == 0
    assert "dcp.ranks_united" in said.text
    assert "dcp.ranks_united" in PAGE
    assert not peers.different(peers.tensors(tmp_path / "out"), want)


def test_a_changed_byte_passes_through(tmp_path: Path) -> None:
    save = peers.source("dcp/bad_payload_byte")
    theirs = peers.dcp_to_torch_save(save, tmp_path / "theirs.pt")
    assert len(peers.different(theirs, peers.truth("dcp/fsdp2_odd_world2"))) == 1

    refused(save, tmp_path / "out", "torch.record_crc")


def test_rows_that_no_rank_holds_are_memory_that_nobody_wrote(tmp_path: Path) -> None:
    save = peers.source("dcp/bad_hole")
    theirs = peers.dcp_to_torch_save(save, tmp_path / "theirs.pt")
    want = peers.truth("dcp/fsdp2_odd_world2")
    assert theirs["model.embed.weight"].shape == want["model.embed.weight"].shape
    assert peers.different(theirs, want) == {"model.embed.weight"}

    refused(save, tmp_path / "out", "dcp.hole")


def shards(folder: Path, *parts: tuple[dict[str, Any], dict[str, Sequence[int]]]) -> Path:
    """Write a distributed save in safetensors, as torch's writer does: tensors and where each begins."""
    from safetensors.torch import save_file

    folder.mkdir()
    for number, (tensors, offsets) in enumerate(parts, 1):
        info = {name: {"saved_offsets": list(offsets.get(name, [0] * t.ndim))} for name, t in tensors.items()}
        save_file(
            tensors,
            folder / f"shard-{number:05}-model-00001-of-00001.safetensors",
            {"DCP_SHARDING_INFO": json.dumps(info), "DCP_VERSION": "1.0", "format": "pt"},
        )
    return folder


def rows(first: int, count: int, dtype: Any = None) -> Any:
    return torch.arange(2.0 * first, 2.0 * (first + count)).reshape(count, 2).to(dtype or torch.float32)


def test_consolidation_makes_scalars_zero(tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp

    writer = dcp.HuggingFaceStorageWriter(str(tmp_path / "save"), save_distributed=True)
    dcp.save({"scale": torch.tensor(2.5), "weight": rows(0, 3)}, storage_writer=writer, no_dist=True)
    theirs = peers.consolidate(tmp_path / "save", tmp_path / "theirs")
    assert theirs["scale"] == 0
    assert torch.equal(theirs["weight"], rows(0, 3))

    assert peers.converted(tmp_path / "save", tmp_path / "out")["scale"] == 2.5


def test_consolidation_fills_a_missing_first_shard_with_zeros(tmp_path: Path) -> None:
    save = shards(tmp_path / "save", ({"w": rows(3, 3)}, {"w": [3, 0]}))
    theirs = peers.consolidate(save, tmp_path / "theirs")
    assert theirs["w"].shape == (6, 2)
    assert not theirs["w"][:3].any()

    refused(save, tmp_path / "out", "dcp.hole")


def test_consolidation_shortens_a_tensor_whose_last_shard_is_missing(tmp_path: Path) -> None:
    """The files cannot tell: shardscope converts what is there and says what it could not prove."""
    save = shards(tmp_path / "save", ({"w": rows(0, 3)}, {"w": [0, 0]}))
    assert peers.consolidate(save, tmp_path / "theirs")["w"].shape == (3, 2)

    said = peers.convert(save, tmp_path / "out")
    assert said.exit == 0
    assert "dcp.extent_unproven" in said.text
    assert "dcp.extent_unproven" in PAGE


def test_consolidation_lets_a_later_shard_overwrite(tmp_path: Path) -> None:
    save = shards(tmp_path / "save", ({"w": rows(0, 3)}, {"w": [0, 0]}), ({"w": rows(9, 3)}, {"w": [2, 0]}))
    theirs = peers.consolidate(save, tmp_path / "theirs")
    assert theirs["w"].shape == (5, 2)
    assert not torch.equal(theirs["w"][:3], rows(0, 3)) or not torch.equal(theirs["w"][2:], rows(9, 3))

    refused(save, tmp_path / "out", "dcp.overlap")


def test_consolidation_copies_bytes_of_one_type_as_another(tmp_path: Path) -> None:
    save = shards(
        tmp_path / "save",
        ({"w": torch.full((2, 2), 3.25)}, {"w": [0, 0]}),
        ({"w": torch.full((2, 2), 1.5, dtype=torch.bfloat16)}, {"w": [2, 0]}),
    )
    theirs = peers.consolidate(save, tmp_path / "theirs")["w"].float()
    assert theirs.shape == (4, 2)
    right = torch.tensor([3.25] * 4 + [1.5] * 4)
    assert not torch.equal(theirs.reshape(-1), right)

    refused(save, tmp_path / "out", "dcp.dtype_mixed")


# --- the page


def sections() -> dict[str, list[tuple[str, str]]]:
    """Return the fenced blocks of each section that has commands, by its title."""
    found = {}
    for part in PAGE.split("\n## ")[1:]:
        blocks = re.findall(r"^```(sh|text|python)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
        if any(kind == "sh" for kind, _ in blocks):
            found[part.partition("\n")[0]] = blocks
    return found


@pytest.mark.parametrize("title", sections())
def test_the_commands_of_the_page_do_what_it_says(title: str, tmp_path: Path) -> None:
    blocks = sections()[title]
    if any("deepspeed-0.19.6" in text for _, text in blocks) and not peers.OLD_DEEPSPEED.is_dir():
        pytest.skip("`make test-producers` puts the older DeepSpeed there")
    os.symlink(ROOT / "tests", tmp_path / "tests")
    os.symlink(sys.prefix, tmp_path / ".venv-producers")
    environment = os.environ | {"PATH": f"{sys.prefix}/bin:{os.environ['PATH']}", "COLUMNS": "200"}
    for number, (kind, text) in enumerate(blocks):
        if kind != "sh":
            continue
        done = subprocess.run(
            ["bash", "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        told = " ".join((done.stdout + " " + done.stderr).split())
        following = blocks[number + 1] if number + 1 < len(blocks) else ("", "")
        assert following[0] == "text", "each block of commands is followed by what it tells"
        for line in following[1].strip().split("\n\n"):
            assert " ".join(line.split()) in told, told[-3000:]
