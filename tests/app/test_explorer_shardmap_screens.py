"""How shard maps look: views, sides, windows and states, on one terminal in the dark, and in pairs elsewhere."""

import pytest
from msgspec.structs import replace
from textual.widgets import Input

from shardscope.app.explorer.shardmap.screen import ShardMap
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.shardmap import Contiguous
from shardscope.engine.model.tensors import TensorSpec
from shardscope.engine.peeking.tensormaps import whole_of
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.shardmaps import (
    a_map,
    broken,
    embedding,
    gap,
    padded,
    partition,
    qkv,
    replicated,
    tensor,
)
from tests.capture import captured
from tests.conftest import Snap, settle
from tests.hostile import HOSTILE

WHOLE = "".join(raw for what, (raw, _) in HOSTILE.items() if what not in ("nul", "lone surrogate"))


def header() -> LogicalTensor:
    return whole_of(
        TensorSpec(
            name="embed.weight",
            dtype="BF16",
            shape=(4096, 512),
            bytes=4_194_304,
            file="model-00001-of-00002.safetensors",
            begin=9_000,
            end=4_203_304,
        )
    )


def hostile() -> LogicalTensor:
    found = tensor(WHOLE + "x" * 300, (64, 32), Contiguous("tp", 0, (16,) * 4), note=WHOLE, alias_of=WHOLE)
    return replace(
        found,
        fragments=tuple(replace(each, record=replace(each.record, file=WHOLE)) for each in found.fragments),
    )


async def test_views_and_states(snap: Snap) -> None:
    target = ("m", *"dp", "space", "4", "space", *"fsdp", "enter")
    shown: tuple[tuple[str, ShardMap, tuple[str, ...]], ...] = (
        ("fused", a_map(qkv()), ("n", "n")),
        ("shard", a_map(qkv()), ("n", "n", "v", "n")),
        ("files", a_map(qkv()), ("v", "v")),
        ("ribbon", a_map(*partition(), at=1), ()),
        ("flat partition of the full tensor", a_map(*partition(), at=1), ("v",)),
        ("target asked for", a_map(qkv()), ("m", *"tp 2")),
        ("target", a_map(embedding()), target),
        ("transfer", a_map(embedding()), ("x", *target[1:])),
        ("zoomed", a_map(embedding()), ("n", "n", "z", "z", "z", "z")),
        ("padding", a_map(padded()), ("p", "v", "end")),
        ("everywhere", a_map(replicated()), ()),
        ("gap", a_map(gap()), ("down",) * 9),
        ("not decoded", a_map(header(), is_decoded=False, offer="d decodes 4 pickles"), ()),
        ("broken", a_map(broken()), ()),
        ("hostile", a_map(hostile()), ("down",)),
    )
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for name, screen, keys in shown:
            app.push_screen(screen)
            await settle(pilot)
            for key in keys:
                await pilot.press(key if key != " " else "space")
                while app.screen.query(Input) and not isinstance(app.focused, Input):  # it is typed into next
                    await pilot.pause()
            await settle(pilot)
            snap(app, name)
            while not isinstance(app.screen, ShardMap):
                app.pop_screen()
                await pilot.pause()
            app.pop_screen()
            await pilot.pause()


@pytest.mark.parametrize("theme", ["shardscope-light", "ansi-dark"])
async def test_other_themes(theme: str, snap: Snap) -> None:
    app = explorer(FakeEngine(llama()))
    app.theme = theme
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.push_screen(a_map(qkv() if theme == "shardscope-light" else gap()))
        await settle(pilot)
        snap(app)


async def test_without_colour(snap: Snap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = explorer(FakeEngine(llama()))
    app.theme = "ansi-dark"
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.push_screen(a_map(*partition(), at=1))
        await settle(pilot)
        snap(app)


async def test_larger_terminals(snap: Snap) -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.push_screen(a_map(embedding()))
        await settle(pilot)
        await pilot.press("n")
        await settle(pilot)
        snap(app, "120x40")
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        app.push_screen(a_map(qkv()))
        await settle(pilot)
        snap(app, "200x60")


async def test_no_name_acts_on_the_terminal() -> None:
    app = explorer(FakeEngine(llama()))
    async with captured(app, size=(200, 60)) as (pilot, driver):
        await settle(pilot)
        screen = a_map(hostile())
        app.push_screen(screen)
        await settle(pilot)
        for key in ("v", "v", "g", "escape"):
            await pilot.press(key)
            await settle(pilot)
        written = "".join(driver.written)
        for what, (raw, seen) in HOSTILE.items():
            assert raw == seen or what in ("nul", "lone surrogate") or raw not in written, what
        assert not driver.unsafe
