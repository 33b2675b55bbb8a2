"""DeepSpeed's own entries, read and written by the command."""

import json
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.model.exits import ExitCode
from tests.app.terminal import Command

MAPS = Path(__file__).resolve().parents[2] / "docs" / "maps"
INFO = {
    "universal_checkpoint_version": 0.4,
    "tp_replicated_parameter_patterns": [r"^ln\.weight$"],
    "parameter_with_row_parallelism_patterns": [r"^.*\.o\.weight$"],
    "vocabulary_parameter_patterns": [r"^embed\.weight$"],
    "original_vocab_size": 10,
}
SHARDS = {"ln.weight": [[8], [8]], "h.o.weight": [[8, 4], [8, 2]], "embed.weight": [[6, 4], [6, 4]]}


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def save(path: Path, value: object) -> str:
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


# R183
@pytest.mark.parametrize("name", ["codegen", "gpt_bigcode", "yuan", "row", "scaled_bias", "chunks"])
def test_maps_come_back_from_the_container(command: Command, tmp_path: Path, name: str) -> None:
    written = command("map", "to-deepspeed", str(MAPS / f"{name}.json"))
    path = tmp_path / "affine.json"
    path.write_text(written.out, encoding="utf-8")
    read = command("map", "from-deepspeed", str(path))
    again = tmp_path / "map.json"
    again.write_text(read.out, encoding="utf-8")

    assert written.code == read.code == ExitCode.OK
    assert json.loads(written.out)["version"] == 1
    assert command("map", "diff", str(MAPS / f"{name}.json"), str(again)).code == ExitCode.OK


@pytest.mark.parametrize(
    "wrap",
    [lambda x: x, lambda x: {"affine_map": x}, lambda x: {"universal_checkpoint_info": {"affine_map": x}}],
)
def test_the_container_is_found_under_its_names(command: Command, tmp_path: Path, wrap: Any) -> None:
    container = json.loads(command("map", "to-deepspeed", str(MAPS / "row.json")).out)
    said = command("map", "from-deepspeed", save(tmp_path / "affine.json", wrap(container)))

    assert list(json.loads(said.out)["tensors"]) == ["down.weight"]


# R164
def test_categories_become_trees(command: Command, tmp_path: Path) -> None:
    info = save(tmp_path / "info.json", {"universal_checkpoint_info": INFO})
    said = command("map", "from-deepspeed", info, "--shards", save(tmp_path / "shards.json", SHARDS))
    path = tmp_path / "map.json"
    path.write_text(said.out, encoding="utf-8")
    document = json.loads(said.out)

    assert said.code == ExitCode.OK
    assert document["meshes"] == {"tp": {"axes": [{"name": "tp", "size": 2}]}}
    assert document["tensors"]["h.o.weight"]["map"] == {
        "node": "contiguous",
        "axis": "tp",
        "dim": 1,
        "widths": [4, 2],
    }
    assert document["tensors"]["embed.weight"]["map"]["of"]["logical_size"] == 10
    assert command("map", "check", str(path)).code == ExitCode.OK


def test_shards_may_be_listed_and_lowered(command: Command, tmp_path: Path) -> None:
    info = save(tmp_path / "info.json", INFO)
    said = command(
        "map", "from-deepspeed", info, "--tp", "2", "--any-patterns", "--lowered",
        "--shard", "ln.weight=8", "--shard", "h.o.weight=8x4,8x2",
    )  # fmt: skip
    found = json.loads(said.out)

    assert found["schema"] == "shardscope.lowered/1"
    assert found["tensors"]["ln.weight"]["shards"][0]["ranks"] == [0, 1]


# R165 R166
@pytest.mark.parametrize(
    ("info", "shards", "code"),
    [
        ({"parameter_to_average_patterns": ["^w$"]}, ["w=8"], "universal.average"),
        ({}, ["w=8x4"], "universal.unmatched"),
        ({"tp_replicated_parameter_patterns": ["^v$"]}, ["w=1", "v=8"], "universal.unmatched"),
        ({"tp_replicated_parameter_patterns": ["^w$", "^w"]}, ["w=8"], "universal.ambiguous"),
        ({"tp_replicated_parameter_patterns": ["^w$", "^x$"]}, ["w=8"], "universal.pattern_unused"),
        ({"universal_checkpoint_version": 9}, ["w=8"], "universal.version"),
        ({"affine_map": {"version": 2, "params": {}}}, ["w=8"], "affine.version"),
        (
            {"autotp_unsupported_parameter_patterns": {"^w$": "no head count"}},
            ["w=8"],
            "universal.unsupported",
        ),
    ],
)
def test_what_cannot_be_translated_refuses_the_whole(
    command: Command, tmp_path: Path, info: dict[str, Any], shards: list[str], code: str
) -> None:
    path = save(tmp_path / "info.json", info)
    flags = [flag for shard in shards for flag in ("--shard", shard)]
    said = command("map", "from-deepspeed", path, "--tp", "2", *flags)
    error = json.loads(command("map", "from-deepspeed", path, "--tp", "2", *flags, "--json").out)["error"]

    assert (said.code, said.out) == (ExitCode.UNSUPPORTED, "")
    assert f"[{code}]" in said.err
    assert error["code"] == code


def test_a_person_may_say_how_unmatched_parameters_are_cut(command: Command, tmp_path: Path) -> None:
    path = save(tmp_path / "info.json", {"universal_checkpoint_version": 0.4})
    said = command("map", "from-deepspeed", path, "--tp", "2", "--shard", "w=8x4", "--unmatched-dim", "1")

    assert json.loads(said.out)["tensors"]["w"]["shape"] == [8, 8]
    assert said.err == "w: a person said that it is cut along dimension 1\n"


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ((), "categories need the shapes"),
        (("--shard", "w"), "such as w=4096x1024"),
        (("--shard", "w=4x"), "such as w=4096x1024"),
        (("--tp", "3", "--shard", "w=8,8"), "has 2 shards, and --tp says 3"),
    ],
)
def test_shapes_are_needed_and_checked(
    command: Command, tmp_path: Path, flags: tuple[str, ...], says: str
) -> None:
    said = command("map", "from-deepspeed", save(tmp_path / "info.json", INFO), *flags)

    assert said.code == ExitCode.USAGE
    assert says in said.err


def test_what_the_container_cannot_say_is_refused(command: Command) -> None:
    said = command("map", "to-deepspeed", str(MAPS / "vocabulary.json"))

    assert (said.code, said.out) == (ExitCode.UNSUPPORTED, "")
    assert "[affine.unwritable]" in said.err


@pytest.mark.parametrize("shards", [[1], {"w": 3}, {"w": [[-1]]}, {"w": [[True]]}, {"w": [3]}])
def test_a_file_of_shapes_is_read_strictly(command: Command, tmp_path: Path, shards: object) -> None:
    info = save(tmp_path / "info.json", INFO)
    said = command("map", "from-deepspeed", info, "--shards", save(tmp_path / "shards.json", shards))

    assert said.code in (ExitCode.UNSUPPORTED, ExitCode.UNREADABLE)
    assert said.out == ""
