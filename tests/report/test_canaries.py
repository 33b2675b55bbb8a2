"""Fake secrets and identities in every place that a stranger can fill: none of them survives in a report."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.widgets import Input

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.engine import ENGINE
from shardscope.app.explorer.report.preview import Preview
from shardscope.engine.inspecting import inspection
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.report.names import Names
from shardscope.engine.report.sanitising import sanitised
from tests.app.terminal import Command
from tests.conftest import settle
from tests.report.canaries import CANARIES, EVERYTHING, PLACES, found, write


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("canaries"))


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, checkpoint: Path) -> None:
    """Another user on another machine, in a folder below the checkpoint's, with secrets in the environment."""
    system = os.uname()
    monkeypatch.setattr(
        os,
        "uname",
        lambda: os.uname_result((system.sysname, "thunderbolt9x.cumulus.internal", *system[2:])),
    )
    for number, canary in enumerate(CANARIES):
        monkeypatch.setenv(f"VARIABLE_{number}", canary.text)
    monkeypatch.setenv("USER", "xiomara_v")
    monkeypatch.setenv("HOME", "/home/qtanaka")
    monkeypatch.chdir(checkpoint.parent)


def everything(bundle: Path) -> str:
    """Return all that a bundle holds, decompressed, with the names of its files."""
    if bundle.is_dir():
        return "".join(f"{path.name}\n{path.read_text()}" for path in bundle.iterdir())
    with zipfile.ZipFile(bundle) as archive:
        return "".join(f"{name}\n{archive.read(name).decode()}" for name in archive.namelist())


def test_there_are_enough_of_them_and_a_search_finds_each(checkpoint: Path) -> None:
    assert len({canary.kind for canary in CANARIES}) >= 30
    assert len(PLACES) >= 12
    assert found(EVERYTHING) == [canary.kind for canary in CANARIES]
    assert sum(1 for _ in checkpoint.rglob("*")) > 300


# R093 R097 R098 R104
@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("names", ["keep", "hash"])
@pytest.mark.parametrize("target", ["out.zip", "out"])
def test_none_survives_in_a_bundle_or_in_what_the_command_says(
    command: Command, checkpoint: Path, tmp_path: Path, names: str, target: str
) -> None:
    bundle = tmp_path / target

    said = command("report", str(checkpoint), "-o", str(bundle), "--names", names, "-v", "--progress")

    assert said.code == ExitCode.OK, said.err
    assert found(everything(bundle)) == []
    assert found(said.out.replace(str(tmp_path), "") + said.err) == []


@pytest.mark.usefixtures("session")
def test_none_survives_in_json_nor_when_a_bundle_is_drawn_or_compared(
    command: Command, checkpoint: Path, tmp_path: Path
) -> None:
    one, other = tmp_path / "one.zip", tmp_path / "other.zip"

    said = command("report", str(checkpoint), "-o", str(one), "--json")
    command("report", str(checkpoint), "-o", str(other), "--names", "hash")
    shown = command("report", "show", str(one), "-v").out + command("report", "show", str(one), "--json").out
    compared = command("report", "diff", str(one), str(other), "-v").out

    assert json.loads(said.out)["schema"] == "shardscope.report-bundle/1"
    assert found(said.out + said.err) == []
    assert found((shown + compared).replace(str(tmp_path), "")) == []


@pytest.mark.usefixtures("session")
def test_none_survives_of_a_decoded_descriptor_or_of_a_failure(
    command: Command, checkpoint: Path, tmp_path: Path
) -> None:
    decoded, error, bundle = tmp_path / "decoded.json", tmp_path / "error.json", tmp_path / "out.zip"
    decoded.write_text(command("inspect", str(checkpoint), "--decode", "--json").out)
    failure: dict[str, Any] = {
        "code": "convert.cast",
        "message": EVERYTHING,
        "remedy": EVERYTHING,
        "subject": EVERYTHING,
    }
    failure |= {
        "params": {"stored": EVERYTHING, "wanted": EVERYTHING},
        "stage": EVERYTHING,
        "notes": [EVERYTHING],
    }
    error.write_text(json.dumps({"schema": "shardscope.error/1", "error": failure, "exit": 1}))

    said = command(
        "report", str(checkpoint), "-o", str(bundle), "--descriptor", str(decoded), "--error", str(error)
    )

    assert said.code == ExitCode.OK, said.err
    text = everything(bundle)
    assert found(text) == []
    assert '"decoded": true' in text
    assert "convert.cast" in text


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("flags", [(), ("--json",), ("-v",)])
def test_none_survives_in_an_error_of_ours(
    command: Command,
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError(EVERYTHING)

    monkeypatch.setattr("shardscope.engine.reporting.inspect", fail)

    said = command("report", str(checkpoint), "-o", str(tmp_path / "out.zip"), *flags)

    assert said.code == ExitCode.INTERNAL
    assert found(said.out + said.err) == []
    assert not (tmp_path / "out.zip").exists()


# R093 R098
@pytest.mark.usefixtures("session")
async def test_none_survives_on_the_report_screen_nor_in_what_it_copies(
    checkpoint: Path, tmp_path: Path
) -> None:
    """Screens name the checkpoint where it lies: what promises to be harmless is what would be written, and the summary."""
    app = Explorer(checkpoint.name, ENGINE)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("r", "p")
        await settle(pilot)
        assert isinstance(app.screen, Preview)
        made = app.screen.made
        assert made is not None
        lines = [made.preview.line(row) for row in range(made.preview.row_count)]
        await pilot.press("s")
        await settle(pilot)
        copied, drawn = app.clipboard, _drawn(app)
        await pilot.press("escape", "w")
        await settle(pilot)
        app.screen.query_one(Input).value = str(tmp_path / "out.zip")
        await pilot.press("enter")
        await settle(pilot)

    assert found("\n".join(line.before or "" for line in lines)) != []
    assert found("\n".join(line.after or "" for line in lines)) == []
    assert found("\n".join(word for line in lines for word in line.why)) == []
    assert len(copied) > 1_000
    assert found(copied) == []
    assert "Report about a model checkpoint" in drawn
    assert found(everything(tmp_path / "out.zip")) == []


@pytest.mark.usefixtures("session")
async def test_none_survives_in_what_is_sent_about_an_error_of_ours(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        secret = EVERYTHING
        try:
            raise KeyError(secret)
        except KeyError as error:
            raise RuntimeError(secret) from error

    monkeypatch.setattr("shardscope.engine.inspecting.inspection.inspect", fail)
    app = Explorer(checkpoint.name, ENGINE)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert found(_drawn(app).replace(checkpoint.name, "")) == []
        await pilot.press("r")
        await settle(pilot)
        await pilot.press("y", "w")
        await settle(pilot)
        app.screen.query_one(Input).value = str(tmp_path / "error.txt")
        await pilot.press("enter")
        await settle(pilot)

    page = (tmp_path / "error.txt").read_text()
    assert app.clipboard == page
    assert "RuntimeError" in page
    assert "after    KeyError" in page
    assert found(page) == []


def _drawn(app: Explorer) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def _forged(value: Any, text: str, path: str = "") -> Any:
    """Return a descriptor with `text` in place of every string that no schema closes."""
    closed = {
        "schema",
        "basis",
        "kind",
        "confidence",
        "status",
        "severity",
        "stage",
        "state",
        "presence",
        "use",
        "listed",
    }
    if isinstance(value, dict):
        return {
            key: item
            if (key in closed and isinstance(item, str) and (key != "kind" or ".evidence" in path))
            or key in ("blocks", "planes", "stops_at", "isolation")
            or (key == "name" and ".workflow" in path)
            or (key == "code" and text)
            else _forged(item, text, f"{path}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_forged(item, text, path) for item in value]
    return text if isinstance(value, str) else value


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.kind)
@pytest.mark.parametrize("names", ["keep", "hash"])
def test_none_survives_in_any_text_of_a_descriptor(checkpoint: Path, canary: Any, names: Any) -> None:
    genuine = json.loads(msgspec.json.encode(_inspected(checkpoint)))
    forged = msgspec.convert(_forged(genuine, f"weights of {canary.text}, seen"), Descriptor)

    clean = sanitised(forged, Names(names))

    assert found(msgspec.json.encode(forged).decode().replace("\\\\", "\\")) != []
    assert found(msgspec.json.encode(clean).decode().replace("\\\\", "\\")) == []


_SEEN: dict[Path, Descriptor] = {}


def _inspected(checkpoint: Path) -> Descriptor:
    """Return a descriptor with some of everything, cut short: each text of it is replaced forty times."""
    if checkpoint not in _SEEN:
        whole = inspection.inspect(checkpoint, digest="none").descriptor
        source = msgspec.structs.replace(whole.source, entries=whole.source.entries[:3])
        seen = msgspec.structs.replace(whole.classification, evidence=whole.classification.evidence[:5])
        trust = msgspec.structs.replace(whole.trust, opaque_files=whole.trust.opaque_files[:2])
        one_of_each = {item.code: item for item in whole.blockers}
        _SEEN[checkpoint] = msgspec.structs.replace(
            whole,
            source=source,
            classification=seen,
            trust=trust,
            components=whole.components[:5],
            blockers=tuple(one_of_each.values()),
        )
    return _SEEN[checkpoint]
