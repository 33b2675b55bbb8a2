"""`shardscope tensors --map`: what the shard map shows, without a screen."""

import json
from pathlib import Path

import pytest

from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import MAP_EXPLANATION
from tests.app.terminal import Command
from tests.schemas import validate

FIXTURES = Path(__file__).parents[1] / "fixtures"
MEGATRON = str(FIXTURES / "megatron" / "legacy_tp2_pp2" / "checkpoint")
LLAMA = str(FIXTURES / "hf" / "llama_sharded" / "checkpoint")
FUSED = "decoder.layers.0.mlp.linear_fc1.weight"


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def test_a_decoded_tensor_is_told_and_drawn(command: Command) -> None:
    said = command("tensors", MEGATRON, "--decode", "--map", FUSED, "--rank", "1")
    assert said.code == ExitCode.OK
    assert f"{FUSED}  [96, 32] F32" in said.out
    assert "gate, 48: contiguous over tp: dimension 0 into 2 x 24" in said.out
    assert "rows 24-47, 72-95" in said.out
    assert "the full tensor" in said.out
    assert "the shard of rank 1" in said.out


def test_a_tensor_of_a_header_is_one_holder(command: Command) -> None:
    said = command("tensors", LLAMA, "--map", "lm_head.weight", "--json")
    assert said.code == ExitCode.OK
    document = json.loads(said.out)
    validate(document, MAP_EXPLANATION)
    (tensor,) = document["tensors"]
    assert tensor["shape"] == [96, 32]
    assert [shard["ranks"] for shard in tensor["shards"]] == [[0]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--map", "lm_heed.weight"), "Did you mean 'lm_head.weight'?"),
        (("--map", "lm_head.weight", "--rank", "7"), "no shard has the number 7"),
        (("--rank", "7"), "--rank needs --map"),
        (("--map", "lm_head.weight", "--csv"), "--map stands alone"),
    ],
)
def test_what_cannot_be_is_said(command: Command, words: tuple[str, ...], said: str) -> None:
    ended = command("tensors", LLAMA, *words)
    assert ended.code == ExitCode.USAGE
    assert said in " ".join(ended.err.split())
