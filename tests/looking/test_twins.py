"""Copies as layers: which part of two names is the number that they differ in."""

from shardscope.engine.looking.twins import Twin, said_of


def said(one: str, other: str) -> list[tuple[str, object, object]]:
    """Return the findings about two tensors that are copies: the code, and both names."""
    found = said_of([Twin(one, other, 0, None)], [one, other])
    return [
        (each.finding.code, each.finding.params["tensor"], each.finding.params["other"]) for each in found
    ]


def test_the_unit_ends_with_the_first_number_that_differs() -> None:
    assert said("layers.3.parts.5.w", "layers.3.parts.2.w") == [
        ("scan.duplicate_layer", "layers.3.parts.5", "layers.3.parts.2")
    ]


def test_asterisks_in_names_are_no_numbers() -> None:
    assert said("a.*.4.w", "a.**.2.w") == [("scan.duplicate_layer", "a.*.4", "a.*.2")]
