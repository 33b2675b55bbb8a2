"""Tensors by module and the layout of their files, in the explorer: how they look, and the ways between them."""

from collections.abc import Iterable
from typing import Any

import pytest

from shardscope.app.explorer.checkpoint.copied import CopiedNames, names_text
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.checkpoint.tabs import Panels
from shardscope.app.explorer.dialogs import CopiedCommand
from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.model.file_layout import ByteRange, FileLayout
from shardscope.engine.model.source import Kind
from shardscope.widgets.layout_panel import LayoutPanel
from shardscope.widgets.tensor_table import TensorPanel
from tests.app.explorers import FakeEngine, a_layout, explorer, llama
from tests.app.fakes import entry, inspection, llama_rows, tensor_table
from tests.app.test_explorer_flow import screen, text
from tests.capture import captured
from tests.conftest import SIZES, Snap, settle
from tests.hostile import HOSTILE

Row = tuple[str, str, tuple[int, ...], int, str]
SHARDS = tuple(f"model-{number:05}-of-00003.safetensors" for number in (1, 2, 3))


def mixture() -> Inspection:
    """A decoder with experts in its upper layers; the last layer has fewer heads."""

    def rows() -> Iterable[Row]:
        yield "model.embed_tokens.weight", "BF16", (128_256, 4_096), 128_256 * 8_192, SHARDS[0]
        for name, dtype, shape, size, file in llama_rows(32):
            if name == "model.layers.31.self_attn.q_proj.weight":
                shape, size = (2_048, 4_096), size // 2
            yield name, dtype, shape, size, file
        for layer in range(8):
            for expert in range(64):
                name = f"model.experts.{layer}.{expert}.w1.weight"
                yield name, "F8_E4M3", (1_024, 512), 1_024 * 512, SHARDS[2]
        yield "lm_head.weight", "BF16", (128_256, 4_096), 128_256 * 8_192, SHARDS[2]

    entries = [entry("config.json", 654), entry("sub", kind=Kind.DIRECTORY)]
    return inspection([*entries, *(entry(file, 6 << 30) for file in SHARDS)], table=tensor_table(rows()))


def broken(found: Inspection, path: bytes) -> FileLayout:
    """Return a layout with a gap, a hole and something behind the end."""
    whole = a_layout(found, path)
    ranges = [each for each in whole.ranges if each.name != "model.layers.3.mlp.up_proj.weight"]
    gap = next(each for each in whole.ranges if each.name == "model.layers.3.mlp.up_proj.weight")
    ranges.append(ByteRange(gap.begin, gap.end, "gap"))
    ranges.sort(key=lambda each: each.begin)
    hole = next(each for each in ranges if each.name == "model.layers.6.mlp.down_proj.weight")
    ranges[ranges.index(hole)] = ByteRange(
        hole.begin, hole.end, hole.kind, hole.name, hole.note, hole.end - hole.begin
    )
    says = ("The tensors of the header leave a gap of 112.0 MiB at byte 1,845,000,192.",)
    return FileLayout(
        whole.file,
        whole.size,
        whole.size - (112 << 20),
        "safetensors",
        tuple(ranges),
        ((hole.begin, hole.end),),
        says,
    )


OPEN = ("6", "t", "down", "down", "right", "down")
"""To the layers in the tree."""
SCREENS: dict[str, tuple[str, ...]] = {
    "tree": OPEN,
    "odd one": (*OPEN, "down"),
    "selected": (*OPEN, "space", "down", "down", "down", "space"),
    "ranked": ("6", "slash", *"lay3dwn"),
    "names": (*OPEN, "down", "space", "c"),
    "layout": ("7",),
    "layout odd": ("7", "x"),
}


@pytest.mark.parametrize("shown", SCREENS)
async def test_screen(shown: str, snap: Snap) -> None:
    app = explorer(FakeEngine(mixture(), laid_out=broken))
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        for key in SCREENS[shown]:
            await pilot.press(key)
            await settle(pilot)
        snap(app)


@pytest.mark.parametrize(
    ("theme", "size", "keys"),
    [
        ("shardscope-dark", SIZES[1], OPEN),
        ("shardscope-dark", (200, 60), ("7", "x")),
        ("shardscope-light", SIZES[0], (*OPEN, "space")),
        ("ansi-dark", SIZES[0], ("7", "x")),
        ("ansi-light", SIZES[1], OPEN),
        ("shardscope-light", SIZES[1], ("7",)),
    ],
    ids=["tree wide", "layout widest", "tree light", "layout ansi", "tree ansi light", "layout light wide"],
)
async def test_other_terminals(theme: str, size: tuple[int, int], keys: tuple[str, ...], snap: Snap) -> None:
    app = explorer(FakeEngine(mixture(), laid_out=broken))
    app.theme = theme
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for key in keys:
            await pilot.press(key)
            await settle(pilot)
        snap(app)


async def test_without_colour_and_with_hostile_names(snap: Snap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    raws = [raw for raw, _ in HOSTILE.values() if "\x00" not in raw and "\ud800" not in raw]
    table = tensor_table(
        (f"a.{raw}.{number}", "F32", (2, 2), 16, "model.safetensors") for raw in raws for number in range(4)
    )
    found = inspection([entry("model.safetensors", 9_000)], table=table)
    async with captured(explorer(FakeEngine(found)), size=SIZES[0]) as (pilot, driver):
        app: Any = pilot.app
        app.copy_to_clipboard = lambda _: None  # its escape sequence would be found among those of names
        await settle(pilot)
        await pilot.press("6", "t")
        await settle(pilot)
        snap(app, "tree")
        await pilot.press("space", "c")
        await settle(pilot)
        await pilot.press("escape", "7")
        await settle(pilot)
        snap(app, "layout")
        assert not driver.unsafe


async def test_b_shows_the_bytes_of_a_tensor_and_enter_leads_back() -> None:
    engine = FakeEngine(mixture())
    app = explorer(engine)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("6", *["down"] * 3, "b")
        await settle(pilot)
        panel = app.screen.query_one(LayoutPanel)
        assert panel.map.ranges[panel.rows.cursor].name == "model.layers.0.self_attn.v_proj.weight"
        assert engine.calls[-1] == f"layout {SHARDS[0]}"

        await pilot.press("down", "enter")
        await settle(pilot)
        tensors = app.screen.query_one(TensorPanel)
        assert tensors.tensor is not None
        assert tensors.tensor.name == "model.layers.0.self_attn.o_proj.weight"

        await pilot.press("t", "b")
        await settle(pilot)
        assert panel.map.ranges[panel.rows.cursor].name == "model.layers.0.self_attn.o_proj.weight"
        assert sum(call.startswith("layout") for call in engine.calls) == 1


async def test_the_layout_of_another_file_from_the_files_and_by_e() -> None:
    engine = FakeEngine(mixture())
    app = explorer(engine)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("f", "end", "b")
        await settle(pilot)
        assert screen(app).query_one(Panels).active == "layout"
        assert app.screen.query_one(LayoutPanel).file_layout.file == SHARDS[2]
        await pilot.press("e")
        await settle(pilot)
        assert app.screen.query_one(LayoutPanel).file_layout.file == "config.json"
        await pilot.press("E", "E")
        await settle(pilot)
        assert app.screen.query_one(LayoutPanel).file_layout.file == SHARDS[1]


async def test_a_folder_has_no_bytes_and_the_panel_still_opens() -> None:
    app = explorer(FakeEngine(mixture()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("f", "home", "b")
        await settle(pilot)
        assert app.screen.query_one(LayoutPanel).file_layout.file == SHARDS[0]


async def test_a_module_has_no_map_and_says_so() -> None:
    app = explorer(FakeEngine(mixture()))
    async with app.run_test() as pilot:
        await settle(pilot)
        for key in ("6", "t", "down", "m"):
            await pilot.press(key)
            await settle(pilot)
        assert isinstance(app.screen, Explore)
        assert ["open the module" in each.message for each in app._notifications] == [True]


async def test_an_error_while_laying_out_leaves_the_rest_standing() -> None:
    app = explorer(FakeEngine(llama(), laid_out=ZeroDivisionError()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("7")
        await settle(pilot)
        assert "internal.error" in text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "Choose a file" in text(app)


async def test_looking_again_lays_out_anew() -> None:
    engine = FakeEngine(llama())
    app = explorer(engine)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("7")
        await settle(pilot)
        await pilot.press("ctrl+r")
        await settle(pilot)
        await pilot.press("7")
        await settle(pilot)
        assert sum(call.startswith("layout") for call in engine.calls) == 2
        assert app.screen.query_one(LayoutPanel).file_layout.file


async def test_names_are_copied_and_shown() -> None:
    app = explorer(FakeEngine(mixture()))
    sent: list[str] = []
    app.copy_to_clipboard = sent.append  # type: ignore[method-assign,assignment]
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("6", "c")
        await settle(pilot)
        assert isinstance(app.screen, CopiedNames)
        assert sent == ["model.embed_tokens.weight"]
        await pilot.press("escape", "slash", *"'q_proj", "enter", "a", "c")
        await settle(pilot)
        assert sent[-1].count("\n") == 31
        assert "32 names sent" in " ".join(text(app).split())
        await pilot.press("escape", "y")
        await settle(pilot)
        assert isinstance(app.screen, CopiedCommand)
        assert "--filter '*q_proj*'" in sent[-1]


async def test_a_search_by_relevance_says_that_the_command_has_another_order() -> None:
    app = explorer(FakeEngine(mixture()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("6", "slash", *"mlp", "enter", "y")
        await settle(pilot)
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.note == "The command has no words for the order of the panel."


def test_names_for_the_clipboard_are_harmless_and_bounded() -> None:
    assert names_text(["a\x1b[2J", "b"]) == ("a␛[2J\nb", 2)
    long, count = names_text(["x" * 1_000] * 100)
    assert count == 47
    assert len(long) < 48_000
    assert names_text(["x" * 100_000])[1] == 1


async def test_the_tabs_fit_on_a_small_terminal() -> None:
    app = explorer(FakeEngine(mixture()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        line = text(app).splitlines()[1]
        assert all(word in line for word in ("Summary", "Blockers 0", "Layout", "Preview"))
