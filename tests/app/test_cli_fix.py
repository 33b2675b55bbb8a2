"""`shardscope fix` as a person or a script calls it."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.model.exits import ExitCode
from tests.app.terminal import Command, run
from tests.mending.files import entry, numbers, save, write
from tests.schemas import validate

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
LLAMA = FIXTURES / "hf/llama_sharded/checkpoint"
HOSTILE = "[red]\x1b[2J\u202e\nx"


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """A checkpoint of which one shard is cut off."""
    folder = Path(shutil.copytree(LLAMA, tmp_path / "half"))
    shard = folder / "model-00005-of-00010.safetensors"
    os.truncate(shard, shard.stat().st_size - 2_000)
    return folder


def document(text: str, schema: str) -> Any:
    found = json.loads(text)
    assert found["schema"] == schema
    validate(found, schema)
    return found


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--tensor", "x"), "--tensor belongs to --what drop."),
        (("--untie",), "--untie belongs to --what drop."),
        (("--what", "drop", "--tensor", "x", "--set", "a=b"), "--set belongs to --what metadata."),
        (("--what", "merge", "--max-shard-size", "5GB"), "--max-shard-size belongs to --what split."),
        (("--what", "drop"), "--what drop needs one of --tensor."),
        (("--what", "rename"), "--what rename needs one of --rename, --rename-tensor, --strip-prefix."),
        (("--what", "metadata"), "--what metadata needs one of --set, --unset, --strip-metadata."),
        (("--what", "metadata", "--set", "novalue"), "write it as KEY=VALUE."),
        (("--what", "rename", "--rename-tensor", "=x"), "write it as OLD=NEW."),
        (("--what", "magic"), "'magic' is not one of"),
    ],
)
def test_options_and_operations_belong_together(given: tuple[str, ...], says: str, command: Command) -> None:
    said = command("fix", str(LLAMA), "--plan-only", *given)

    assert said.code == ExitCode.USAGE
    assert says in words(said.err)


def test_a_preview_says_what_is_wrong_what_is_lost_and_what_to_add(half: Path, command: Command) -> None:
    said = command("fix", str(half), "--plan-only")

    assert said.code == ExitCode.UNSUPPORTED
    assert "header.truncated needs --what salvage" in words(said.out)
    assert "add --what salvage" in words(said.out)

    said = command("fix", str(half), "--plan-only", "--what", "salvage")
    assert said.code == ExitCode.OK
    assert "header.truncated mended" in words(said.out)
    assert (
        "Lost 1, since the source does not have them whole - model.layers.1.self_attn.q_proj.weight "
        "(in model-00005-of-00010.safetensors), 2,096 of 4,096 bytes are there"
    ) in words(said.out)
    assert "~ total_size: 86656 -> 82560" in said.out


def test_a_preview_as_a_document_has_names_and_values_as_they_are(tmp_path: Path, command: Command) -> None:
    source = tmp_path / "in"
    header = {"__metadata__": {HOSTILE: HOSTILE, "format": "pt"}, HOSTILE: entry(4, 8), "b": entry(12, 16)}
    write(source / "model.safetensors", header, bytes(16))
    renamed = ("--what", "rename", "--rename-tensor", f"{HOSTILE}=b.\x07=c")
    asked = ("--what", "header", "--what", "metadata", "--unset", HOSTILE, *renamed)
    found = document(command("fix", str(source), "--plan-only", "--json", *asked).out, "shardscope.fix/1")

    assert found["what"] == ["rename", "metadata", "header"]
    assert [(each["kind"], each["old"], each["new"]) for each in found["changes"]][:2] == [
        ("tensor", HOSTILE, "b.\x07=c"),
        ("metadata", HOSTILE, None),
    ]
    assert {each["blocker"]["code"] for each in found["found"]} == {"header.gap"}

    text = command("fix", str(source), "--plan-only", *asked).out
    assert not set(text) & {"\x1b", "\x07", "\u202e"}
    assert "[red]␛[2J⟨U+202E⟩⏎x -> b.␇=c" in text


def test_an_output_says_what_it_is_and_has_a_manifest(half: Path, tmp_path: Path, command: Command) -> None:
    out = tmp_path / "out"
    said = command("fix", str(half), str(out), "--what", "salvage", "--yes")

    assert said.code == ExitCode.OK
    assert said.out.startswith("Fixed  20 tensors in 10 files")
    assert "Lost  1" in said.out
    assert f"shardscope verify {out}" in said.out
    assert "Changes" in said.err
    assert words(said.err).endswith("9 files as in the source, byte for byte, 1 lost")
    manifest = document((out / "shardscope-manifest.json").read_text(), "shardscope.manifest/1")
    assert [each["name"] for each in manifest["fix"]["lost"]] == ["model.layers.1.self_attn.q_proj.weight"]
    assert command("verify", str(out)).code == ExitCode.OK

    assert command("fix", str(half), str(out), "--what", "salvage", "--yes").code == ExitCode.OUTPUT
    said = command("fix", str(half), str(out), "--what", "salvage", "--yes", "--replace", "--json")
    assert document(said.out, "shardscope.manifest/1")["fix"] == manifest["fix"]


def test_nothing_starts_without_a_word_or_without_a_change(tmp_path: Path, command: Command) -> None:
    said = run("fix", str(LLAMA), str(tmp_path / "out"), "--what", "merge")
    assert (said.code, "admission.declined" in said.err) == (ExitCode.USAGE, True)

    said = command("fix", str(LLAMA), str(tmp_path / "out"), "--yes")
    assert (said.code, "fix.nothing_to_do" in said.err) == (ExitCode.USAGE, True)
    assert command("fix", str(LLAMA)).code == ExitCode.USAGE
    assert command("fix", str(LLAMA), "--plan-only").code == ExitCode.OK
    assert not list(tmp_path.iterdir())


def test_rules_go_before_single_names_and_prefixes(tmp_path: Path, command: Command) -> None:
    save(tmp_path / "in/model.safetensors", {"m.a": numbers(1), "m.b": numbers(2)})
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"schema": "shardscope.renames/1", "rules": [{"name": "m.a", "to": "m.x"}]}))
    asked = ("--rename", str(rules), "--rename-tensor", "m.x=m.y", "--strip-prefix", "m.")
    found = command("fix", str(tmp_path / "in"), "--plan-only", "--json", "--what", "rename", *asked)

    names = [
        (each["old"], each["new"]) for each in json.loads(found.out)["changes"] if each["kind"] == "tensor"
    ]
    assert names == [("m.a", "y"), ("m.b", "b")]


def test_what_is_the_same_in_many_files_is_one_row(command: Command) -> None:
    said = command("fix", str(LLAMA), "--plan-only", "--what", "metadata", "--set", "run=17")
    assert '+ run: "17" (in 10 files)' in said.out

    said = command("fix", str(LLAMA), "--plan-only", "--what", "split", "--max-shard-size", "40KB")
    assert (
        "and 2 other tensors: model-00002-of-00010.safetensors -> model-00001-of-00003.safetensors"
        in words(said.out)
    )
