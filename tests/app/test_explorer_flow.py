"""What happens in the explorer, from the first frame to the exit code."""

import pytest
from textual.widgets import Input

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.examination import State
from shardscope.app.explorer.checkpoint.explore import Explore, crumbs
from shardscope.app.explorer.checkpoint.panels import PANELS
from shardscope.app.explorer.checkpoint.tabs import Panels
from shardscope.app.explorer.dialogs import CopiedCommand, OwnError
from shardscope.app.explorer.help.helping import Help
from shardscope.app.explorer.notice import Notice
from shardscope.app.explorer.open.screen import Open
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.exits import ExitCode
from shardscope.widgets.file_tree import FileTree
from shardscope.widgets.preview_panel import PreviewPanel
from shardscope.widgets.status_lines import StatusLine
from shardscope.widgets.virtual_table import VirtualTable
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.fakes import a_blocker
from tests.conftest import settle


def screen(app: Explorer) -> Explore:
    """Return the Explore screen in front."""
    assert isinstance(app.screen, Explore)
    return app.screen


def text(app: Explorer) -> str:
    """Return what is drawn, line by line."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def test_it_looks_shows_and_then_hashes() -> None:
    engine = FakeEngine(llama())
    app = explorer(engine)
    async with app.run_test() as pilot:
        await settle(pilot)

        assert engine.calls == ["inspect", "digests auto"]
        assert screen(app).state is State.READY
        assert "Hugging Face safetensors" in text(app)
        assert app.exit_code is ExitCode.OK


async def test_while_it_looks_it_says_how_far_it_is_and_esc_stops_it() -> None:
    engine = FakeEngine(llama(), held=True)
    app = explorer(engine)
    async with app.run_test() as pilot:
        await pilot.pause()
        while screen(app).progress is None:
            await pilot.pause()
        await pilot.pause()
        assert screen(app).state is State.LOADING
        assert "37 of 200 files" in text(app)

        await pilot.press("escape")
        await settle(pilot)
        assert screen(app).state is State.STOPPED
        assert "stopped at headers, 37 of 200 files" in " ".join(text(app).split())

        engine.held = False
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert screen(app).state is State.READY


async def test_a_fault_is_a_page_with_its_code_and_its_exit_code() -> None:
    app = explorer(FakeEngine(Fault("source.missing")), path="no/such/place")
    async with app.run_test() as pilot:
        await settle(pilot)
        assert screen(app).state is State.FAILED
        assert app.screen.query(Notice)
        assert "source.missing" in text(app)
        assert "no/such/place" in text(app)

        await pilot.press("q")
    assert app.return_value is ExitCode.UNREADABLE


async def test_an_error_of_our_own_is_a_dialog_and_no_traceback() -> None:
    app = explorer(FakeEngine(ZeroDivisionError("division by zero")))
    async with app.run_test() as pilot:
        await settle(pilot)
        assert isinstance(app.screen, OwnError)
        assert "internal.error" in text(app)
        assert "ZeroDivisionError" in text(app)
        assert "Traceback" not in text(app)

        await pilot.press("escape")
        assert screen(app).state is State.FAILED
        await pilot.press("q")
    assert app.return_value is ExitCode.INTERNAL


async def test_an_error_in_a_preview_leaves_the_rest_standing() -> None:
    app = explorer(FakeEngine(llama(), shown=ZeroDivisionError()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("f", "down", "enter")
        await settle(pilot)
        assert isinstance(app.screen, OwnError)

        await pilot.press("escape")
        assert screen(app).state is State.READY


async def test_digests_report_and_can_be_stopped_and_asked_for() -> None:
    engine = FakeEngine(llama(), held_digests=True)
    app = explorer(engine)
    async with app.run_test() as pilot:
        while "digests 61 %" not in text(app):
            await pilot.pause()

        await pilot.press("number_sign")
        await settle(pilot)
        assert "digests stopped" in text(app)

        engine.held_digests = False
        await pilot.press("number_sign")
        await settle(pilot)
        assert engine.calls[-1] == "digests all"


async def test_a_digest_pass_that_fails_says_why() -> None:
    app = explorer(FakeEngine(llama(), digests_fail=Fault("source.missing")))
    async with app.run_test() as pilot:
        await settle(pilot)
        assert app.screen.query_one(StatusLine).facts[1] == "digests failed (source.missing)"


async def test_what_hashing_finds_out_appears_without_moving_the_person() -> None:
    engine = FakeEngine(llama(), held_digests=True)
    app = explorer(engine)
    async with app.run_test() as pilot:
        while not engine.calls[1:]:
            await pilot.pause()
        await pilot.press("6", "j", "j")
        while not screen(app).query("VirtualTable") or screen(app).query_one(VirtualTable).cursor < 2:
            await pilot.pause()
        table = screen(app).query_one("VirtualTable")
        engine.digested = llama(blockers=(a_blocker("source.missing", "config.json"),))
        engine.digested.tensors = engine.found.tensors  # type: ignore[union-attr]
        engine.held_digests = False
        await settle(pilot)

        assert "Blockers ✗1" in text(app)
        assert table.cursor == 2  # type: ignore[attr-defined]
        tree = screen(app).query_one(FileTree)
        assert [letter for letter, _ in tree.files.marks(tree.files.node_of(b"config.json") or 0)] == ["E"]


@pytest.mark.parametrize(("key", "panel"), list(zip("12345678", [panel.id for panel in PANELS], strict=True)))
async def test_a_number_brings_a_panel_to_the_front_with_the_keys(key: str, panel: str) -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press(key)
        await settle(pilot)

        panels = screen(app).query_one(Panels)
        assert panels.active == panel
        assert panels.has_focus_within
        assert panels.front is not None
        assert panels.front.display
        assert sum(each.display for each in panels.query_children("*").exclude("Tabs")) == 1


async def test_tab_goes_around_all_panels_in_both_ways() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
        panels = screen(app).query_one(Panels)
        seen = []
        for _ in PANELS:
            seen.append(panels.active)
            await pilot.press("tab")
            await settle(pilot)
        assert seen == [panel.id for panel in PANELS]
        assert panels.active == PANELS[0].id

        await pilot.press("shift+tab")
        await settle(pilot)
        assert panels.active == PANELS[-1].id


async def test_panels_are_made_when_they_are_first_shown() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
        panels = screen(app).query_one(Panels)
        assert [panel.id for panel in PANELS if panels.panel(panel.id) is not None] == ["summary"]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_file_opens_in_the_preview_and_esc_leads_back_to_the_files(size: tuple[int, int]) -> None:
    engine = FakeEngine(llama())
    app = explorer(engine)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("f")
        tree = app.screen.query_one(FileTree)
        assert tree.has_focus
        assert tree.region.width > 30

        await pilot.press("j", "enter")
        await settle(pilot)
        assert engine.calls[-1] == "preview config.json"
        assert app.screen.query_one(PreviewPanel).has_focus
        assert "hidden_size" in text(app)

        await pilot.press("escape")
        await settle(pilot)
        assert tree.has_focus
        await pilot.press("escape", "escape")
        await settle(pilot)
        assert screen(app).query_one(Panels).active == "summary"


async def test_esc_at_the_top_never_quits() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("escape", "escape", "escape")
        assert app.is_running
        assert isinstance(app.screen, Explore)


async def test_a_blocker_leads_to_its_file() -> None:
    app = explorer(FakeEngine(llama(blockers=(a_blocker("source.missing", "tokenizer/tokenizer.json"),))))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("3", "enter")
        await settle(pilot)
        tree = screen(app).query_one(FileTree)
        assert tree.has_focus
        assert tree.entry is not None
        assert tree.entry.path == b"tokenizer/tokenizer.json"


async def test_ctrl_c_leaves_from_anywhere_as_interrupted() -> None:
    engine = FakeEngine(llama(), held=True)
    app = explorer(engine)
    async with app.run_test() as pilot:
        await pilot.press("question_mark")
        await pilot.press("ctrl+c")
    assert app.return_value is ExitCode.CANCELLED


async def test_a_blocked_inspection_is_the_exit_code() -> None:
    app = explorer(FakeEngine(llama(blockers=(a_blocker("limit.files", None),))))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("q")
    assert app.return_value is ExitCode.LIMIT


async def test_y_copies_the_command_and_shows_it() -> None:
    app = explorer(FakeEngine(llama()), hf_cache=True)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("y")
        await pilot.pause()
        assert isinstance(app.screen, CopiedCommand)
        assert app.clipboard == "shardscope inspect run42/llama --hf-cache"
        assert app.clipboard in text(app)

        await pilot.press("escape")
        assert isinstance(app.screen, Explore)


@pytest.mark.parametrize(
    ("query", "command"),
    [
        ("", "shardscope tensors run42/llama"),
        ("q_proj", "shardscope tensors run42/llama --filter '*q_proj*'"),
        ("model.layers.1.*", "shardscope tensors run42/llama --filter 'model.layers.1.*'"),
    ],
)
async def test_y_on_the_tensors_copies_what_is_listed(query: str, command: str) -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("6", "slash", *query, "enter", "y")
        await settle(pilot)
        assert app.clipboard == command


async def test_help_lists_the_keys_of_the_panel_in_front_and_searches_them() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(120, 50)) as pilot:
        await settle(pilot)
        await pilot.press("3", "question_mark")
        await pilot.pause()
        assert isinstance(app.screen, Help)
        assert "List errors only" in text(app)

        await pilot.press(*"hash")
        await pilot.pause()
        assert "Hash every file" in text(app)
        assert "List errors only" not in text(app)
        assert app.screen.query_one(Input).value == "hash"

        await pilot.press("f1")
        assert isinstance(app.screen, Explore)


async def test_without_a_path_it_asks_and_leads_back() -> None:
    engine = FakeEngine(llama())
    app = explorer(engine, path=None)
    async with app.run_test() as pilot:
        await settle(pilot)
        assert isinstance(app.screen, Open)
        assert "this folder" in text(app)

        await pilot.press("slash", *"some/place", "enter")
        await settle(pilot)
        assert screen(app).target.path == "some/place"

        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, Open)
        await pilot.press("escape", "enter")
        await settle(pilot)
        assert screen(app).target.path == "."
        await pilot.press("q")
    assert app.return_value is ExitCode.OK


async def test_no_digest_is_asked_for_before_the_facts_are_drawn() -> None:
    drawn: list[bool] = []

    class Watched(FakeEngine):
        def _with_digests(self, *arguments: object) -> object:  # type: ignore[override]
            drawn.append(app.screen.query(Panels).first().region.width > 0)
            return arguments[0]

    app = explorer(Watched(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
    assert drawn == [True]


def test_crumbs_name_the_place() -> None:
    assert crumbs("runs/42/") == ("shardscope", "runs", "42")
    assert crumbs("/data/run") == ("shardscope", "data", "run")
    assert crumbs(".")[1] not in (".", "")
    assert crumbs("a/..")[1:] == crumbs(".")[1:]
