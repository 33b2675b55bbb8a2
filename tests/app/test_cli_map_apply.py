"""Tensors moved by their maps, from file to file."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from shardscope.engine import read_shard_map
from shardscope.engine.geometry.execution.execute import slice_
from shardscope.engine.model.exits import ExitCode
from tests.app.terminal import Command

MAPS = Path(__file__).resolve().parents[2] / "docs" / "maps"
NAMES = [
    (path.stem, name)
    for path in sorted(MAPS.glob("*.json"))
    for name in json.loads(path.read_text(encoding="utf-8"))["tensors"]
]

Array = NDArray[Any]


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def noise(shape: tuple[int, ...], dtype: str = "<f4") -> Array:
    return np.random.default_rng(5).standard_normal(shape).astype(dtype)


def shape_of(name: str, tensor: str) -> tuple[int, ...]:
    return read_shard_map(MAPS / f"{name}.json").lowered(tensor).shape


# R148 R149 R168
@pytest.mark.parametrize(("name", "tensor"), NAMES)
@pytest.mark.parametrize("suffix", ["npy", "safetensors"])
def test_slices_are_those_of_the_engine_and_assemble_to_the_same_bytes(
    command: Command, folder: Path, name: str, tensor: str, suffix: str
) -> None:
    lowered = read_shard_map(MAPS / f"{name}.json").lowered(tensor)
    full = noise(lowered.shape)
    if suffix == "npy":
        np.save("full.npy", full)
    else:
        save_file({"another": full, tensor: full}, "full.safetensors")
    path = str(MAPS / f"{name}.json")

    cut = command(
        "map", "apply", path, f"full.{suffix}", "--tensor", tensor, "--slice", "-o", "shards", "--json"
    )
    files = json.loads(cut.out)["files"]

    assert cut.code == ExitCode.OK
    assert [one["rank"] for one in files] == [shard.rank for shard in lowered.ranks]
    for one in files:
        held = np.load(one["path"]) if suffix == "npy" else load_file(one["path"])[tensor]
        expected = slice_(lowered, full, one["rank"])
        assert held.tobytes() == expected.tobytes()
        assert held.shape == expected.shape
        assert os.stat(one["path"]).st_size == one["bytes"]

    shards = [one["path"] for one in files]
    back = command("map", "apply", path, *shards, "--tensor", tensor, "--assemble", "-o", f"back.{suffix}")
    assert (back.code, back.err) == (ExitCode.OK, "")
    found = np.load("back.npy") if suffix == "npy" else load_file("back.safetensors")[tensor]
    assert found.tobytes() == full.tobytes()
    assert not [entry for entry in os.listdir() if entry.startswith(".")]


# R150 R172
def test_shards_become_shards_of_another_layout(command: Command, folder: Path) -> None:
    full = noise((8, 8))
    for rank in range(2):
        np.save(f"{rank}.npy", full[:, 4 * rank : 4 * rank + 4])
    row, column = str(MAPS / "row_tp2.json"), str(MAPS / "column_tp4.json")

    said = command("map", "apply", row, "1=1.npy", "0=0.npy", "--to", column, "-o", "out")

    assert said.code == ExitCode.OK
    assert [line.split()[-3:] for line in said.out.splitlines()][3] == ["out/rank_3.npy", "rank", "3"]
    for rank in range(4):
        assert np.load(f"out/rank_{rank}.npy").tobytes() == full[2 * rank : 2 * rank + 2].tobytes()


# R192
def test_padding_of_any_content_stays_behind(command: Command, folder: Path) -> None:
    full = noise((10, 6))
    padded = np.concatenate([full, np.full((2, 6), np.nan, "<f4")])
    for rank in range(4):
        np.save(f"{rank}.npy", padded[3 * rank : 3 * rank + 3])
    path = str(MAPS / "vocabulary.json")

    assert (
        command("map", "apply", path, *(f"{n}.npy" for n in range(4)), "--assemble", "-o", "full.npy").code
        == 0
    )
    assert np.load("full.npy").tobytes() == full.tobytes()
    assert command("map", "apply", path, "full.npy", "--slice", "-o", "shards").code == 0
    assert not np.load("shards/rank_3.npy")[1:].any()


# R147
def test_no_name_of_a_tensor_changes_a_byte(command: Command, folder: Path) -> None:
    document = json.loads((MAPS / "codegen.json").read_text(encoding="utf-8"))
    (tree,) = document["tensors"].values()
    np.save("full.npy", noise((24, 8)))
    found = []
    for number, name in enumerate(
        ("transformer.word_embeddings.weight", "lm_head.bias", "x", "q_proj.experts.0")
    ):
        document["tensors"] = {name: tree}
        (folder / "map.json").write_text(json.dumps(document), encoding="utf-8")
        assert (
            command("map", "apply", "map.json", "full.npy", "--slice", "-o", f"{number}").code == ExitCode.OK
        )
        found.append([(folder / f"{number}" / f"rank_{rank}.npy").read_bytes() for rank in range(2)])

    assert all(shards == found[0] for shards in found)


# R176
def test_copies_that_disagree_are_refused_before_anything_is_written(command: Command, folder: Path) -> None:
    full = noise((16,))
    for rank in range(4):
        np.save(f"{rank}.npy", full)
    full[5] += 1
    np.save("2.npy", full)

    said = command(
        "map",
        "apply",
        str(MAPS / "replicated.json"),
        *(f"{n}.npy" for n in range(4)),
        "--assemble",
        "-o",
        "full.npy",
    )

    assert said.code == ExitCode.UNSUPPORTED
    assert "Ranks 0 and 2" in said.err
    assert sorted(os.listdir()) == ["0.npy", "1.npy", "2.npy", "3.npy"]


# R178 R179
def test_factors_are_undone_and_refused_on_state(command: Command, folder: Path) -> None:
    full = noise((16,))
    path = str(MAPS / "scaled_bias.json")
    for rank in range(4):
        np.save(f"{rank}.npy", full / 4)
    shards = [f"{rank}.npy" for rank in range(4)]

    assert command("map", "apply", path, *shards, "--assemble", "-o", "full.npy").code == ExitCode.OK
    assert np.load("full.npy").tobytes() == full.tobytes()
    refused = command("map", "apply", path, *shards, "--assemble", "--state", "-o", "state.npy")
    assert refused.code == ExitCode.UNSUPPORTED
    assert "[map.scaled]" in refused.err


@pytest.mark.parametrize("dtype", ["|b1", "<i8", ">f4", "|V2"])
def test_elements_of_any_size_are_moved_as_they_are(command: Command, folder: Path, dtype: str) -> None:
    size = np.dtype(dtype).itemsize
    full = np.random.default_rng(1).integers(0, 2, 64 * size, np.uint8).view(dtype).reshape(8, 8)
    np.save("full.npy", full)
    path = str(MAPS / "row_tp2.json")

    assert command("map", "apply", path, "full.npy", "--slice", "-o", "out").code == ExitCode.OK
    for rank in range(2):
        held = np.load(f"out/rank_{rank}.npy")
        assert held.dtype == full.dtype
        assert held.tobytes() == np.ascontiguousarray(full[:, 4 * rank : 4 * rank + 4]).tobytes()


def test_formats_may_be_mixed_where_the_dtype_has_a_name(command: Command, folder: Path) -> None:
    full = noise((8, 8))
    np.save("0.npy", full[:, :4])
    save_file({"shard": full[:, 4:].copy()}, "1.safetensors")
    path = str(MAPS / "row_tp2.json")

    assert (
        command("map", "apply", path, "0.npy", "1.safetensors", "--assemble", "-o", "w.safetensors").code == 0
    )
    assert load_file("w.safetensors")["weight"].tobytes() == full.tobytes()
    np.save("big.npy", full.astype(">f4")[:, :4])
    np.save("end.npy", full.astype(">f4")[:, 4:])
    refused = command("map", "apply", path, "big.npy", "end.npy", "--assemble", "-o", "x.safetensors")
    assert refused.code == ExitCode.UNSUPPORTED
    assert "[array.dtype]" in refused.err


def test_nothing_is_overwritten(command: Command, folder: Path) -> None:
    np.save("full.npy", noise((8, 8)))
    (folder / "out").mkdir()
    (folder / "link.npy").symlink_to("nowhere")
    path = str(MAPS / "row_tp2.json")

    for arguments in (
        ("full.npy", "--slice", "-o", "out"),
        ("full.npy", "--slice", "-o", "full.npy"),
        ("full.npy", "full.npy", "--assemble", "-o", "link.npy"),
    ):
        said = command("map", "apply", path, *arguments)
        assert said.code == ExitCode.OUTPUT
        assert "[output.exists]" in said.err
    assert sorted(os.listdir()) == ["full.npy", "link.npy", "out"]


@pytest.mark.parametrize("target", ["out", "out.npy"])
def test_what_a_killed_process_of_the_same_number_left_is_not_in_the_way(
    command: Command, folder: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save("full.npy", noise((8, 8)))
    np.save("half.npy", noise((8, 4)))
    path = str(MAPS / "row_tp2.json")
    way = ("full.npy", "--slice") if target == "out" else ("half.npy", "half.npy", "--assemble")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", killed)
        patch.setattr("os.link", killed)
        patch.setattr("os.unlink", lambda _: None)
        patch.setattr("shutil.rmtree", lambda *_, **__: None)
        command("map", "apply", path, *way, "-o", target)
    (left,) = folder.glob(f".{target}.*")

    assert command("map", "apply", path, *way, "-o", target).code == ExitCode.OK
    assert (folder / target).exists()
    assert left.exists()


def test_a_target_that_cannot_be_written_leaves_nothing(command: Command, folder: Path) -> None:
    np.save("full.npy", noise((8, 8)))
    said = command("map", "apply", str(MAPS / "row_tp2.json"), "full.npy", "--slice", "-o", "no/such/out")

    assert said.code == ExitCode.OUTPUT
    assert "[output.refused]" in said.err
    assert os.listdir() == ["full.npy"]


@pytest.mark.parametrize("before", [1, 3])
def test_a_fault_on_the_way_leaves_nothing(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Between the headers of two files, and in the data."""
    np.save("full.npy", noise((8, 8)))
    write, calls = os.pwrite, []

    def failing(descriptor: int, data: bytes, offset: int) -> int:
        calls.append(offset)
        if len(calls) > before:
            raise OSError(28, "No space left on device")
        return write(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", failing)
    said = command("map", "apply", str(MAPS / "row_tp2.json"), "full.npy", "--slice", "-o", "out")

    assert said.code == ExitCode.OUTPUT
    assert "no space left on device" in said.err
    assert os.listdir() == ["full.npy"]


def test_a_source_that_changes_meanwhile_lets_nothing_appear(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save("full.npy", noise((8, 8)))
    write = os.pwrite

    def changing(descriptor: int, data: bytes, offset: int) -> int:
        with open("full.npy", "r+b") as file:
            file.seek(200)
            file.write(b"x")
        return write(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", changing)
    said = command("map", "apply", str(MAPS / "row_tp2.json"), "full.npy", "--slice", "-o", "out")

    assert said.code == ExitCode.CHANGED
    assert os.listdir() == ["full.npy"]


@pytest.mark.parametrize(
    ("files", "flags", "code", "says"),
    [
        (["a.npy"], ("--assemble",), ExitCode.USAGE, "The map has 2 ranks, and 1 files"),
        (["a.npy", "a.npy"], (), ExitCode.USAGE, "Choose one of"),
        (["a.npy", "a.npy"], ("--slice",), ExitCode.USAGE, "--slice takes one file"),
        (["0=a.npy", "7=a.npy"], ("--assemble",), ExitCode.USAGE, "one RANK=FILE for each rank"),
        (["0=a.npy", "a.npy"], ("--assemble",), ExitCode.USAGE, "one RANK=FILE for each rank"),
        (["a.npy", "none.npy"], ("--assemble",), ExitCode.UNREADABLE, "source.missing"),
        (["a.npy", "b.npy"], ("--assemble",), ExitCode.UNSUPPORTED, "map.array"),
        (["a.npy", "half.npy"], ("--assemble",), ExitCode.UNSUPPORTED, "array.dtypes_differ"),
        (["a.npy", "fortran.npy"], ("--assemble",), ExitCode.UNSUPPORTED, "array.order"),
        (["a.npy", "objects.npy"], ("--assemble",), ExitCode.UNREADABLE, "npy.objects"),
        (["a.npy", "wide.npy"], ("--assemble",), ExitCode.UNSUPPORTED, "array.dtype"),
        (["a.npy", "text.bin"], ("--assemble",), ExitCode.UNREADABLE, "array.kind"),
        (["two.safetensors", "two.safetensors"], ("--assemble",), ExitCode.UNREADABLE, "array.missing"),
        (["two.safetensors", "two.safetensors"], ("--assemble", "--key", "x"), ExitCode.OK, ""),
        (["a.npy", "a.npy"], ("--assemble", "--tensor", "wieght"), ExitCode.USAGE, "Did you mean 'weight'?"),
    ],
)
def test_shards_that_do_not_fit_are_refused(
    command: Command, folder: Path, files: list[str], flags: tuple[str, ...], code: ExitCode, says: str
) -> None:
    array = noise((8, 4))
    np.save("a.npy", array)
    np.save("b.npy", array[:, :3])
    np.save("half.npy", array.astype("<f2"))
    np.save("fortran.npy", np.asfortranarray(array))
    with open("objects.npy", "wb") as file:
        np.lib.format.write_array(file, np.array([{}], dtype=object))
    np.save("wide.npy", array.astype("<c16"))
    (folder / "text.bin").write_bytes(b"")
    save_file({"x": array, "y": array}, "two.safetensors")

    said = command("map", "apply", str(MAPS / "row_tp2.json"), *files, *flags, "-o", "out.npy")

    assert said.code == code
    assert says in said.err
    assert (folder / "out.npy").exists() == (code == ExitCode.OK)


def test_a_map_of_several_tensors_needs_a_name(command: Command, folder: Path) -> None:
    np.save("full.npy", noise((32, 8)))
    said = command("map", "apply", str(MAPS / "yuan.json"), "full.npy", "--slice", "-o", "out")

    assert said.code == ExitCode.USAGE
    assert "say which one with --tensor" in said.err


def test_labels_with_gaps_name_their_files(command: Command, folder: Path) -> None:
    document = json.loads((MAPS / "row_tp2.json").read_text(encoding="utf-8"))
    document["meshes"]["dense"]["ranks"] = [-3, 12]
    (folder / "map.json").write_text(json.dumps(document), encoding="utf-8")
    np.save("full.npy", noise((8, 8)))

    assert command("map", "apply", "map.json", "full.npy", "--slice", "-o", "out").code == ExitCode.OK
    assert sorted(os.listdir("out")) == ["rank_-03.npy", "rank_12.npy"]
    back = ("-3=out/rank_-03.npy", "12=out/rank_12.npy")
    assert (
        command("map", "apply", "map.json", "--assemble", "-o", "back.npy", "--", *back).code == ExitCode.OK
    )
    assert np.load("back.npy").tobytes() == np.load("full.npy").tobytes()


def test_more_files_than_are_held_open(command: Command, folder: Path) -> None:
    ranks = 300
    document = json.loads((MAPS / "column_tp4.json").read_text(encoding="utf-8"))
    document["meshes"]["dense"]["axes"][0]["size"] = ranks
    document["tensors"]["weight"].update(shape=[ranks, 8])
    document["tensors"]["weight"]["map"]["widths"] = [1] * ranks
    (folder / "map.json").write_text(json.dumps(document), encoding="utf-8")
    full = noise((ranks, 8))
    np.save("full.npy", full)

    assert command("map", "apply", "map.json", "full.npy", "--slice", "-o", "out").code == ExitCode.OK
    found = [np.load(f"out/rank_{rank:03}.npy") for rank in range(ranks)]
    assert np.concatenate(found).tobytes() == full.tobytes()


@pytest.mark.parametrize("there", [False, True])
def test_a_file_system_without_links_takes_a_rename(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    full = noise((8, 8))
    np.save("0.npy", full[:, :4])
    np.save("1.npy", full[:, 4:])

    def refusing(source: bytes, target: bytes) -> None:
        if there:
            Path(os.fsdecode(target)).write_bytes(b"mine")
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refusing)
    said = command(
        "map", "apply", str(MAPS / "row_tp2.json"), "0.npy", "1.npy", "--assemble", "-o", "full.npy"
    )

    assert said.code == (ExitCode.OUTPUT if there else ExitCode.OK)
    held = Path("full.npy").read_bytes()
    assert held == b"mine" if there else held.endswith(full.tobytes())
    assert sorted(os.listdir()) == ["0.npy", "1.npy", "full.npy"]


def safetensors(dtype: str, shape: tuple[int, ...], data: bytes) -> bytes:
    header = json.dumps({"w": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    header = header.ljust(-(-len(header) // 8) * 8)
    return len(header).to_bytes(8, "little") + header + data


@pytest.mark.parametrize(("dtype", "bits"), [("BF16", 16), ("F8_E4M3", 8), ("F4", 4)])
def test_dtypes_that_numpy_lacks_keep_their_name(
    command: Command, folder: Path, dtype: str, bits: int
) -> None:
    data = os.urandom(64 * bits // 8)
    (folder / "full.safetensors").write_bytes(safetensors(dtype, (8, 8), data))
    path = str(MAPS / "row_tp2.json")

    cut = command("map", "apply", path, "full.safetensors", "--slice", "-o", "out")
    shards = [f"out/rank_{rank}.safetensors" for rank in range(2)]
    back = command("map", "apply", path, *shards, "--assemble", "-o", "back.safetensors")
    assert (cut.code, back.code) == (ExitCode.OK, ExitCode.OK)
    written = (folder / "back.safetensors").read_bytes()
    assert written.endswith(data)
    assert f'"dtype":"{dtype}"'.encode() in written

    bare = command("map", "apply", path, *shards, "--assemble", "-o", "back.npy")
    assert bare.code == (ExitCode.OK if bits % 8 == 0 else ExitCode.UNSUPPORTED)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (safetensors("F32", (8, 4), bytes(128))[:-1], "header.truncated"),
        (safetensors("F99", (8, 4), bytes(128)), "header.dtype_unknown"),
        (b"", "header.too_short"),
    ],
)
def test_a_file_that_is_not_whole_is_not_read(command: Command, folder: Path, data: bytes, code: str) -> None:
    (folder / "w.safetensors").write_bytes(data)
    said = command(
        "map",
        "apply",
        str(MAPS / "row_tp2.json"),
        "w.safetensors",
        "w.safetensors",
        "--assemble",
        "-o",
        "x.npy",
    )

    assert said.code != ExitCode.OK
    assert f"[{code}]" in said.err
    assert os.listdir() == ["w.safetensors"]


def test_a_folder_is_no_shard(command: Command, folder: Path) -> None:
    (folder / "a.npy").mkdir()
    said = command("map", "apply", str(MAPS / "row_tp2.json"), "a.npy", "a.npy", "--assemble", "-o", "x.npy")

    assert said.code == ExitCode.UNREADABLE


def test_progress_is_said_where_it_is_asked_for(command: Command, folder: Path) -> None:
    np.save("full.npy", noise((8, 8)))
    said = command(
        "map", "apply", str(MAPS / "row_tp2.json"), "full.npy", "--slice", "-o", "out", "--progress"
    )

    assert said.code == ExitCode.OK
