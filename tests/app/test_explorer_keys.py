"""Every key has a name, a sentence and an id; help, hints and palette are read from them."""

import importlib
import os
import pkgutil
import signal
from collections.abc import Iterator

import pytest
from textual.binding import Binding
from textual.command import CommandPalette
from textual.dom import DOMNode

import shardscope.app.explorer
import shardscope.widgets
from shardscope.app.explorer.actions import owners
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.checkpoint.panels import PANELS
from shardscope.app.explorer.help.helping import Help
from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.help.keys import key_rows
from shardscope.app.settings.checks import KEY
from shardscope.app.settings.nouns import Settings, SettingsRead
from shardscope.styles import FIRST, SHEETS
from tests.app.conversions import text
from tests.app.explorers import FakeEngine, explorer, llama
from tests.conftest import settle


def bound() -> Iterator[Binding]:
    """Yield every binding that the explorer has."""
    for owner in owners():
        for binding in owner.__dict__["BINDINGS"]:
            assert isinstance(binding, Binding)
            yield binding


@pytest.mark.parametrize("binding", list(bound()), ids=lambda binding: binding.id)
def test_a_binding_can_be_remapped_and_explained(binding: Binding) -> None:
    assert binding.id
    assert binding.description
    assert binding.tooltip


@pytest.mark.parametrize("binding", list(bound()), ids=lambda binding: binding.id)
def test_a_key_is_one_that_every_terminal_sends(binding: Binding) -> None:
    for key in binding.key.split(","):
        assert KEY.fullmatch(key.strip()), key


def test_ids_are_unique() -> None:
    ids = [binding.id for binding in bound()]
    assert len(ids) == len(set(ids))


def test_settings_know_every_class_that_binds_keys() -> None:
    found = set()
    for package in (shardscope.app.explorer, shardscope.widgets):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for each in vars(importlib.import_module(module.name)).values():
                if isinstance(each, type) and issubclass(each, DOMNode) and each.__module__ == module.name:
                    found |= {each} if vars(each).get("BINDINGS") else set()
    assert found == set(owners())


async def test_a_key_can_be_remapped_by_its_id() -> None:
    keys = (("explore.files", "H"), ("explore.model", "K,J"))
    app = explorer(FakeEngine(llama()), settings=SettingsRead("", exists=True, settings=Settings(keys=keys)))
    async with app.run_test() as pilot:
        await settle(pilot)
        assert "K model V scan values" in text(app)  # the summary says the key of the settings
        await pilot.press("H")
        await settle(pilot)
        assert app.screen.query_one("FileTree").has_focus
        assert "H" in next(row.keys for row in key_rows(app.screen) if row.id == "explore.files")


async def test_five_hints_fit_on_a_small_terminal() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        rows = app.screen.query_one(Hints).fitting(78)
        assert [row.id for row in rows][:6] == [
            "explore.convert",
            "explore.search",
            "app.palette",
            "app.help",
            "explore.files",
            "app.quit",
        ]


async def test_a_click_on_a_hint_does_what_its_key_does() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        hints = app.screen.query_one(Hints)
        line = "".join(segment.text for segment in hints.render_line(0))
        await pilot.click(hints, offset=(line.index("files"), 0))
        await settle(pilot)
        assert app.screen.query_one("FileTree").has_focus

        await pilot.click(hints, offset=(line.index("keys"), 0))
        await settle(pilot)
        assert isinstance(app.screen, Help)


@pytest.mark.parametrize("key", ["colon", "ctrl+p"])
async def test_the_palette_has_everything_that_keys_do(key: str) -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
        listed = [command.title for command in app.get_system_commands(app.screen)]
        assert listed[:5] == ["Model", "Scan values", "Compare", "Convert", "Fix"]  # the ways on
        assert listed.index("Files") < listed.index("Back") < listed.index("Look again")
        titles = set(listed)
        assert titles >= {panel.title for panel in PANELS}
        assert titles >= {
            "Files",
            "Search",
            "Copy command",
            "Digest all",
            "Look again",
            "Keys",
            "Quit",
            "Theme",
        }
        assert "Screenshot" not in titles  # it would write a file

        await pilot.press(key)
        assert isinstance(app.screen, CommandPalette)


async def test_a_command_of_the_palette_does_what_the_key_does() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("colon", *"topology", "enter")
        await settle(pilot)
        await settle(pilot)
        assert isinstance(app.screen, Explore)
        assert app.screen.workspace is not None
        assert app.screen.workspace.panels.active == "topology"


async def test_rules_that_the_first_frame_does_not_wait_for_are_there_before_a_key() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        read = [path for path, _ in app.stylesheet.source if path in map(str, SHEETS)]
        assert read == [*map(str, SHEETS)]
        assert len(FIRST) < len(SHEETS)


async def test_what_halts_goes_back_to_a_shell_and_stays_where_none_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    halted: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda *said: halted.append(said))
    monkeypatch.setattr(os, "getsid", lambda _: 7)
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settle(pilot)
        monkeypatch.setattr(type(app), "is_headless", False)
        monkeypatch.setattr(os, "getpgrp", lambda: 7)  # the command of an ssh: nothing could wake it
        await pilot.press("ctrl+z")
        await settle(pilot)
        assert "No shell waits below" in text(app)
        assert halted == []

        monkeypatch.setattr(os, "getpgrp", lambda: 8)
        await pilot.press("slash", "ctrl+z")  # from within a field, too
        await settle(pilot)
        assert halted == [(0, signal.SIGTSTP)]
