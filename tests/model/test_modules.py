"""Names as modules: patterns, ranges and one name for many."""

import pytest

from shardscope.engine.model.modules import folded_name, is_complete, pattern_of, ranges_of


def test_numbers_are_taken_out_of_a_name() -> None:
    found = pattern_of("model.layers.3.experts.12.w1.weight")
    assert found.parts == ("model", "layers", "*", "experts", "*", "w1", "weight")
    assert found.numbers == (3, 12)


@pytest.mark.parametrize(
    "name", ["layers.03.weight", "layers.1234567890.weight", "layers.3a.w", "w1", "", "."]
)
def test_what_is_not_plainly_a_number_stays(name: str) -> None:
    assert pattern_of(name).numbers == ()
    assert ".".join(pattern_of(name).parts) == name


def test_an_asterisk_of_a_name_is_not_taken_for_a_number() -> None:
    starred, numbered = pattern_of("a.*.b"), pattern_of("a.1.b")
    assert starred.parts != numbered.parts
    assert folded_name(starred.parts, [()]) == "a.*.b"


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([3], "3"),
        ([1, 0, 2], "0-2"),
        ([0, 1, 2, 7], "0-2,7"),
        ([0, 2, 4, 6, 8, 10], "0,2,4,6,..."),
        ([], ""),
    ],
)
def test_numbers_are_written_as_ranges(numbers: list[int], words: str) -> None:
    assert ranges_of(numbers) == words


def test_many_names_of_a_pattern_become_one() -> None:
    names = [f"layers.{n}.experts.{m}.w" for n in range(2) for m in range(4)]
    patterns = [pattern_of(name) for name in names]
    assert len({found.parts for found in patterns}) == 1
    numbers = [found.numbers for found in patterns]
    assert folded_name(patterns[0].parts, numbers) == "layers.{0-1}.experts.{0-3}.w"
    assert is_complete(numbers)
    assert not is_complete(numbers[:-1])
    assert folded_name(patterns[0].parts, numbers[:4]) == "layers.0.experts.{0-3}.w"
