"""The Model screen: its figures and where its lines lead as plain functions, its states on the screen."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.examination import State
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.checkpoint.tensors_at import Place, glob
from shardscope.app.explorer.dialogs import CopiedCommand, NotDone
from shardscope.app.explorer.engine import ENGINE
from shardscope.app.explorer.help.reference import Reference
from shardscope.app.explorer.model.base import AskBase
from shardscope.app.explorer.model.case import CONTEXTS, DTYPES, Case, Field, grids, stepped, typed
from shardscope.app.explorer.model.places import place_of
from shardscope.app.explorer.model.screen import DECODE, Model
from shardscope.app.explorer.target import Target, model_command
from shardscope.engine.anatomy.memory import WIDTHS
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.inspection import Inspection, inspect
from shardscope.engine.model.escalation import Intent
from shardscope.engine.modelling import Studied, study_model
from shardscope.widgets.model_page import ModelPage
from shardscope.widgets.paragraphs import wrap
from shardscope.widgets.tensor_query import matching_rows
from shardscope.widgets.tensor_table import TensorPanel
from tests.app.models import HOSTILE, odd_model
from tests.conftest import Snap, settle

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
SMALL, WIDE = (80, 24), (120, 40)


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    odd_model(tmp_path / "odd")
    return Path("odd")


def keys_of(studied: Studied) -> Iterator[str]:
    """Yield the keys of the lines of a page that can be chosen."""
    page = ModelPage()
    page.document = studied.document
    yield from dict.fromkeys(each.key for each in page.paragraphs(78) if each.key is not None)


def tells_no_tensor(studied: Studied, key: str) -> bool:
    """Tell whether a line is a finding about the whole checkpoint."""
    params = studied.document.findings[int(key.removeprefix("finding:"))].params
    return not params.keys() & {"tensor", "family"}


def rows_at(found: Inspection, place: Place) -> list[str]:
    """Return the names of the tensors that a place shows."""
    if place.name in found.tensors.names:
        return [place.name]
    return [found.tensors.names[row] for row in matching_rows(found.tensors, place.query)]


# Where lines lead.


@pytest.mark.parametrize(
    "name",
    [
        "hf/mixtral_moe_sharded",
        "hf/gpt2_tied_sharded",
        "hf/vllm_sharded_state_tp2",
        "hf/meta_consolidated_mp2",
        "peft/lora_llama",
        "gguf/llama_mixed",
        "deepspeed/zero3-w3-fp32",
        "deepspeed/moe-ep2-zero2-bf16",
    ],
)
def test_every_line_that_can_be_chosen_leads_to_tensors(name: str) -> None:
    found = inspect(
        FIXTURES / name / "checkpoint", digest="none", decoding=Decoding(Intent("verify", "command line"))
    )
    studied = study_model(found)
    for key in keys_of(studied):
        place = place_of(studied.document, key)
        if place is None:
            assert tells_no_tensor(studied, key), key
            continue
        absent = (
            key == "tied" and place.name not in found.tensors.names
        )  # the configuration ties what no file holds
        assert absent or rows_at(found, place), (key, place)


def test_odd_layers_lead_to_their_own_tensors(odd: Path) -> None:
    found = inspect(odd, digest="none")
    studied = study_model(found)
    codes = [item.code for item in studied.document.findings]
    led: dict[str, list[str]] = {}
    for key in keys_of(studied):
        place = place_of(studied.document, key)
        if place is None:
            assert tells_no_tensor(studied, key), key
            continue
        names = rows_at(found, place)
        assert names, (key, place)
        if key.startswith("finding:"):
            led.setdefault(codes[int(key.removeprefix("finding:"))], names)
    assert led["model.layer_odd"] == ["model.layers.3.input_layernorm.weight"]
    assert led["model.experts_missing"] == [
        f"model.layers.2.block_sparse_moe.experts.{expert}.w{n}.weight" for expert in range(3) for n in (1, 2)
    ]
    assert led["model.layer_lacks"] == [
        name for name in found.tensors.names if name.startswith("model.layers.6.")
    ]
    assert led["model.companion_missing"] == ["draft.0.down_proj.qweight", "draft.0.down_proj.qzeros"]
    assert led["model.contradiction"] == ["model.embed_tokens.weight"]


@pytest.mark.parametrize(
    "name", [HOSTILE, "a:b.weight", "!x", "'q", ">1GiB", "~n", "plain.0.weight", "dtype:F32"]
)
def test_a_search_for_a_name_finds_it_whatever_is_in_it(name: str) -> None:
    from shardscope.engine.model.tensors import TensorTable
    from shardscope.engine.model.text import display_name

    table = TensorTable()
    table.append("f", name, "F32", (1,), 0, 4)
    table.append("f", "0/0", "F32", (1,), 4, 8)
    for written in (name, display_name(name)):
        assert list(matching_rows(table, f"{glob(written)}*")) == [0]


def test_kinds_that_a_finding_is_about_are_marked(odd: Path) -> None:
    page = ModelPage()
    page.document = study_model(inspect(odd, digest="none")).document
    lines = ["".join(text for text, _ in line) for each in page.paragraphs(78) for line in wrap(each, 78)]
    mark = page.glyphs.caution
    marked = [
        line.strip().removeprefix(mark).split(":")[0].strip()
        for line in lines
        if line.strip().startswith(mark)
    ]
    assert marked[-3:] == ["layer 3 alone", "layer 6 alone", "in layer 2"]


# The case.


def test_types_are_those_that_the_engine_counts() -> None:
    assert tuple(WIDTHS) == DTYPES


@pytest.mark.parametrize("declared", [None, 4096, 5000])
def test_contexts_go_up_and_down_through_what_is_declared(declared: int | None) -> None:
    case, seen = Case(), []
    for _ in range(len(CONTEXTS) + 2):
        case = stepped(case, "context", 1, declared)
        seen.append(case.context or declared)
    assert seen == sorted(seen, key=lambda each: each or 0)
    assert seen[-1] == CONTEXTS[-1]
    down = []
    for _ in range(len(CONTEXTS) + 2):
        case = stepped(case, "context", -1, declared)
        down.append(case.context or declared)
    assert down[-1] == CONTEXTS[0]
    assert declared is None or declared in down


@pytest.mark.parametrize("field", ["batch", "dtype", "cache_dtype", "devices"])
def test_a_step_back_takes_a_step_back(field: Field) -> None:
    case = stepped(Case(), field, 1, None)
    assert case != Case()
    assert stepped(case, field, -1, None) == Case()


@pytest.mark.parametrize(
    ("text", "count"),
    [("32768", 32_768), (" 32k ", 32_768), ("32,768", 32_768), ("1M", 1 << 20), ("0", None), ("x", None), ("", None),
     ("²", None), ("-1", None), ("9" * 30, None), ("k", None)],
)  # fmt: skip
def test_tokens_are_read_as_people_write_them(text: str, count: int | None) -> None:
    found = typed(text)
    assert found == count if count is not None else isinstance(found, str)


def test_the_command_says_the_case() -> None:
    case = Case(context=8_192, batch=4, dtype="I4", cache_dtype="F8_E4M3", devices=2)
    said = model_command(Target("c k"), case.words(), asked=None, base="../b")
    assert said == (
        "shardscope model 'c k' --base ../b --dtype I4 --context 8192 --batch 4 --cache-dtype F8_E4M3 --devices 2"
    )
    assert Case().words() == []


# R115
def test_grids_hold_the_figures_of_their_cases(odd: Path) -> None:
    studied = study_model(inspect(odd, digest="none"))
    case = Case(batch=2, cache_dtype="I8")
    weights, cache = grids(studied, case)
    assert weights.rows[2] == (
        "16 bits",
        tuple(-(-2 * studied.document.parameters.total // n) for n in (1, 2, 4, 8)),
    )
    per_token = [8 * -(-2 // n) * 8 for n in (1, 2, 4, 8)]
    assert dict(cache.rows)["4,096"] == tuple(2 * 4_096 * each for each in per_token)
    assert "batch 2" in cache.title


# On the screen.


def explorer(path: str) -> Explorer:
    return Explorer(path, ENGINE, theme="shardscope-dark")


async def opened(pilot: Pilot[Any]) -> Model:
    while not (isinstance(pilot.app.screen, Explore) and pilot.app.screen.state is State.READY):
        await pilot.pause()
    await press(pilot, "M")
    screen = pilot.app.screen
    assert isinstance(screen, Model)
    return screen


async def press(pilot: Pilot[Any], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


async def test_an_odd_model_from_the_answer_to_its_tensors_and_back(odd: Path, snap: Snap) -> None:
    app = explorer("odd")
    async with app.run_test(size=SMALL) as pilot:
        screen = await opened(pilot)
        snap(app, "answer")
        await press(pilot, "c", "b", "b", "t", "n")
        memory = screen.pane.memory
        assert memory is not None
        assert (memory.context, memory.batch, memory.devices, memory.weights[1].name) == (
            8_192,
            4,
            2,
            "in F16",
        )
        await press(pilot, "B", "T", "N", "v", "C", "G")
        assert screen.case == Case(batch=2, cache_dtype="F16")
        snap(app, "sizes and another case")

        await press(pilot, "e", *"10k", "enter")
        assert screen.case.context == 10_240
        await press(pilot, "y")
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.command == "shardscope model odd --context 10240 --batch 2 --cache-dtype F16"
        await press(pilot, "escape", "g")
        assert screen.page.chosen is not None
        at = int(screen.page.chosen.removeprefix("finding:"))
        assert screen.studied is not None
        await press(pilot, "x")
        assert isinstance(app.screen, Reference)
        assert screen.studied.document.findings[at].code == "model.layer_gap"
        await press(pilot, "escape", "j")
        chosen = screen.page.chosen
        await press(pilot, "enter")
        assert isinstance(app.screen, Explore)
        panel = app.screen.query_one(TensorPanel)
        assert len(panel.rows.order) == 6
        assert panel.rows.has_focus
        assert panel.query_one(Input).value == "layer:2 model.layers.*.block_sparse_moe.experts.*"

        await press(pilot, "M")
        assert app.screen is screen
        assert screen.page.chosen == chosen
        await press(pilot, "tab")
        assert screen.pane.has_focus
        await press(pilot, "escape")
        assert isinstance(app.screen, Explore)
        await press(pilot, "ctrl+r")
        await press(pilot, "M")
        assert app.screen is not screen  # the checkpoint was looked at anew


async def test_the_figures_stand_beside_the_page_where_there_is_room(odd: Path, snap: Snap) -> None:
    app = explorer("odd")
    async with app.run_test(size=WIDE) as pilot:
        await opened(pilot)
        snap(app)


async def test_an_adapter_is_held_against_its_base(monkeypatch: pytest.MonkeyPatch, snap: Snap) -> None:
    monkeypatch.chdir(FIXTURES)
    app = explorer("peft/lora_llama/checkpoint")
    async with app.run_test(size=SMALL) as pilot:
        screen = await opened(pilot)
        assert not screen.pane.display
        await answer(pilot, "nowhere")
        assert isinstance(app.screen, NotDone)
        await press(pilot, "escape")
        await press(pilot, "o")
        assert isinstance(app.screen, AskBase)
        app.screen.query_one(Input).value = "hf/llama_sh"
        await press(pilot, "tab")
        assert app.screen.query_one(Input).value == "hf/llama_sharded/"
        await press(pilot, "escape")
        await answer(pilot, "hf/llama_sharded/checkpoint")
        assert screen.base == "hf/llama_sharded/checkpoint"
        snap(app)
        await press(pilot, "y")
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.command.endswith("checkpoint --base hf/llama_sharded/checkpoint")


async def answer(pilot: Pilot[Any], path: str) -> None:
    """Say where the base is."""
    await press(pilot, "o")
    pilot.app.screen.query_one(Input).value = path
    await press(pilot, "enter")


async def test_nothing_is_said_of_tensors_behind_pickles(monkeypatch: pytest.MonkeyPatch, snap: Snap) -> None:
    monkeypatch.chdir(FIXTURES)
    app = explorer("deepspeed/zero3-w3-fp32/checkpoint")
    async with app.run_test(size=SMALL) as pilot:
        screen = await opened(pilot)
        snap(app)
        assert screen.check_action("case", ()) is False
        ended: list[object] = []
        screen.dismiss = ended.append  # type: ignore[method-assign, assignment]
        await press(pilot, "d")
        assert ended == [DECODE]


async def test_a_look_that_is_left_is_cancelled(odd: Path) -> None:
    from shardscope.app.explorer.model.calls import Calls

    begun, left = Event(), Event()

    def hold(_t: object, _f: object, _b: object, cancel: Event, _p: object) -> Studied:
        begun.set()
        cancel.wait()
        left.set()
        from shardscope.engine.model.progress import Cancelled

        raise Cancelled

    app = explorer("odd")
    async with app.run_test(size=SMALL) as pilot:
        while not (isinstance(app.screen, Explore) and app.screen.state is State.READY):
            await pilot.pause()
        found = app.screen.found
        assert found is not None
        app.push_screen(Model(Target("odd"), found, crumbs=("odd",), calls=Calls(hold)))
        while not begun.is_set():
            await pilot.pause()
        await pilot.press("escape")
        while not left.is_set():
            await pilot.pause()
        assert isinstance(app.screen, Explore)
