"""Every key has a name, a sentence and an id; help, hints and palette are read from them."""

from collections.abc import Iterator

import pytest
from textual.binding import Binding
from textual.command import CommandPalette

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.choose import Choose
from shardscope.app.explorer.decode import Decode
from shardscope.app.explorer.detail import Detail
from shardscope.app.explorer.dialogs import CopiedCommand, Dialog, NotDone, OwnError
from shardscope.app.explorer.explore import Explore
from shardscope.app.explorer.helping import Help
from shardscope.app.explorer.hints import Hints
from shardscope.app.explorer.keys import key_rows
from shardscope.app.explorer.open.screen import Open
from shardscope.app.explorer.panels import PANELS
from shardscope.app.explorer.reference import Reference
from shardscope.app.explorer.report import bound as report
from shardscope.app.explorer.workspace import Workspace
from shardscope.widgets.blockers_panel import BlockersPanel
from shardscope.widgets.layout_panel import LayoutPanel
from shardscope.widgets.pickle_panel import PicklePanel
from shardscope.widgets.rank_map import RankMap
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.tensor_table import TensorPanel
from shardscope.widgets.tensor_tree_view import TensorTree
from shardscope.widgets.tensor_views import TensorViews
from shardscope.widgets.virtual_table import VirtualTable
from tests.app.explorers import FakeEngine, explorer, llama
from tests.conftest import settle

OWNERS = (
    *(Explorer, Explore, Open, Workspace, Dialog, Help, CopiedCommand, NotDone, OwnError, Choose, Reference),
    *(
        VirtualRows,
        VirtualTable,
        RankMap,
        BlockersPanel,
        TensorPanel,
        PicklePanel,
        TensorViews,
        TensorTree,
        LayoutPanel,
        Decode,
        Detail,
    ),
    *report.OWNERS,
)


def bindings() -> Iterator[Binding]:
    for owner in OWNERS:
        for binding in owner.__dict__.get("BINDINGS", ()):
            assert isinstance(binding, Binding)
            yield binding


@pytest.mark.parametrize("binding", list(bindings()), ids=lambda binding: binding.id)
def test_a_binding_can_be_remapped_and_explained(binding: Binding) -> None:
    assert binding.id
    assert binding.description
    assert binding.tooltip


def test_ids_are_unique() -> None:
    ids = [binding.id for binding in bindings()]
    assert len(ids) == len(set(ids))


async def test_a_key_can_be_remapped_by_its_id() -> None:
    app = explorer(FakeEngine(llama()))
    app.set_keymap({"explore.files": "F"})
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("F")
        await settle(pilot)
        assert app.screen.query_one("FileTree").has_focus
        assert "F" in next(row.keys for row in key_rows(app.screen) if row.id == "explore.files")


async def test_five_hints_fit_on_a_small_terminal() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        rows = app.screen.query_one(Hints).fitting(78)
        assert [row.id for row in rows][:5] == [
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
        titles = {command.title for command in app.get_system_commands(app.screen)}
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
