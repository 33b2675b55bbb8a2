"""Reshard as a person or a script calls it."""

import json
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.model.exits import ExitCode
from tests.app.terminal import Command
from tests.convert.reshards import FIXTURES, assert_equal, llama, ranks_of
from tests.schemas import validate

DCP = str(FIXTURES / "dcp/model_optim_world2/checkpoint")


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def model(tmp_path: Path) -> str:
    llama(tmp_path / "hf", vocabulary=32)
    return str(tmp_path / "hf")


def document(text: str, schema: str) -> Any:
    found = json.loads(text)
    assert found["schema"] == schema
    validate(found, schema)
    return found


def test_ranks_are_written_described_and_read_back(command: Command, model: str, tmp_path: Path) -> None:
    said = command("reshard", model, str(tmp_path / "out"), "--tp", "2", "--pp", "2", "--yes", "--json")
    assert said.code == ExitCode.OK, said
    found = document(said.out, "shardscope.manifest/1")

    assert [file["name"] for file in found["outputs"]][:4] == [f"rank-{n:05d}.safetensors" for n in range(4)]
    assert "shardscope-bundle.json" in [file["name"] for file in found["outputs"]]
    assert "4 ranks: tp 2, pp 2" in [item["choice"] for item in found["decisions"]]
    assert command("inspect", str(tmp_path / "out")).code == ExitCode.OK
    assert command("verify", str(tmp_path / "out"), "--against", model).code == ExitCode.OK
    back = command("convert", str(tmp_path / "out"), str(tmp_path / "back"), "--yes")
    assert back.code == ExitCode.OK, back
    assert command("verify", str(tmp_path / "back"), "--against", model).code == ExitCode.OK


def test_a_map_of_an_output_is_a_target(command: Command, model: str, tmp_path: Path) -> None:
    first = command(
        "reshard", model, str(tmp_path / "one"), "--tp", "2", "--layout", "dcp-safetensors", "--yes"
    )
    assert first.code == ExitCode.OK, first
    target = str(tmp_path / "one" / "shardscope-shardmap.json")
    assert command("map", "check", target).code == ExitCode.OK

    said = command("reshard", model, str(tmp_path / "two"), "--target", target, "--yes")

    assert said.code == ExitCode.OK, said
    assert sorted(ranks_of(tmp_path / "two")) == [0, 1]
    direct = command("reshard", model, str(tmp_path / "three"), "--tp", "2", "--yes")
    assert direct.code == ExitCode.OK
    for rank, held in ranks_of(tmp_path / "three").items():
        assert_equal(ranks_of(tmp_path / "two")[rank], held)


def test_a_plan_alone_writes_nothing(command: Command, model: str, tmp_path: Path) -> None:
    said = command("reshard", model, "--tp", "4", "--plan-only")

    assert said.code == ExitCode.OK, said
    assert "to files of ranks" in said.out
    assert "rank-00003.safetensors" in said.out
    assert "the table hf-llama" in said.out
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_copies_are_printed_for_a_transport_of_ones_own(command: Command, model: str) -> None:
    found = document(
        command("reshard", model, "--tp", "2", "--plan-only", "--json").out, "shardscope.transfer/1"
    )

    assert [(pair["source_rank"], pair["target_rank"]) for pair in found["pairs"]] == [(0, 0), (0, 1)]
    assert found["stored"]["lm_head.weight"][0]["file"] == "model.safetensors"
    assert found["pairs"][0]["bytes"] > 0


def test_states_of_a_distributed_checkpoint_move_along(command: Command, tmp_path: Path) -> None:
    words = ("--decode", "--component", "all", "--dp", "3", "--fsdp", "--layout", "dcp-safetensors")
    said = command("reshard", DCP, str(tmp_path / "out"), *words, "--yes")

    assert said.code == ExitCode.OK, said
    assert command("verify", str(tmp_path / "out"), "--against", DCP, "--decode").code == ExitCode.OK


def test_opaque_files_are_not_read_unless_that_is_asked_for(command: Command, tmp_path: Path) -> None:
    said = command("reshard", DCP, str(tmp_path / "out"), "--dp", "3", "--fsdp", "--yes")
    assert said.code == ExitCode.NEEDS_DECODING


def test_nothing_starts_without_a_word(command: Command, model: str, tmp_path: Path) -> None:
    said = command("reshard", model, str(tmp_path / "out"), "--tp", "2")
    assert said.code == ExitCode.USAGE
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), ExitCode.USAGE, "reshard.no_target"),
        (("--tp", "3"), ExitCode.UNSUPPORTED, "reshard.cut"),
        (("--tp", "2", "--pp", "5"), ExitCode.USAGE, "reshard.target"),
        (("--tp", "2", "--layout", "vllm"), ExitCode.UNSUPPORTED, "reshard.names"),
        (("--tp", "2", "--cuts", "hf-gpt2"), ExitCode.UNSUPPORTED, "reshard.unplaced"),
        (("--tp", "2", "--dp", "2", "--zero", "3", "--fsdp"), ExitCode.USAGE, "--fsdp and --zero"),
        (("--tp", "2", "--target", "x.json"), ExitCode.USAGE, "--target stands alone"),
        (("--target", "x.json"), ExitCode.UNREADABLE, "x.json"),
        (("--tp", "2", "--discard-old"), ExitCode.USAGE, "--replace"),
    ],
)
def test_what_cannot_be_is_refused_with_its_code(
    command: Command, model: str, tmp_path: Path, words: tuple[str, ...], code: ExitCode, says: str
) -> None:
    said = command("reshard", model, str(tmp_path / "out"), "--yes", *words)

    assert said.code == code, said
    assert says in said.err
    assert not (tmp_path / "out").exists()


def test_a_target_folder_is_needed_to_write(command: Command, model: str) -> None:
    said = command("reshard", model, "--tp", "2")
    assert said.code == ExitCode.USAGE
    assert "OUT is missing" in said.err
