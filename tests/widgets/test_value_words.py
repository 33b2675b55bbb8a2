"""Numbers in the notations of the grid, and what is said of a reading on its way."""

from typing import Any

import pytest

from shardscope.engine.model.gathered import Gathered
from shardscope.engine.model.peek import Bin, Statistics
from shardscope.widgets.figure_words import bars, part
from shardscope.widgets.paragraphs import Paragraph
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.value_reading import Reading, ReadingState, standing, summary
from shardscope.widgets.value_words import Notation, cell_width, cell_words, notations


@pytest.mark.parametrize(
    ("dtype", "notation", "word", "code", "shown", "tone"),
    [
        ("F32", "short", "-0.000123456789", "b90186ea", "-0.0001235", Tone.PLAIN),
        ("F32", "scientific", "1", "3f800000", "1.000e+00", Tone.PLAIN),
        ("F32", "fixed", "-0.5", "bf000000", "-0.500000", Tone.PLAIN),
        ("F32", "fixed", "123456.75", "47f12060", "1.235e+05", Tone.PLAIN),
        ("F32", "fixed", "1e-07", "33d6bf95", "1.000e-07", Tone.PLAIN),
        ("BF16", "short", "nan", "7fc0", "NaN", Tone.STOP),
        ("BF16", "fixed", "inf", "7f80", "+inf", Tone.CAUTION),
        ("BF16", "hex", "-inf", "ff80", "ff80 I", Tone.CAUTION),
        ("BF16", "hex", "nan", "7fc0", "7fc0 N", Tone.STOP),
        ("BF16", "hex", "-0", "8000", "8000 Z", Tone.MUTED),
        ("BF16", "hex", "1", "3f80", "3f80  ", Tone.PLAIN),
        ("I32", "short", "-17", "ffffffef", "-17", Tone.PLAIN),
        ("I32", "hex", "0", "00000000", "00000000", Tone.MUTED),
        ("C64", "short", "1+nanj", "3f800000 7fc00000", "1+nanj", Tone.STOP),
        ("C64", "short", "0.25-2j", "3e800000 c0000000", "0.25-2j", Tone.PLAIN),
        ("C64", "short", "0+0j", "00000000 00000000", "0+0j", Tone.MUTED),
    ],
)
def test_a_number_in_each_notation(
    dtype: str, notation: Notation, word: str, code: str, shown: str, tone: Tone
) -> None:
    assert cell_words(word, code, dtype, notation) == (shown, tone)
    if dtype != "I32":
        assert len(shown) <= cell_width(dtype, notation)


def test_integers_have_no_notation_of_floats() -> None:
    assert notations("U8") == ("short", "hex")
    assert "fixed" in notations("F8_E4M3")


def a_statistics(**given: Any) -> Statistics:
    """Return some figures."""
    facts: dict[str, Any] = dict.fromkeys(Statistics.__struct_fields__[:5], 0)
    facts |= {"min": -1.5, "max": 2.0, "mean": 0.5, "std": 1.0, "l2": 3.0, "sign_exponents": 3}
    return Statistics(**{**facts, "exponent_min": -1, "exponent_max": 1, "distinct": None, **given})


def plain(parts: "tuple[Part, ...]") -> str:
    return "".join(part if isinstance(part, str) else part[0] for part in parts)


def said(paragraphs: "list[Paragraph]") -> str:
    return "\n".join(plain(each.parts) for each in paragraphs)


@pytest.mark.parametrize(
    ("state", "done", "words"),
    [
        ("unread", 0, "Figures need every number: 9.3 GiB.\nPress s to read; c stops it"),
        ("reading", 40, "PARTIAL  so far 40 of 100 elements, 40 %; c stops."),
        ("stopped", 40, "PARTIAL  stopped after 40 of 100 elements, 40 %.\nPress s to read all"),
        ("failed", 40, "Gone.\nLook again.\nsource.changed\nPARTIAL  up to there 40 of 100"),
        ("done", 100, "all  100 elements, 9.3 GiB"),
    ],
)
def test_a_part_is_never_said_to_be_the_whole(state: ReadingState, done: int, words: str) -> None:
    known = Gathered(done, 100, a_statistics(numbers=done, nans=1)) if done else None
    reading = Reading(state, known, 10**10, ("Gone.", "Look again.", "source.changed"))

    assert words in said(list(standing(reading)))
    line = plain(summary(reading))
    if state == "unread":
        assert line == "statistics: s reads 9.3 GiB"
    else:
        assert line.startswith("PARTIAL") is (state != "done")
        assert "min -1.5  max 2  mean 0.5  std 1  1 NaN" in line


def test_bars_share_lines_where_there_are_many_exponents() -> None:
    bins = tuple(Bin(negative, exponent, 1) for negative in (True, False) for exponent in range(-10, 10))

    found = bars(a_statistics(zeros=3, histogram=bins), 10)

    assert len(found) == 21
    assert found[0] == ("-2^10 to -2^8", 2)
    assert found[10] == ("0", 3)
    assert part(32, 32) == "32 (100%)"
