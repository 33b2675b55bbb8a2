"""Bundles on disk: the same bytes for the same report, whole or not at all, and read back as input from a stranger."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.descriptor import to_json
from shardscope.engine.model.limits import Limits
from shardscope.engine.report import archive, reading
from shardscope.engine.report.building import MEMBERS
from shardscope.engine.reporting import Prepared, Request, compare_reports, prepare_report
from tests.checkpoints import write_sharded
from tests.schemas import validate


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare_report(str(write_sharded(tmp_path_factory.mktemp("ckpt") / "model")), Request())


@pytest.fixture
def members(prepared: Prepared) -> dict[str, bytes]:
    return dict(prepared.built.members)


def zipped(members: dict[str, bytes], **options: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


def test_a_zip_says_nothing_of_the_clock_and_the_owner(members: dict[str, bytes]) -> None:
    data = archive.packed(members)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert tuple(file.namelist()) == MEMBERS
        assert {entry.date_time for entry in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {entry.extra for entry in file.infolist()} == {b""}
    assert archive.packed(members) == data


@pytest.mark.parametrize("name", ["a.zip", "a.ZIP", "folder"])
def test_what_was_written_is_read_back(tmp_path: Path, prepared: Prepared, name: str) -> None:
    archive.write(str(tmp_path / name), prepared.built.members)

    found = reading.read(tmp_path / name)

    assert found.report == prepared.built.report
    assert found.descriptor == prepared.built.descriptor
    validate(json.loads(to_json(found)), found.schema)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]
    assert not os.stat(tmp_path / name).st_mode & 0o077


@pytest.mark.parametrize("name", ["a.zip", "folder"])
def test_nothing_is_overwritten_and_nothing_is_left_of_a_failure(
    tmp_path: Path, members: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    target = tmp_path / name
    target.write_text("mine")
    with pytest.raises(Fault, match=r"output\.exists"):
        archive.write(str(target), members)
    assert target.read_text() == "mine"
    target.unlink()

    written = []

    def full(path: str, data: bytes) -> None:
        written.append(path)
        Path(path).write_bytes(data[:3])
        if len(written) == (1 if name.endswith(".zip") else 3):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "_write_file", full)
    with pytest.raises(Fault, match=r"report\.write_failed"):
        archive.write(str(target), members)
    assert list(tmp_path.iterdir()) == []


def test_a_report_never_lies_inside_its_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "ckpt"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    for target in (folder / "a.zip", tmp_path / "link" / "a.zip", folder / ".." / "ckpt" / "a"):
        with pytest.raises(Fault, match=r"report\.inside"):
            archive.refuse(str(target), str(folder))
    archive.refuse(str(tmp_path / "ckpt-report.zip"), str(folder))


def _without(name: str) -> Callable[[dict[str, bytes]], bytes]:
    return lambda members: zipped({key: data for key, data in members.items() if key != name})


def _changed(name: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], bytes]:
    return lambda members: zipped({**members, name: members[name].replace(old, new)})


@pytest.mark.parametrize(
    ("code", "forge"),
    [
        ("report.member", _without("report.json")),
        ("report.member", _without("manifest.json")),
        ("report.member", _without("descriptor.json")),
        ("report.member", lambda members: zipped({**members, "run.sh": b"rm"})),
        ("zip.path_unsafe", lambda members: zipped({**members, "../x": b"rm"})),
        ("report.digest", _changed("README.txt", b"Report", b"Rebort")),
        ("report.digest", _changed("descriptor.json", b"weights", b"Weights")),
        ("json.syntax", _changed("manifest.json", b"{", b"[")),
        ("document.invalid", _changed("manifest.json", b'"bytes"', b'"octets"')),
        ("report.member", _changed("manifest.json", b"report-manifest/1", b"report-manifest/2")),
        ("limit.json_bytes", lambda members: zipped({**members, "README.txt": b"0" * 400_000}, compression=8)),
        ("report.member", lambda members: zipped(members, compression=12)),
        ("zip.no_end_record", lambda _: b"PK" + b"0" * 100),
    ],
)  # fmt: skip
def test_a_forged_bundle_is_refused_with_its_code(
    tmp_path: Path, members: dict[str, bytes], code: str, forge: Callable[[dict[str, bytes]], bytes]
) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(forge(members))

    with pytest.raises(Fault) as caught:
        reading.read(path, Limits(json_bytes=300_000))

    assert caught.value.finding.code == code


def test_a_bomb_is_never_inflated_beyond_what_it_declares(tmp_path: Path, members: dict[str, bytes]) -> None:
    data = bytearray(zipped({**members, "README.txt": b"0" * 5_000_000}, compression=8))
    honest = (5_000_000).to_bytes(4, "little")
    for _ in range(data.count(honest)):
        at = data.index(honest)
        data[at : at + 4] = (5_000).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(data)

    with pytest.raises(Fault, match=r"report\.member|zip\."):
        reading.read(tmp_path / "a.zip")


def test_a_folder_with_more_in_it_is_refused(tmp_path: Path, members: dict[str, bytes]) -> None:
    archive.write(str(tmp_path / "a"), members)
    (tmp_path / "a" / "manifest.json").unlink()
    (tmp_path / "a" / "manifest.json").symlink_to("/etc/passwd")
    with pytest.raises(Fault, match=r"report\.member"):
        reading.read(tmp_path / "a")


def test_strings_of_a_bundle_are_harmless(tmp_path: Path, members: dict[str, bytes]) -> None:
    import hashlib

    report = json.loads(members["report.json"])
    report["model"]["id"] = "\x1b[31m\u202e hf_abcdefghijklmnopqrstuvwxyz0123456789"
    data = json.dumps(report).encode()
    manifest = json.loads(members["manifest.json"])
    for file in manifest["files"]:
        if file["name"] == "report.json":
            file |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    forged = {**members, "report.json": data, "manifest.json": json.dumps(manifest).encode()}
    (tmp_path / "a.zip").write_bytes(zipped(forged))

    assert reading.read(tmp_path / "a.zip").report.model.id == "␛[31m⟨U+202E⟩ [hf token]"


def test_a_difference_names_its_place(tmp_path: Path, prepared: Prepared) -> None:
    other = prepare_report(str(write_sharded(tmp_path / "m", shards=3)), Request(desired="convert"))
    archive.write(str(tmp_path / "a.zip"), prepared.built.members)
    archive.write(str(tmp_path / "b.zip"), other.built.members)
    one, two = reading.read(tmp_path / "a.zip"), reading.read(tmp_path / "b.zip")

    found = compare_reports(one, two)

    assert compare_reports(one, one).same
    places = {change.place: (change.one, change.other) for change in found.changes}
    assert places["report.desired"] == (None, "convert")
    assert places["descriptor.source.files"] == ("4", "5")
    assert ("descriptor.source.entries[model-00001-of-00002.safetensors].size") in places
