"""How decoding looks: the question, the work, the refusal, the references and a tensor of many fragments."""

import time

import pytest
from msgspec.structs import replace

from shardscope.app.explorer.checkpoint.detail import Detail
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.piece import Lowered
from shardscope.widgets.decode_terms import DecodeTerms, Terms
from shardscope.widgets.glyphs import ASCII
from shardscope.widgets.pickle_panel import PicklePanel
from shardscope.widgets.tensor_detail import FragmentRows, tensor_words
from tests.app.decodings import FILES, a_plane, decoded, fragments, opaque
from tests.app.explorers import PROFILE, FakeEngine, explorer
from tests.app.test_explorer_flow import screen, text
from tests.capture import captured
from tests.conftest import SIZES, Snap, settle
from tests.hostile import HOSTILE

NAMES = {
    what: pair
    for what, pair in HOSTILE.items()
    if "/" not in pair[0] and what not in ("nul", "lone surrogate")
}
SCREENS: dict[str, tuple[str, ...]] = {
    "offer": (),
    "offer for tensors": ("6",),
    "asked": ("d",),
    "decoded": ("d", "D"),
    "decoded tensors": ("d", "D", "6"),
    "tensor": ("d", "D", "6", "enter"),
    "pickles": ("d", "D", "9"),
    "records": ("d", "D", "9", "v", "down", "right", "down", "right", "down", "right"),
    "streams": ("d", "D", "9", "v", "v"),
}


@pytest.mark.parametrize("shown", SCREENS)
async def test_screen(shown: str, snap: Snap) -> None:
    app = explorer(FakeEngine(opaque(), decoded=decoded()))
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        for key in SCREENS[shown]:
            await pilot.press(key)
            await settle(pilot)
        await snap.both(pilot)


@pytest.mark.parametrize("theme", ["shardscope-light", "ansi-dark"])
async def test_the_question_in_other_themes(theme: str, snap: Snap) -> None:
    app = explorer(FakeEngine(opaque()))
    app.theme = theme
    await snap.run(app, "d")


async def test_the_question_without_colour(snap: Snap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = explorer(FakeEngine(opaque()))
    app.theme = "ansi-dark"
    await snap.run(app, "d")


async def test_pickles_on_a_large_light_terminal(snap: Snap) -> None:
    app = explorer(FakeEngine(opaque(), decoded=decoded()))
    app.theme = "ansi-light"
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        for key in SCREENS["pickles"]:
            await pilot.press(key)
            await settle(pilot)
        snap(app)


async def test_refused(snap: Snap) -> None:
    lacking = Fault("isolation.unavailable", facility="a filter of system calls (seccomp)")
    await snap.run(explorer(FakeEngine(opaque(), containment=lacking)), "d")


async def test_at_work(snap: Snap) -> None:
    app = explorer(FakeEngine(opaque(), held_decoding=True))
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        await pilot.press("D")
        while "12 pickles" not in text(app):
            await pilot.pause()
        snap(app)
        await pilot.press("escape")
        await settle(pilot)


async def test_many_fragments_open_at_once_and_all_can_be_seen() -> None:
    parts = fragments(64, (128, 4096))
    tensor = LogicalTensor("blocks.0.weight", "F32", (8192, 4096), Lowered((8192, 4096), ()), None, parts)
    found = decoded()
    assert found.catalogue is not None
    found.catalogue = replace(found.catalogue, tensors=(tensor, *found.catalogue.tensors[1:]))
    app = explorer(FakeEngine(opaque(), decoded=found))
    async with app.run_test(size=(60, 16)) as pilot:
        await settle(pilot)
        for key in ("d", "D", "6"):
            await pilot.press(key)
            await settle(pilot)
        for size in ((60, 16), *SIZES):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            await pilot.press("enter")
            await pilot.pause()
            assert isinstance(app.screen, Detail)
            assert "64 fragments in 64 files" in text(app)

            await pilot.press("end")
            await pilot.pause()
            assert "k_63.pt" in text(app)
            await pilot.press("home")
            await pilot.pause()
            assert "k_0.pt" in text(app)
            await pilot.press("escape")
            await settle(pilot)


def test_a_tensor_of_very_many_fragments_costs_what_is_seen_of_it() -> None:
    def cost(count: int) -> float:
        parts = fragments(count, (128, 4096))
        tensor = LogicalTensor("w", "F32", (8192, 4096), Lowered((8192, 4096), ()), None, parts)
        costs = []
        for _ in range(5):
            begin = time.thread_time()
            rows = FragmentRows(tensor)
            rows.columns()
            tensor_words(tensor, ASCII)
            costs.append(time.thread_time() - begin)
        return min(costs)

    assert cost(64) < 0.05
    assert cost(4_096) < 100 * cost(64)


# Names that want to act on the terminal, and terminals without signs or colours


async def test_no_name_of_a_decoded_checkpoint_acts_on_the_terminal() -> None:
    raws = [raw for raw, _ in NAMES.values()]
    plane = a_plane()
    references = tuple(replace(plane.references[0], module=raw, name=raw, first=raw) for raw in raws)
    streams = tuple(replace(plane.streams[0], file=raw) for raw in raws)
    found = decoded()
    assert found.catalogue is not None
    first, *rest = found.catalogue.tensors
    part = first.fragments[0]
    parts = tuple(replace(part, record=replace(part.record, file=raw), dtype=raw) for raw in raws)
    whole = "".join(raws)
    hostile = replace(
        first, name=whole, dtype="F32", alias_of=whole, note=whole, fragments=parts, replicas=parts
    )
    found.catalogue = replace(found.catalogue, tensors=(hostile, *rest))
    found.descriptor = replace(
        found.descriptor, decoded=replace(plane, references=references, streams=streams)
    )
    engine = FakeEngine(opaque(), decoded=found)
    async with captured(explorer(engine, path=f"here/{whole}"), size=(200, 60)) as (pilot, driver):
        await settle(pilot)
        for key in ("d", "D", "6", "enter", "escape", "9", "v", "v"):
            await pilot.press(key)
            await settle(pilot)
        for what, (raw, seen) in NAMES.items():
            assert raw == seen or raw not in "".join(driver.written), what
        assert not driver.unsafe
        assert screen(pilot.app).query(PicklePanel)  # type: ignore[arg-type]


def test_without_other_signs_it_is_ascii() -> None:
    terms = Terms(
        "DeepSpeed ZeRO", tuple((file, 1 << 30) for file in FILES), a_plane().limits, "cmd", PROFILE
    )
    lines = DecodeTerms(terms, glyphs=ASCII)
    lines.fit_rows(80)
    said = "\n".join(lines.text_lines)
    assert said.isascii()
    assert "+ open denied | socket denied | fork denied | exec denied" in said

    tensor = decoded().catalogue.tensors[0]  # type: ignore[union-attr]
    assert tensor_words(tensor, ASCII).plain.isascii()


async def test_foreign_names_are_told_by_a_sign_too() -> None:
    from textual.app import App, ComposeResult

    class Alone(App[None]):
        def compose(self) -> ComposeResult:
            yield PicklePanel(a_plane(), glyphs=ASCII)

    app = Alone()
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.pause()
        drawn = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
    assert "! foreign  os.system" in drawn
    assert "! 2 foreign, 1 called" in drawn
    assert "  known    collections.OrderedDict" in drawn


def test_a_landlock_that_is_not_there_is_said() -> None:
    terms = Terms("x", (("a", 1),), a_plane().limits, "cmd", replace(PROFILE, landlock=None))
    lines = DecodeTerms(terms)
    lines.fit_rows(100)
    assert "Landlock none" in " ".join(lines.text_lines)


def test_fragments_sort_by_every_column() -> None:
    tensor = decoded().catalogue.tensors[0]  # type: ignore[union-attr]
    rows = FragmentRows(tensor)
    assert rows.row_count == 3
    for column in range(len(rows.columns())):
        assert sorted(rows.order(column)) == [0, 1, 2]
    assert rows.order(0) == [0, 2, 1]
