"""The door to the screen: what is unsafe becomes visible, what is long is shortened, what leaks is deleted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from tests.hostile import HOSTILE
from textual.color import Color

from shardscope.engine.model.text import UNSAFE
from shardscope.widgets.safe import Tone, UnsafeFilter, content, elide, fit, visible


@pytest.mark.parametrize(("raw", "seen"), HOSTILE.values(), ids=HOSTILE)
def test_content_shows_hostile_text_and_reads_no_markup(raw: str, seen: str) -> None:
    line = content("before ", (raw, Tone.STOP), " after")
    assert line.plain == f"before {seen} after"
    assert [span.style for span in line.spans] == ["bold $text-error"]


@given(st.text(), st.integers(0, 40))
def test_fitted_text_is_exactly_as_wide_as_asked(text: str, width: int) -> None:
    shown = fit(text, width)
    assert cell_len(shown) == width
    assert not UNSAFE.search(shown)


@given(st.text(max_size=80).map(visible), st.integers(1, 40), st.floats(0, 1), st.integers(0, 80))
def test_elided_text_is_never_wider(text: str, width: int, tail: float, keep: int) -> None:
    assert cell_len(elide(text, width, tail=tail, keep=keep)) <= width


def test_the_middle_goes_first() -> None:
    assert elide("model_states_of_rank.pt", 11) == "model…nk.pt"
    assert elide("model_states_of_rank.pt", 11, tail=1) == "…of_rank.pt"


def test_the_character_that_tells_names_apart_stays() -> None:
    # Without `keep` both would read `zero_pp_…states.pt`.
    names = ["zero_pp_rank_3_mp_rank_00_states.pt", "zero_pp_rank_4_mp_rank_00_states.pt"]
    assert [elide(name, 19, keep=13) for name in names] == ["zero_pp_rank_3_….pt", "zero_pp_rank_4_….pt"]
    assert [elide(name, 9, keep=13) for name in names] == ["…k_3_mp_…", "…k_4_mp_…"]


def test_the_first_number_stays_beside_the_one_that_tells_names_apart() -> None:
    names = [f"zero_pp_rank_{dp}_mp_rank_{mp:02}_states.pt" for dp in range(2) for mp in range(2)]
    for width in range(15, 36):
        assert len({elide(name, width, keep=24) for name in names}) == 4, width
    assert elide(names[0], 19, keep=24) == "…0_mp_rank_00_stat…"
    assert elide("model-00001-of-00003.safetensors", 22, keep=10) == "model-00001…afetensors"


def test_a_number_is_never_shown_as_another_one() -> None:
    assert elide("model.layers.123.mlp.weight", 14, tail=1) == "….mlp.weight"
    assert elide("layers.123.mlp.weight", 10, tail=0) == "layers.…"


def test_wide_characters_are_never_cut_in_half() -> None:
    assert cell_len(elide("重み重み重み", 8)) <= 8
    assert fit("重み", 6) == "重み  "


def test_the_filter_deletes_what_got_past_everything_else_and_keeps_the_width() -> None:
    segments = [Segment("a\x1b[2Jb"), Segment("c\udc80d"), Segment("plain")]
    kept = UnsafeFilter().apply(segments, Color(0, 0, 0))
    assert [segment.text for segment in kept] == ["a[2Jb", "cd ", "plain"]
    clean = [Segment("plain")]
    assert UnsafeFilter().apply(clean, Color(0, 0, 0)) is clean
