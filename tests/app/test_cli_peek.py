"""`shardscope peek` as a person or a script calls it."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from shardscope.engine.model.exits import ExitCode
from tests.app.terminal import Command
from tests.schemas import validate

HOSTILE = "w.\x1b[31m[red]\u202e" + "x" * 300


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def path(tmp_path: Path) -> str:
    numbers = np.random.default_rng(0).normal(size=(90, 5, 200)).astype("f4")
    numbers[0, 0, :3] = np.nan, np.inf, -np.inf
    numbers[30:40] = 0
    numbers[..., 50] *= 1e6
    tensors = {
        "weight": numbers,
        "complex": (numbers[1] - 1j * numbers[2]).astype("c8"),
        "codes": np.arange(40, dtype="u1"),
        "flags": np.array([True, False, True]),
        HOSTILE: numbers[1],
    }
    save_file(tensors, tmp_path / "model.safetensors")
    return str(tmp_path / "model.safetensors")


@pytest.mark.parametrize("name", ["weight", "complex", "codes", "flags", HOSTILE])
def test_text_is_eighty_columns_wide_and_harmless(command: Command, path: str, name: str) -> None:
    said = command("peek", path, name, "--histogram", "--heat", "--columns", "40")

    assert said.code == ExitCode.OK
    assert all(len(line) <= 80 for line in said.out.splitlines())
    assert not {"\x1b", "\u202e"} & set(said.out)


def test_the_text_has_the_edges_the_figures_and_the_map(command: Command, path: str) -> None:
    said = command("peek", path, "weight", "--stats", "--histogram", "--heat", "--slice", "20:50,0")
    lines = said.out.splitlines()

    assert lines[:3] == [
        "weight",
        "  F32 [90, 5, 200], 351.6 KiB, in model.safetensors; selected [30, 200], 6,000",
        "  elements",
    ]
    assert lines[4].split() == ["0", "1", "2", "...", "197", "198", "199"]
    assert lines[5].split()[0] == "20"
    assert "..." in lines[10]
    assert "(20 rows)" in lines[10]
    assert any(line.split()[:4] == ["numbers", "6,000", "zeros", "2,000"] for line in lines)
    assert any(line.startswith("  ") and " 0  2,000 (33%)" in line for line in lines)
    heat = [line for line in lines if "@" in line and not line.startswith("one sign")]
    assert heat
    assert len({line.index("@") for line in heat}) == 1, "the channel that stands out is one column"
    assert any(line.endswith("0" * 64) for line in lines), "rows of zeros"


def test_channels_and_places_stand_out(command: Command, path: str) -> None:
    said = command("peek", path, "weight", "--stats", "--channels", "--slice", "20:60,0")
    text = " ".join(said.out.split())

    assert "min at [" in text
    assert "first NaN" not in text
    assert "Dimension 0, root mean squares of 40 indices: median" in text
    assert "; 10 zero or not finite" in text
    assert "Dimension 2, root mean squares of 200 indices: median" in text
    loudest = text.rpartition("largest ")[2].partition(",")[0]
    assert loudest.endswith(" at 50")
    assert "first NaN at [0, 0, 0], first +inf at [0, 0, 1]" in " ".join(
        command("peek", path, "weight", "--stats").out.split()
    )
    found = json.loads(command("peek", path, "weight", "--channels", "--json").out)
    assert [(each["dimension"], len(each["rms"])) for each in found["profiles"]] == [
        (0, 90),
        (1, 5),
        (2, 200),
    ]
    assert (found["statistics"], found["heat"]) == (None, None)


def test_the_document_keeps_its_schema(command: Command, path: str) -> None:
    said = command("peek", path, "weight", "--histogram", "--heat", "--channels", "--json", "--slice", "0")

    found = json.loads(said.out)
    validate(found, "shardscope.peek/1")
    assert found["selected"] == [5, 200]
    assert found["grid"]["values"][0][:3] == ["nan", "inf", "-inf"]
    assert (found["statistics"]["nans"], found["statistics"]["positive_infinite"]) == (1, 1)
    assert found["heat"]["rms"][0][1] > 0
    assert path not in said.out


def test_a_slice_alone_reads_no_figures(command: Command, path: str) -> None:
    found = json.loads(command("peek", path, "codes", "--slice", "::10", "--json").out)

    assert found["statistics"] is None
    assert found["grid"]["values"] == [["0", "10", "20", "30"]]
    assert found["grid"]["columns"] == [0, 10, 20, 30]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("weight", "--slice", "1:2:0"), "peek.slice"),
        (("weight", "--slice", "0,9"), "peek.index"),
        (("wieght",), "peek.no_tensor"),
    ],
)
def test_mistakes_are_told_by_a_code(
    command: Command, path: str, arguments: tuple[str, ...], code: str
) -> None:
    said = command("peek", path, *arguments, "--json")

    assert said.code == ExitCode.USAGE
    assert json.loads(said.out)["error"]["code"] == code


def test_packed_integers_are_taken_apart(command: Command, tmp_path: Path) -> None:
    packed = tmp_path / "packed.safetensors"
    save_file({"qweight": np.array([[0x76543210, -1]], "i4"), "scales": np.ones(3, "f2")}, packed)

    found = json.loads(command("peek", str(packed), "qweight", "--bits", "4", "--stats", "--json").out)
    text = command("peek", str(packed), "qweight", "--bits", "4").out

    assert found["grid"]["values"] == [["0 1 2 3 4 5 6 7", "15 15 15 15 15 15 15 15"]]
    assert (found["elements"], found["statistics"]["numbers"], found["statistics"]["distinct"]) == (2, 16, 9)
    assert "taken apart into numbers of 4 bits" in " ".join(text.split())
    for arguments in (("scales", "--bits", "4"), ("qweight", "--bits", "4", "--heat")):
        said = command("peek", str(packed), *arguments, "--json")
        assert said.code == ExitCode.USAGE
        assert json.loads(said.out)["error"]["code"] == "peek.bits"


def test_a_packed_weight_says_what_its_numbers_are_made_of(command: Command, tmp_path: Path) -> None:
    name = "model.layers.0.up"
    tensors = {
        f"{name}.qweight": np.full((1, 8), 0x76543210, "i4"),
        f"{name}.qzeros": np.full((1, 1), 0x33333333, "i4"),
        f"{name}.scales": np.full((1, 8), 0.5, "f2"),
    }
    save_file(tensors, tmp_path / "model.safetensors")

    said = command("peek", str(tmp_path), f"{name}.weight", "--logical", "--columns", "8")

    assert said.code == ExitCode.OK
    assert "  packed as GPTQ in I32 [1, 8], 32 B: (q - z - 1) * scale of the output and the" in said.out
    assert f"  group; with {name}.scales, {name}.qzeros" in said.out
    row = next(line for line in said.out.splitlines() if line.startswith("0 "))
    assert row.split()[1:] == ["-2", "-1.5", "-1", "-0.5", "0", "0.5", "1", "1.5"]
    assert command("peek", str(tmp_path), "absent", "--logical").code == ExitCode.USAGE


def test_wide_integers_do_not_push_the_second_column_aside(command: Command, tmp_path: Path) -> None:
    save_file({"w": np.array([2**63 - 1, -(2**63)])}, tmp_path / "m.safetensors")

    lines = command("peek", str(tmp_path), "w", "--stats").out.splitlines()

    starts = [line.index(label) for label in ("NaN", "+inf", "-inf") for line in lines if label in line]
    assert starts == starts[:1] * 3


def test_a_name_is_found_by_its_bytes_whatever_the_locale_took_them_for(
    command: Command, tmp_path: Path
) -> None:
    save_file({"modèle.w": np.ones(3, "f4")}, tmp_path / "model.safetensors")
    typed = b"mod\xc3\xa8le.w".decode("ascii", "surrogateescape")  # as a locale without such letters has it

    assert command("peek", str(tmp_path), typed).code == ExitCode.OK
    assert command("peek", str(tmp_path), "modèle.w").code == ExitCode.OK
    assert command("tensors", str(tmp_path), "--filter", typed).out.count("F32") == 1
