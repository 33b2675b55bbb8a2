"""The Report screen: what is chosen, what is shown, and that what is written is what was shown."""

import shlex
import zipfile
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.dialogs import CopiedCommand, OwnError
from shardscope.app.explorer.engine import ENGINE
from shardscope.app.explorer.report.line import CopiedPage, OneLine
from shardscope.app.explorer.report.own_error import ErrorPage
from shardscope.app.explorer.report.preview import Preview
from shardscope.app.explorer.report.screen import ReportScreen
from shardscope.app.explorer.report.wanted import Wanted, report_command
from shardscope.app.explorer.report.writing import WriteTo, Wrote
from shardscope.app.explorer.target import Asked, Target
from shardscope.engine.inspecting import inspection
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.limits import Limits
from shardscope.widgets.report_rows import ReportRows
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.terminal import Command
from tests.checkpoints import tree, write_sharded
from tests.conftest import settle

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = write_sharded(tmp_path / "ckpt")
    (folder / "zebulon-notes.txt").write_text("x")
    return folder


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def text(app: Explorer) -> str:
    """Return what is drawn, line by line."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys one after the other, each once the one before has done all it does."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


def shown(app: Explorer) -> Preview:
    """Return the preview in front."""
    assert isinstance(app.screen, Preview)
    return app.screen


def bundle(path: Path) -> dict[str, bytes]:
    """Return the files of a zip or of a folder."""
    if path.is_dir():
        return {each.name: each.read_bytes() for each in path.iterdir()}
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


async def write(pilot: Pilot[Any], path: Path) -> None:
    """Write what is shown to `path`."""
    await press(pilot, "w")
    pilot.app.screen.query_one(Input).value = str(path)
    await press(pilot, "enter")


# R093 R104
@pytest.mark.parametrize("name", ["out.zip", "out"])
async def test_what_is_written_is_what_was_shown_and_what_the_copied_command_writes(
    checkpoint: Path, tmp_path: Path, command: Command, name: str
) -> None:
    before = tree(checkpoint)
    app = Explorer(str(checkpoint), ENGINE)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "r", "down", "space", "G", "right", "up", "space", "p")
        preview = shown(app)
        assert preview.made is not None
        lines = {side.name: preview.made.preview.written(side.name) for side in preview.made.preview.sides}
        await write(pilot, tmp_path / name)
        assert isinstance(app.screen, Wrote)
        assert "written" in text(app).lower()
        await press(pilot, "escape", "y")
        assert isinstance(app.screen, CopiedCommand)
        copied = app.screen.command
        assert app.clipboard == copied

    written = bundle(tmp_path / name)
    assert {file: data.decode() for file, data in written.items()} == lines
    assert tree(checkpoint) == before
    words = shlex.split(copied)
    assert words[-6:] == ["--names", "hash", "--without", "tree", "--desired", "inspect"]
    words[words.index(str(tmp_path / name))] = str(tmp_path / "again.zip")
    said = command(*words[1:])
    assert said.code == ExitCode.OK, said.err
    assert bundle(tmp_path / "again.zip") == written


async def test_both_sides_of_a_line_are_shown_with_the_reason(checkpoint: Path) -> None:
    app = Explorer(str(checkpoint), ENGINE)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "r", "enter", "c")
        rows = app.screen.query_one(ReportRows)
        assert rows.stacked
        here = next(row for row in rows.lines.changed if "zebulon" in (rows.lines.line(row).before or ""))
        while rows.row < here:
            await pilot.press("down")
        await settle(pilot)
        lines = text(app).splitlines()
        place = next(number for number, line in enumerate(lines) if "zebulon" in line)
        assert lines[place].startswith("- ")
        assert lines[place + 1].startswith("+ ")
        assert "{1}-notes.txt" in lines[place + 1].replace(" ", "")
        assert lines[place + 1].rstrip().endswith("name")

        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        assert not rows.stacked
        (line,) = [line for line in text(app).splitlines() if "zebulon" in line and "│" in line]
        _, _, right = line.partition("│")
        assert "zebulon" not in right
        assert "{1}-notes.txt" in right
        assert "name" in right

        await press(pilot, "enter")
        assert isinstance(app.screen, OneLine)
        assert "zebulon" in text(app)
        assert "a word that not every copy of shardscope has" in " ".join(text(app).split())


async def test_nothing_that_is_there_is_replaced_and_esc_writes_nothing(
    checkpoint: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there.zip"
    there.write_text("mine")
    app = Explorer(str(checkpoint), ENGINE)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "r", "p")
        await write(pilot, there)
        assert isinstance(app.screen, WriteTo)
        assert "output.exists" in text(app)
        app.screen.query_one(Input).value = str(checkpoint / "in.zip")
        await press(pilot, "enter")
        assert "report.inside" in text(app)
        await press(pilot, "escape")
        assert shown(app).made is not None
        assert "nothing written" in text(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, ReportScreen)
        await press(pilot, "escape")
        assert isinstance(app.screen, Explore)

    assert there.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ckpt", "there.zip"]


async def test_the_model_is_named_only_when_somebody_types_it(checkpoint: Path) -> None:
    app = Explorer(str(checkpoint), ENGINE)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "r", "tab", *"../x", "enter")
        assert isinstance(app.screen, ReportScreen)
        assert "A model id is NAME or ORGANISATION/NAME." in text(app)
        app.screen.query_one("#model", Input).value = "acme/llama-7b"
        app.screen.query_one("#revision", Input).value = "main"
        await press(pilot, "enter")
        assert "full commit" in text(app)
        app.screen.query_one("#revision", Input).value = REVISION
        await press(pilot, "enter")
        preview = shown(app)
        assert preview.made is not None
        model = preview.made.prepared.built.report.model
        assert (model.id, model.revision) == ("acme/llama-7b", REVISION)


async def test_a_report_that_would_name_the_user_is_not_shown_as_one(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "zebedee")
    app = Explorer(str(checkpoint), ENGINE)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "r")
        app.screen.query_one("#model", Input).value = "zebedee/llama"
        await press(pilot, "p")
        assert "report.identity" in text(app)
        assert shown(app).made is None
        await press(pilot, "w")
        assert isinstance(app.screen, Preview)
        await press(pilot, "escape")
        assert isinstance(app.screen, ReportScreen)


async def test_a_checkpoint_that_has_changed_since_is_refused(checkpoint: Path) -> None:
    app = Explorer(str(checkpoint), ENGINE)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        (checkpoint / "more.txt").write_text("x")
        await press(pilot, "r", "p")
        assert "report.descriptor_other" in text(app)


async def test_what_was_decoded_goes_in_without_decoding_again(tmp_path: Path, command: Command) -> None:
    folder = FIXTURES / "torch" / "zip_skip_data"
    target, asked = Target(str(folder)), Asked("model")
    found = inspection.inspect(folder, digest="auto", decoding=Decoding(Intent("inspect", "dialog"), "model"))
    app = Explorer(str(folder), ENGINE)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.push_screen(ReportScreen(target, found.descriptor, crumbs=("x",), asked=asked))
        await settle(pilot)
        assert "decoded" in text(app)
        await press(pilot, "p")
        made = shown(app).made
        assert made is not None
        await press(pilot, "escape", "down", "space", "p")
        other = shown(app).made
        assert other is not None

    report, undecoded = made.prepared.built.report, other.prepared.built.report
    assert (report.options.descriptor, report.options.decoded) == ("made earlier", True)
    assert (undecoded.options.descriptor, undecoded.options.decoded) == ("made for this report", False)
    first, _, second = report_command(target, Wanted(decoded=True), "auto", asked, "out.zip").partition(
        " && "
    )
    words = shlex.split(first)
    assert words[-2:] == [">", "decoded.json"]
    (tmp_path / "decoded.json").write_text(command(*words[1:-2]).out)
    again = shlex.split(second.replace("decoded.json", str(tmp_path / "decoded.json")))
    again[again.index("out.zip")] = str(tmp_path / "out.zip")
    assert command(*again[1:]).code == ExitCode.OK
    assert bundle(tmp_path / "out.zip") == dict(made.prepared.built.members)


def test_the_command_says_what_the_report_was_made_with() -> None:
    target = Target("./a b", Limits(json_bytes=1 << 20), hf_cache=True)

    said = report_command(
        target, Wanted(frozenset(["tree"]), model="acme/x", revision=REVISION), "all", None, "it's.zip"
    )

    assert shlex.split(said) == [
        *("shardscope", "report", "./a b", "-o", "it's.zip", "--without", "tree", "--model-id", "acme/x"),
        *("--revision", REVISION, "--digest", "all", "--hf-cache", "--limit", "json_bytes=1048576"),
    ]


async def test_the_summary_that_is_copied_is_the_page_that_is_written(checkpoint: Path) -> None:
    app = Explorer(str(checkpoint), ENGINE)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "r", "p")
        made = shown(app).made
        assert made is not None
        await press(pilot, "s")
        assert isinstance(app.screen, CopiedPage)
        assert app.clipboard == made.prepared.built.members["README.txt"].decode()


# An error of our own


async def test_an_error_of_ours_offers_a_page_which_is_shown_and_then_written(tmp_path: Path) -> None:
    app = explorer(FakeEngine(ZeroDivisionError("zebulon")))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert isinstance(app.screen, OwnError)
        await press(pilot, "r")
        assert isinstance(app.screen, ErrorPage)
        page = app.screen.page
        assert page is not None
        assert "ZeroDivisionError" in page
        assert "while    looking at the checkpoint" in page
        assert "shardscope.app.explorer.workers line" in page
        assert "zebulon" not in page
        drawn = "".join(text(app).replace("│", "").split())
        assert all("".join(line.split()) in drawn for line in page.splitlines())
        await press(pilot, "y")
        assert app.clipboard == page
        await write(pilot, tmp_path / "error.txt")
        assert isinstance(app.screen, ErrorPage)
        assert "exactly what is shown" in text(app)
    assert (tmp_path / "error.txt").read_text() == page


async def test_an_error_of_a_handler_ends_the_explorer_without_a_traceback() -> None:
    app = explorer(FakeEngine(llama()))

    def fail() -> None:
        zebulon = "zebulon"
        raise ZeroDivisionError(zebulon)

    async def used() -> None:
        async with app.run_test() as pilot:
            await settle(pilot)
            app.action_matrix = fail  # type: ignore[method-assign]
            await press(pilot, "f2")

    with pytest.raises(ZeroDivisionError):  # a run of a test raises it again
        await used()
    assert isinstance(app.failure, ZeroDivisionError)
    assert app.return_code == ExitCode.INTERNAL
    assert app._exit_renderables == []
