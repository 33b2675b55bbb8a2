"""A report beside what it was made of: every line of both, each beside its own, and the written side exactly what is written."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.report.sides import ABSENT, Side
from shardscope.engine.reporting import Request, prepare_report, preview_report

FIXTURES = sorted((Path(__file__).resolve().parents[1] / "fixtures").glob("*/*/checkpoint"))

KEYS = st.sampled_from(["a", "b", "c", "path", 'q"uote', "{", "x: y"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", "x", "{1}", "a, b", '": {', "["]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=24,
)


def text(value: Any) -> str:
    """Return a document as `to_json` sets it."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def rows(side: Side) -> list[tuple[int, int]]:
    return list(zip(side.rows[::2], side.rows[1::2], strict=True))


@settings(max_examples=200, deadline=None)
@given(VALUES, VALUES)
def test_every_line_of_both_documents_is_there_once_and_the_written_one_in_order(
    one: Any, other: Any
) -> None:
    side = Side("x.json", text(one), text(other))

    before, after = zip(*rows(side), strict=True)
    assert sorted(line for line in before if line != ABSENT) == list(range(len(side.before)))
    assert [line for line in after if line != ABSENT] == list(range(len(side.after)))
    assert set(side.doubled) <= set(side.changed)
    same = set(range(side.count)) - set(side.changed)
    for row in same:  # a comma after it may differ
        here, there = rows(side)[row]
        assert side.before[here].rstrip(",") == side.after[there].rstrip(",")


@settings(max_examples=50, deadline=None)
@given(VALUES)
def test_equal_documents_have_no_change(value: Any) -> None:
    side = Side("x.json", text(value), text(value))

    assert list(side.changed) == []
    assert rows(side) == [(line, line) for line in range(len(side.after))]


def test_what_has_the_same_key_stands_beside_it_whatever_the_order() -> None:
    side = Side(
        "x.json", text({"p": {"z": 1, "a": "secret", "gone": [1, 2]}}), text({"p": {"a": "{1}", "z": 1}})
    )

    told = [
        (
            None if one == ABSENT else side.before[one].strip(),
            None if other == ABSENT else side.after[other].strip(),
        )
        for one, other in rows(side)
    ]
    assert ('"a": "secret",', '"a": "{1}",') in told
    assert ('"z": 1,', '"z": 1') in told
    assert ('"gone": [', None) in told


def test_a_large_tree_and_a_small_difference_are_the_same_as_line_by_line() -> None:
    tree = [{"path": f"f{number}", "size": number} for number in range(500)]
    other = [dict(each) for each in tree]
    other[250]["path"] = "{1}"
    odd = [dict(each) for each in other]
    del odd[10]["size"]

    quick = Side("x.json", text({"tree": tree}), text({"tree": other}))
    slow = Side("x.json", text({"tree": tree}), text({"tree": odd}))

    assert [quick.before[rows(quick)[row][0]].strip() for row in quick.changed] == ['"path": "f250",']
    assert len(slow.changed) == 2
    assert len(slow.doubled) == 1


@pytest.mark.parametrize(
    "request_", [Request(), Request(names="hash", without=("tree", "topology", "blockers"))]
)
def test_the_written_side_of_every_fixture_is_what_is_written(request_: Request) -> None:
    for path in FIXTURES[::6]:
        prepared = prepare_report(str(path), request_)
        preview = preview_report(prepared)
        for name, data in prepared.built.members.items():
            assert preview.written(name) == data.decode(), (path, name)
        for row in range(0, preview.row_count, 7):
            line = preview.line(row)
            assert bool(line.why) == (row in set(preview.changed)), (path, row)
        assert json.loads(preview.written("report.json"))["schema"] == "shardscope.report/1"
