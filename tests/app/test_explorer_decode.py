"""Decoding from the explorer: offered where it would read something, asked for each time, and nothing by accident."""

import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from textual.widgets import Button

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.detail import Detail
from shardscope.app.explorer.checkpoint.examination import State
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.checkpoint.panels import PANELS, PICKLES
from shardscope.app.explorer.checkpoint.tabs import Panels
from shardscope.app.explorer.decode import Decode
from shardscope.app.explorer.dialogs import CopiedCommand, NotDone, OwnError
from shardscope.app.explorer.help.keys import key_rows
from shardscope.app.explorer.offer import offer_of
from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Confidence, Status
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.limits import DecodeLimits
from shardscope.widgets.file_tree import FileTree
from shardscope.widgets.pickle_panel import PicklePanel
from shardscope.widgets.status_lines import StatusLine
from shardscope.widgets.tensor_table import TensorPanel
from shardscope.widgets.virtual_table import VirtualTable
from tests.app.decodings import a_plane, decoded, opaque
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.fakes import a_blocker, entry, inspection
from tests.app.test_explorer_flow import screen, text
from tests.conftest import settle


def engine(**changes: object) -> FakeEngine:
    """Return an engine with a checkpoint that can be decoded."""
    return FakeEngine(opaque(), **{"decoded": decoded(), **changes})  # type: ignore[arg-type]


def words(app: Explorer) -> str:
    """Return what is drawn, its lines and frames joined to sentences."""
    return re.sub(r"[\s│╭╮╰╯─━╸╺▌]+", " ", text(app))


def facts(app: Explorer) -> list[str]:
    """Return what the top line says."""
    line = app.query_one(StatusLine) if isinstance(app.screen, Explore) else None
    assert line is not None
    return [fact if isinstance(fact, str) else fact[0] for fact in line.facts]


# The offer


def nothing_opaque() -> Inspection:
    return llama()


def strays_only() -> Inspection:
    return inspection(
        [entry("model.safetensors", 10), entry("optimizer.pt", 10)],
        opaque=("optimizer.pt",),
        components=(Component("weights", "model", "hf_safetensors", ("model.safetensors",), 10),),
    )


def recognised_only() -> Inspection:
    return inspection(
        [entry("model.onnx", 10)],
        format="onnx",
        opaque=("model.onnx",),
        components=(Component("weights", "model", "onnx", ("model.onnx",), 10),),
    )


def ambiguous() -> Inspection:
    return inspection(
        [entry("a.bin", 10)],
        format="ambiguous",
        status=Status.AMBIGUOUS,
        confidence=Confidence.NONE,
        opaque=("a.bin",),
    )


@pytest.mark.parametrize("found", [nothing_opaque, strays_only, recognised_only, ambiguous, decoded])
async def test_nothing_is_offered_where_decoding_would_read_nothing(
    found: Callable[[], Inspection],
) -> None:
    made = FakeEngine(found())
    app = explorer(made)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        assert isinstance(app.screen, Explore)
        assert "explore.decode" not in [row.id for row in key_rows(app.screen)]
        assert "to decode" not in text(app)
        assert "preflight" not in made.calls


def test_a_composite_offers_the_parts_that_decoding_reads() -> None:
    found = inspection(
        [entry("a/model.onnx", 10), entry("b/rank_0.pt", 20), entry("b/rank_1.pt", 30)],
        format="composite",
        opaque=("a/model.onnx", "b/rank_0.pt", "b/rank_1.pt"),
        components=(
            Component("weights", "a", "onnx", ("a/model.onnx",), 10),
            Component("weights", "b", "fsdp_rank_files", ("b/rank_0.pt", "b/rank_1.pt"), 50),
        ),
    )
    offer = offer_of(found.descriptor, found.inventory)

    assert offer is not None
    assert offer.files == (("b/rank_0.pt", 20), ("b/rank_1.pt", 30))
    assert offer.words("d") == "2 opaque files: press d to decode as data"


async def test_it_is_offered_in_the_summary_the_tensors_the_hints_and_the_palette() -> None:
    app = explorer(engine())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "2 opaque files: press d to decode as data" in text(app)
        assert text(app).splitlines()[-1].startswith(" d decode ")
        assert "Decode" in {command.title for command in app.get_system_commands(app.screen)}
        assert facts(app)[-1] == "nothing decoded"

        await pilot.press("6")
        await settle(pilot)
        assert "2 opaque files: press d to decode as data" in text(app)


async def test_the_offer_names_the_key_that_the_person_chose() -> None:
    app = explorer(engine())
    app.set_keymap({"explore.decode": "ctrl+d"})
    async with app.run_test() as pilot:
        await settle(pilot)
        assert "press ^d to decode as data" in text(app)
        await pilot.press("ctrl+d")
        await settle(pilot)
        assert isinstance(app.screen, Decode)


# The question


async def test_the_dialog_says_what_would_happen() -> None:
    made = engine()
    app = explorer(made, decode_limits=DecodeLimits(pickle_opcodes=123_456))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        said = words(app)
        for sentence in (
            "2 opaque files, 6.0 MiB: PyTorch distributed checkpoint (DCP)",
            "nothing is executed, nothing is remembered",
            "rank_0.pt 3.0 MiB",
            "open denied · socket denied · fork denied · exec denied",
            "no_new_privs set",
            "seccomp leaves 3 system calls",
            "Landlock ABI 7",
            "123,456 opcodes",
            "containment is not proof",
            "shardscope inspect run42/llama --limit pickle_opcodes=123456 --decode --component model",
        ):
            assert sentence in said, sentence
        assert made.calls.count("preflight") == 1
        assert not made.wishes


@pytest.mark.parametrize(
    "keys", [("enter",), ("space", "enter"), ("escape",), ("d", "enter"), ("y", "enter")]
)
async def test_no_slip_of_a_finger_decodes(keys: tuple[str, ...]) -> None:
    made = engine()
    app = explorer(made)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        assert isinstance(app.screen, Decode)
        assert app.screen.focused is app.screen.query_one("#cancel")
        await pilot.press(*keys)
        await settle(pilot)
        assert isinstance(app.screen, Explore)
        assert not made.wishes
        assert facts(app)[-1] == "nothing decoded"


async def test_enter_before_anything_is_known_decodes_nothing() -> None:
    made = engine()
    app = explorer(made)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("d", "enter", "enter", "enter")
        await settle(pilot)
        assert not made.wishes


@pytest.mark.parametrize("keys", [("D",), ("tab", "enter"), ("right", "enter")])
async def test_a_deliberate_key_decodes(keys: tuple[str, ...]) -> None:
    made = engine()
    app = explorer(made)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        await pilot.press(*keys)
        await settle(pilot)
        await settle(pilot)

        assert isinstance(app.screen, Explore)
        (wish,) = made.wishes
        assert (wish.listed, wish.checksums, wish.limits) == ("model", False, DecodeLimits())
        assert (wish.intent.operation, wish.intent.asked) == ("inspect", "dialog")
        assert facts(app) == ["decoded: examined", "no digests", "nothing run"]
        assert "Tensors 3" in text(app)


async def test_a_click_on_the_button_decodes_and_a_click_chooses() -> None:
    made = engine()
    app = explorer(made)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        lines = [(y, strip.text) for y, strip in enumerate(app.screen._compositor.render_strips())]
        y, line = next((y, line) for y, line in lines if "( ) o optimizer" in line)
        await pilot.click(offset=(line.index("optimizer"), y))
        await pilot.pause()
        assert "(x) o optimizer" in text(app)
        await pilot.click("#confirm")
        await settle(pilot)
        assert [wish.listed for wish in made.wishes] == ["optimizer"]


@pytest.mark.parametrize(
    ("key", "listed"), [("m", "model"), ("o", "optimizer"), ("t", "other"), ("a", "all")]
)
async def test_what_is_listed_can_be_chosen(key: str, listed: str) -> None:
    made = engine()
    app = explorer(made)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("d", "o", key, "c")
        await settle(pilot)
        assert f"(x) {key} {listed}" in text(app)
        assert f"--decode --component {listed} --checksums" in words(app)
        await pilot.press("D")
        await settle(pilot)
        (wish,) = made.wishes
        assert (wish.listed, wish.checksums) == (listed, True)


async def test_where_containment_is_missing_it_is_refused_with_the_code_and_the_remedy() -> None:
    made = engine(containment=Fault("isolation.unavailable", facility="a filter of system calls (seccomp)"))
    app = explorer(made)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        said = words(app)
        assert "refused" in said
        assert "this machine does not give a filter of system calls" in said
        assert "isolation.unavailable" in said
        assert "Run it on Linux" in said
        assert app.screen.query_one("#confirm", Button).disabled
        await pilot.press("D", "tab", "enter")
        await settle(pilot)
        assert not made.wishes


async def test_an_error_of_our_own_while_asking_decodes_nothing() -> None:
    made = engine(containment=ZeroDivisionError())
    app = explorer(made)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        assert isinstance(app.screen, OwnError)
        await pilot.press("escape", "D")
        await settle(pilot)
        assert isinstance(app.screen, Decode)
        assert not made.wishes


@pytest.mark.parametrize("size", [(80, 24), (60, 16), (200, 60)])
async def test_the_answers_are_in_sight_at_any_size_and_the_terms_scroll(size: tuple[int, int]) -> None:
    app = explorer(engine())
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        for button in app.screen.query(Button):
            assert button.region.height == 1
            assert app.screen.region.contains_region(button.region)
        assert "2 opaque files, 6.0 MiB" in text(app)
        await pilot.press(*["down"] * 30)
        await pilot.pause()
        assert "--component model" in words(app)


# The work


async def test_it_can_be_stopped_and_what_was_known_is_there_again() -> None:
    made = engine(held_decoding=True)
    app = explorer(made)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("6", "d")
        await settle(pilot)
        await pilot.press("D")
        while "12 pickles" not in text(app):
            await pilot.pause()
        assert screen(app).state is State.DECODING
        assert "nothing is run. esc stops." in words(app)
        await pilot.press("d", "number_sign")
        assert isinstance(app.screen, Explore)

        await pilot.press("escape")
        await settle(pilot)
        assert screen(app).state is State.READY
        assert facts(app)[-1] == "nothing decoded"
        assert screen(app).query_one(Panels).active == "tensors"
        assert screen(app).query_one(VirtualTable).has_focus
        assert not app.screen.query("#loading")

        made.held_decoding = False
        await pilot.press("d")
        await settle(pilot)
        await pilot.press("D")
        await settle(pilot)
        assert facts(app)[0] == "decoded: examined"
        assert screen(app).query_one(Panels).active == "tensors"


async def test_each_decoding_asks_again_and_looking_again_forgets_it() -> None:
    made = engine()
    app = explorer(made)
    async with app.run_test() as pilot:
        await shown(app, pilot)
        await pilot.press("d")
        await settle(pilot)
        assert isinstance(app.screen, Decode)
        made.decoded = decoded("optimizer")
        await pilot.press("o", "D")
        await settle(pilot)
        assert [wish.listed for wish in made.wishes] == ["model", "optimizer"]
        assert made.wishes[0].intent is not made.wishes[1].intent
        assert made.calls.count("preflight") == 2
        assert "Tensors 1" in text(app)

        await pilot.press("ctrl+r")
        await settle(pilot)
        assert facts(app)[-1] == "nothing decoded"
        assert not app.screen.query(PicklePanel)
        assert "to decode as data" in text(app)


async def test_a_source_that_went_away_is_a_dialog_with_its_code() -> None:
    app = explorer(engine(decoded=Fault("source.missing")))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        await pilot.press("D")
        await settle(pilot)
        assert isinstance(app.screen, NotDone)
        assert "source.missing" in text(app)
        await pilot.press("escape")
        assert screen(app).state is State.READY


async def test_an_error_of_our_own_while_decoding_leaves_the_rest_standing() -> None:
    app = explorer(engine(decoded=ZeroDivisionError()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        await pilot.press("D")
        await settle(pilot)
        assert isinstance(app.screen, OwnError)
        await pilot.press("escape")
        await pilot.press("q")
    assert app.return_value is ExitCode.INTERNAL


async def test_leaving_stops_it() -> None:
    app = explorer(engine(held_decoding=True))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        await pilot.press("D")
        while screen(app).state is not State.DECODING:
            await pilot.pause()
        await pilot.press("ctrl+c")
    assert app.return_value is ExitCode.CANCELLED


async def test_what_decoding_found_counts_for_the_exit_code() -> None:
    blockers = (a_blocker("limit.files", None),)
    blocked = inspection([entry("rank_0.pt", 1)], blockers=blockers, plane=a_plane())
    app = explorer(engine(decoded=blocked))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        await pilot.press("D")
        await settle(pilot)
        await pilot.press("q")
    assert app.return_value is ExitCode.LIMIT


async def test_hashing_that_decoding_interrupted_goes_on_and_never_shows_what_was_before() -> None:
    made = engine(held_digests=True)
    app = explorer(made)
    async with app.run_test() as pilot:
        while "digests 61 %" not in text(app):
            await pilot.pause()
        await pilot.press("d")
        while not screen_is_contained(app):
            await pilot.pause()
        await pilot.press("D")
        while (
            made.calls.count("digests auto") < 2
        ):  # the first of them is held, so that only decoding ends it
            await pilot.pause()
        made.held_digests = False
        await settle(pilot)
        assert "decode model" in made.calls
        assert facts(app)[0] == "decoded: examined"


def screen_is_contained(app: Explorer) -> bool:
    return isinstance(app.screen, Decode) and app.screen.is_contained


# What is shown then


async def shown(app: Explorer, pilot: object, *keys: str) -> None:
    """Decode, and press some keys."""
    await settle(pilot)  # type: ignore[arg-type]
    await pilot.press("d")  # type: ignore[attr-defined]
    await settle(pilot)  # type: ignore[arg-type]
    await pilot.press("D")  # type: ignore[attr-defined]
    await settle(pilot)  # type: ignore[arg-type]
    for key in keys:
        await pilot.press(key)  # type: ignore[attr-defined]
        await settle(pilot)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "command"),
    [
        ((), "shardscope inspect run42/llama --decode --component model"),
        (("6",), "shardscope tensors run42/llama --decode --component model"),
    ],
)
async def test_the_command_says_what_was_decoded(keys: tuple[str, ...], command: str) -> None:
    app = explorer(engine())
    async with app.run_test() as pilot:
        await shown(app, pilot, *keys, "y")
        assert isinstance(app.screen, CopiedCommand)
        assert app.clipboard == command


async def test_pickles_have_a_tab_once_they_were_decoded_and_not_before() -> None:
    app = explorer(engine())
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("9")
        assert screen(app).query_one(Panels).active == "summary"
        assert PICKLES.title not in text(app)

        await shown(app, pilot, "9")
        assert screen(app).query_one(Panels).active == "pickles"
        lines = [line for line in text(app).splitlines() if "foreign" in line or " known " in line]
        assert "2 foreign, 1 called" in lines[0]
        assert ["foreign" in line for line in lines[1:5]] == [True, True, False, False]
        assert "▲ foreign  os.system" in lines[1]

        await pilot.press("tab")
        await settle(pilot)
        assert screen(app).query_one(Panels).active == PANELS[0].id


async def test_the_streams_are_one_key_away_and_sort() -> None:
    app = explorer(engine())
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(app, pilot, "9", "v", "v")
        rows = [line for line in text(app).splitlines() if "1,200" in line or "1,201" in line]
        assert len(rows) == 2
        await pilot.press("s", "S")
        await settle(pilot)
        again = [line for line in text(app).splitlines() if "1,200" in line or "1,201" in line]
        assert ["1,201" in line for line in again] == [True, False]
        await pilot.press("v")
        await settle(pilot)
        assert "os.system" in text(app)


async def test_what_pickles_say_is_a_tree_that_can_be_searched() -> None:
    app = explorer(engine())
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(app, pilot, "9", "v", "right", "down", "right")
        assert "os.system (called)" in text(app)
        assert "▲ foreign" in text(app)
        assert "9,000 not shown" not in text(app)
        await pilot.press("slash", *"history", "enter")
        await settle(pilot)
        assert "object > args > history" in text(app)
        assert "list of 9000 items, 9,000 not shown" in text(app)
        await pilot.press("enter")
        await settle(pilot)
        tree = screen(app).query_one(FileTree)
        assert tree.has_focus
        assert tree.entry is not None
        assert tree.entry.path == b"rank_0.pt"


async def test_a_name_can_be_searched_and_leads_to_its_file() -> None:
    app = explorer(engine())
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(app, pilot, "9", "slash", *"rebuild")
        assert "1 of 1" in text(app)
        await pilot.press("enter", "enter")
        await settle(pilot)
        tree = screen(app).query_one(FileTree)
        assert tree.has_focus
        assert tree.entry is not None
        assert tree.entry.path == b"rank_0.pt"


async def test_a_decoded_tensor_opens_with_its_fragments() -> None:
    app = explorer(engine())
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(app, pilot, "6")
        assert "2 fragments + 1 copy, enter lists them" in text(app)
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, Detail)
        said = words(app)
        assert "embed.weight F32 [8, 4] · 128 B · model parameter" in said
        assert "2 fragments · 1 further copy in 2 files" in said
        assert "0: dp 0 tp 0 [4, 4] 4,096 64 B rank_0.pt" in said
        assert "1: dp 0 tp 1 [4, 4] 4,160 64 B rank_1.pt" in said
        assert "0: dp 0 tp 0 copy [4, 4] 4,096 64 B rank_0.pt" in said

        await pilot.press("down", "enter")
        await settle(pilot)
        tree = screen(app).query_one(FileTree)
        assert tree.has_focus
        assert tree.entry is not None
        assert tree.entry.path == b"rank_1.pt"


async def test_aliases_padding_and_roles_are_said() -> None:
    app = explorer(engine())
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(app, pilot, "6", "j", "enter")
        assert "alias of embed.weight: all bytes are shared" in words(app)
        await pilot.press("escape", "j", "enter")
        await settle(pilot)
        said = words(app)
        assert "model frozen" in said
        assert "stored as [16, 4]: the writer padded it" in said
        assert "Rows beyond 8 are padding." in said


async def test_a_tensor_that_was_not_decoded_opens_nothing() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("6", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Explore)
        assert app.screen.query_one(TensorPanel).whole(0) is None


async def test_decoding_that_read_nothing_says_so() -> None:
    plane = replace(a_plane(), streams=(), references=())
    empty = inspection([entry("rank_0.pt", 1)], plane=plane)
    app = explorer(engine(decoded=empty))
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(app, pilot)
        assert facts(app)[0] == "decoded: nothing read"
        assert "asked for; no pickle was read" in words(app)
