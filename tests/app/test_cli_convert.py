"""Plan, convert and verify as a person or a script calls them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.manifest import MANIFEST_NAME, RUN_NAME
from tests.app.terminal import Command, run
from tests.checkpoints import write_json, write_sharded
from tests.schemas import validate

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
DCP = str(FIXTURES / "dcp/fsdp2_odd_world2/checkpoint")
LLAMA = str(FIXTURES / "hf/llama_sharded/checkpoint")
TIED = str(FIXTURES / "hf/bin_single_tied/checkpoint")
ZERO = str(FIXTURES / "deepspeed/zero2-w4-bf16/checkpoint")


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def document(text: str, schema: str) -> Any:
    found = json.loads(text)
    assert found["schema"] == schema
    validate(found, schema)
    return found


def convert(command: Command, source: str, out: Path, *options: str) -> Any:
    said = command("convert", source, str(out), "--decode", "--yes", "--json", *options)
    assert said.code == ExitCode.OK, said
    return document(said.out, "shardscope.manifest/1")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != RUN_NAME}


def tensors(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in folder.glob("*.safetensors"):
        data = path.read_bytes()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        header.pop("__metadata__")
        found |= header
    return found


# R083 R105
def test_a_plan_tells_files_decisions_figures_and_admission(command: Command) -> None:
    found = document(command("plan", ZERO, "--decode", "--json").out, "shardscope.plan/1")

    assert [file["name"] for file in found["files"]] == ["model.safetensors"]
    assert {"frozen", "component"} <= {item["kind"] for item in found["decisions"]}
    assert all(found["estimates"][figure]["bytes"] > 0 for figure in found["estimates"])
    assert found["admission"]["verdict"] == "admitted"
    assert {item["what"] for item in found["left_out"]} >= {"optimizer"}
    assert not found["blockers"]


def test_the_text_of_a_plan_names_what_can_be_changed(command: Command) -> None:
    said = command("plan", TIED, "--decode")

    assert said.code == 0
    assert "--ties once|both" in said.out
    assert "Admission  admitted" in said.out


# R085
def test_opaque_files_are_not_read_unless_that_is_asked_for(command: Command, tmp_path: Path) -> None:
    for words in (("plan", DCP), ("convert", DCP, str(tmp_path / "out"), "--yes")):
        said = command(*words)
        assert said.code == ExitCode.NEEDS_DECODING
        assert "convert.opaque" in said.err
    assert not list(tmp_path.iterdir())


# R067
def test_nothing_starts_without_a_terminal_and_without_yes(tmp_path: Path) -> None:
    said = run("convert", DCP, str(tmp_path / "out"), "--decode")

    assert said.code == ExitCode.USAGE
    assert "admission.declined" in said.err
    assert not list(tmp_path.iterdir())


# R086 R107
def test_an_output_has_its_manifest_its_run_and_what_stood_beside(command: Command, tmp_path: Path) -> None:
    manifest = convert(command, LLAMA, tmp_path / "out")
    record = document((tmp_path / "out" / RUN_NAME).read_text(), "shardscope.run/1")

    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "model.safetensors",
        "config.json",
        "generation_config.json",
        MANIFEST_NAME,
        RUN_NAME,
    }
    assert [file["sha256"] is not None for file in manifest["outputs"]] == [True, True, True]
    assert record["peak_rss_bytes"] is None or record["peak_rss_bytes"] > 1 << 20
    assert record["admission"]["verdict"] == "admitted"
    assert record["staged_bytes"] == sum(
        path.stat().st_size for path in (tmp_path / "out").iterdir() if path.name != RUN_NAME
    )
    for text in ((tmp_path / "out" / MANIFEST_NAME).read_text(), json.dumps(record)):
        assert str(tmp_path) not in text
        assert str(FIXTURES) not in text


def test_two_runs_are_equal_byte_for_byte_but_for_the_run_record(command: Command, tmp_path: Path) -> None:
    convert(command, ZERO, tmp_path / "one", "--workers", "1")
    convert(command, ZERO, tmp_path / "two", "--workers", "1")

    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_small_shards_get_the_names_and_the_index_of_hugging_face(command: Command, tmp_path: Path) -> None:
    convert(command, LLAMA, tmp_path / "out", "--max-shard-size", "20KB")
    index = json.loads((tmp_path / "out/model.safetensors.index.json").read_text())
    names = sorted(path.name for path in (tmp_path / "out").glob("*.safetensors"))

    assert names == [f"model-{n:05d}-of-{len(names):05d}.safetensors" for n in range(1, len(names) + 1)]
    assert sorted(set(index["weight_map"].values())) == names
    assert index["weight_map"].keys() == tensors(tmp_path / "out").keys()
    assert command("inspect", str(tmp_path / "out"), "--fail-on", "warning", "--quiet").code == 0


def test_a_cast_is_said_and_verified(command: Command, tmp_path: Path) -> None:
    manifest = convert(command, DCP, tmp_path / "out", "--dtype", "bf16", "--verify", "full")
    found = {name: item["dtype"] for name, item in tensors(tmp_path / "out").items()}

    assert "cast" in {item["kind"] for item in manifest["decisions"]}
    assert found["model.embed.weight"] == "BF16"
    assert set(found.values()) >= {"BF16", "I64"}
    held = command("verify", str(tmp_path / "out"), "--against", DCP, "--decode")
    assert held.code == ExitCode.OK
    assert "is that of the other checkpoint after the same cast" in " ".join(held.out.split())


def test_rules_rename_and_a_collision_is_refused(command: Command, tmp_path: Path) -> None:
    rules = {"schema": "shardscope.renames/1", "rules": [{"prefix": "model.", "to": ""}]}
    convert(command, DCP, tmp_path / "out", "--rename", str(write_json(tmp_path / "rules.json", rules)))
    assert not [name for name in tensors(tmp_path / "out") if name.startswith("model.")]

    rules["rules"] = [{"pattern": "model.**", "to": "same"}]
    said = command("plan", DCP, "--decode", "--rename", str(write_json(tmp_path / "rules.json", rules)))
    assert said.code == ExitCode.USAGE
    assert "convert.rename_collision" in said.err


def test_globs_choose_what_is_written(command: Command, tmp_path: Path) -> None:
    manifest = convert(command, DCP, tmp_path / "out", "--include", "*.weight", "--exclude", "*embed*")

    assert tensors(tmp_path / "out").keys() == {
        tensor["name"] for file in manifest["outputs"] for tensor in file["tensors"]
    }
    assert all(name.endswith(".weight") and "embed" not in name for name in tensors(tmp_path / "out"))


# R112
def test_a_target_that_exists_stays_unless_it_is_to_be_replaced(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious").write_text("old")
    said = command("convert", LLAMA, str(out), "--yes")
    assert said.code == ExitCode.OUTPUT
    assert [path.name for path in out.iterdir()] == ["precious"]

    convert(command, LLAMA, out, "--replace")
    assert (out / "model.safetensors").exists()
    (kept,) = (path for path in tmp_path.iterdir() if path != out)
    assert next(kept.rglob("precious")).read_text() == "old"

    shutil.rmtree(kept)
    convert(command, LLAMA, out, "--replace", "--discard-old")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_target_inside_the_source_is_refused(command: Command, tmp_path: Path) -> None:
    source = write_sharded(tmp_path / "ckpt")
    before = sorted(path.name for path in source.iterdir())
    said = command("convert", str(source), str(source / "out"), "--yes")

    assert said.code == ExitCode.OUTPUT
    assert sorted(path.name for path in source.iterdir()) == before


def test_a_target_in_a_folder_that_is_not_there_is_no_question_of_room(
    command: Command, tmp_path: Path
) -> None:
    said = command("convert", LLAMA, str(tmp_path / "none" / "out"), "--yes")

    assert said.code == ExitCode.OUTPUT
    assert "stage.parent_missing" in said.err
    assert not (tmp_path / "none").exists()


def test_a_plan_is_edited_and_carried_out(command: Command, tmp_path: Path) -> None:
    plan = document(command("plan", DCP, "--decode", "--json").out, "shardscope.plan/1")
    (file,) = plan["files"]
    file["tensors"] = [{**file["tensors"][0], "name": "renamed"}]
    path = write_json(tmp_path / "plan.json", plan)
    convert(command, DCP, tmp_path / "out", "--plan", str(path))

    assert tensors(tmp_path / "out").keys() == {"renamed"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": "b", "source": "no.such.tensor"}, "plan.tensor"),
        ({"shape": [1, 1]}, "plan.tensor"),
        ({"bytes": 1}, "plan.tensor"),
        ({"dtype": "I64"}, "plan.tensor"),
    ],
)
def test_an_edited_plan_that_does_not_fit_is_refused(
    command: Command, tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    plan = json.loads(command("plan", DCP, "--decode", "--json").out)
    plan["files"][0]["tensors"][0] |= change
    path = write_json(tmp_path / "plan.json", plan)
    said = command("convert", DCP, str(tmp_path / "out"), "--decode", "--yes", "--plan", str(path))

    assert said.code == ExitCode.USAGE
    assert code in said.err
    assert not (tmp_path / "out").exists()


# R110
def test_a_plan_for_a_source_that_changed_is_refused(command: Command, tmp_path: Path) -> None:
    source = shutil.copytree(LLAMA, tmp_path / "ckpt")
    plan = write_json(tmp_path / "plan.json", json.loads(command("plan", str(source), "--json").out))
    (source / "config.json").write_text((source / "config.json").read_text() + " ")
    said = command("convert", str(source), str(tmp_path / "out"), "--yes", "--plan", str(plan))

    assert said.code == ExitCode.CHANGED
    assert "plan.identity" in said.err


def test_code_never_comes_along(command: Command, tmp_path: Path) -> None:
    source = shutil.copytree(LLAMA, tmp_path / "ckpt")
    (source / "modeling_x.py").write_text("raise SystemExit")
    (source / "tokenizer.json").write_text("{}")
    convert(command, str(source), tmp_path / "out")

    assert (tmp_path / "out/tokenizer.json").exists()
    assert not (tmp_path / "out/modeling_x.py").exists()


def test_a_vocabulary_beyond_what_config_declares_is_trimmed_and_said(
    command: Command, tmp_path: Path
) -> None:
    source = shutil.copytree(LLAMA, tmp_path / "ckpt")
    config = json.loads((source / "config.json").read_text())
    held = config["vocab_size"]
    write_json(source / "config.json", {**config, "vocab_size": held - 3})
    manifest = convert(command, str(source), tmp_path / "out")

    assert tensors(tmp_path / "out")["model.embed_tokens.weight"]["shape"][0] == held - 3
    (decision,) = (item for item in manifest["decisions"] if item["kind"] == "vocabulary")
    assert "config.json" in decision["evidence"]
    assert command("verify", str(tmp_path / "out"), "--against", str(source)).code == 0


# R041
def test_a_changed_byte_is_found(command: Command, tmp_path: Path) -> None:
    convert(command, LLAMA, tmp_path / "out")
    path = tmp_path / "out/model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    said = command("verify", str(tmp_path / "out"), "--json")
    found = document(said.out, "shardscope.verification/1")
    assert said.code == ExitCode.BLOCKED
    assert {item["what"] for item in found["validation"] if item["result"] == "differs"} == {"digests"}
    said = command("verify", str(tmp_path / "out"), "--against", LLAMA, "--json")
    assert [item["problem"] for item in json.loads(said.out)["differences"]] == ["values differ"]


def test_two_checkpoints_without_a_manifest_are_compared_by_name(command: Command, tmp_path: Path) -> None:
    assert command("verify", LLAMA, "--against", LLAMA).code == 0
    said = command("verify", LLAMA, "--against", str(FIXTURES / "hf/llama_tied_sharded/checkpoint"), "--json")

    assert said.code == ExitCode.BLOCKED
    assert json.loads(said.out)["differences"]


def test_configuration_comes_from_the_folder_that_was_named(command: Command, tmp_path: Path) -> None:
    named = write_json(tmp_path / "named/config.json", {"model_type": "other"}).parent
    manifest = convert(command, LLAMA, tmp_path / "out", "--config", str(named))

    assert json.loads((tmp_path / "out/config.json").read_text()) == {"model_type": "other"}
    assert not (tmp_path / "out/generation_config.json").exists()
    assert "config.json" in {item["name"] for item in manifest["outputs"]}


def test_nothing_is_carried_along_where_that_is_said(command: Command, tmp_path: Path) -> None:
    convert(command, LLAMA, tmp_path / "out", "--no-carry")

    assert not (tmp_path / "out/config.json").exists()


def test_an_adapter_keeps_the_names_that_its_loader_looks_for(command: Command, tmp_path: Path) -> None:
    convert(command, str(FIXTURES / "peft/lora_gpt2_bin_rslora/checkpoint"), tmp_path / "out")

    assert {"adapter_model.safetensors", "adapter_config.json"} <= {
        p.name for p in (tmp_path / "out").iterdir()
    }
    assert not (tmp_path / "out/model.safetensors").exists()


def test_two_checkpoints_behind_pickles_are_compared(command: Command) -> None:
    same = command("verify", ZERO, "--against", ZERO, "--decode")
    other = command("verify", ZERO, "--against", DCP, "--decode", "--json")

    assert same.code == 0, same
    assert other.code == ExitCode.BLOCKED
    assert json.loads(other.out)["differences"]


def test_what_verification_says_is_as_wide_as_a_terminal(command: Command) -> None:
    said = command("verify", str(FIXTURES / "hf/index_errors/checkpoint"))

    lines = said.out.splitlines()
    assert said.code == ExitCode.BLOCKED
    assert lines[0].startswith("structure   differs       index.shard_missing: ")
    assert max(map(len, lines)) <= 80
