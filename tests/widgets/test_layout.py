"""The layout of a file as a bar and a list: one cursor in both, and a bar that costs its letters and not the stretches."""

import time

from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import HOSTILE
from tests.widgets.stage import Stage, screen_text

from shardscope.engine.model.file_layout import ByteRange, FileLayout, RangeKind
from shardscope.engine.model.text import UNSAFE
from shardscope.widgets.glyphs import ASCII
from shardscope.widgets.layout_map import LayoutMap
from shardscope.widgets.layout_panel import LayoutPanel


def laid_out(*lengths: tuple[RangeKind, int], holes: tuple[tuple[int, int], ...] = ()) -> FileLayout:
    """Return a layout of stretches one after the other."""
    ranges, at = [], 0
    for number, (kind, length) in enumerate(lengths):
        hole = sum(max(0, min(end, at + length) - max(begin, at)) for begin, end in holes)
        ranges.append(ByteRange(at, at + length, kind, f"n{number}" if kind == "tensor" else "", hole=hole))
        at += length
    return FileLayout("model.safetensors", at, at, "safetensors", tuple(ranges), holes)


USUAL = laid_out(
    ("header", 100),
    ("padding", 4),
    ("tensor", 4_000),
    ("tensor", 3_000),
    ("gap", 8),
    ("tensor", 9_000),
    ("trailing", 16),
    holes=((9_000, 12_000),),
)


def letters(layout: FileLayout, count: int) -> str:
    return "".join(cell.letter for cell in LayoutMap(layout).cells(count))


def test_each_letter_has_its_share_and_what_is_odd_is_never_left_out() -> None:
    assert letters(USUAL, 16) == "HTTTtttGToooTTTX"
    assert letters(laid_out(("tensor", 10)), 20) == "T" * 10
    assert letters(laid_out(), 20) == ""


def test_every_other_tensor_has_a_small_letter() -> None:
    assert letters(laid_out(("tensor", 2), ("padding", 1), ("tensor", 2), ("tensor", 2)), 7) == "TTpttTT"


@given(
    st.lists(
        st.tuples(st.sampled_from(["tensor", "gap", "padding"]), st.integers(1, 50)), min_size=1, max_size=30
    ),
    st.integers(1, 90),
)
def test_bar_and_list_agree(lengths: list[tuple[RangeKind, int]], count: int) -> None:
    layout = laid_out(*lengths)
    drawn = LayoutMap(layout)
    cells = drawn.cells(count)
    assert len(cells) == min(count, layout.size)
    for place, each in enumerate(layout.ranges):
        span = drawn.span(place, count)
        assert 0 <= span[0] <= span[-1] < len(cells)
        assert drawn.at(each.begin) == place
        assert drawn.at(each.end - 1) == place
    shown = {cell.place for cell in cells}
    for number, cell in enumerate(cells):
        assert number in drawn.span(cell.place, count)
    assert not any(each.kind == "gap" for each in layout.ranges) or any(
        layout.ranges[place].kind == "gap" for place in shown
    )


def test_a_bar_of_very_many_stretches_costs_its_letters() -> None:
    def cost(count: int) -> float:
        lengths: list[tuple[RangeKind, int]] = [("tensor", 10)] * count
        drawn = LayoutMap(laid_out(*lengths))
        times = []
        for _ in range(5):
            begin = time.thread_time()
            drawn.cells(200)
            times.append(time.thread_time() - begin)
        return min(times)

    assert cost(100_000) < 10 * max(cost(1_000), 0.0005)


async def test_the_cursor_is_in_the_bar_and_in_the_list() -> None:
    panel = LayoutPanel()
    app = Stage(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        panel.show(USUAL)
        panel.rows.focus()
        await pilot.pause()
        shown = screen_text(app)
        assert "model.safetensors  safetensors · 15.8 KiB" in shown
        assert "3 tensors · 1 gap, 8 B · 16 B behind the end · 1 hole, 2.9 KiB" in shown
        await pilot.press("end")
        await pilot.pause()
        assert "7 of 7  bytes 16,112 .. 16,128" in screen_text(app)
        await pilot.press("left")
        await pilot.pause()
        assert panel.rows.cursor == 5
        await pilot.press("home", "right", "right")
        await pilot.pause()
        assert panel.rows.cursor == 3
        await pilot.press("x")
        await pilot.pause()
        assert panel.map.ranges[panel.rows.cursor].kind == "gap"
        await pilot.press("x")
        await pilot.pause()
        assert "2.9 KiB of it are a hole" in screen_text(app)
        panel.go_to(101)
        await pilot.pause()
        assert panel.map.ranges[panel.rows.cursor].kind == "padding"
        await pilot.press("s", "S")
        await pilot.pause()
        assert panel.rows.sort_column is None


async def test_enter_chooses_and_e_asks_for_other_files() -> None:
    panel = LayoutPanel()
    app = Stage(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        panel.show(USUAL)
        panel.rows.focus()
        await pilot.press("down", "down", "enter", "e", "E")
        await pilot.pause()
        (chosen,) = [each for each in app.said if isinstance(each, LayoutPanel.RangeChosen)]
        assert (chosen.file, chosen.chosen.name) == ("model.safetensors", "n2")
        assert [each.by for each in app.said if isinstance(each, LayoutPanel.OtherFileWanted)] == [1, -1]


async def test_a_click_on_the_bar_goes_there() -> None:
    panel = LayoutPanel()
    app = Stage(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        panel.show(USUAL)
        panel.rows.focus()
        await pilot.pause()
        await pilot.click(panel.bar, offset=(79, 2))
        await pilot.pause()
        assert panel.map.ranges[panel.rows.cursor].kind == "trailing"


async def test_nothing_acts_on_the_terminal_and_everything_has_ascii_signs() -> None:
    raws = [raw for raw, _ in HOSTILE.values()]
    ranges = tuple(ByteRange(n, n + 1, "tensor", raw, raw) for n, raw in enumerate(raws))
    panel = LayoutPanel(glyphs=ASCII)
    app = Stage(panel)
    async with app.run_test(size=(120, 50)) as pilot:
        panel.show(FileLayout("here", len(raws), 0, "safetensors", ranges, ((0, 2),), ("".join(raws),)))
        panel.rows.focus()
        await pilot.pause()
        assert not UNSAFE.search(screen_text(app).replace("\n", ""))
        panel.show(USUAL)
        await pilot.pause()
        assert screen_text(app).isascii()


async def test_no_letter_stands_on_another_line_than_its_word() -> None:
    kinds: tuple[RangeKind, ...] = (
        "local header",
        "padding",
        "pickle",
        "storage",
        "member",
        "directory",
        "end",
        "gap",
        "trailing",
        "unknown",
    )
    panel = LayoutPanel()
    app = Stage(panel)
    async with app.run_test(size=(60, 24)) as pilot:
        panel.show(laid_out(*((kind, 9) for kind in kinds)))
        await pilot.pause()
        shown = screen_text(app)
        for letter, _, word in panel.map.legend():
            assert f"{letter} {word}" in shown


async def test_states_of_an_empty_panel() -> None:
    panel = LayoutPanel()
    app = Stage(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "Choose a file" in screen_text(app)
        panel.show(FileLayout("empty", 0, 0, "unknown", ()))
        await pilot.pause()
        assert "The file has no bytes" in screen_text(app)
        await pilot.press("right", "x", "enter")
        await pilot.pause()
