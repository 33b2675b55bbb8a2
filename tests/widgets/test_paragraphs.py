"""Wrapping: nothing is lost, no line is too long; and moving among what can be chosen."""

import re
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.widgets.stage import Stage, screen_text

from shardscope.widgets.paragraphs import Paragraph, Paragraphs, labelled, wrap
from shardscope.widgets.safe import Tone, visible


def text_of(lines: list[list[tuple[str, Tone]]]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


@given(
    st.lists(st.text(max_size=60), max_size=4),
    st.integers(16, 60),
    st.integers(0, 10),
    st.integers(0, 10),
)
def test_wrapping_loses_nothing_and_stays_within_the_width(
    texts: list[str], width: int, indent: int, hang: int
) -> None:
    lines = text_of(wrap(Paragraph(tuple(texts), indent=indent, hang=hang), width))
    assert all(cell_len(line) <= width for line in lines)
    wanted = visible("".join(visible(text) for text in texts))
    assert "".join(lines).replace(" ", "") == re.sub("[ \u00a0]", "", wanted)


def test_lines_hang_below_the_text_and_not_below_the_label() -> None:
    lines = text_of(wrap(labelled("whole?", "no, one of the eight ranks is missing"), 32))
    assert lines == ["whole?      no, one of the eight", "            ranks is missing"]


def test_a_side_word_stands_at_the_right_of_the_first_line() -> None:
    lines = text_of(wrap(Paragraph(("one two three four five",), side=("STOP", Tone.STOP)), 20))
    assert lines == ["one two three   STOP", "four five"]


def test_no_break_spaces_keep_words_together() -> None:
    assert text_of(wrap(Paragraph(("one two three\u00a0four",)), 16)) == ["one two ", "three four"]


class Listed(Paragraphs):
    def paragraphs(self, width: int) -> Iterable[Paragraph]:
        yield Paragraph(("heading",))
        for number in range(10):
            yield Paragraph((f"choice {number}",), key=str(number))
            yield Paragraph((f"more of {number}",), key=str(number))
        yield Paragraph(("the end",))


async def test_the_cursor_goes_from_choice_to_choice() -> None:
    listed = Listed()
    app = Stage(listed)
    async with app.run_test(size=(40, 8)) as pilot:
        seen = [listed.chosen]
        for key in ("j", "down", "k", "G", "up", "g", "pagedown"):
            await pilot.press(key)
            seen.append(listed.chosen)
        assert seen == ["0", "1", "2", "1", "9", "8", "0", "4"]
        assert "choice 4" in screen_text(app)
        assert "more of 4" in screen_text(app)


async def test_beyond_the_last_choice_the_text_scrolls_on() -> None:
    listed = Listed()
    app = Stage(listed)
    async with app.run_test(size=(40, 8)) as pilot:
        await pilot.press("up")
        assert "heading" in screen_text(app)
        await pilot.press(*["down"] * 12)
        assert listed.chosen == "9"
        assert "the end" in screen_text(app)
        await pilot.press(*["up"] * 12)
        assert listed.chosen == "0"
        assert "heading" in screen_text(app)


async def test_a_resize_keeps_the_choice() -> None:
    listed = Listed()
    app = Stage(listed)
    async with app.run_test(size=(40, 8)) as pilot:
        await pilot.press("j", "j", "j")
        await pilot.resize_terminal(20, 6)
        await pilot.pause()
        assert listed.chosen == "3"
