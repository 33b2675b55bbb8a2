"""The preview: lines with numbers, folded JSON, long lines, and texts of any size."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.widgets.stage import Stage, screen_text

from shardscope.widgets.preview_panel import PreviewPanel, json_blocks

INDEX = {
    "metadata": {"total_size": 123},
    "weight_map": {f"model.layers.{number}.weight": "model.safetensors" for number in range(100)},
    "dtypes": ["BF16", "F32"],
}
LINES = json.dumps(INDEX, indent=2).splitlines()


def drawn(app: Stage) -> list[str]:
    return [line.rstrip() for line in screen_text(app).splitlines() if line.strip()]


async def test_large_blocks_are_folded_at_first_and_unfold() -> None:
    panel = PreviewPanel()
    app = Stage(panel)
    async with app.run_test(size=(60, 20)) as pilot:
        panel.show("index.json", LINES, "4.2 KiB", json_blocks(LINES))
        await pilot.pause()
        lines = drawn(app)
        assert lines[0] == "index.json  4.2 KiB"
        assert '  5 ▸   "weight_map": { … 100 lines … },' in lines
        assert lines[-4].split() == ["108", '"BF16",']
        assert lines[-1].split() == ["111", "}"]
        await pilot.press("down", "down", "down", "down", "enter")
        assert '  6       "model.layers.0.weight": "model.safetensors",' in drawn(app)
        await pilot.press("enter")
        assert drawn(app) == lines


async def test_all_fold_and_unfold_at_once() -> None:
    panel = PreviewPanel()
    app = Stage(panel)
    async with app.run_test(size=(60, 20)) as pilot:
        panel.show("index.json", LINES, "", json_blocks(LINES))
        await pilot.press("z")
        assert panel.row_count() == 5
        assert '  2 ▸   "metadata": { … 1 line … },' in drawn(app)
        await pilot.press("z")
        assert panel.row_count() == len(LINES)


@given(
    st.recursive(
        st.integers() | st.text(max_size=4),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    )
)
def test_blocks_are_those_of_the_document(value: object) -> None:
    lines = json.dumps(value, indent=1).split("\n")
    for begin, end in json_blocks(lines).items():
        opening, closing = lines[begin], lines[end]
        indent = len(opening) - len(opening.lstrip())
        assert {"{": "}", "[": "]"}[opening.rstrip()[-1]] == closing.strip()[0]
        assert indent == len(closing) - len(closing.lstrip())
        assert all(len(line) - len(line.lstrip()) > indent for line in lines[begin + 1 : end])


async def test_long_lines_scroll_sideways_up_to_a_bound() -> None:
    panel = PreviewPanel()
    app = Stage(panel)
    async with app.run_test(size=(40, 8)) as pilot:
        panel.show("tokenizer.json", ["x" * 5_000_000, "0123456789" * 10])
        await pilot.press("l", "l")
        assert "0123456789" in screen_text(app)
        assert drawn(app)[0] == "tokenizer.json"
        assert drawn(app)[2].startswith("2345678901")  # two steps of eight, less the number in the margin
        assert panel.virtual_size.width < 5_000


async def test_a_hidden_line_is_unfolded_to_be_shown() -> None:
    panel = PreviewPanel()
    app = Stage(panel)
    async with app.run_test(size=(60, 12)) as pilot:
        panel.show("index.json", LINES, "", json_blocks(LINES))
        panel.show_line(50)
        await pilot.pause()
        assert panel.source_row(panel.cursor) == 50
        assert "model.layers.45.weight" in screen_text(app)
        panel.show_line(None)
        panel.show_line(1_000_000)
        assert panel.source_row(panel.cursor) == 50


async def test_lines_in_the_hundred_thousands_are_no_matter() -> None:
    panel = PreviewPanel()
    app = Stage(panel)
    async with app.run_test(size=(60, 12)) as pilot:
        panel.show("big.json", [f'"line {number}"' for number in range(300_000)])
        await pilot.press("G")
        assert '300000   "line 299999"' in drawn(app)[-1]


async def test_before_a_file_is_chosen() -> None:
    panel = PreviewPanel()
    app = Stage(panel)
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.press("enter", "z", "down")
        assert "Choose a file to see what it says" in screen_text(app)
