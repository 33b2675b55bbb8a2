"""`make demo` and `make inspect` show what the README says that they show."""

from pathlib import Path

import pytest

from shardscope.engine import Inspection, inspect
from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.evidence import Status
from tests import demo


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("demo")
    demo.main(target)
    return target


def codes(inspection: Inspection, severity: Severity) -> dict[str, str | None]:
    return {item.code: item.subject for item in inspection.descriptor.blockers if item.severity is severity}


def test_the_demo_is_a_whole_checkpoint(folder: Path) -> None:
    found = inspect(folder / "tiny-llama")

    assert found.descriptor.classification.format == "hf_safetensors"
    assert found.descriptor.classification.status is Status.CONDITIONAL
    assert found.descriptor.tensors.count == len(list(demo.shapes()))
    assert codes(found, Severity.ERROR) == {}


def test_its_damaged_copy_has_three_faults_in_three_files(folder: Path) -> None:
    found = inspect(folder / "tiny-llama-damaged")

    assert found.descriptor.classification.format == "hf_safetensors"
    subjects = " ".join(str(subject) for subject in codes(found, Severity.ERROR).values())
    assert "model-00002" in subjects
    assert codes(found, Severity.ERROR).keys() >= {
        "header.truncated",
        "file.lfs_pointer",
        "index.shard_missing",
    }


def test_what_its_damaged_copy_holds_is_not_put_down_to_pickles(folder: Path) -> None:
    found = inspect(folder / "tiny-llama-damaged", digest="none").descriptor.resources.logical_bytes

    assert (found.bytes, found.note) == (None, "some tensors are missing or cannot be read")


def test_the_demo_is_the_same_each_time(folder: Path, tmp_path: Path) -> None:
    demo.main(tmp_path)
    demo.main(tmp_path)

    for path in folder.rglob("*"):
        if path.is_file():
            assert (tmp_path / path.relative_to(folder)).read_bytes() == path.read_bytes()
