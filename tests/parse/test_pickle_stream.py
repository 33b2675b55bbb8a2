"""The machine, opcode by opcode: what each builds, what it refuses, and plain data of every protocol."""

import pickle
import pickletools
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.parse.pickle_stream import opcodes as op
from shardscope.engine.parse.pickle_stream.machine import read_pickle
from shardscope.engine.parse.pickle_stream.rare import RARE
from shardscope.engine.parse.pickle_stream.records import Call, Dict, FrozenSet, Persistent, Reference, Set
from shardscope.engine.parse.pickle_stream.state import Stream


def read(data: bytes, **limits: int) -> object:
    value, end = read_pickle(Stream(data, DecodeLimits(**limits)), 0)
    assert end == len(data)
    return value


def noted(data: bytes) -> set[str]:
    stream = Stream(data, DecodeLimits())
    read_pickle(stream, 0)
    return {each.code for each in stream.findings}


def refusal(data: bytes, **limits: int) -> str:
    with pytest.raises(Fault) as caught:
        read_pickle(Stream(data, DecodeLimits(**limits)), 0)
    return caught.value.finding.code


def plain(value: Any) -> Any:
    """Return what Python would have built of records that stand for plain data."""
    match value:
        case Dict():
            return dict(zip(map(plain, value[::2]), map(plain, value[1::2]), strict=True))
        case Set():
            return set(map(plain, value))
        case FrozenSet():
            return frozenset(map(plain, value))
        case list():
            return [plain(each) for each in value]
        case tuple():
            return tuple(plain(each) for each in value)
        case Call(callee=Reference(module="builtins" | "__builtin__" as module, name=name), args=args):
            kinds = {"set": set, "frozenset": frozenset, "bytearray": bytes}
            if name == "bytearray" and len(args) == 2:  # protocols 0 to 2 of Python 3
                return str(args[0]).encode(str(args[1]))
            if name == "bytes" and not args:
                return b""
            return kinds[name](*map(plain, args)) if name in kinds else f"{module}.{name}"
        case Call(callee=Reference(module="_codecs", name="encode"), args=(str(text), str(encoding))):
            return text.encode(encoding)
    return value


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(1 << 700), max_value=1 << 700)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
)
KEYS = (
    st.integers()
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.tuples(st.integers(), st.text("ab"))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(KEYS, inner)
        | st.sets(st.integers())
        | st.frozensets(st.text("abc"))
    ),
    max_leaves=30,
)


@given(VALUES, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_data_of_every_protocol_comes_back(value: object, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    stream = Stream(data, DecodeLimits())

    found, end = read_pickle(stream, 0)

    assert plain(found) == value
    assert end == len(data)
    assert stream.opcodes == sum(1 for _ in pickletools.genops(data))
    assert stream.findings == []


@given(st.lists(VALUES, max_size=6))
def test_what_is_shared_stays_one_object(values: list[object]) -> None:
    shared = [values, values, {"a": values}]

    found = read(pickle.dumps(shared))

    assert isinstance(found, list)
    assert found[0] is found[1] is found[2][1]


@given(VALUES, st.integers(0, pickle.HIGHEST_PROTOCOL), st.data())
def test_a_stream_that_is_cut_says_so(value: object, protocol: int, draw: st.DataObject) -> None:
    data = pickle.dumps(value, protocol)
    cut = draw.draw(st.integers(0, len(data) - 1))

    assert refusal(data[:cut]) in ("pickle.truncated", "pickle.frame_length")


def test_every_opcode_of_python_is_known() -> None:
    loop = {value for name, value in vars(op).items() if name.isupper() and value not in RARE}
    assert {ord(each.code) for each in pickletools.opcodes} == loop | RARE.keys()


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"N", None),
        (b"\x88", True),
        (b"\x89", False),
        (b"I01\n", True),
        (b"I00\n", False),
        (b"I-12\n", -12),
        (b"L123L\n", 123),
        (b"F1.5\n", 1.5),
        (b"F-inf\n", float("-inf")),
        (b"K\xff", 255),
        (b"M\xff\xff", 65_535),
        (b"J\xff\xff\xff\xff", -1),
        (b"\x8a\x00", 0),
        (b"\x8a\x02\x00\x80", -32_768),
        (b"\x8b\x01\x00\x00\x00\x07", 7),
        (b"G" + struct.pack(">d", 0.25), 0.25),
        (b"S'a\\x00\\n\"'\n", 'a\x00\n"'),
        (b'S"it\'s"\n', "it's"),
        (b"T\x02\x00\x00\x00ab", "ab"),
        (b"U\x02ab", "ab"),
        (b"V\\u00e9\\u000a\n", "é\n"),
        (b"X\x02\x00\x00\x00\xc3\xa9", "é"),
        (b"\x8c\x02\xc3\xa9", "é"),
        (b"\x8d" + struct.pack("<Q", 2) + b"ab", "ab"),
        (b"B\x02\x00\x00\x00\xff\x00", b"\xff\x00"),
        (b"C\x02\xff\x00", b"\xff\x00"),
        (b"\x8e" + struct.pack("<Q", 1) + b"\xff", b"\xff"),
        (b"\x96" + struct.pack("<Q", 1) + b"\xff", b"\xff"),
        (b")", ()),
        (b"N\x85", (None,)),
        (b"K\x01K\x02\x86", (1, 2)),
        (b"K\x01K\x02K\x03\x87", (1, 2, 3)),
        (b"(K\x01K\x02K\x03K\x04t", (1, 2, 3, 4)),
        (b"]", []),
        (b"(K\x01K\x02l", [1, 2]),
        (b"]K\x01a", [1]),
        (b"](K\x01K\x02e", [1, 2]),
        (b"}", {}),
        (b"(K\x01K\x02d", {1: 2}),
        (b"}K\x01K\x02s", {1: 2}),
        (b"}(K\x01K\x02K\x03K\x04u", {1: 2, 3: 4}),
        (b"\x8f", set()),
        (b"\x8f(K\x01K\x01\x90", {1}),
        (b"(K\x01\x91", frozenset([1])),
        (b"NK\x010", None),
        (b"((K\x01K\x021t", ()),
        (b"(0N", None),
        (b"K\x012\x86", (1, 1)),
        (b"K\x01q\x05h\x05\x86", (1, 1)),
        (b"K\x01r\x00\x00\x01\x00j\x00\x00\x01\x00\x86", (1, 1)),
        (b"K\x01p7\ng7\n\x86", (1, 1)),
        (b"K\x01\x94h\x00\x86", (1, 1)),
        (b"K\x01r\xff\xff\xff\xff0K\x02\x940h\x01", 2),
    ],
)
def test_what_an_opcode_builds(body: bytes, value: object) -> None:
    found = plain(read(body + b"."))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "body",
    [
        b"cmodule\nname\nK\x07\x85R",
        b"X\x06\x00\x00\x00moduleX\x04\x00\x00\x00name\x93K\x07\x85\x81",
        b"(K\x07imodule\nname\n",
        b"(cmodule\nname\nK\x07o",
        b"cmodule\nname\nK\x07\x85}\x92",
    ],
)
def test_every_way_to_call_makes_a_record_and_counts(body: bytes) -> None:
    stream = Stream(body + b".", DecodeLimits())

    call, _ = read_pickle(stream, 0)

    assert isinstance(call, Call)
    assert isinstance(call.callee, Reference)
    assert (call.callee.module, call.callee.name, call.args) == ("module", "name", (7,))
    assert (call.callee.named, call.callee.called) == (1, 1)


def test_what_is_done_to_the_result_of_a_call_is_kept() -> None:
    body = b"cm\nn\n)R(K\x01K\x02eK\x03a(K\x04K\x05uK\x06K\x07s}bNb(K\x08\x90."

    call = read(body)

    assert isinstance(call, Call)
    assert call.appends == [1, 2, 3, 8]
    assert call.items == [4, 5, 6, 7]
    assert call.states == [Dict(), None]


def test_a_result_can_be_called_and_holds_itself() -> None:
    call = read(b"cm\nn\n)Rq\x00h\x00h\x00\x85R\x86.")
    assert isinstance(call, tuple)
    assert isinstance(call[1], Call)
    assert call[1].callee is call[0]
    assert call[1].args == (call[0],)


def test_a_name_has_one_record() -> None:
    found = read(b"cm\nn\ncm\nn\n\x86.")
    assert isinstance(found, tuple)
    assert found[0] is found[1]
    assert found[0].named == 2
    assert found[0].called == 0


def test_an_id_lies_outside() -> None:
    for body, value in ((b"K\x07Q", 7), (b"Pabc\n", "abc")):
        found = read(body + b".")
        assert isinstance(found, Persistent)
        assert found.id == value


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "pickle.truncated"),
        (b"N", "pickle.truncated"),
        (b"\x8c\x05ab.", "pickle.truncated"),
        (b"X\xff\xff\xff\xff.", "pickle.truncated"),
        (b"X\x05\x00\x00\x00\xff\xff.", "pickle.truncated"),
        (b"G\x00\x00.", "pickle.truncated"),
        (b"cmodule", "pickle.truncated"),
        (b"h", "pickle.truncated"),
        (b"\x82", "pickle.truncated"),
        (b"\xff.", "pickle.opcode"),
        (b"\x80\x06N.", "pickle.protocol"),
        (b"\x95\x10\x00\x00\x00\x00\x00\x00\x00N.", "pickle.frame_length"),
        (b"T\xff\xff\xff\xff.", "pickle.length"),
        (b"\x8b\xff\xff\xff\xff.", "pickle.length"),
        (b".", "pickle.stack"),
        (b"0.", "pickle.stack"),
        (b"t.", "pickle.stack"),
        (b"(.", "pickle.stack"),
        (b"N\x86.", "pickle.stack"),
        (b"}(Nu.", "pickle.stack"),
        (b"(o.", "pickle.stack"),
        (b"h\x00.", "pickle.memo_unset"),
        (b"j\xff\xff\xff\xff.", "pickle.memo_unset"),
        (b"g0\n.", "pickle.memo_unset"),
        (b"Np01\n.", "pickle.memo_place"),
        (b"Np-1\n.", "pickle.memo_place"),
        (b"N)R.", "pickle.target"),
        (b"cm\nn\nNR.", "pickle.target"),
        (b"cm\nn\n]R.", "pickle.target"),
        (b"cm\nn\nNb.", "pickle.target"),
        (b"NNa.", "pickle.target"),
        (b")(Ne.", "pickle.target"),
        (b"](NNu.", "pickle.target"),
        (b"](N\x90.", "pickle.target"),
        (b"cm\nn\n)]\x92.", "pickle.target"),
        (b"\x8c\x02\xc0\x80.", "pickle.text"),
        (b"X\x01\x00\x00\x00\xff.", "pickle.text"),
        (b"I+7\n.", "pickle.text_form"),
        (b"L7\n.", "pickle.text_form"),
        (b"F1_0.5\n.", "pickle.text_form"),
        (b"F1e400\n.", "pickle.text_form"),
        (b"S'a'b'\n.", "pickle.text_form"),
        (b"S'\\z'\n.", "pickle.text_form"),
        (b"V\\u12\n.", "pickle.text_form"),
        (b"P\xff\n.", "pickle.text_form"),
        (b"I" + b"9" * 5_000 + b"\n.", "pickle.text_form"),
        (b"NN\x93.", "pickle.name"),
        (b"c\xff\nn\n.", "pickle.name"),
        (b"c" + b"m" * 2_001 + b"\nn\n.", "pickle.name"),
        (b"\x97.", "pickle.buffer"),
        (b"N\x98.", "pickle.buffer"),
        (b"\x82\x05.", "pickle.extension"),
        (b"\x83\x05\x05.", "pickle.extension"),
        (b"\x84\x05\x05\x05\x05.", "pickle.extension"),
    ],
)
def test_what_an_opcode_refuses(body: bytes, code: str) -> None:  # R044
    assert refusal(body) == code


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"N\x80\x02.", "pickle.protocol_again"),
        (b"NN.", "pickle.stack_left"),
        (b"(N.", "pickle.stack_left"),
        (b"U\x01\xff.", "pickle.python2_bytes"),
        (b"\x8c\x03\xed\xa0\x80.", "pickle.surrogate"),
        (b"V\\ud800\n.", "pickle.surrogate"),
        (b"\x95\x01\x00\x00\x00\x00\x00\x00\x00N.", "pickle.frame"),
        (b"\x95\x05\x00\x00\x00\x00\x00\x00\x00X\x04\x00\x00\x00abcd.", "pickle.frame"),
        (b"\x95\x04\x00\x00\x00\x00\x00\x00\x00NNNN0000N.", "pickle.frame"),
        (b"\x95\x0d\x00\x00\x00\x00\x00\x00\x00\x95\x04\x00\x00\x00\x00\x00\x00\x00NNN..", "pickle.frame"),
    ],
)
def test_what_deserves_a_word(body: bytes, code: str) -> None:
    assert code in noted(body)


def test_a_lone_surrogate_becomes_an_escape() -> None:
    assert read(b"\x8c\x04a\xed\xa0\x80.") == "a\\ud800"
    assert read(b"X\x04\x00\x00\x00a\xed\xa0\x80.") == "a\\ud800"
    assert read(b"V\\ud83d\\ude00\n.").encode() == b"\\ud83d\\ude00"  # type: ignore[attr-defined]


def test_large_texts_lie_between_frames() -> None:
    value = ["a" * 100_000, b"b" * 100_000, ["c"] * 50_000]
    for protocol in (4, 5):
        assert noted(pickle.dumps(value, protocol)) == set()


@pytest.mark.parametrize(
    ("field", "limit", "data"),
    [
        ("pickle_bytes", 4, b"NNNN."),
        ("pickle_opcodes", 3, b"NNN."),
        ("pickle_opcodes", 100_000, b"N0" * 60_000 + b"N."),
        ("pickle_stack", 1_000, b"N" * 40_000 + b"."),
        ("pickle_stack", 1_000, b"(" * 900 + b"N" * 40_000 + b"."),
        ("pickle_memo", 1_000, b"N" + b"\x94" * 40_000 + b"."),
        ("pickle_depth", 1_000, b"(" * 40_000 + b"."),
        ("pickle_elements", 100, b"](" + b"N" * 101 + b"e."),
        ("pickle_elements", 100, b"}(" + b"N" * 102 + b"u."),
        ("pickle_elements", 100, b"](" + b"N" * 60 + b"e(" + b"N" * 60 + b"e."),
        ("pickle_elements", 100, b"cm\nn\n)R(" + b"N" * 101 + b"e."),
        ("pickle_elements", 100, b"cm\nn\n)R(" + b"N" * 102 + b"u."),
        ("pickle_elements", 100, b"(" + b"N" * 101 + b"t."),
        ("pickle_elements", 100, b"(" + b"N" * 101 + b"l."),
        ("pickle_elements", 100, b"(" + b"N" * 102 + b"d."),
        ("pickle_elements", 100, b"\x8f(" + b"N" * 101 + b"\x90."),
        ("pickle_elements", 100, b"(" + b"N" * 101 + b"\x91."),
        ("pickle_elements", 100, b"]" + b"Na" * 101 + b"."),
        ("pickle_string_bytes", 10, b"X\x0b\x00\x00\x00" + b"a" * 11 + b"."),
        ("pickle_string_bytes", 10, b"B\x0b\x00\x00\x00" + b"a" * 11 + b"."),
        ("pickle_string_bytes", 10, b"T\x0b\x00\x00\x00" + b"a" * 11 + b"."),
        ("pickle_string_bytes", 10, b"S'" + b"a" * 11 + b"'\n."),
        ("pickle_integer_bytes", 10, b"\x8b\x0b\x00\x00\x00" + b"a" * 11 + b"."),
        ("pickle_integer_bytes", 10, b"I12345678901\n."),
        ("pickle_built_bytes", 100, b"NNNNN."),
        ("pickle_built_bytes", 1_000, b"X\xe9\x03\x00\x00" + b"a" * 1_001 + b"."),
    ],
)
def test_each_limit_has_its_code(field: str, limit: int, data: bytes) -> None:  # R045
    assert refusal(data, **{field: limit}) == f"limit.{field}"


def test_time_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:  # R045
    seconds = iter(range(0, 10_000, 200))
    monkeypatch.setattr("time.monotonic", lambda: float(next(seconds)))

    assert refusal(b"N0" * 60_000 + b"N.") == "limit.pickle_seconds"


def test_limits_are_those_of_the_whole_stream() -> None:
    stream = Stream(b"NNN0N.NNN0N.", DecodeLimits(pickle_opcodes=10))
    _, end = read_pickle(stream, 0)
    with pytest.raises(Fault) as caught:
        read_pickle(stream, end)
    assert caught.value.finding.code == "limit.pickle_opcodes"


def test_a_limit_that_is_just_kept_is_no_fault() -> None:
    assert read(b"NNNN.", pickle_bytes=5, pickle_opcodes=5) is None
    assert len(read(b"](" + b"N" * 100 + b"e.", pickle_elements=100)) == 100  # type: ignore[arg-type]
    assert read(b"X\x0a\x00\x00\x00" + b"a" * 10 + b".", pickle_string_bytes=10) == "a" * 10
