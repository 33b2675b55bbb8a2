"""Patterns of a checkpoint: the answers of the standard library, without its backtracking."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.geometry.interchange.pattern_syntax import DEPTH, LENGTH
from shardscope.engine.geometry.interchange.patterns import Patterns
from shardscope.engine.model.blocker import Fault

ATOMS = st.sampled_from(
    [
        "a",
        "b",
        ".",
        r"\.",
        r"\d",
        r"\w",
        r"\S",
        "[ab]",
        "[^a]",
        "[a-c1]",
        r"[\d_]",
        "^",
        "$",
        r"\b",
        r"\B",
        "1",
        "{",
    ]
)
TIMES = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "{,1}"])


@st.composite
def patterns(draw: st.DrawFn, depth: int = 2) -> str:
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        if depth and draw(st.booleans()):
            inner = draw(patterns(depth - 1))
            atom = draw(st.sampled_from(["(", "(?:"])) + inner + ")"
        else:
            atom = draw(ATOMS)
        place = atom in {"^", "$", r"\b", r"\B"}
        parts.append(atom if place else atom + draw(TIMES))
    text = "".join(parts)
    return text + "|" + draw(patterns(depth - 1)) if depth and draw(st.integers(0, 3)) == 0 else text


# Six characters, since the standard library's time grows with a power of them.
NAMES = st.text(alphabet="ab1c._\n {", max_size=6)


@settings(max_examples=400, deadline=None)
@given(patterns(), st.lists(NAMES, min_size=1, max_size=4))
def test_a_pattern_matches_what_the_standard_library_matches(pattern: str, names: list[str]) -> None:
    compiled = re.compile(pattern)
    ours = Patterns([pattern])

    for name in names * 2:  # the second time from memory
        assert bool(ours.matching(name)) == bool(compiled.match(name)), name


@given(st.text(max_size=30), st.text(max_size=30))
def test_an_escaped_name_matches_itself_only(name: str, other: str) -> None:
    pattern = f"^{re.escape(name)}$"
    found = Patterns([pattern])

    assert found.matching(name) == (pattern,)
    assert bool(found.matching(other)) == bool(re.match(pattern, other))


def test_several_patterns_keep_their_order() -> None:
    found = Patterns([r"layers\.(?P<number>\d+)\.mlp", "^layers\\.3\\.mlp$", "layers", r".*\.bias$"])

    assert found.matching("layers.3.mlp") == (r"layers\.(?P<number>\d+)\.mlp", "^layers\\.3\\.mlp$", "layers")
    assert found.matching("layers.x.bias") == ("layers", r".*\.bias$")
    assert found.matching("embed") == ()


@pytest.mark.parametrize(
    "hostile",
    [
        r"(a+)+$",
        r"(a|a)*$",
        r"(a|aa)+$",
        r"(.*a){20}$",
        r"((a*)*)*b",
        r"(a?){60}a{60}$",
        r"(?:(?:(?:a*)*)*)*!",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
    ],
)
def test_a_pattern_that_backtracks_for_hours_takes_milliseconds(hostile: str) -> None:
    started = time.process_time()
    found = Patterns([hostile])

    assert found.matching("a" * 59 + "!" * 3) == ((hostile,) if hostile.endswith("!") else ())
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "refused",
    [
        r"(a)\1",
        r"(?=a)a",
        r"(?<!a)b",
        r"(?i)a",
        r"(?#note)a",
        r"(?P=x)",
        r"a*+",
        r"a**",
        r"*a",
        r"^*",
        r"(a",
        r"a)",
        r"[a",
        r"[b-a]",
        "a\\",
        r"\x41",
        r"\u0041",
        r"\y",
        r"a{3,2}",
        r"a{5000}",
        r"(a{60}){60}{2}",
        r"((a{100}){100}){100}",
        "(" * (DEPTH + 1) + ")" * (DEPTH + 1),
        "a" * (LENGTH + 1),
    ],
)
def test_what_cannot_run_as_states_is_refused(refused: str) -> None:
    with pytest.raises(Fault) as caught:
        Patterns([refused])

    assert caught.value.finding.code == "universal.pattern"
    assert caught.value.finding.params["pattern"] == refused


def test_repeats_of_nothing_cost_nothing() -> None:
    text = "a"
    for _ in range(20):
        text = f"(?:(?:){{4000}}){{4000}}{text}"

    assert Patterns([text]).matching("ab") == (text,)
    assert Patterns(["(?:(?:(?:){4000}){4000}){4000}b"]).matching("a") == ()


def test_matching_is_bounded_over_all_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardscope.engine.geometry.interchange.patterns.STEPS", 10_000)
    found = Patterns([r"\b(a?){900}\B"])

    with pytest.raises(Fault, match=r"universal\.pattern"):
        [found.matching("a" * 100 + "b") for _ in range(100)]
