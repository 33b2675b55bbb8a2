"""JSON within bounds: every fault has its code, what published files carry is read, and hostile bytes cost little."""

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.parse.json import MAX_DEPTH, check_structure, parse_json, read_json, require_object
from tests.parse.readers import MemoryReader

LIMITS = Limits()


def fault(data: bytes, limits: Limits = LIMITS) -> tuple[str, dict[str, object]]:
    with pytest.raises(Fault) as caught:
        parse_json(data, limits)
    return caught.value.finding.code, dict(caught.value.finding.params)


def notes(data: bytes) -> list[str]:
    return [note.code for note in parse_json(data, LIMITS).notes]


def test_a_document_comes_out_as_plain_values() -> None:
    document = parse_json(b'{"a": [1, -2.5, true, null, "\xc3\xa9", "\\u00e9"], "b": {}}', LIMITS)
    assert document.value == {"a": [1, -2.5, True, None, "é", "é"], "b": {}}
    assert document.nodes == 9
    assert document.notes == ()


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b'{"a": 1,}', 1, 9),
        (b'{\n  "a": 1\n  "b": 2\n}', 3, 3),
        (b"{'a': 1}", 1, 2),
        (b'{"a": 1} {"b": 2}', 1, 10),
        (b'{"a": tru}', 1, 7),
        (b'{"a": "b', 1, 7),
        (b'{"a": "\x01"}', 1, 8),
        (b'{"a": "\\x"}', 1, 8),
        (b"", 1, 1),
        (b" \n ", 2, 2),
        (b"\0\0\0\0", 1, 1),
        (b'{"a": 01}', 1, 8),
        (b"# yaml: yes", 1, 1),
    ],
)
def test_a_syntax_error_names_its_place(data: bytes, line: int, column: int) -> None:  # R044
    code, params = fault(data)
    assert code == "json.syntax"
    assert (params["line"], params["column"]) == (line, column)
    assert params["expected"]


def test_a_syntax_error_repeats_nothing_of_the_file() -> None:
    _, params = fault(b'{"token": secret-value}')
    assert "secret" not in str(params)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_wide_encodings_are_named(encoding: str) -> None:
    code, params = fault('{"a": 1}'.encode(encoding))
    assert (code, params["encoding"]) == ("json.encoding", encoding[:6].upper())


def test_bytes_that_are_not_utf8_are_refused_at_their_place() -> None:
    assert fault(b'{"a": "\xe9"}') == ("json.not_utf8", {"offset": 7})


def test_a_byte_order_mark_is_a_note() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}', LIMITS).value == {"a": 1}
    assert notes(b'\xef\xbb\xbf{"a": 1}') == ["json.bom"]


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (b'{"a": 1, "b": 2, "a": 1}', "a"),
        (b'{"a": 1, "\\u0061": 2}', "a"),
        (b'{"x": [{"k": {"d": 1, "d": 2}}]}', "d"),
        (b'{"": 1, "": 2}', ""),
    ],
)
def test_a_key_twice_is_refused_at_any_depth(data: bytes, key: str) -> None:  # R044
    assert fault(data) == ("json.duplicate_key", {"key": key})


def test_the_same_key_in_two_objects_is_fine() -> None:
    assert parse_json(b'[{"a": 1}, {"a": 1}]', LIMITS).value == [{"a": 1}, {"a": 1}]


@pytest.mark.parametrize(
    "text", [r'"\ud800"', r'"\udc00"', r'"\udc00\ud800"', r'"\ud800x"', r'{"\ud83d": 1}', r'"\\\ud800"']
)
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    assert fault(text.encode())[0] == "json.lone_surrogate"


@pytest.mark.parametrize("text", [r'"\ud83d\ude00"', r'"\\ud800"', r'"\\\\ud800\ud83d\ude00"'])
def test_pairs_and_escaped_backslashes_are_no_lone_surrogates(text: str) -> None:
    assert parse_json(text.encode(), LIMITS).value == json.loads(text)


def test_what_python_writes_beyond_json_is_read_with_a_note() -> None:
    document = parse_json(b'{"a": NaN, "b": [Infinity, -Infinity]}', LIMITS)
    assert document.value["b"] == [float("inf"), float("-inf")]
    assert [(note.code, note.params) for note in document.notes] == [("json.nonfinite", {"count": 3})]


def test_integers_beyond_64_bits_become_floats_with_a_note() -> None:
    # The maximum length that tokenizer configurations carry.
    document = parse_json(b'{"model_max_length": 1000000000000000019884624838656}', LIMITS)
    assert document.value == {"model_max_length": 1e30}
    assert isinstance(document.value["model_max_length"], float)
    assert [note.code for note in document.notes] == ["json.integer_range"]


@pytest.mark.parametrize("number", [(1 << 64) - 1, -(1 << 63), 10**18, -(10**18), 0])
def test_integers_of_64_bits_stay_exact(number: int) -> None:
    document = parse_json(str(number).encode(), LIMITS)
    assert document.value == number
    assert isinstance(document.value, int)
    assert document.notes == ()


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"9" * 5_000])
def test_numbers_beyond_a_double_become_infinite_with_a_note(number: bytes) -> None:
    document = parse_json(number, LIMITS)
    assert abs(document.value) == float("inf")
    assert "json.number_range" in [note.code for note in document.notes]


def test_a_file_that_is_too_large_is_not_read() -> None:  # R028 R045
    reader = MemoryReader(b'{"a": "0123456789"}')
    with pytest.raises(Fault) as caught:
        read_json(reader, Limits(json_bytes=18))
    assert caught.value.finding.code == "limit.json_bytes"
    assert caught.value.finding.params == {"limit": 18, "found": 19}
    assert reader.reads == []
    assert fault(b'{"a": 1}', Limits(json_bytes=7))[0] == "limit.json_bytes"


def test_depth_is_bounded_before_anything_is_built() -> None:  # R028 R045
    limits = Limits(json_depth=3)
    assert parse_json(b'[[["[[[["]]]', limits).value == [[["[[[["]]]
    assert fault(b"[[[[]]]]", limits) == ("limit.json_depth", {"limit": 3, "found": 4})
    assert fault(b'{"a":' * 4 + b"1" + b"}" * 4, limits)[0] == "limit.json_depth"
    assert fault(b"[" * 100_000) == ("limit.json_depth", {"limit": 64, "found": 100_000})


def test_no_limit_lets_the_scanner_exhaust_the_stack() -> None:
    limits = Limits(json_depth=1_000_000)
    deep = MAX_DEPTH
    assert parse_json(b"[" * deep + b"]" * deep, limits).nodes == deep
    assert fault(b"[" * (deep + 1) + b"]" * (deep + 1), limits)[0] == "limit.json_depth"


def test_the_number_of_values_is_bounded() -> None:  # R028 R045
    limits = Limits(json_nodes=4)
    assert parse_json(b"[1, 2, 3]", limits).nodes == 4
    assert fault(b"[1, 2, 3, 4]", limits) == ("limit.json_nodes", {"limit": 4, "found": 5})
    assert fault(b'{"a": [], "b": {}, "c": [0]}', limits)[0] == "limit.json_nodes"


@pytest.mark.parametrize(
    "data",
    [
        b'"' + b'\\"' * 4_000_000,
        b'"\\' * 4_000_000,
        b"[" * 8_000_000,
        b"[]," * 2_600_000,
        b'"",' * 2_600_000,
        b"\\" * 8_000_000,
        b" " * 8_000_000,
    ],
    ids=["escaped quotes", "backslashes", "brackets", "lists", "strings", "only backslashes", "spaces"],
)
def test_eight_hostile_megabytes_are_refused_in_a_moment(data: bytes) -> None:  # R045
    start = time.perf_counter()
    with pytest.raises(Fault):
        parse_json(data, Limits(json_nodes=1_000_000))
    assert time.perf_counter() - start < 5  # a quadratic scan would take hours


def test_the_top_level_can_be_required_to_be_an_object() -> None:
    assert require_object(parse_json(b'{"a": 1}', LIMITS)) == {"a": 1}
    for text, found in (
        (b"[1]", "a list"),
        (b"null", "null"),
        (b'"x"', "a string"),
        (b"1", "a number"),
        (b"true", "a boolean"),
    ):
        with pytest.raises(Fault) as caught:
            require_object(parse_json(text, LIMITS))
        assert (caught.value.finding.code, caught.value.finding.params) == (
            "json.not_object",
            {"found": found},
        )


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=40,
)


def count(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(count, value.values()))
    return 1 + sum(map(count, value)) if isinstance(value, list) else 1


@given(values, st.booleans(), st.sampled_from([None, 1]))
def test_any_document_comes_back_and_is_counted_right(
    value: object, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    document = parse_json(text, LIMITS)
    assert document.value == value
    assert document.nodes == count(value)


@given(st.binary(max_size=60) | st.text('{}[]",:\\ \n1e-x', max_size=60).map(str.encode))
def test_no_bytes_make_it_fail_and_nothing_strict_refuses_passes_unseen(data: bytes) -> None:  # R044
    try:
        document = parse_json(data, LIMITS)
    except Fault:
        return
    assert check_structure(data.removeprefix(b"\xef\xbb\xbf"), LIMITS) == document.nodes
    if not document.notes:
        assert msgspec.json.decode(data) == document.value
