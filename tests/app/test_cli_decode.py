"""Decoding through the command, in the contained worker, on every fixture: names and shapes are those that its producer had."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.app.terminal import Command
from tests.formats.decoding import expected
from tests.schemas import validate

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
NAMES = sorted(
    f"{path.parent.parent.name}/{path.parent.name}"
    for path in FIXTURES.glob("*/*/expected.safetensors")
    if (path.parent / "checkpoint").is_dir()
)
OTHERWISE = {
    "deepspeed/edited-codegen-unsupported-tp2": "universal.unsupported",
    "deepspeed/handbuilt-legacy-categories-tp2-dp2": "universal.average",
    "hf/vllm_sharded_state_tp2": "vllm.geometry",
    "torch/fsdp1_local_world2": "fsdp.local_state",
    "torch/zip_skip_data": "torch.storage_unwritten",
    "torch/zip_truncated": "zip.no_end_record",
}
"""Fixtures of which something cannot be listed whole, and the code that says so."""


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def document(text: str, schema: str) -> Any:
    found = json.loads(text)
    assert found["schema"] == schema
    validate(found, schema)
    return found


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OTHERWISE])
def test_a_fixture_lists_what_its_producer_had(name: str, command: Command) -> None:
    said = command("tensors", str(FIXTURES / name / "checkpoint"), "--decode", "--component", "all", "--json")
    listed = document(said.out, "shardscope.catalogue/1")
    found = {tensor["name"]: tuple(tensor["shape"]) for tensor in listed["tensors"]}

    assert len(found) == listed["count"] == len(listed["tensors"])
    assert found == {key: shape for key, (_, shape, _) in expected(FIXTURES / name).items()}


@pytest.mark.parametrize("name", sorted(OTHERWISE))
def test_what_cannot_be_listed_whole_is_named_by_a_code(name: str, command: Command) -> None:
    said = command("inspect", str(FIXTURES / name / "checkpoint"), "--decode", "--json", "--digest", "none")
    found = document(said.out, "shardscope.descriptor/1")

    assert OTHERWISE[name] in {item["code"] for item in found["blockers"]}


@pytest.mark.parametrize("name", ["dcp/bad_metadata_canary", "torch/zip_canary_reduce"])
def test_a_canary_is_reported_and_nothing_runs(
    name: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = command("inspect", str(FIXTURES / name / "checkpoint"), "--decode", "--json")
    found = document(said.out, "shardscope.descriptor/1")

    assert ("posix", "mkdir", "called", False) in {
        (item["module"], item["name"], item["use"], item["known"]) for item in found["decoded"]["references"]
    }
    assert "pickle.foreign_call" in {item["code"] for item in found["blockers"]}
    assert not list(tmp_path.iterdir())


# R067
def test_the_descriptor_tells_of_decoding_only_where_it_was_asked_for(command: Command) -> None:
    path = str(FIXTURES / "dcp/fsdp2_odd_world2/checkpoint")
    plain = json.loads(command("inspect", path, "--json").out)
    decoded = json.loads(command("inspect", path, "--json", "--decode").out)
    again = json.loads(command("inspect", path, "--json").out)

    assert "decoded" not in plain
    assert plain == again
    assert plain["planes"]["decoded"] == "not examined"
    assert decoded["planes"]["decoded"] == "examined"
    assert set(decoded["decoded"]["isolation"]["probes"].values()) == {"denied"}


def test_two_decodings_are_equal(command: Command) -> None:
    words = ("inspect", str(FIXTURES / "deepspeed/zero2-w4-bf16/checkpoint"), "--json", "--decode")

    assert command(*words).out == command(*words).out


def test_fragments_come_with_their_map_where_they_are_asked_for(command: Command) -> None:
    path = str(FIXTURES / "dcp/fsdp2_odd_world2/checkpoint")
    said = command("tensors", path, "--decode", "--json", "--fragments", "--filter", "model.embed.weight")
    (tensor,) = document(said.out, "shardscope.catalogue/1")["tensors"]

    assert tensor["fragments"] == len(tensor["stored"]) == 2
    assert tensor["map"]["shape"] == tensor["shape"]
    assert {item["coding"] for item in tensor["stored"]} == {"plain"}
    assert all(item["crc"] for item in tensor["stored"])


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", ".", "--component", "all"),
        ("tensors", ".", "--component", "all"),
        ("tensors", ".", "--fragments", "--json"),
        ("tensors", ".", "--fragments", "--decode"),
    ],
)
def test_options_that_need_decoding_say_so(words: tuple[str, ...], command: Command) -> None:
    said = command(*words)

    assert said.code == 2
    assert "--decode" in said.out + said.err
