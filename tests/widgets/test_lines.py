"""Breadcrumbs, status and progress: what stays when the room is short, how rates and times are said."""

import pytest
from tests.widgets.stage import Stage, screen_text

from shardscope.engine.model.progress import Progress
from shardscope.widgets.figures import duration, number, plural, size
from shardscope.widgets.glyphs import ASCII, UNICODE, glyphs_for
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.safe import Tone
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine, fitted


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, "shardscope ▸ run42 ▸ step ▸ layers.0.attn.qkv.weight"),
        (45, "shardscope ▸ … ▸ layers.0.attn.qkv.weight"),
        (30, "shardscope ▸ … ▸ layers…weight"),
        (20, "layers.0.a…kv.weight"),
        (10, "layer…ight"),
    ],
)
def test_the_middle_of_a_trail_goes_first(width: int, shown: str) -> None:
    names = ["shardscope", "run42", "step", "layers.0.attn.qkv.weight"]
    assert " ▸ ".join(fitted(names, width, " ▸ ")) == shown


async def test_breadcrumbs_follow_where_the_person_is() -> None:
    crumbs = Breadcrumbs("shardscope")
    app = Stage(crumbs)
    async with app.run_test(size=(60, 3)) as pilot:
        crumbs.parts = ("shardscope", "run42")
        await pilot.pause()
        assert screen_text(app).splitlines()[0] == "shardscope ▸ run42"


async def test_the_status_drops_its_last_facts_where_the_room_is_short() -> None:
    line = StatusLine("safe plane", "digests 61 %", ("nothing decoded", Tone.CAUTION))
    line.styles.width = "1fr"
    app = Stage(line)
    async with app.run_test(size=(60, 3)) as pilot:
        assert screen_text(app).splitlines()[0].strip() == "safe plane · digests 61 % · nothing decoded"
        await pilot.resize_terminal(30, 3)
        await pilot.pause()
        assert screen_text(app).splitlines()[0].strip() == "safe plane · digests 61 %"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


MIB = 1 << 20


async def test_progress_says_how_far_how_fast_and_how_long_yet() -> None:
    clock = Clock()
    line = ProgressLine(clock=clock)
    app = Stage(line)
    async with app.run_test(size=(120, 3)) as pilot:
        for step in range(21):
            line.show(Progress("digests", step * 10 * MIB, 1_000 * MIB, "bytes", "model.safetensors"))
            clock.now += 0.1
        await pilot.pause()
        text = screen_text(app).splitlines()[0]
        assert text.startswith("digests  ████░")
        assert text.endswith("200.0 MiB of 1000.0 MiB  20 %  100.0 MiB/s  8 s left  model.safetensors")


async def test_progress_without_a_total_counts() -> None:
    line = ProgressLine(clock=Clock())
    app = Stage(line)
    async with app.run_test(size=(120, 3)) as pilot:
        line.show(Progress("walk", 12_345, None, "files"))
        await pilot.pause()
        assert screen_text(app).splitlines()[0] == "walk  12,345 files"
        line.clear()
        await pilot.pause()
        assert not screen_text(app).strip()


async def test_a_rate_is_not_said_before_there_is_one_and_not_carried_to_the_next_stage() -> None:
    clock = Clock()
    line = ProgressLine(clock=clock)
    app = Stage(line)
    async with app.run_test(size=(120, 3)) as pilot:
        line.show(Progress("headers", 0, 10, "files"))
        clock.now += 0.5
        line.show(Progress("headers", 5, 10, "files"))
        await pilot.pause()
        assert "/s" not in screen_text(app)
        clock.now += 1
        line.show(Progress("headers", 10, 10, "files"))
        await pilot.pause()
        assert "/s" in screen_text(app)
        line.show(Progress("digests", 1, 10, "bytes"))
        await pilot.pause()
        assert "/s" not in screen_text(app)


async def test_a_flood_of_news_draws_ten_times_a_second_and_the_last_always() -> None:
    clock = Clock()
    line = ProgressLine(clock=clock)
    drawn = 0

    def count(*_: object, **__: object) -> ProgressLine:
        nonlocal drawn
        drawn += 1
        return line

    async with Stage(line).run_test(size=(120, 3)):
        line.refresh = count  # type: ignore[method-assign]
        for step in range(1_001):
            line.show(Progress("walk", step, 1_000, "files"))
            clock.now += 0.001
        assert 9 <= drawn <= 12
        assert line.progress is not None
        assert line.progress.done == 1_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (size(None), "unknown"),
        (size(0), "0 B"),
        (size(1_023), "1023 B"),
        (size(1_024), "1.0 KiB"),
        (size(19_756_849_561), "18.4 GiB"),
        (number(None), "unknown"),
        (number(1_000_000), "1,000,000"),
        (plural(1, "file"), "1 file"),
        (plural(1_204, "file"), "1,204 files"),
        (plural(2, "entry", "entries"), "2 entries"),
        (duration(0.4), "0 s"),
        (duration(59), "59 s"),
        (duration(125), "2 min 05 s"),
        (duration(11_400), "3 h 10 min"),
    ],
)
def test_figures(value: str, text: str) -> None:
    assert value == text


@pytest.mark.parametrize(
    ("encoding", "glyphs"),
    [
        ("utf-8", UNICODE),
        ("UTF8", UNICODE),
        ("utf_8", UNICODE),
        ("ascii", ASCII),
        ("ISO-8859-1", ASCII),
        (None, ASCII),
        ("", ASCII),
    ],
)
def test_signs_are_those_that_the_terminal_can_draw(encoding: str | None, glyphs: object) -> None:
    assert glyphs_for(encoding) is glyphs
    assert all(sign.isascii() for sign in (getattr(ASCII, field) for field in ASCII.__struct_fields__))
