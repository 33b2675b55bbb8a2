"""A small part of `make fuzz`: the stored corpus of every target, and a few blind mutations of it."""

import random

import pytest

from tests.fuzz.attempt import attempt
from tests.fuzz.mutating import mutated, restructured
from tests.fuzz.seeds import CORPUS, kept, seeds
from tests.fuzz.targets import SECONDS, TARGETS, Target

MUTATIONS = 150


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_comes_out_but_an_answer_or_a_code(name: str) -> None:  # R044 R045
    target, rng = TARGETS[name], random.Random(20_261_130)
    stored = kept(name)
    inputs = stored + rng.sample(known := seeds(name), min(len(known), 12))
    ends = {attempt(target, data) for data in inputs}
    ends |= {
        attempt(target, mutated(rng, rng.choice(inputs), inputs, textual=target.textual))
        for _ in range(MUTATIONS)
    }

    assert stored, "every target has a stored corpus"
    assert len(ends) > 1 or name in ("answer", "sniff", "text", "zarr", "config"), ends


def test_the_stored_corpus_is_small_and_of_targets_that_exist() -> None:
    files = sorted(CORPUS.iterdir())

    assert {path.stem for path in files} == TARGETS.keys()
    assert sum(path.stat().st_size for path in files) < 600_000


@pytest.mark.parametrize("error", [IndexError("x"), RecursionError(), MemoryError(), AssertionError("x")])
def test_anything_else_would_be_a_finding(error: Exception) -> None:
    def careless(data: bytes) -> object:
        raise error

    with pytest.raises(AssertionError, match="careless"):
        attempt(Target("careless", careless), b"data")


def test_taking_long_would_be_a_finding() -> None:
    ticks = iter([0.0, SECONDS + 1])

    with pytest.raises(AssertionError, match=r"3\.0 s"):
        attempt(Target("slow", len), b"data", clock=lambda: next(ticks))


def test_mutations_are_the_same_for_the_same_seed_and_change_something() -> None:
    data = b'{"weight_map": {"a": "b"}, "sizes": [1, 2, 3]}'
    twice = [
        [mutated(random.Random(seed), data, [data], textual=True) for seed in range(50)] for _ in range(2)
    ]

    assert twice[0] == twice[1]
    assert len(set(twice[0])) > 40
    assert restructured(random.Random(1), b"no JSON") is None
