"""`shardscope scan` as a person or a pipeline calls it."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from shardscope.app.cli.scan import text_lines
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.scan import ScanDocument
from shardscope.engine.model.schemas import SCAN
from tests.app.terminal import Command
from tests.schemas import validate


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def path(tmp_path: Path) -> str:
    tensors = {"w.\x1b[31m" + "x" * 200: np.zeros(9, "f4"), "norm": np.ones(9, "f4")}
    save_file(tensors, tmp_path / "model.safetensors")
    return str(tmp_path / "model.safetensors")


def test_the_text_names_each_finding_and_hides_no_escape(command: Command, path: str) -> None:
    said = command("scan", path)

    assert said.code == ExitCode.OK
    assert said.out.startswith("2 tensors read, 72 B: 2 findings\n")
    assert "\x1b" not in said.out
    assert "info      All 9 numbers of norm are the same one, 1." in said.out.splitlines()


@pytest.mark.parametrize(
    ("least", "code"),
    [("error", ExitCode.OK), ("warning", ExitCode.BLOCKED), ("info", ExitCode.BLOCKED)],
)
def test_a_gate_closes_at_its_severity(command: Command, path: str, least: str, code: ExitCode) -> None:
    said = command("scan", path, "--fail-on", least, "--quiet")

    assert said.code == code
    assert not said.out


def test_the_document_keeps_its_schema(command: Command, path: str) -> None:
    found = json.loads(command("scan", path, "--json").out)

    validate(found, "shardscope.scan/1")
    assert [each["code"] for each in found["findings"]] in (
        ["scan.zeros", "scan.constant"],
        ["scan.constant", "scan.zeros"],
    )
    assert path not in json.dumps(found)


def test_what_was_not_examined_is_said() -> None:
    document = ScanDocument(SCAN, "hf", "model", 1, 4, 0, 0, (), unexamined_files=2)

    assert list(text_lines(document, everything=False)) == [
        "1 tensor read, 4 B: 0 findings",
        "2 files not examined for holes: the file system does not tell",
    ]


def test_what_was_not_read_is_said_with_the_reason_that_is_true(command: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "plain.npy", np.ones(3))
    np.save(tmp_path / "objects.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    for asked in ((), ("--decode",)):
        said = command("scan", str(tmp_path), *asked).out.splitlines()
        assert "1 file not read: nothing here decodes such files of NumPy arrays" in said

    found = ScanDocument(SCAN, "megatron_torch", "model", 1, 4, 0, 2, ())
    reasons = [list(text_lines(found, everything=False, decoded=decoded))[1] for decoded in (False, True)]
    assert reasons == [
        "2 files not read: decoding was not asked for (--decode)",
        "2 files not read: decoding listed no tensor of them",
    ]
