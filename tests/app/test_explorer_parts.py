"""What is offered to be looked at alone: saves by the numbers in their names, parts of a composite, nothing otherwise."""

import pytest

from shardscope.app.explorer.checkpoint.parts import parts_of, recommended
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Confidence, Status
from shardscope.engine.model.source import Kind
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.fakes import FakeInspection, entry, inspection
from tests.conftest import settle
from tests.hostile import HOSTILE


def saves(*names: str, tracker: str | None = None) -> FakeInspection:
    """Return saves side by side, the second of which a tracker may name."""
    components = tuple(
        Component(
            "candidate", name, "deepspeed_zero and torch_dcp", (), 10, "2 files", tracker if at == 1 else None
        )
        for at, name in enumerate(names)
    )
    return inspection(
        [entry(name, kind=Kind.DIRECTORY) for name in names],
        format="ambiguous",
        status=Status.AMBIGUOUS,
        confidence=Confidence.NONE,
        components=components,
    )


def composite(*components: Component) -> FakeInspection:
    files = [file for each in components for file in each.files]
    return inspection([entry(file, 10) for file in files], format="composite", components=components)


def test_saves_come_in_the_order_of_their_numbers() -> None:
    found = saves("step_100", "step_20", "step_3")
    parts = parts_of(found.descriptor, found.inventory)
    assert [part.name for part in parts] == ["step_3", "step_20", "step_100"]
    assert parts[0].path == b"step_3"
    assert parts[0].format == "DeepSpeed ZeRO and PyTorch distributed checkpoint (DCP)"
    assert recommended(parts) == 2  # the last one


def test_a_save_that_a_tracker_names_is_recommended() -> None:
    found = saves("step_1", "step_2", "step_3", tracker="latest")
    assert recommended(parts_of(found.descriptor, found.inventory)) == 1


def test_names_that_look_alike_are_not_opened() -> None:
    found = saves("a")
    twins = [entry("a", kind=Kind.DIRECTORY), entry("a", kind=Kind.DIRECTORY)]
    alike = inspection(twins, format="ambiguous", components=found.descriptor.components)
    (part,) = parts_of(alike.descriptor, alike.inventory)
    assert part.path is None


def test_a_part_is_opened_by_its_own_folder_or_its_single_file() -> None:
    found = composite(
        Component("weights", "model", "hf_safetensors", ("config.json", "model.safetensors"), 20),
        Component("weights", "fsdp", "torch_dcp", ("step/fsdp/.metadata", "step/fsdp/__0_0.distcp"), 20),
        Component("rng", "random.pkl", "torch_save", ("step/random.pkl",), 10),
        Component("config", "config", None, ("step/config.json",), 10),
    )
    parts = parts_of(found.descriptor, found.inventory)
    assert [part.path for part in parts] == [None, b"step/fsdp", b"step/random.pkl", None]
    assert [part.files for part in parts] == ["2 files", "2 files", "1 file", "1 file"]
    assert recommended(parts) == 0


def test_one_checkpoint_offers_nothing() -> None:
    found = llama()
    assert parts_of(found.descriptor, found.inventory) == ()
    assert recommended(()) == 0


async def test_the_key_is_there_only_where_there_is_something_to_open() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        before = app.screen
        await pilot.press("o")
        await settle(pilot)
        assert app.screen is before


@pytest.mark.parametrize("raw", [raw for raw, _ in HOSTILE.values() if raw.isprintable()])
async def test_the_list_is_searched_and_left_whatever_the_names(raw: str) -> None:
    app = explorer(FakeEngine(saves(raw, "step_2")))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        before = app.screen
        await pilot.press("o", *"step", "down", "up", "pagedown", "pageup", "escape")
        await settle(pilot)
        assert app.screen is before
