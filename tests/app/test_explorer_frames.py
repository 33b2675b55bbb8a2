"""What a terminal is told of a frame: the same picture as Textual's own bytes make, in far fewer."""

import io
import random

import pytest
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Region, Size
from textual.strip import Strip

from shardscope.app.explorer.tty.frames import Frames, cells, changed, look_of
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.screen_of import Tty
from tests.app.test_explorer_flow import text
from tests.capture import captured
from tests.conftest import settle

SIZE = Size(24, 6)


def styles(shade: int = 0) -> list[Style]:
    """Return styles; their codes are kept by the libraries, so that each kind of terminal gets a shade of its own."""
    return [
        Style.null(),
        Style(bold=True),
        Style(color="red"),
        Style(color=f"#1020{shade:02x}", bgcolor="#a0b0c0"),
        Style(color=f"#1020{shade:02x}", bgcolor="black", italic=True),
        Style(dim=True, reverse=True, bgcolor="bright_blue"),
    ]


STYLES = styles()
WORDS = ["a", "tensor", "  ", "│", "…", "漢字", "e\u0301", "🙂", "layers.0"]


def console(system: str = "truecolor") -> Console:
    """Return a console that writes colours nowhere."""
    return Console(file=io.StringIO(), force_terminal=True, color_system=system, legacy_windows=False)  # type: ignore[arg-type]


def a_strip(chance: random.Random, width: int, looks: list[Style]) -> Strip:
    """Return a strip of just `width` cells."""
    segments = [Segment(chance.choice(WORDS), chance.choice(looks)) for _ in range(width)]
    return Strip(segments).adjust_cell_length(width, looks[3])


def an_update(chance: random.Random, looks: list[Style]) -> CompositorUpdate:
    """Return a frame, or a piece of one."""
    if chance.random() < 0.3:
        return LayoutUpdate(
            [[a_strip(chance, SIZE.width, looks)] for _ in range(SIZE.height)], Region(0, 0, *SIZE)
        )
    y, x = chance.randrange(SIZE.height), chance.randrange(SIZE.width - 4)
    width = chance.randint(1, SIZE.width - x)
    end = x + chance.randint(1, width)
    chops: list[dict[int, Strip | None]] = [{} for _ in range(SIZE.height)]
    chops[y] = {x: a_strip(chance, width, looks)}
    ends = [[x + width] for _ in range(SIZE.height)]
    return ChopsUpdate(chops, [(y, x, end)], ends)


@pytest.mark.parametrize(("shade", "system"), [(1, "truecolor"), (2, "256"), (3, "standard")])
def test_the_picture_is_that_of_the_library(shade: int, system: str) -> None:
    chance, looks = random.Random(20261130), styles(shade)
    frames, there = Frames(), console(system)
    theirs, ours = Tty(*SIZE), Tty(*SIZE)
    first = LayoutUpdate(
        [[a_strip(chance, SIZE.width, looks)] for _ in range(SIZE.height)], Region(0, 0, *SIZE)
    )
    whole = fewer = 0
    for update in (first, *(an_update(chance, looks) for _ in range(300))):
        raw = update.render_segments(there)
        told = frames.reduced(update, SIZE).render_segments(there)
        theirs.feed(raw)
        ours.feed(told)
        whole, fewer = whole + len(raw), fewer + len(told)
        assert ours.cells == theirs.cells
    assert fewer < whole


def test_what_stands_there_already_is_not_told_again() -> None:
    frames, there = Frames(), console()
    strip = Strip([Segment("whole? ", STYLES[0]), Segment("yes", STYLES[2])])
    update = LayoutUpdate([[strip]], Region(0, 0, 10, 1))
    size = Size(10, 1)

    assert "whole?" in frames.reduced(update, size).render_segments(there)
    assert frames.reduced(update, size).render_segments(there) == ""
    frames.forget()
    assert "whole?" in frames.reduced(update, size).render_segments(there)
    assert "whole?" in frames.reduced(update, Size(11, 1)).render_segments(there)


def test_an_update_that_is_never_written_is_not_remembered() -> None:
    frames, there = Frames(), console()
    update = LayoutUpdate([[Strip([Segment("x")])]], Region(0, 0, 1, 1))

    frames.reduced(update, Size(1, 1))
    assert "x" in frames.reduced(update, Size(1, 1)).render_segments(there)


def test_one_letter_in_a_line_costs_a_few_bytes() -> None:
    frames, there = Frames(), console()
    for line in ("a" * 80, "a" * 40 + "b" + "a" * 39):
        update = LayoutUpdate([[Strip([Segment(line, STYLES[3])])]], Region(0, 0, 80, 1))
        told = frames.reduced(update, Size(80, 1)).render_segments(there)
    assert told.startswith("\x1b[1;41H")
    assert len(told) < 60


def test_where_widths_may_differ_the_whole_is_written() -> None:
    old, new = cells(Strip([Segment("漢a" + "b" * 20)])), cells(Strip([Segment("漢c" + "b" * 20)]))
    assert list(changed([*old], new)) == [(0, len(new))]
    plain = cells(Strip([Segment("ab" + "c" * 20)]))
    assert list(changed([*plain], cells(Strip([Segment("xb" + "c" * 19 + "y")])))) == [(0, 1), (21, 22)]


def test_without_colours_nothing_is_coloured_and_no_link_is_told() -> None:
    assert look_of(STYLES[3], None).ink == ("39",)
    frames = Frames()
    update = LayoutUpdate([[Strip([Segment("x", Style(link="http://evil.example"))])]], Region(0, 0, 1, 1))
    assert "evil" not in frames.reduced(update, Size(1, 1)).render_segments(console())


async def test_the_explorer_tells_a_terminal_what_changed_and_redraws_on_request() -> None:
    app = explorer(FakeEngine(llama()))
    async with captured(app, size=(80, 24)) as (pilot, driver):
        await settle(pilot)
        terminal = Tty(80, 24)
        terminal.feed("".join(driver.written))
        first = len("".join(driver.written))
        for key in ("3", "6", "j", "f", "question_mark", "escape", "1"):
            driver.written.clear()
            await pilot.press(key)
            await settle(pilot)
            terminal.feed("".join(driver.written))
            assert len("".join(driver.written)) < first
            shown = ["".join(cell for cell, _ in line).rstrip() for line in terminal.cells]
            assert shown == [line.rstrip() for line in text(app).split("\n")]
        driver.written.clear()
        await pilot.press("ctrl+l")
        await settle(pilot)
        again = Tty(80, 24)
        again.feed("".join(driver.written))
        assert again.cells == terminal.cells
