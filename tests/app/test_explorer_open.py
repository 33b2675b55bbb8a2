"""The Open screen and the browser of the Hugging Face cache: typed or picked, in and out, nothing followed."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.dialogs import CopiedCommand
from shardscope.app.explorer.open.cache import CacheBrowser
from shardscope.app.explorer.open.completion import completed, split
from shardscope.app.explorer.open.screen import Open
from shardscope.app.settings.nouns import Settings, SettingsRead
from shardscope.app.settings.recent import recent
from shardscope.engine.model.text import UNSAFE
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.test_explorer_flow import text
from tests.capture import captured
from tests.conftest import SIZES, Snap, settle
from tests.hostile import HOSTILE
from tests.source.test_hub_cache import FIRST, SECOND, write_cache

CLIPBOARD = re.compile(r"\x1b\]52;c;[A-Za-z0-9+/=]*\x07")
"""What the explorer itself sends where something is copied: letters and digits alone."""


def tree(folder: Path) -> Path:
    """Write what a person's folder may hold."""
    for run in ("run-1/global_step100", "run-1/global_step200", "run-2"):
        (folder / run).mkdir(parents=True)
        (folder / run / "model.safetensors").write_bytes(b"0" * 1000)
    (folder / "adapter.safetensors").write_bytes(b"0" * 500)
    (folder / "notes").mkdir()
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tree(tmp_path / "here")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return folder


def opened(app: Explorer) -> Open:
    assert isinstance(app.screen, Open)
    return app.screen


async def typed(pilot: Pilot[Any], words: str) -> None:
    await pilot.press(*("slash" if char == "/" else "full_stop" if char == "." else char for char in words))
    await settle(pilot)


@pytest.mark.parametrize(
    ("begun", "whole"),
    [
        ("ru", "run-"),
        ("run-1", "run-1/"),
        ("run-1/", "run-1/global_step"),
        ("adap", "adapter.safetensors"),
        ("nothing", "nothing"),
        ("gone/x", "gone/x"),
        ("run-1/global_step1", "run-1/global_step100/"),
        (".h", ".hidden/"),
        ("", ""),
    ],
)
def test_a_path_is_completed_as_far_as_names_agree(here: Path, begun: str, whole: str) -> None:
    (here / ".hidden").mkdir()
    assert completed(begun) == whole


def test_names_that_no_terminal_should_show_complete_nothing(here: Path) -> None:
    (here / "odd\x1b[2J").mkdir()
    assert completed("odd") == "odd"
    assert split("~/x")[0] == os.path.expanduser("~")


async def test_one_goes_in_and_out_and_looks(here: Path) -> None:
    app = explorer(FakeEngine(llama()), path=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "run-1/" in text(app)
        assert "2 steps" in text(app)

        await pilot.press("j", "right")
        await settle(pilot)
        assert "In run-1" in text(app)
        assert "global_step200/" in text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "In this folder" in text(app)
        await pilot.press("left")
        await settle(pilot)
        assert f"In {here.parent}"[:60] in text(app)
        await pilot.press("escape")
        await settle(pilot)
        await pilot.press("G", "k")
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.command == "shardscope inspect adapter.safetensors"
        assert app.clipboard == "shardscope inspect adapter.safetensors"
        await pilot.press("escape", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Explore)
        assert (app.screen.target.path, app.screen.target.hf_cache) == ("adapter.safetensors", False)
        await pilot.press("escape")
        await settle(pilot)
        opened(app)


async def test_a_path_is_typed_completed_and_opened(here: Path) -> None:
    app = explorer(FakeEngine(llama()), path=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("slash")
        await typed(pilot, "ru")
        assert "adapter" not in text(app)
        await pilot.press("tab")
        await settle(pilot)
        assert "run-" in text(app).splitlines()[5]
        await typed(pilot, "1/")
        assert "global_step100/" in text(app)
        await pilot.press("down", "enter")  # there is such a folder: what was typed counts, not the list
        await settle(pilot)
        assert isinstance(app.screen, Explore)
        assert app.screen.target.path == "run-1/"
        await pilot.press("escape")
        await settle(pilot)
        await typed(pilot, "global_step2")
        await pilot.press("enter")  # no such thing: what the list has for it
        await settle(pilot)
        assert isinstance(app.screen, Explore)
        assert app.screen.target.path == "run-1/global_step200"


async def test_the_cache_opens_a_snapshot_with_its_links_admitted(here: Path, snap: Snap) -> None:
    write_cache(here.parent / "hub")
    app = explorer(FakeEngine(llama()), path=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("c")
        await settle(pilot)
        assert isinstance(app.screen, CacheBrowser)
        assert "1 incomplete, 1 missing" in text(app)
        await pilot.press("slash", *"tiny", "enter", "enter")
        await settle(pilot)
        assert "1 incomplete blob of 2 B so far" in text(app)
        await pilot.press("j")
        await settle(pilot)
        assert "1 file was not downloaded" in " ".join(text(app).split())
        snap(app, "revisions")
        await pilot.press("y")
        await settle(pilot)
        path = str(here.parent / "hub/models--org--tiny/snapshots" / SECOND)
        assert app.clipboard == f"shardscope inspect {path} --hf-cache"
        await pilot.press("n")
        assert app.clipboard == f"org/tiny@{SECOND}"
        await pilot.press("escape", "k", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Explore)
        assert app.screen.target.hf_cache
        assert app.screen.target.path.endswith(FIRST)
        for level in (CacheBrowser, CacheBrowser, Open):
            await pilot.press("escape")
            await settle(pilot)
            assert isinstance(app.screen, level)


async def test_no_cache_is_said_and_the_option_goes_there_at_once(here: Path) -> None:
    app = explorer(FakeEngine(llama()), path=None, hf_cache=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await settle(pilot)
        assert isinstance(app.screen, CacheBrowser)
        assert "There is no such folder. HF_HOME and HF_HUB_CACHE say where" in text(app)
        await pilot.press("enter", "right", "y")
        assert isinstance(app.screen, CacheBrowser)


async def test_a_cache_among_the_folders_is_browsed(here: Path) -> None:
    write_cache(here / "cache")
    app = explorer(FakeEngine(llama()), path=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("j", "enter")
        await settle(pilot)
        assert isinstance(app.screen, CacheBrowser)
        assert app.screen.path == "cache"


def remembering(tmp_path: Path, *, recent: bool) -> SettingsRead:
    return SettingsRead(str(tmp_path / "none.toml"), exists=False, settings=Settings(recent=recent))


@pytest.mark.parametrize("wanted", [True, False])
async def test_paths_are_remembered_by_those_alone_who_asked_for_it(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    app = explorer(FakeEngine(llama()), path=None, settings=remembering(tmp_path, recent=wanted))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("j", "enter")
        await settle(pilot)
        await pilot.press("escape", "r")
        await settle(pilot)
        assert ("Looked at before" in text(app)) is wanted
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, Explore)
    kept = tmp_path / "state" / "shardscope" / "recent.json"
    assert kept.exists() is wanted
    assert recent(str(kept)) == ((str(here / "run-1"),) if wanted else ())


async def test_no_name_of_a_folder_or_a_cache_acts_on_the_terminal(here: Path) -> None:
    for raw, _ in HOSTILE.values():
        if "/" not in raw and "\x00" not in raw and "\ud800" not in raw:
            (here / raw).mkdir(exist_ok=True)
            (here / "hf" / f"models--evil--{raw}" / "snapshots" / raw).mkdir(parents=True, exist_ok=True)
    app = explorer(FakeEngine(llama()), path=None)
    async with captured(app, size=(80, 24)) as (pilot, driver):
        await settle(pilot)
        await pilot.press("G", "right")
        await settle(pilot)
        await pilot.press("y", "n", "p")
        await settle(pilot)
        await pilot.press("escape", "escape")
        await settle(pilot)
        await pilot.press("slash", "a")
        await settle(pilot)
        await pilot.press("tab")
        await settle(pilot)
        await pilot.press("escape")
        await settle(pilot)
        await pilot.press("g", "j", "enter")
        await settle(pilot)
        assert isinstance(app.screen, CacheBrowser)
        await pilot.press("j", "j", "y", "escape", "enter")
        await settle(pilot)
        text_only = CLIPBOARD.sub("", driver.text)
        assert set(UNSAFE.findall(text_only)) <= {"\n", "\r"}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_screens(here: Path, snap: Snap, size: tuple[int, int]) -> None:
    write_cache(here / "hf")
    for raw, _ in HOSTILE.values():
        if "/" not in raw and "\x00" not in raw and "\ud800" not in raw:
            (here / "hf" / f"models--evil--{raw}"[:200]).mkdir(exist_ok=True)
    app = explorer(FakeEngine(llama()), path=None)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        snap(app, f"folder-{size[0]}")
        await pilot.press("slash", *"ru")
        await settle(pilot)
        snap(app, f"typed-{size[0]}")
        await pilot.press("escape")
        await settle(pilot)
        await pilot.press("j", "enter")
        await settle(pilot)
        assert isinstance(app.screen, CacheBrowser)
        app.screen.query_one("#caption").display = False  # it names the folder of the test
        await settle(pilot)
        snap(app, f"cache-{size[0]}")
