"""The tensor panel: searching, sorting, telling; names stay raw in messages and harmless on the screen."""

from tests.conftest import settle
from tests.widgets import samples
from tests.widgets.stage import Stage, screen_text
from textual.widgets import Input

from shardscope.engine.model.tensors import TensorTable
from shardscope.widgets.tensor_table import TensorPanel


async def test_search_shows_what_matches_and_how_much_that_is() -> None:
    panel = TensorPanel(samples.tensors(1_204))
    app = Stage(panel)
    async with app.run_test(size=(100, 24)) as pilot:
        assert "1,204 tensors" in screen_text(app)
        panel.search()
        await pilot.pause()
        await pilot.press(*"q_proj")
        await settle(pilot)
        assert "301 of 1,204 tensors" in screen_text(app)
        assert "k_proj" not in screen_text(app)
        await pilot.press("enter", "down")
        assert panel.tensor is not None
        assert panel.tensor.name == "model.layers.1.self_attn.q_proj.weight"
        await pilot.press("escape")
        await settle(pilot)
        assert "1,204 tensors" in screen_text(app)
        assert panel.tensor.name == "model.layers.1.self_attn.q_proj.weight"


async def test_nothing_matches_is_said() -> None:
    panel = TensorPanel(samples.tensors(20))
    app = Stage(panel)
    async with app.run_test(size=(100, 24)) as pilot:
        panel.search("no_such_thing")
        await settle(pilot)
        assert "No tensor matches" in screen_text(app)
        assert "0 of 20 tensors" in screen_text(app)
        assert panel.tensor is None


async def test_sorting_keeps_the_search_and_the_search_keeps_the_order() -> None:
    panel = TensorPanel(samples.tensors(40))
    app = Stage(panel)
    async with app.run_test(size=(100, 24)) as pilot:
        panel.rows.focus()
        await pilot.press("s", "s", "s", "s")  # name, dtype, shape, bytes
        await settle(pilot)
        await pilot.press("S")
        await settle(pilot)
        assert "bytes ▼" in screen_text(app)
        assert "gate_proj" in screen_text(app).splitlines()[1]
        panel.search("!gate")
        await settle(pilot)
        sizes = [panel._table[row].bytes for row in panel.rows.order]
        assert len(sizes) == 30
        assert sizes == sorted(sizes, reverse=True)


async def test_the_cursor_is_named_in_full_below_the_table() -> None:
    table = TensorTable()
    name = "model." + "very_long_" * 6 + "name.weight"
    table.append("some/folder/model-00001-of-00002.safetensors", name, "BF16", (2, 2), 0, 8)
    table.append("some/folder/model-00002-of-00002.safetensors", "other", "BF16", (2, 2), 0, 8)
    app = Stage(TensorPanel(table))
    async with app.run_test(size=(140, 12)) as pilot:
        await pilot.pause()
        foot = screen_text(app).splitlines()[-1]
        assert foot.split() == [name, "some/folder/model-00001-of-00002.safetensors"]


async def test_messages_carry_the_tensor_as_it_is() -> None:
    table = TensorTable()
    table.append("f", "plain", "BF16", (1,), 0, 2)
    table.append("f", "hostile\x1b[2J", "BF16", (1,), 2, 4)
    panel = TensorPanel(table)
    app = Stage(panel)
    async with app.run_test(size=(100, 12)) as pilot:
        panel.rows.focus()
        await pilot.press("down", "enter")
        await pilot.pause()
        names = [
            message.tensor.name for message in app.said if isinstance(message, TensorPanel.TensorSelected)
        ]
        assert names == ["hostile\x1b[2J"]


async def test_a_tensor_is_found_by_name_though_a_search_hides_it() -> None:
    panel = TensorPanel(samples.tensors(40))
    app = Stage(panel)
    async with app.run_test(size=(100, 24)) as pilot:
        panel.search("k_proj")
        await settle(pilot)
        assert panel.find("model.layers.5.self_attn.q_proj.weight")
        await settle(pilot)
        assert panel.tensor is not None
        assert panel.tensor.name == "model.layers.5.self_attn.q_proj.weight"
        assert not panel.find("no.such.tensor")


async def test_states_of_an_empty_panel() -> None:
    panel = TensorPanel()
    app = Stage(panel)
    async with app.run_test(size=(100, 12)) as pilot:
        assert "Not examined yet" in screen_text(app)
        panel.show(TensorTable(), none="16 opaque files: decode to list their tensors")
        await settle(pilot)
        assert "16 opaque files: decode" in screen_text(app)
        assert "Not examined yet" not in screen_text(app)


async def test_more_tensors_arrive_while_a_search_is_on() -> None:
    panel = TensorPanel(samples.tensors(4))
    app = Stage(panel)
    async with app.run_test(size=(100, 12)) as pilot:
        panel.search("q_proj")
        await settle(pilot)
        panel.show(samples.tensors(400))
        await settle(pilot)
        assert "100 of 400 tensors" in screen_text(app)
        assert panel.query_one(Input).value == "q_proj"
