"""What keys do on the shard map, and how what is typed there is read."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.widgets import Input

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.dialogs import CopiedCommand, NotDone
from shardscope.app.explorer.shardmap.asking import Wish, read_index, read_wish
from shardscope.app.explorer.shardmap.dialogs import Question, Transfer
from shardscope.app.explorer.shardmap.engine import CALLS
from shardscope.app.explorer.shardmap.screen import ShardMap
from shardscope.app.explorer.shardmap.sight import Sight
from shardscope.app.explorer.target import Asked
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.inspection import Inspection, inspect
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.shardmap import Block, Box
from shardscope.engine.peeking.tensormaps import chart
from shardscope.widgets.shard_map import ShardPicture
from shardscope.widgets.shard_map_words import ShardNotes
from tests.app.decodings import decoded, opaque
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.fakes import a_blocker
from tests.app.shardmaps import MESH, QKV, a_map, embedding, gap, padded, partition, qkv, replicated, tensor
from tests.app.test_explorer_flow import text
from tests.conftest import settle

FIXTURES = Path(__file__).parents[1] / "fixtures"


def sight(*tensors: LogicalTensor, at: int = 0, lanes: bool = False) -> Sight:
    """Return a tensor in sight, with room for 32 x 16 cells."""
    made = chart(tensors[at])
    assert made.guide is not None
    from shardscope.engine.geometry.drawing.lanes import lanes as lanes_of

    found = Sight(made, made.guide, lanes_of(tensors[at], tensors) if lanes else ())
    found.room = (32, 16)
    return found


# What is typed


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        ("tp 2", ["--tp", "2"]),
        ("tp=2,dp=4", ["--tp", "2", "--dp", "4"]),
        ("--tp 4 --zero 3", ["--tp", "4", "--zero", "3"]),
        ("dp 8 fsdp", ["--dp", "8", "--fsdp"]),
        ("tp2pp2", ["--tp", "2", "--pp", "2"]),
        (" ./maps/tp 4.json ", ["--target", "'./maps/tp 4.json'"]),
        ("map.json", ["--target", "map.json"]),
    ],
)
def test_a_target_is_read_as_reshard_would(typed: str, options: list[str]) -> None:
    wish = read_wish(typed)
    assert isinstance(wish, Wish)
    assert wish.options == options


@pytest.mark.parametrize(
    "typed", ["", "tp", "tp 0", "tp 2 tp 4", "zero 4", "fsdp 2", "rows 4", "?", "fsdp zero 1", "tp 99999"]
)
def test_what_is_no_target_is_said(typed: str) -> None:
    said = read_wish(typed)
    assert isinstance(said, str)
    assert said.endswith(".")


def test_an_index_is_read_in_each_dimension_or_flattened() -> None:
    assert read_index("600, 17", (3072, 2048)) == (600, 17)
    assert read_index("[600 17]", (3072, 2048)) == (600, 17)
    assert read_index("2_048", (3072, 2048)) == (1, 0)
    assert read_index("7", (9,)) == (7,)
    for typed, shape in (
        ("3072, 0", (3072, 2048)),
        ("1,2,3", (4, 4)),
        ("x", (4,)),
        ("16", (4, 4)),
        ("", (4,)),
        ("4", (4,)),
    ):
        assert isinstance(read_index(typed, shape), str)


# In sight


def test_pieces_are_gone_through_one_by_one_in_both_views() -> None:
    found = sight(qkv())
    seen = []
    for _ in range(4):
        held = found.holding
        assert held is not None
        seen.append((held.place, held.piece, found.spot.index))
        found.step(1)
    assert seen == [
        ("tp 0", 0, (0, 0)),
        ("tp 0", 1, (2048, 0)),
        ("tp 0", 2, (2560, 0)),
        ("tp 1", 0, (512, 0)),
    ]
    found.step(-1)
    assert found.spot.index == (512, 0)
    found.see("shard")
    assert found.look.group == 1
    found.step(1)
    assert found.spot.index == (2176, 0)
    assert found.look.at == (512, 0)
    for _ in range(2):
        found.step(1)
    assert found.look.group == 2
    found.step(-1)
    assert (found.look.group, found.spot.letter) == (1, "3")


def test_views_show_the_same_element() -> None:
    found = sight(qkv(), lanes=True)
    assert found.look.view == "files"
    found.see("logical")
    found.go_to((2177, 5))
    held = found.holding
    assert held is not None
    assert (held.place, held.index) == ("tp 1", (513, 5))
    found.see("shard")
    assert found.look.at == (513, 5)
    assert found.spot.index == (2177, 5)
    found.see("files")
    assert found.lanes[found.look.at[0]].record.file == "mp_rank_01_model_states.pt"
    found.see("logical")
    assert found.spot.index == (512, 0)


def test_a_ribbon_knows_its_neighbours_and_its_padding() -> None:
    found = sight(*partition(), at=1, lanes=True)
    drawing = found.drawing
    letters = [set(line) for line in dict.fromkeys(drawing.cells)]
    assert letters == [{"<", "A"}, {"B"}, {"C", ">", "."}]
    assert found.lanes[0].neighbours == ("embed.weight", None)
    assert found.lanes[2].neighbours == (None, "norm.weight")
    assert found.spot.index == (0, 0)
    found.step(1)
    assert (found.look.at, found.spot.letter) == ((1, 0), "B")
    assert found.spot.index == (11, 4)
    found.ends(last=True)
    assert found.spot.says == "padding, or bytes of what is not listed"


def test_closer_and_back_from_a_thousand_million_rows() -> None:  # R190
    found = sight(embedding())
    found.go_to((500_000_123, 100))
    windows = [found.look.window]
    for _ in range(20):
        found.zoom_in()
        assert found.look.window.holds(*found.look.at)
        assert found.drawing.cells
        if found.look.window != windows[-1]:
            windows.append(found.look.window)
    assert (windows[1].row, windows[1].rows) == (500_000_000, 15_625_000)
    assert (windows[-1].rows, windows[-1].columns) == (16, 32)
    assert found.spot.index == (500_000_123, 100)
    for window in reversed(windows[:-1]):
        found.zoom_out()
        assert found.look.window == window


def test_further_holders_are_told_one_after_the_other() -> None:
    boxes = (Box((0, 0), (6, 4)), Box((3, 0), (5, 4)), None, None)
    found = sight(tensor("overlapping", (8, 4), Block(("tp",), boxes), MESH))
    found.go_to((4, 1))
    places = []
    for _ in range(3):
        held = found.holding
        assert held is not None
        places.append((held.place, held.index))
        found.next_holder()
    assert places == [("tp 0", (4, 1)), ("tp 1", (1, 1)), ("tp 0", (4, 1))]
    found.go_to((7, 0))
    assert len(found.spot.holdings) == 1


def test_edges_hold_the_cursor() -> None:
    found = sight(padded())
    found.move(-3, -3)
    assert found.look.at == (0, 0)
    found.ends(last=True)
    assert found.spot.index == (32_002, 511)
    before = found.look.at
    found.move(3, 3)
    assert found.look.at == before


# On the screen


async def typed(pilot: object, words: str) -> None:
    await pilot.press(*("space" if letter == " " else letter for letter in words))  # type: ignore[attr-defined]


def shown(app: Explorer) -> ShardMap:
    """Return the shard map in front."""
    assert isinstance(app.screen, ShardMap)
    return app.screen


async def test_keys_on_the_map_of_a_fused_projection() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        app.push_screen(a_map(qkv()))
        await settle(pilot)
        assert "element [0, 0]" in text(app)
        assert "mp_rank_00_model_states.pt" in text(app)
        assert "part q of q, k, v along" in " ".join(text(app).split())

        await pilot.press("n", "n", "n")
        await settle(pilot)
        assert "element [512, 0]" in text(app)
        await pilot.press("v")
        await settle(pilot)
        assert "shard of tp 1 (2 ranks)" in text(app)
        await pilot.press("y")
        await settle(pilot)
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.command == (
            f"shardscope tensors run42/llama --decode --component model --map {QKV} --rank 1"
        )
        await pilot.press("escape", "v")
        await settle(pilot)
        assert "in its files" in text(app)
        await pilot.press("v")
        await settle(pilot)

        await pilot.press("g")
        await settle(pilot)
        assert isinstance(app.screen, Question)
        await typed(pilot, "9999,0")
        await pilot.press("enter")
        await settle(pilot)
        assert "Dimension 0 has 3,072 positions" in text(app)
        app.screen.query_one(Input).value = "600, 17"
        await pilot.press("enter")
        await settle(pilot)
        sight_ = shown(app).sight
        assert sight_ is not None
        assert sight_.spot.index == (600, 17)

        await pilot.press("z")
        await settle(pilot)
        assert "closer" in text(app)
        assert sight_.look.window.rows == 512
        await pilot.press("escape")
        await settle(pilot)
        assert sight_.look.window.rows == 3072
        await pilot.press("tab", "down", "tab", "j", "l")
        await settle(pilot)
        assert sight_.spot.index != (600, 17)
        await pilot.click(ShardPicture, offset=(8, 1))
        await settle(pilot)
        assert sight_.look.at[0] == 0
        await pilot.press("escape")
        await settle(pilot)
        assert not isinstance(app.screen, ShardMap)


async def test_a_target_is_asked_for_held_against_and_told_pair_by_pair() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        app.push_screen(a_map(embedding()))
        await settle(pilot)
        await pilot.press("x")
        await settle(pilot)
        await typed(pilot, "dp 2 fsdp")
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, Transfer)
        assert "7.5 TiB in 64 copies between 64 pairs of ranks" in text(app)
        await pilot.press("escape", "m")
        await settle(pilot)
        screen = shown(app)
        assert screen.sight is not None
        assert screen.sight.on_target
        assert "target dp 2 fsdp" in text(app)
        assert len(screen.sight.guide.atlas.groups) == 2
        await pilot.press("y")
        await settle(pilot)
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.command == (
            "shardscope reshard run42/llama --decode --include embed.weight --dp 2 --fsdp --plan-only --json"
        )
        await pilot.press("escape", "m")
        await settle(pilot)
        assert not screen.sight.on_target

        await pilot.press("M")
        await settle(pilot)
        app.screen.query_one(Input).value = "./no/such/map.json"
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, NotDone)
        await pilot.press("escape")
        await settle(pilot)
        assert shown(app).sight is screen.sight


async def test_what_is_known_is_said_in_plain_words() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(120, 50)) as pilot:
        await settle(pilot)
        for shown_tensor, words in (
            (replicated(), "Tied: it shares all its bytes with final.bias."),
            (replicated(), "Shards hold the values times a factor"),
            (replicated(), "2 further copies of shards"),
            (padded(), "Stored as 32,064 x 512: the writer padded it"),
            (gap(), "! 512 elements held by nobody"),
        ):
            app.push_screen(a_map(shown_tensor))
            await settle(pilot)
            said = [*app.screen.query_one(ShardNotes).text_lines, text(app)]
            assert words in " ".join(" ".join(said).split()), words
            app.pop_screen()
            await settle(pilot)
        screen = a_map(qkv())
        found = screen.subject.inspection
        blocker = replace(a_blocker(), message=f"Copies differ in 3 elements, first of {QKV}: 0.5 and 0.25.")
        found.descriptor = replace(found.descriptor, blockers=(blocker,))
        app.push_screen(screen)
        await settle(pilot)
        assert "! Copies differ in 3 elements" in text(app)


async def test_from_the_tensors_and_from_their_details_and_to_the_question_about_decoding() -> None:
    app = explorer(FakeEngine(opaque(), decoded=decoded()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("d", "D")
        await settle(pilot)
        await pilot.press("6")
        await settle(pilot)
        await pilot.press("m")
        await settle(pilot)
        assert shown(app).subject.tensor.name == "embed.weight"
        assert shown(app).subject.asked == Asked()
        await pilot.press("escape", "enter")
        await settle(pilot)
        await pilot.press("m")
        await settle(pilot)
        assert shown(app).subject.tensor.name == "embed.weight"
        await pilot.press("d")
        await settle(pilot)
        assert isinstance(app.screen, ShardMap)  # nothing is left to decode


async def test_a_header_alone_is_one_holder_and_decoding_is_offered() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("6")
        await settle(pilot)
        await pilot.press("m")
        await settle(pilot)
        screen = shown(app)
        assert not screen.subject.is_decoded
        assert "one header's view" in text(app)
        assert "model-00001-of-00003.safetensors" in text(app).replace("\n", "") or "model-0000" in text(app)


# Checkpoints that producers wrote, through the whole engine


def real(path: str) -> Inspection:
    """Return a fixture decoded."""
    return inspect(
        FIXTURES / path / "checkpoint",
        digest="none",
        decoding=Decoding(Intent("inspect", "command line"), "all"),
    )


def named(found: Inspection, name: str) -> LogicalTensor:
    assert found.catalogue is not None
    return next(tensor for tensor in found.catalogue.tensors if tensor.name == name)


def test_megatron_deepspeed_and_distributed_checkpoints_are_drawn_and_held_against_targets(
    tmp_path: Path,
) -> None:
    megatron = real("megatron/legacy_tp2_pp2")
    tensor = named(megatron, "decoder.layers.0.mlp.linear_fc1.weight")
    source = CALLS.chart(tensor)
    target, plan = CALLS.aim(megatron, tensor, source, Wish((("tp", 4),)))
    assert target.mesh == "dp 1 x tp 4"
    assert sorted((one.source_rank, one.target_rank) for one in plan.traffic) == [
        (0, 0),
        (0, 1),
        (1, 2),
        (1, 3),
    ]
    assert plan.elements == 96 * 32

    zero = real("deepspeed/zero2-w4-bf16")
    lanes = CALLS.lanes(named(zero, "blocks.0.qkv.weight"), zero)
    assert [lane.label for lane in lanes] == [0, 1]
    assert all("optim_states" in lane.record.file for lane in lanes)

    dcp = real("dcp/model_optim_world2")
    tensor = named(dcp, "model.emb.weight")
    source = CALLS.chart(tensor)
    assert source.guide is not None
    spot = source.guide.spot(7, 3)
    assert spot.holdings[0].element is not None
    assert spot.holdings[0].element.file.endswith("__1_0.distcp")
    document = {
        "schema": "shardscope.shardmap/1",
        "meshes": {"dense": {"axes": [{"name": "tp", "size": 2}]}},
        "tensors": {
            "model.emb.weight": {
                "shape": [10, 6],
                "map": {"node": "contiguous", "axis": "tp", "dim": 1, "widths": [3, 3]},
            }
        },
    }
    path = tmp_path / "map.json"
    path.write_text(json.dumps(document))
    target, plan = CALLS.aim(dcp, tensor, source, Wish(path=str(path)))
    assert target.guide is not None
    assert len(plan.traffic) == 4
