"""Mutations of the pickles of all fixtures: a part of what `make fuzz` does."""

from tests.parse.fuzz_pickles import fuzz


def test_no_mutation_does_anything_but_be_read_or_be_refused() -> None:  # R044 R045
    ends = fuzz(2_000, seed=20_261_130)

    assert sum(ends.values()) == 2_000
    assert ends["read"] > 100
    assert len(ends) > 10, ends
