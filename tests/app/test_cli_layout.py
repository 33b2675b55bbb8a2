"""`shardscope layout` and `shardscope pickles`: the text, the documents, and what is said where there is nothing."""

import json
from pathlib import Path

import pytest

from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import LAYOUT, PICKLES
from tests import torchfiles
from tests.app.terminal import Command
from tests.checkpoints import safetensors_bytes, write_safetensors, write_sharded
from tests.hostile import HOSTILE
from tests.schemas import validate


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def document(command: Command, name: str, *arguments: str) -> dict[str, object]:
    """Run a command with `--json` and hold what it printed against its schema."""
    printed: dict[str, object] = json.loads(command(*arguments, "--json").out)
    validate(printed, name)
    assert printed["schema"] == name
    return printed


def test_the_first_file_with_tensors_is_laid_out(command: Command, tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "ckpt")
    run = command("layout", str(folder))
    assert run.code == 0
    lines = run.out.splitlines()
    assert lines[0].startswith("model-00001-of-00002.safetensors  safetensors, ")
    assert set(lines[2]) <= set("HTtp")
    assert len(lines[2]) == 72
    assert any(line.endswith("model.embed_tokens.weight  F32 [16, 4]") for line in lines)


def test_a_table_is_as_wide_as_what_stands_in_it(command: Command, tmp_path: Path) -> None:
    lines = command(
        "layout", str(write_safetensors(tmp_path / "m.safetensors", {"w": ("F32", (2,))}))
    ).out.splitlines()
    heading = next(line for line in lines if line.startswith("begin"))

    assert max(map(len, lines)) <= 80
    assert lines[-1].index("w  F32 [2]") == heading.index("name")
    assert lines[-1].index("tensor") == heading.index("what")


def test_one_file_of_many_and_a_file_alone(command: Command, tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "ckpt")
    name = "model-00002-of-00002.safetensors"
    assert command("layout", str(folder), name).out == command("layout", str(folder), f"./{name}").out
    assert command("layout", str(folder), name).out.startswith(name)
    assert command("layout", str(folder / name)).out == command("layout", str(folder), name).out
    missing = command("layout", str(folder), "model-00009-of-00002.safetensors")
    assert missing.code == ExitCode.USAGE
    assert "no such file" in missing.err


def test_a_broken_file_is_laid_out_and_ends_as_inspecting_it_does(command: Command, tmp_path: Path) -> None:
    data = safetensors_bytes({"a": ("F32", (4,))}) + b"behind"
    (tmp_path / "model.safetensors").write_bytes(data)
    run = command("layout", str(tmp_path))
    assert run.code == command("inspect", str(tmp_path)).code
    assert "trailing" in run.out
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 64)
    run = command("layout", str(tmp_path))
    assert "unknown" in run.out
    assert "! " in run.out


def test_the_document_has_every_range(command: Command, tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", {"a": ("F32", (4,)), "b": ("F32", (2,))})
    printed = document(command, LAYOUT, "layout", str(tmp_path))
    ranges = printed["ranges"]
    assert isinstance(ranges, list)
    assert ranges[0]["begin"] == 0
    assert ranges[-1]["end"] == printed["size"]
    assert [each["name"] for each in ranges if each["kind"] == "tensor"] == ["a", "b"]


def test_no_name_in_a_layout_acts_on_the_terminal(command: Command, tmp_path: Path) -> None:
    names = [raw for raw, _ in HOSTILE.values() if not any(0xD800 <= ord(char) < 0xE000 for char in raw)]
    write_safetensors(tmp_path / "model.safetensors", dict.fromkeys(names, ("F32", (1,))))
    run = command("layout", str(tmp_path))
    assert all(line.isprintable() for line in run.out.splitlines())
    assert sum("  tensor " in line for line in run.out.splitlines()) == len(names)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    value = {
        "model": {"w": torchfiles.Tensor("0", 4, (2, 2))},
        "args": torchfiles.Called("argparse", "Namespace", state={"lr": 0.1}),
        "hook": torchfiles.Called("os", "system", ("true",)),
    }
    torchfiles.save(tmp_path / "pytorch_model.bin", value, {"0": bytes(16)})
    return tmp_path


def test_what_pickles_say_is_printed_as_trees(command: Command, saved: Path) -> None:
    run = command("pickles", str(saved), "--decode")
    assert "! 1 foreign name, which a loader would have imported:\n    os.system  called, 1 times" in run.out
    assert "  object: dict of 3 keys\n    model: dict of 1 key\n      w: F32 [2, 2]" in run.out
    assert "hook: ! foreign: os.system (called)" in run.out
    flat = command("pickles", str(saved), "--decode", "--depth", "1").out
    assert "object: dict of 3 keys  (3 not shown)" in flat
    assert "w: F32" not in flat


def test_pickles_as_a_document(command: Command, saved: Path) -> None:
    printed = document(command, PICKLES, "pickles", str(saved), "--decode")
    assert printed["streams"] == 1
    outlines = printed["outlines"]
    assert isinstance(outlines, list)
    assert {node["key"] for node in outlines[0]["nodes"]} >= {"model", "w", "args", "hook"}


def test_pickles_are_not_read_without_being_asked_to(command: Command, saved: Path) -> None:
    run = command("pickles", str(saved))
    assert run.code == ExitCode.USAGE
    assert "only with --decode" in run.err


def test_a_checkpoint_without_pickles_has_no_trees(command: Command, tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", {"a": ("F32", (4,))})
    assert command("pickles", str(tmp_path), "--decode").out == ""
