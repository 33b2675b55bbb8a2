"""`shardscope model` as a person or a script calls it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine import ModelOptions, explain_model
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.exits import ExitCode
from tests.app.terminal import Command
from tests.checkpoints import write_json, write_safetensors
from tests.schemas import validate

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def checkpoint(name: str) -> str:
    return str(FIXTURES / name / "checkpoint")


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def document(text: str) -> Any:
    found = json.loads(text)
    assert found["schema"] == "shardscope.model/1"
    validate(found, "shardscope.model/1")
    return found


def test_the_text_has_a_section_for_each_question(command: Command) -> None:
    said = command("model", checkpoint("hf/mixtral_moe_sharded"))
    assert said.code == ExitCode.OK
    lines = said.out.splitlines()
    assert [line for line in lines if line in ("Parameters", "Layers", "Sizes", "Packing", "Memory", "In the way")] == [
        "Parameters", "Layers", "Sizes", "Memory",
    ]  # fmt: skip
    assert "  for a token   8,400, 64.6%: experts by their number per token" in lines
    assert "  model.layers.*.block_sparse_moe.experts.{0-3}  x4" in lines
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    "name",
    [
        "hf/llama_tied_sharded",
        "hf/mistral_consolidated",
        "peft/lora_llama",
        "gguf/llama_mixed",
        "orbax/zarr",
        "numpy/arrays",
    ],
)
def test_the_document_keeps_its_schema(name: str, command: Command) -> None:
    said = command("model", checkpoint(name), "--json")
    assert said.code == ExitCode.OK
    found = document(said.out)
    assert found["parameters"]["total"] > 0
    assert found["memory"]["weights"][0]["name"] == "as stored"


# R115
def test_no_figure_is_a_promise(command: Command) -> None:
    said = command("model", checkpoint("hf/llama_sharded"), "--devices", "4")
    words = " ".join(said.out.split())
    assert "Arithmetic on bytes, no promise" in words
    assert words.count("= ") >= 5
    assert not any(word in words for word in ("fits", "enough", "requires", "you need"))


def test_ties_count_once(command: Command) -> None:
    found = document(command("model", checkpoint("hf/llama_tied_sharded"), "--json").out)
    assert found["parameters"]["tied"] == ["lm_head.weight"]
    assert found["parameters"]["total"] == 18_592


def test_what_is_asked_for_is_counted(command: Command) -> None:
    words = (
        "--dtype",
        "F32",
        "--dtype",
        "I4",
        "--context",
        "1000",
        "--devices",
        "2",
        "--cache-dtype",
        "F8_E4M3",
    )
    found = document(command("model", checkpoint("hf/llama_sharded"), "--json", *words).out)
    memory = found["memory"]
    assert [line["name"] for line in memory["weights"]] == ["as stored", "in F32", "in I4"]
    assert memory["weights"][1]["bytes"] == 21_664 * 4 // 2
    assert memory["weights"][2]["bytes"] == 21_664 // 2 // 2
    assert memory["cache"]["bytes"] == 1_000 * memory["cache_per_token"]["bytes"]
    assert memory["cache_per_token"]["bytes"] == 2 * 1 * (8 + 8)


def test_a_configuration_of_another_model_is_an_error(command: Command, tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint("hf/llama_sharded"), tmp_path / "ckpt")
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", config | {"vocab_size": 50_000, "num_hidden_layers": 3})
    said = command("model", str(folder))
    assert said.code == ExitCode.BLOCKED
    assert "model.contradiction" in said.out
    assert "model.layers_declared" in said.out
    assert "  ! vocabulary" in said.out
    found = document(command("model", str(folder), "--json").out)
    assert {item["code"] for item in found["findings"]} == {"model.contradiction", "model.layers_declared"}


def test_an_adapter_is_held_against_its_base(command: Command) -> None:
    said = command("model", checkpoint("peft/lora_llama"), "--base", checkpoint("hf/llama_sharded"), "--json")
    found = document(said.out)
    assert said.code == ExitCode.OK
    assert (found["adapter"]["fitting"], found["adapter"]["unfitting"]) == (9, 0)
    assert found["adapter"]["scale"] == "8 / 4 = 2"

    said = command(
        "model", checkpoint("peft/lora_llama"), "--base", checkpoint("hf/mixtral_moe_sharded"), "--json"
    )
    assert said.code == ExitCode.BLOCKED
    assert "model.adapter_base" in {item["code"] for item in document(said.out)["findings"]}


def test_what_hides_in_pickles_is_counted_once_it_is_decoded(command: Command) -> None:
    name = checkpoint("deepspeed/zero3-w2-bf16")
    refused = command("model", name)
    assert refused.code != ExitCode.OK
    assert "tensors.opaque" in refused.err
    found = document(command("model", name, "--decode", "--json").out)
    assert found["parameters"]["total"] == 6_940
    assert found["families"]


def test_what_the_checkpoint_calls_frozen_is_told() -> None:
    found = explain_model(
        checkpoint("deepspeed/zero2-w4-bf16"), decoding=Decoding(Intent("inspect", "command line"))
    )
    frozen = found.parameters.frozen
    assert frozen is not None
    assert 0 < frozen < found.parameters.total


def test_ranks_that_hold_parts_are_not_held_against_a_configuration(command: Command) -> None:
    found = document(command("model", checkpoint("hf/vllm_sharded_state_tp2"), "--json").out)
    assert {item["code"] for item in found["findings"]} == {"model.parts"}
    assert found["facts"] == []


def test_names_that_act_on_a_terminal_are_shown_and_do_nothing(command: Command, tmp_path: Path) -> None:
    evil = "\x1b[31m[red]evil\u202e"
    tensors = {f"model.layers.{n}.{evil}.{'x' * 200}.weight": ("F32", (2, 2)) for n in range(3)}
    write_safetensors(tmp_path / "model.safetensors", tensors)
    write_json(
        tmp_path / "config.json",
        {"architectures": [evil], "model_type": evil, "quantization_config": {"quant_method": evil}},
    )
    for words in ((), ("-v",), ("--json",)):
        said = command("model", str(tmp_path), *words)
        assert "\x1b" not in said.out
        assert "\u202e" not in said.out


def test_a_file_alone_has_no_configuration(command: Command) -> None:
    path = FIXTURES / "hf/llama_single_bf16/checkpoint/model.safetensors"
    found = document(command("model", str(path), "--json").out)
    assert found["configuration"] is None
    assert found["memory"]["cache_per_token"] is None
    assert found["parameters"]["total"] > 0


def test_a_program_asks_the_engine() -> None:
    found = explain_model(checkpoint("gguf/llama_mixed"), ModelOptions(dtypes=("F16",), context=10))
    assert found.title == "llama"
    assert {row.name: row.agrees for row in found.facts}["attention heads"] is True
    assert found.memory.cache is not None
    assert found.memory.cache.bytes == 10 * 2 * 2 * (16 + 16) * 2


@pytest.mark.parametrize("name", ["model", "tensors"])
@pytest.mark.parametrize("decode", [(), ("--decode",)])
def test_a_format_that_nothing_reads_is_said_to_be_one(
    name: str, decode: tuple[str, ...], command: Command
) -> None:
    said = command(name, checkpoint("orbax/ocdbt"), *decode)
    assert said.code == ExitCode.UNSUPPORTED
    assert "tensors.unread" in said.err
    assert "Orbax checkpoint is recognised only, and 7 files hold what is in it" in " ".join(said.err.split())


def test_figures_of_a_checkpoint_that_lacks_files_are_said_to_lack_them(command: Command) -> None:
    said = command("model", checkpoint("hf/index_errors"), "--json")

    assert [item["code"] for item in document(said.out)["findings"]] == ["model.damaged"]
    assert document(command("model", checkpoint("hf/llama_sharded"), "--json").out)["findings"] == []
