"""`shardscope map` over documents: what it prints, how it ends, what it needs."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shardscope.app.cli.map import COMMANDS
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.schemas import (
    LOWERED,
    MAP_CHECK,
    MAP_DIFFERENCE,
    MAP_EXPLANATION,
    SHARD_MAP,
    TRANSFER,
)
from shardscope.engine.model.shardmap import DeviceMesh, TensorMap
from shardscope.engine.model.text import UNSAFE
from tests.app.terminal import Command
from tests.app.test_cli_completion import asked
from tests.schemas import validate
from tests.test_imports import ARRAYS, COMMAND, FRAMEWORKS, SCREEN, modules_after

MAPS = Path(__file__).resolve().parents[2] / "docs" / "maps"
EVERY = sorted(path.name for path in MAPS.glob("*.json"))


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def cut(widths: list[int], dim: int = 0, axis: str = "tp") -> dict[str, Any]:
    return {"node": "contiguous", "axis": axis, "dim": dim, "widths": widths}


def save(path: Path, tensors: dict[str, Any], ranks: int = 2) -> str:
    document = {
        "schema": SHARD_MAP,
        "meshes": {"dense": {"axes": [{"name": "tp", "size": ranks}]}},
        "tensors": tensors,
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def valid(text: str, schema: str) -> Any:
    document = json.loads(text)
    validate(document, schema)
    return document


@pytest.mark.parametrize("name", EVERY)
def test_every_map_of_the_gallery_passes_through_every_command(
    command: Command, tmp_path: Path, name: str
) -> None:
    path = str(MAPS / name)
    lowered = command("map", "lower", path, "--json")
    again = tmp_path / "lowered.json"
    again.write_text(lowered.out, encoding="utf-8")

    assert lowered.code == ExitCode.OK
    valid(lowered.out, LOWERED)
    assert valid(command("map", "check", path, "--json").out, MAP_CHECK)["valid"] is True
    assert valid(command("map", "check", str(again), "--json").out, MAP_CHECK)["valid"] is True
    assert valid(command("map", "explain", path, "--json").out, MAP_EXPLANATION)["tensors"]
    assert valid(command("map", "diff", path, str(again), "--json").out, MAP_DIFFERENCE)["same"] is True
    assert valid(command("map", "compose", path, str(again), "--json").out, TRANSFER)["tensors"]
    for each in ("lower", "check", "explain"):
        said = command("map", each, path, "-v")
        assert (said.code, said.err) == (ExitCode.OK, "")
        assert not UNSAFE.search(said.out.replace("\n", ""))


def test_documents_of_maps_are_valid_by_their_own_schema() -> None:
    for name in EVERY:
        valid((MAPS / name).read_text(encoding="utf-8"), SHARD_MAP)


def test_lower_prints_pieces_with_both_sides(command: Command) -> None:
    out = command("map", "lower", str(MAPS / "gpt_bigcode.json")).out

    assert out.splitlines()[:4] == [
        "c_attn.weight  [48, 8] F32",
        "  rank 0: shard [24, 8]",
        "    extents  full tensor  shard     held by",
        "    [64]     0 + [1]      0 + [1]   rank 0",
    ]
    assert "    [128]    256 + [1]    64 + [1]  ranks 0-3" in out.splitlines()


def test_long_lists_are_shortened_unless_all_is_asked_for(command: Command, tmp_path: Path) -> None:
    path = save(tmp_path / "map.json", {"w": {"shape": [40, 2], "map": cut([1] * 40)}}, ranks=40)

    assert "... and 24 shards more (-v shows all)" in command("map", "lower", path).out
    assert "rank 39: shard [1, 2]" in command("map", "lower", path, "-v").out
    assert "... and 32 shards more (-v shows all)" in command("map", "explain", path).out
    asked = command("map", "explain", path, "--rank", "39").out
    assert "rank 39: shard [1, 2]" in asked
    assert "the shard of rank 39" in asked


# R165 R188
def test_check_names_what_is_wrong_and_where(command: Command, tmp_path: Path) -> None:
    path = save(
        tmp_path / "map.json",
        {
            "good": {"shape": [8, 2], "map": cut([4, 4])},
            "short": {"shape": [8, 2], "map": cut([4, 3])},
            "odd": {
                "shape": [8],
                "map": {"node": "flat_range", "axis": "tp", "start": [0, 4], "stop": [3, 8]},
            },
        },
    )
    said = command("map", "check", path)
    document = valid(command("map", "check", path, "--json").out, MAP_CHECK)

    assert said.code == ExitCode.UNSUPPORTED
    assert "valid    good  [8, 2]: 2 ranks, 2 pieces" in said.out.splitlines()
    assert "INVALID  short  [8, 2]: no normal form" in said.out.splitlines()
    assert said.out.splitlines()[-1] == "3 tensors, 2 not valid"
    assert [[b["code"] for b in one["blockers"]] for one in document["tensors"]] == [
        [],
        ["map.invalid"],
        ["map.uncovered"],
    ]
    assert document["tensors"][2]["uncovered"] == 1
    assert [one["invertible"] for one in document["tensors"]] == [True, False, False]


# R175
def test_a_normal_form_from_elsewhere_is_not_taken_for_granted(command: Command, tmp_path: Path) -> None:
    def piece(source: int) -> dict[str, Any]:
        return {
            "shape": [2],
            "source": {"offset": source, "strides": [1]},
            "dest": {"offset": 0, "strides": [1]},
            "holders": [0],
        }

    document = {
        "schema": LOWERED,
        "tensors": {
            "w": {"shape": [4], "shards": [{"ranks": [0], "shape": [4], "pieces": [piece(0), piece(2)]}]}
        },
    }
    path = tmp_path / "lowered.json"
    path.write_text(json.dumps(document), encoding="utf-8")

    assert "map.destination_collision" in command("map", "check", str(path)).out
    for arguments in (
        ("compose", str(path), str(path)),
        ("diff", str(path), str(path)),
        ("to-deepspeed", str(path)),
    ):
        said = command("map", *arguments)
        assert said.code == ExitCode.UNSUPPORTED
        assert said.out == ""
        assert "w: " in said.err
        assert "[map.destination_collision]" in said.err


# R172
def test_compose_prints_segments_a_matrix_and_statistics(command: Command) -> None:
    said = command("map", "compose", str(MAPS / "row_tp2.json"), str(MAPS / "column_tp4.json"))

    assert said.code == ExitCode.OK
    lines = said.out.splitlines()
    assert lines[0] == "weight  [8, 8]: 8 segments, 64 elements moved"
    assert "     1   3  [2, 4]   24 + [4, 1]   4 + [8, 1]" in lines
    assert "  sum  16  16  16  16   64" in lines
    assert "segments                     8" in lines


def test_many_ranks_are_listed_pair_by_pair(command: Command, tmp_path: Path) -> None:
    one = save(tmp_path / "one.json", {"w": {"shape": [40, 2], "map": cut([1] * 40)}}, ranks=40)
    other = save(tmp_path / "other.json", {"w": {"shape": [40, 2], "map": cut([20, 20])}})

    out = command("map", "compose", one, other).out

    assert "elements by source and target rank" in out
    assert "... and 8 pairs more (-v shows all)" in out


def test_tensors_of_one_file_only_are_left_out_of_a_plan_and_said(command: Command, tmp_path: Path) -> None:
    one = save(tmp_path / "one.json", {name: {"shape": [8], "map": cut([4, 4])} for name in "ab"})
    other = save(tmp_path / "other.json", {name: {"shape": [8], "map": cut([4, 4])} for name in "bc"})
    apart = save(tmp_path / "apart.json", {"z": {"shape": [8], "map": cut([4, 4])}})

    assert command("map", "compose", one, other).err == "2 tensors in one of the files only, left out\n"
    assert command("map", "compose", one, apart).code == ExitCode.USAGE


def test_diff_says_where_and_ends_with_1(command: Command, tmp_path: Path) -> None:
    one = save(
        tmp_path / "one.json",
        {"w": {"shape": [8], "map": cut([4, 4])}, "a": {"shape": [8], "map": cut([4, 4])}},
    )
    other = save(
        tmp_path / "other.json",
        {"w": {"shape": [8], "map": {"node": "replicate"}}, "b": {"shape": [8], "map": cut([4, 4])}},
    )
    said = command("map", "diff", one, other)

    assert said.code == ExitCode.BLOCKED
    assert said.out.splitlines() == [
        "differs  w: the shard has another shape on rank 0: 4 in the first file, 8 in the second",
        f"missing  a: only in {one}",
        f"missing  b: only in {other}",
        "1 tensor compared, 3 differences",
    ]
    assert command("map", "diff", one, one).code == ExitCode.OK
    assert command("map", "diff", one, other, "--quiet").out == ""
    assert command("map", "diff", one, other, "--json").code == ExitCode.BLOCKED


def test_two_trees_that_mean_the_same_do_not_differ(command: Command, tmp_path: Path) -> None:
    one = save(tmp_path / "one.json", {"w": {"shape": [8, 2], "map": cut([4, 4])}})
    boxes = [{"offsets": [0, 0], "sizes": [4, 2]}, {"offsets": [4, 0], "sizes": [4, 2]}]
    other = save(
        tmp_path / "other.json",
        {"w": {"shape": [8, 2], "map": {"node": "block", "axes": ["tp"], "boxes": boxes}}},
    )

    assert command("map", "diff", one, other).code == ExitCode.OK


def test_explain_draws_and_tells(command: Command) -> None:
    out = command("map", "explain", str(MAPS / "vocabulary.json"), "--rank", "3").out.splitlines()

    assert out[0] == "embed.weight  [10, 6] F32"
    assert "on dense: tp 4" in out
    assert "  contiguous over tp: dimension 0 into 4 x 3" in out
    assert "    row 9  → row 0  rank 3  bytes 216-239 → 0-23" in out
    assert "the shard of rank 3" in out
    assert out[-5:] == [
        "  0 jjjjjj",
        "  1 ......",
        "  2 ......",
        "    j  row 9 of the full tensor",
        "    .  padding",
    ]


def test_a_picture_keeps_to_the_frame_that_is_asked_for(command: Command) -> None:
    out = command("map", "explain", str(MAPS / "column.json"), "--width", "8", "--height", "4").out
    drawn = out.partition("\nthe full tensor")[2].splitlines()

    assert drawn[0] == ", a cell is 4 x 2 elements, drawn as its first"
    assert [line.split()[1] for line in drawn[1:5]] == ["AAAAAA", "BBBBBB", "CCCCCC", "DDDDDD"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("check", "nowhere.json"), ExitCode.UNREADABLE, "source.missing"),
        (("check", "."), ExitCode.UNREADABLE, "map.unreadable"),
        (("diff", "text.json", "good.json"), ExitCode.UNREADABLE, "map.unreadable"),
        (("check", "other.json"), ExitCode.UNSUPPORTED, "map.not_a_map"),
        (("lower", "newer.json"), ExitCode.UNSUPPORTED, "map.version"),
        (("lower", "huge.json"), ExitCode.UNSUPPORTED, "map.document"),
        (("explain", "field.json"), ExitCode.UNSUPPORTED, "map.document"),
        (("lower", "wrong.json"), ExitCode.UNSUPPORTED, "map.invalid"),
        (("lower", "good.json", "--limit", "json_bytes=10"), ExitCode.LIMIT, "limit.json_bytes"),
        (("lower", "good.json", "--tensor", "ww"), ExitCode.USAGE, "Did you mean 'w'?"),
        (("explain", "good.json", "--rank", "7"), ExitCode.USAGE, "no map has a rank 7"),
        (("lower", "good.json", "wrong.json"), ExitCode.USAGE, "is in two files"),
        (("lower",), ExitCode.USAGE, "Missing argument"),
        (("explian", "good.json"), ExitCode.USAGE, "Did you mean 'explain'?"),
        ((), ExitCode.USAGE, "Missing command"),
    ],
)
def test_what_cannot_be_used_ends_with_its_code(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: ExitCode,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "good.json", {"w": {"shape": [8], "map": cut([4, 4])}})
    save(tmp_path / "wrong.json", {"w": {"shape": [8], "map": cut([4, 5])}})
    save(tmp_path / "field.json", {"w": {"shape": [8], "map": {**cut([4, 4]), "width": 1}}})
    save(tmp_path / "huge.json", {"w": {"shape": [10**30], "map": cut([4, 4])}})
    (tmp_path / "text.json").write_text("{", encoding="utf-8")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    (tmp_path / "newer.json").write_text('{"schema": "shardscope.shardmap/9"}', encoding="utf-8")

    said = command("map", *arguments)
    document = command("map", *arguments, "--json")

    assert (said.code, said.out) == (code, "")
    assert says in said.err
    assert json.loads(document.out)["exit"] == code


def test_names_of_a_map_reach_the_terminal_neutralised(command: Command, tmp_path: Path) -> None:
    name = "a\x1b[2J\u202eb"
    path = save(tmp_path / "map.json", {name: {"shape": [8], "map": cut([4, 5]), "dtype": "\x1b[1m"}})
    fine = save(tmp_path / "fine.json", {name: {"shape": [8], "map": cut([4, 4]), "dtype": "\x1b[1m"}})

    for arguments in (
        ("check", path),
        ("lower", path),
        ("lower", fine),
        ("explain", fine),
        ("compose", fine, fine),
    ):
        for flags in ((), ("--json",)):
            said = command("map", *arguments, *flags)
            assert not UNSAFE.search((said.out + said.err).replace("\n", ""))


def test_tensors_are_chosen_by_name_or_pattern(command: Command, tmp_path: Path) -> None:
    path = save(
        tmp_path / "map.json",
        {name: {"shape": [8], "map": cut([4, 4])} for name in ("a.q", "a.k", "b.q", "odd[*]")},
    )

    def names(*patterns: str) -> list[str]:
        flags = [flag for pattern in patterns for flag in ("--tensor", pattern)]
        return list(json.loads(command("map", "lower", path, *flags, "--json").out)["tensors"])

    assert names("*.q") == ["a.q", "b.q"]
    assert names("b.q", "a.k") == ["a.k", "b.q"]
    assert names("odd[*]") == ["odd[*]"]


def test_the_short_help_lists_the_commands(command: Command) -> None:
    out = command("map", "-h").out

    for name in COMMANDS:
        assert f"\n  {name} " in out
        assert command("map", name, "--help").code == ExitCode.OK
        assert len(command("map", name, "-h").out) < len(command("map", name, "--help").out)


def test_a_shell_is_offered_the_commands_and_their_options() -> None:
    assert asked("shardscope map ") == [f"plain,{name}" for name in COMMANDS]
    assert asked("shardscope map co") == ["plain,compose"]
    assert asked("shardscope map apply --ass") == ["plain,--assemble"]


# R190
@pytest.mark.parametrize("name", ["lower", "check", "explain"])
def test_maps_are_read_without_arrays_screens_or_frameworks(name: str) -> None:
    held = modules_after(COMMAND, "map", name, str(MAPS / "codegen.json"))

    assert not held & (SCREEN | ARRAYS | FRAMEWORKS)
    assert "shardscope.engine.geometry.execution.execute" not in held


def model(layers: int, tp: int) -> dict[str, Any]:
    """The tensors of a large model, eight to a layer and three besides, cut for tensor parallelism."""

    def even(extent: int) -> list[int]:
        return [extent // tp] * tp

    tensors: dict[str, Any] = {
        "embed.weight": {"shape": [128_256, 8192], "map": cut(even(128_256))},
        "norm.weight": {"shape": [8192], "map": {"node": "replicate"}},
        "lm_head.weight": {"shape": [128_256, 8192], "map": cut(even(128_256))},
    }
    for layer in range(layers):
        rows = {"q": 8192, "k": 1024, "v": 1024, "gate": 28_672, "up": 28_672}
        for name, extent in rows.items():
            tensors[f"layers.{layer}.{name}.weight"] = {"shape": [extent, 8192], "map": cut(even(extent))}
        for name, extent in {"o": 8192, "down": 28_672}.items():
            tensors[f"layers.{layer}.{name}.weight"] = {"shape": [8192, extent], "map": cut(even(extent), 1)}
        for name in ("in_norm", "out_norm"):
            tensors[f"layers.{layer}.{name}.weight"] = {"shape": [8192], "map": {"node": "replicate"}}
    return tensors


def test_equal_maps_of_a_large_model_are_worked_on_once(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shardscope.engine.geometry.language import lower
    from shardscope.engine.geometry.transfer import planning

    worked: list[TensorMap] = []

    def counted(tensor: TensorMap, mesh: DeviceMesh, budget: Budget | None = None) -> Lowered:
        worked.append(tensor)
        return lower.lower(tensor, mesh, budget)

    monkeypatch.setattr(planning, "lower", counted)
    tensors = model(80, 8)
    path = save(tmp_path / "map.json", tensors, ranks=8)
    said = command("map", "check", path)

    assert len(tensors) == 723
    assert said.code == ExitCode.OK
    assert said.out.splitlines()[-1] == "723 tensors, all valid"
    assert len(worked) == 7
    assert (
        msgspec.json.decode(command("map", "lower", path, "--json").out)["tensors"].keys() == tensors.keys()
    )
