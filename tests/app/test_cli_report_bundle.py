"""`shardscope report` on real files: what is in a bundle, how it is looked at, and what is refused."""

import json
import os
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import (
    DESCRIPTOR,
    REPORT,
    REPORT_BUNDLE,
    REPORT_DIFFERENCE,
    REPORT_MANIFEST,
)
from tests.app.terminal import Command
from tests.checkpoints import write_safetensors, write_sharded
from tests.schemas import validate
from tests.test_imports import (
    ARRAYS,
    COMMAND,
    FRAMEWORKS,
    NETWORK,
    PROCESSES,
    SCREEN,
    UNPICKLERS,
    modules_after,
)

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
EVERY = sorted(str(path.relative_to(FIXTURES)) for path in FIXTURES.glob("*/*") if path.is_dir())
REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    return write_sharded(tmp_path / "ckpt")


def opened(bundle: Path) -> dict[str, Any]:
    with zipfile.ZipFile(bundle) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist() if name.endswith(".json")}


# R093 R094 R095 R096 R099 R100 R101 R102 R103
def test_a_bundle_has_every_field(command: Command, sharded: Path, tmp_path: Path) -> None:
    (sharded / "broken.safetensors").write_bytes(b"\xff" * 20)
    bundle = tmp_path / "report.zip"

    said = command(
        "report", str(sharded), "-o", str(bundle), "--desired", "convert",
        "--model-id", "acme/llama-7b", "--revision", REVISION, "--limit", "json_bytes=1MiB",
    )  # fmt: skip
    documents = opened(bundle)

    assert said.code == ExitCode.OK, said.err
    for name, schema in (("report", REPORT), ("descriptor", DESCRIPTOR), ("manifest", REPORT_MANIFEST)):
        validate(documents[f"{name}.json"], schema)
    report = documents["report.json"]
    assert report["model"] == {"id": "acme/llama-7b", "revision": REVISION}
    assert report["desired"] == "convert"
    assert report["environment"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"os", "torch", "transformers", "accelerate", "deepspeed", "megatron_core"} <= set(
        report["environment"]
    )
    assert report["first_failing_stage"] == "parse"
    assert report["format"] == "hf_safetensors"
    assert [each["unit"] for each in report["offsets"]] == ["bytes", "bytes"]
    assert set(report["topology"]) == {"nodes", "world", "tp", "pp", "dp", "cp", "ep", "etp", "zero_stage"}
    assert report["command"][:3] == ["shardscope", "report", "PATH"]
    assert "json_bytes=1048576" in report["command"]
    entries = {each["path"]: each for each in documents["descriptor.json"]["source"]["entries"]}
    assert entries["model-00001-of-00002.safetensors"]["size"] > 0
    assert str(tmp_path) not in said.out.replace(str(bundle), "")


def test_digests_of_large_files_stay_and_those_of_small_ones_go(
    command: Command, sharded: Path, tmp_path: Path
) -> None:
    write_safetensors(sharded / "large.safetensors", {"model.weight": ("F32", (1024, 512))})

    assert command("report", str(sharded), "-o", str(tmp_path / "a.zip")).code == ExitCode.OK

    entries = opened(tmp_path / "a.zip")["descriptor.json"]["source"]["entries"]
    digests = {each["path"]: each["digest"]["sha256"] for each in entries}
    assert re.fullmatch("[0-9a-f]{64}", digests.pop("large.safetensors"))
    assert set(digests.values()) == {None}


@pytest.mark.parametrize("names", ["keep", "hash"])
def test_the_same_input_gives_the_same_bytes(
    command: Command, sharded: Path, tmp_path: Path, names: str
) -> None:
    for name in ("a.zip", "b.zip"):
        assert (
            command("report", str(sharded), "-o", str(tmp_path / name), "--names", names).code == ExitCode.OK
        )

    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


@pytest.mark.parametrize("name", EVERY)
def test_a_report_about_every_fixture_is_made_and_drawn(command: Command, tmp_path: Path, name: str) -> None:
    bundle = tmp_path / "r.zip"

    said = command("report", str(FIXTURES / name), "-o", str(bundle), "--names", "hash", "--digest", "none")
    drawn = command("report", "show", str(bundle))

    assert (said.code, drawn.code) == (ExitCode.OK, ExitCode.OK), said.err + drawn.err
    documents = opened(bundle)
    validate(documents["descriptor.json"], DESCRIPTOR)
    assert "Report" in drawn.out


def test_hash_leaves_no_word_of_a_name(command: Command, sharded: Path, tmp_path: Path) -> None:
    command("report", str(sharded), "-o", str(tmp_path / "a.zip"), "--names", "hash")
    descriptor = opened(tmp_path / "a.zip")["descriptor.json"]

    paths = [each["path"] for each in descriptor["source"]["entries"]]
    tensors = [each["name"] for each in descriptor["tensors"]["largest"]]
    assert all(
        re.fullmatch(r"(\{\d+\}|\d+|[._/-]|safetensors|json|index)+", name) for name in (*paths, *tensors)
    )
    assert len(set(paths)) == len(paths)


# R104
def test_nothing_of_a_checkpoint_is_opened_where_its_descriptor_is_given(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = FIXTURES / "torch" / "zip_skip_data"
    descriptor = tmp_path / "descriptor.json"
    descriptor.write_text(command("inspect", str(folder), "--json", "--decode").out)
    seen = []
    real = os.open

    def watched(path: Any, *arguments: Any, **options: Any) -> int:
        seen.append(os.fsdecode(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", watched)
    said = command("report", str(folder), "-o", str(tmp_path / "a.zip"), "--descriptor", str(descriptor))

    assert said.code == ExitCode.OK, said.err
    assert not [path for path in seen if path.endswith((".pt", ".bin", ".safetensors"))]
    report = opened(tmp_path / "a.zip")["report.json"]
    assert (report["options"]["descriptor"], report["options"]["decoded"]) == ("made earlier", True)


def test_a_descriptor_of_other_files_is_refused(command: Command, sharded: Path, tmp_path: Path) -> None:
    descriptor = tmp_path / "descriptor.json"
    descriptor.write_text(command("inspect", str(sharded), "--json").out)
    (sharded / "more.txt").write_text("x")

    said = command("report", str(sharded), "-o", str(tmp_path / "a.zip"), "--descriptor", str(descriptor))

    assert said.code == ExitCode.CHANGED
    assert "[report.descriptor_other]" in said.err
    assert not (tmp_path / "a.zip").exists()


def test_the_failure_of_a_command_can_be_included(command: Command, sharded: Path, tmp_path: Path) -> None:
    error = tmp_path / "error.json"
    error.write_text(command("inspect", str(tmp_path / "zebulon-place"), "--json").out)

    command("report", str(sharded), "-o", str(tmp_path / "a.zip"), "--error", str(error))

    failure = opened(tmp_path / "a.zip")["report.json"]["failure"]
    assert (failure["code"], failure["stage"]) == ("source.missing", "source")
    assert "zebulon-place" not in json.dumps(failure)


def test_preview_writes_nothing_and_shows_every_byte(command: Command, sharded: Path, tmp_path: Path) -> None:
    (sharded / "zebulon.txt").write_text("x")
    before = sorted(tmp_path.rglob("*"))

    said = command("report", str(sharded), "-o", str(tmp_path / "a.zip"), "--preview")

    assert said.code == ExitCode.OK
    assert sorted(tmp_path.rglob("*")) == before
    assert "zebulon  (name)" in said.out.partition("── replaced")[2]
    assert "zebulon" not in said.out.partition("── replaced")[0]
    command("report", str(sharded), "-o", str(tmp_path / "a"))
    for path in (tmp_path / "a").iterdir():
        text = path.read_text()
        if path.name in ("report.json", "README.txt"):
            assert text in said.out


def test_show_and_diff_need_no_checkpoint(command: Command, sharded: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.zip", tmp_path / "other"
    command("report", str(sharded), "-o", str(one))
    (sharded / "extra.json").write_text("{}")
    command("report", str(sharded), "-o", str(other), "--desired", "infer")
    sharded.rename(tmp_path / "gone")

    shown = json.loads(command("report", "show", str(one), "--json").out)
    compared = command("report", "diff", str(one), str(other), "--json")
    difference = json.loads(compared.out)

    validate(shown, REPORT_BUNDLE)
    validate(difference, REPORT_DIFFERENCE)
    assert command("report", "show", str(one)).out.startswith("Hugging Face safetensors")
    assert compared.code == ExitCode.BLOCKED
    assert {"report.desired", "descriptor.source.files"} <= {each["place"] for each in difference["changes"]}
    assert command("report", "diff", str(one), str(one)).out == "the same\n"


@pytest.mark.parametrize("words", [("--diff", "a.zip", "b.zip"), ("a.zip", "b.zip", "--diff")])
def test_another_spelling_of_diff_ends_in_the_right_command(command: Command, words: tuple[str, ...]) -> None:
    said = command("report", *words)

    assert said.code == ExitCode.USAGE
    assert "shardscope report diff ONE OTHER" in said.err.splitlines()[0]


def test_parts_that_are_left_out_are_not_there_and_named(
    command: Command, sharded: Path, tmp_path: Path
) -> None:
    (sharded / "broken.safetensors").write_bytes(b"\xff" * 20)
    bundle = tmp_path / "report.zip"

    said = command("report", str(sharded), "-o", str(bundle), "--without", "blockers,tree,versions,topology")
    documents = opened(bundle)
    shown = command("report", "show", str(bundle)).out

    assert said.code == ExitCode.OK, said.err
    report, descriptor = documents["report.json"], documents["descriptor.json"]
    assert report["options"]["without"] == ["tree", "topology", "blockers", "versions"]
    assert report["environment"] is None
    assert report["first_failing_stage"] == "parse"
    assert descriptor["source"]["entries"] == []
    assert descriptor["source"]["files"] > 0
    assert descriptor["topology"] == {"meshes": [], "rank_files": [], "note": "[left out]"}
    assert {(item["subject"], item["message"]) for item in descriptor["blockers"]} == {(None, "[left out]")}
    assert "broken" not in json.dumps(descriptor["blockers"])
    assert "tree, topology, blockers, versions" in shown


def test_the_descriptor_can_be_left_out(command: Command, sharded: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "report.zip"

    said = command("report", str(sharded), "-o", str(bundle), "--without", "descriptor")
    shown = command("report", "show", str(bundle))

    assert said.code == shown.code == ExitCode.OK, said.err
    assert set(opened(bundle)) == {"report.json", "manifest.json"}
    assert opened(bundle)["report.json"]["format"] == "hf_safetensors"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-o", "a.zip", "--without", "tensors"),
        ("-o", "a.zip", "--desired", "sell"),
        ("-o", "a.zip", "--revision", "main"),
        ("-o", "a.zip", "--model-id", "../x"),
        ("--preview", "--json"),
    ],
)
def test_what_a_report_cannot_say_is_refused(
    command: Command,
    sharded: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)

    assert command("report", str(sharded), *arguments).code == ExitCode.USAGE
    assert not (tmp_path / "a.zip").exists()


def test_a_report_that_names_the_user_is_not_written(
    command: Command, sharded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "zebulon")

    said = command("report", str(sharded), "-o", str(tmp_path / "a.zip"), "--model-id", "zebulon/llama")

    assert said.code == ExitCode.OUTPUT
    assert "[report.identity]" in said.err
    assert "zebulon" not in said.err
    assert not (tmp_path / "a.zip").exists()


def test_the_model_may_be_called_like_its_folder(command: Command, tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "zebulon-7b")

    said = command("report", str(folder), "-o", str(tmp_path / "a.zip"), "--model-id", "acme/zebulon-7b")

    assert said.code == ExitCode.OK, said.err


def test_a_missing_path_is_said(command: Command, tmp_path: Path) -> None:
    said = command("report", str(tmp_path / "absent"), "-o", str(tmp_path / "a.zip"))

    assert said.code == ExitCode.UNREADABLE
    assert "[source.missing]" in said.err


def test_a_folder_that_is_called_like_a_command_is_reached(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sharded(tmp_path / "show")
    monkeypatch.chdir(tmp_path)

    assert command("report", "./show", "-o", "a.zip").code == ExitCode.OK
    assert command("report", "-q", "show", "a.zip").code == ExitCode.OK


# R101
def test_no_screen_no_arrays_no_network_and_no_framework_is_imported(sharded: Path, tmp_path: Path) -> None:
    loaded = modules_after(COMMAND, "report", str(sharded), "-o", str(tmp_path / "a.zip"))

    assert not loaded & (SCREEN | ARRAYS | FRAMEWORKS | NETWORK | PROCESSES | UNPICKLERS)
