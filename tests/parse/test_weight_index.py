"""The typed way to an index and the exact way say the same, and the typed way never hides a duplicate."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.parse.json import parse_json
from shardscope.engine.parse.weight_index import read_weight_index


class Memory:
    """A reader over bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @property
    def size(self) -> int:
        return len(self.data)

    def pread(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length]


def outcome(data: bytes, *, exact: bool) -> Any:
    try:
        return parse_json(data, Limits()).value if exact else read_weight_index(Memory(data), Limits()).value
    except Fault as fault:
        return fault.finding.code


TEXT = st.text(max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | TEXT


@given(
    st.dictionaries(TEXT, TEXT, max_size=4),
    st.dictionaries(TEXT, SCALARS, max_size=3),
    st.booleans(),
)
def test_both_ways_agree_on_any_index(
    weight_map: dict[str, str], metadata: dict[str, Any], ascii_only: bool
) -> None:
    data = json.dumps({"metadata": metadata, "weight_map": weight_map}, ensure_ascii=ascii_only).encode(
        "utf-8", "surrogatepass"
    )
    assert outcome(data, exact=False) == outcome(data, exact=True)


@pytest.mark.parametrize(
    "text",
    [
        '{"weight_map": {"a": "x", "a": "y"}}',
        '{"weight_map": {"a": "x", "\\u0061": "y"}}',
        '{"weight_map": {"a": "x"}, "weight_map": {"b": "x"}}',
        '{"metadata": {"n": 1, "n": 2}, "weight_map": {"a": "x"}}',
        '{"metadata": {}, "metadata": {}, "weight_map": {"a": "x"}}',
        '{"weight_map": {"a": "x", "a": "x\\""}}',
    ],
)
def test_a_duplicate_key_is_found_wherever_it_stands(text: str) -> None:
    assert outcome(text.encode(), exact=False) == "json.duplicate_key"


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"weight_map": 3}', '{"weight_map": {"a": 1}}', "{", "null", ""]
)
def test_what_is_no_index_comes_back_as_the_exact_way_reads_it(text: str) -> None:
    assert outcome(text.encode(), exact=False) == outcome(text.encode(), exact=True)


def test_limits_hold_on_the_typed_way() -> None:
    data = json.dumps({"weight_map": {str(n): "x" for n in range(50)}}).encode()
    with pytest.raises(Fault, match=r"limit\.json_nodes"):
        read_weight_index(Memory(data), Limits(json_nodes=20))
    with pytest.raises(Fault, match=r"limit\.json_bytes"):
        read_weight_index(Memory(data), Limits(json_bytes=20))


@pytest.mark.parametrize(
    "text",
    [
        '{"weight_map": {"a": "x"}}',
        '{"weight_map": {}, "metadata": null}',
        '{"weight_map": {"a": "x"}, "metadata": {"n": [1]}}',
    ],
)
def test_both_ways_count_the_same_values(text: str) -> None:
    """Fuzzing found one too many where there is no metadata."""
    data = text.encode()
    assert read_weight_index(Memory(data), Limits()).nodes == parse_json(data, Limits()).nodes
