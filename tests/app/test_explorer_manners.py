"""The manners of the explorer: help that finds everything, codes explained, copies, settings, signs and colours."""

import os
import stat
from pathlib import Path

import pytest
from textual.color import Color
from textual.widgets import Input

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.convert.screen import Convert
from shardscope.app.explorer.copying import harmless, of_path, save
from shardscope.app.explorer.dialogs import CopiedCommand, SettingsNote
from shardscope.app.explorer.help.helping import Help
from shardscope.app.explorer.help.palette import Commands
from shardscope.app.explorer.help.reference import Reference
from shardscope.app.settings.reading import read_settings
from shardscope.engine.model.codes import CODES
from shardscope.styles.themes import CONTRAST, THEMES
from shardscope.widgets.glyphs import choose_glyphs
from shardscope.widgets.plain import in_ascii
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.fakes import a_blocker
from tests.app.test_explorer_flow import text
from tests.capture import captured
from tests.conftest import Snap, settle
from tests.hostile import HOSTILE


def missing() -> FakeEngine:
    return FakeEngine(llama(blockers=(a_blocker("index.shard_missing", "model-00002-of-00003.safetensors"),)))


async def test_help_finds_keys_terms_subjects_and_codes_and_does_what_is_chosen(snap: Snap) -> None:
    app = explorer(missing())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("question_mark")
        await settle(pilot)
        assert isinstance(app.screen, Help)
        await pilot.press("end", *"replica")
        await settle(pilot)
        assert "Glossary" in text(app)
        snap(app, "found")
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, Reference)
        assert app.screen.name_of_page == "glossary"
        await pilot.press("q")  # one level up, as in a pager
        await settle(pilot)
        assert isinstance(app.screen, Explore)

        await pilot.press("f1", *"shard_missing", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Reference)
        assert app.screen.name_of_page == "explain index.shard_missing"
        await pilot.press("escape", "question_mark", *"resources", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Explore)
        assert app.screen.workspace is not None
        assert app.screen.workspace.panels.active == "resources"

        await pilot.press("question_mark", *"xyzzy")
        await settle(pilot)
        assert "no key, no term, no code" in text(app)
        await pilot.press("enter", "escape")
        await settle(pilot)
        assert isinstance(app.screen, Explore)


async def test_plain_text_is_named_in_the_help() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("question_mark", "down")
        await settle(pilot)
        assert "shardscope inspect PATH" in text(app)


async def test_a_blocker_is_explained_from_its_panel_the_palette_and_the_list_of_codes(snap: Snap) -> None:
    app = explorer(missing())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("3", "x")
        await settle(pilot)
        assert isinstance(app.screen, Reference)
        assert CODES["index.shard_missing"].meaning[:40] in " ".join(text(app).split())
        assert "shardscope explain index.shard_missing" in text(app)
        snap(app, "explained")
        await pilot.press("y")
        await settle(pilot)
        assert app.clipboard == "shardscope explain index.shard_missing"
        await pilot.press("escape", "escape")
        await settle(pilot)

        provider = Commands(app.screen)
        assert [hit.text async for hit in provider.discover()][-1] == "Explain index.shard_missing"
        hits = [hit async for hit in provider.search("header.gap")]
        await max(hits, key=lambda hit: hit.score).command()
        await settle(pilot)
        assert isinstance(app.screen, Reference)
        assert app.screen.name_of_page == "explain header.gap"
        await pilot.press("escape", "f4", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Reference)
        assert app.screen.name_of_page.startswith("explain ")
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, Reference)
        assert app.screen.name_of_page == "codes"
        snap(app, "codes")


async def test_command_name_and_path_are_copied_and_saved_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snap: Snap
) -> None:
    monkeypatch.chdir(tmp_path)
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("f", "j", "y")
        await settle(pilot)
        assert isinstance(app.screen, CopiedCommand)
        assert app.clipboard == "shardscope inspect run42/llama"
        await pilot.press("n")
        assert app.clipboard == "config.json"
        await pilot.press("p")
        assert app.clipboard == f"{tmp_path}/run42/llama/config.json"
        await pilot.press("y")
        assert app.clipboard == "shardscope inspect run42/llama"
        assert os.listdir(tmp_path) == []
        await pilot.press("s", *"said", "enter")
        await settle(pilot)
        assert (tmp_path / "said").read_text() == "shardscope inspect run42/llama\n"
        assert stat.S_IMODE((tmp_path / "said").stat().st_mode) == 0o600
        await pilot.press("s", "enter")
        await settle(pilot)
        assert "Not saved: file exists" in text(app)
        await pilot.press("escape", "escape", "escape")
        await settle(pilot)
        assert isinstance(app.screen, Explore)
        await pilot.press("6", "end", "y", "n")
        await settle(pilot)
        assert app.clipboard.startswith("model.")
        await pilot.press("p")
        assert app.clipboard.startswith(f"{tmp_path}/run42/llama/model-0000")


def test_what_is_copied_is_harmless_where_it_is_pasted(tmp_path: Path) -> None:
    assert harmless("model.layers.0") == "model.layers.0"
    assert harmless("a\nrm -rf ~") == "$'a\\x0arm -rf ~'"
    command, name, path = of_path("/runs/it's", name="it's")
    assert command.text == "shardscope inspect '/runs/it'\"'\"'s'"
    assert (name.text, path.text) == ("it's", "/runs/it's")
    (tmp_path / "there").write_text("mine")
    assert save(str(tmp_path / "there"), "x") == "file exists"
    assert save(str(tmp_path / "no" / "folder"), "x") == "no such file or directory"
    assert (tmp_path / "there").read_text() == "mine"


def configured(folder: Path, words: str) -> Explorer:
    (folder / "config.toml").write_text(words)
    return explorer(FakeEngine(llama()), settings=read_settings(str(folder / "config.toml")))


async def test_settings_that_are_broken_are_said_and_the_defaults_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snap: Snap
) -> None:
    monkeypatch.chdir(tmp_path)
    app = configured(Path(), "theme = \n")
    async with app.run_test(size=(80, 24)) as pilot:
        while not isinstance(app.screen, SettingsNote):
            await pilot.pause()
        await settle(pilot)
        words = " ".join(text(app).replace("│", " ").split())
        assert "no TOML at line 1, column 9" in words
        assert "The defaults hold" in words
        snap(app, "note")
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, Explore)
        assert "Hugging Face safetensors" in text(app)


async def test_keys_are_moved_and_a_warning_is_a_note_in_passing(tmp_path: Path) -> None:
    words = 'digest = "none"\ncolour = 1\nmemory = "512MiB"\n[keys]\n"explore.files" = "H"\n'
    app = configured(tmp_path, words)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settle(pilot)
        while not app._notifications:
            await pilot.pause()
        assert [each.message for each in app._notifications] == [
            "Line 2 of the settings: there is no setting colour."
        ]
        await pilot.press("H")
        await settle(pilot)
        assert app.screen.query_one("FileTree").has_focus
        assert isinstance(app.screen, Explore)
        assert app.screen.digest_mode == "none"
        app.screen.action_convert()
        assert isinstance(started := app.screen_stack[-1], Convert)
        assert started.draft.options.memory_bytes == 512 << 20


async def test_a_terminal_of_ascii_gets_nothing_else(snap: Snap) -> None:
    choose_glyphs("ascii")
    app = explorer(missing())
    async with captured(app, size=(80, 24)) as (pilot, driver):
        await settle(pilot)
        for key in (
            "2",
            "3",
            "4",
            "5",
            "6",
            "f",
            "escape",
            "question_mark",
            "escape",
            "colon",
            "escape",
            "y",
        ):
            await pilot.press(key)
            await settle(pilot)
        assert "".join(driver.written).isascii()
        await pilot.press("escape", "3")
        await settle(pilot)
        assert "x error" in driver.text
        snap(app, "ascii")


def test_ascii_keeps_widths() -> None:
    assert in_ascii("╭─ Keys ─╮ │ ▌ … 漢字 é") == "+- Keys -+ | | ~ ???? ?"
    for raw, _ in HOSTILE.values():
        assert in_ascii(raw).isascii()


def contrast(one: str, other: str) -> float:
    def light(name: str) -> float:
        parts = [part / 255 for part in Color.parse(name).rgb]
        red, green, blue = (
            part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    lights = sorted((light(one), light(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_words_can_be_told_from_their_ground(theme: object) -> None:
    least = 7.0 if theme is CONTRAST else 4.5
    assert hasattr(theme, "background")
    for ground in ("background", "surface", "panel"):
        for ink in ("foreground", "primary", "success", "warning", "error"):
            assert contrast(getattr(theme, ink), getattr(theme, ground)) >= least, (ink, ground)
    colours = getattr(theme, "variables")  # noqa: B009 - whatever it is
    assert contrast(colours["block-cursor-foreground"], colours["block-cursor-background"]) >= least


async def test_other_themes(snap: Snap) -> None:
    app = explorer(missing())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("3")
        for theme in ("shardscope-contrast", "shardscope-light", "ansi-dark"):
            app.theme = theme
            await settle(pilot)
            snap(app, theme)
        await pilot.press("question_mark", *"stop", "space", *"hashing")  # which no code will ever say
        await settle(pilot)
        assert app.screen.query_one(Input).value == "stop hashing"
        snap(app, "help-ansi")
