"""safetensors headers: each fault its own code, and no verdict or fact at odds with the reference library."""

import json
import struct
from math import prod
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize

from shardscope.engine.model.blocker import Fault, Finding, blocker
from shardscope.engine.model.facts import SafetensorsHeader
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.parse import safetensors
from shardscope.engine.parse.safetensors import read_header
from tests.parse.readers import MemoryReader

LIMITS = Limits()
ENTRY = '{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'
DATA = bytes(8)


def file_of(text: str | bytes, data: bytes = DATA) -> bytes:
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw + data


def header(text: str | bytes, data: bytes = DATA, limits: Limits = LIMITS) -> SafetensorsHeader:
    return read_header(MemoryReader(file_of(text, data)), limits)


def fault(text: str | bytes, data: bytes = DATA, limits: Limits = LIMITS) -> tuple[str, dict[str, Any]]:
    return fault_of(file_of(text, data), limits)


def fault_of(file: bytes, limits: Limits = LIMITS) -> tuple[str, dict[str, Any]]:
    with pytest.raises(Fault) as caught:
        read_header(MemoryReader(file), limits)
    blocker(caught.value.finding, "file")  # every parameter of the sentence is there
    return caught.value.finding.code, dict(caught.value.finding.params)


def notes(found: SafetensorsHeader) -> dict[str, dict[str, Any]]:
    for note in found.notes:
        blocker(note, "file")
    return {note.code: dict(note.params) for note in found.notes}


def entry(shape: str = "[2]", offsets: str = "[0,8]", dtype: str = '"F32"') -> str:
    return f'{{"w":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}}}}}'


def test_a_header_comes_out_in_columns_in_the_order_of_the_data() -> None:
    text = json.dumps(
        {
            "b": {"dtype": "U8", "shape": [3], "data_offsets": [4, 7]},
            "__metadata__": {"format": "pt"},
            "a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
            "c": {"dtype": "F32", "shape": [0, 5], "data_offsets": [7, 7]},
        }
    )
    found = header(text, bytes(7))
    base = 8 + len(text)
    assert found == SafetensorsHeader(
        header_bytes=len(text),
        data_begin=base,
        data_end=base + 7,
        names=["a", "b", "c"],
        kinds=[("U8", (3,)), ("F32", ()), ("F32", (0, 5))],
        kind_of=[1, 0, 2],
        ends=[base + 4, base + 7, base + 7],
        metadata={"format": "pt"},
        notes=found.notes,
    )
    assert found.dtypes == ["F32", "U8", "F32"]
    assert found.shapes == [(), (3,), (0, 5)]
    assert found.begins == [base, base + 4, base + 7]


def test_nothing_but_the_length_and_the_header_is_read() -> None:  # R029 R030
    text = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})
    reader = MemoryReader(file_of(text))
    read_header(reader, LIMITS)
    assert reader.reads == [(0, 8), (8, len(text))]


def test_a_header_over_the_limit_is_not_read() -> None:  # R029 R045
    reader = MemoryReader(file_of("{" + " " * 98 + "}", b""))
    with pytest.raises(Fault) as caught:
        read_header(reader, Limits(header_bytes=99))
    assert caught.value.finding == Finding("limit.header_bytes", {"limit": 99, "found": 100})
    assert reader.reads == [(0, 8)]


@pytest.mark.parametrize(
    ("file", "code", "params"),
    [
        (b"", "header.too_short", {"size": 0}),
        (bytes(7), "header.too_short", {"size": 7}),
        (bytes(8), "header.length_zero", {}),
        (struct.pack("<Q", 55) + b"{" * 54, "header.past_eof", {"length": 55, "missing": 1}),
        (
            struct.pack("<Q", 1 << 63) + b"{}",
            "header.past_eof",
            {"length": 1 << 63, "missing": (1 << 63) - 2},
        ),
    ],
)
def test_the_frame_is_checked_first(file: bytes, code: str, params: dict[str, int]) -> None:  # R044
    assert fault_of(file) == (code, params)


def test_cut_off_and_too_long_are_different_and_counted() -> None:
    found = header(entry(), DATA[:5])
    assert notes(found)["header.truncated"] == {"missing": 3, "expected": 8, "found": 5}
    assert found.names == ["w"]
    assert notes(header(entry(), DATA + b"xx"))["header.overlong"] == {"extra": 2}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("hello", "header.bad_start"),
        ("\ufeff{}", "header.bad_start"),
        ("\0{}", "header.bad_start"),
        ("[]", "header.not_object"),
        ('"w"', "header.not_object"),
        (b'{"\xff":1}', "header.not_utf8"),
        ("{", "header.syntax"),
        ("{}{}", "header.syntax"),
        ("{} x", "header.syntax"),
        ("{}\0\0", "header.padding"),
        ("{} \u00a0", "header.padding"),
        (entry(shape="[NaN]"), "header.nonfinite"),
        (entry(shape="[1e400]"), "header.number_range"),
        (r'{"\ud800":' + ENTRY + "}", "header.lone_surrogate"),
        ('{"a":' + ENTRY + ',"a":' + ENTRY + "}", "header.name_duplicate"),
        ('{"a":' + ENTRY + r',"\u0061":' + ENTRY + "}", "header.name_duplicate"),
        ('{"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', "header.field_duplicate"),
        ('{"__metadata__":{"a":"1","a":"1"},"w":' + ENTRY + "}", "header.metadata_duplicate"),
        ('{"__metadata__":{},"__metadata__":{}}', "header.metadata_twice"),
        ('{"__metadata__":[]}', "header.metadata_not_object"),
        ('{"__metadata__":{"a":1}}', "header.metadata_type"),
        ('{"__metadata__":' + ENTRY + "}", "header.metadata_type"),
        ('{"w":null}', "header.entry_type"),
        ('{"w":["F32",[2],[0,8]]}', "header.entry_type"),
        ('{"w":{"shape":[2],"data_offsets":[0,8]}}', "header.field_missing"),
        ('{"w":{"dtype":"F32","shape":[2]}}', "header.field_missing"),
        ('{"w":{}}', "header.field_missing"),
        (entry(dtype="32"), "header.dtype_type"),
        (entry(dtype='{"F32":null}'), "header.dtype_type"),
        (entry(shape="[2.0]"), "header.shape_type"),
        (entry(shape="[-0,2]"), "header.shape_type"),
        (entry(shape="[true]"), "header.shape_type"),
        (entry(shape="[18446744073709551616]"), "header.shape_type"),
        (entry(shape="[0,18446744073709551616]", offsets="[0,0]"), "header.shape_type"),
        (entry(offsets="[0,8,8]"), "header.offsets_type"),
        (entry(offsets="[-0,8]"), "header.offsets_type"),
        (entry(offsets="[0,18446744073709551616]"), "header.offsets_type"),
        (entry(offsets="[8,0]"), "header.reversed"),
        (entry(offsets="[4,12]"), "header.gap"),
        (entry(shape="[4294967296,4294967296]", offsets="[0,0]"), "header.shape_overflow"),
        (entry(shape="[9223372036854775808,4,0]", offsets="[0,0]"), "header.shape_overflow"),
        (entry(shape="[15]", dtype='"F4"'), "header.subbyte_unaligned"),
        (entry(offsets="[0,4]"), "header.size_mismatch"),
        (entry(shape="[]"), "header.size_mismatch"),
        ('{"a":' + ENTRY + ',"b":' + ENTRY + "}", "header.overlap"),
        ('{"w":{"x":' + "[" * 100 + "]" * 100 + "}}", "limit.json_depth"),
        (entry(shape="[" + "1," * 64 + "2]"), "limit.tensor_rank"),
    ],
)
def test_each_fault_has_its_own_code(text: str | bytes, code: str) -> None:  # R044
    assert fault(text)[0] == code
    if not code.startswith("limit."):
        return
    assert fault(text)[1]["found"] > fault(text)[1]["limit"]


def test_faults_carry_their_figures() -> None:
    second = '"b":{"dtype":"F32","shape":[2],"data_offsets":[%d,%d]}'
    assert fault('{"a":' + ENTRY + "," + second % (12, 20) + "}")[1] == {"tensor": "b", "missing": 4}
    assert fault('{"a":' + ENTRY + "," + second % (6, 14) + "}")[1] == {
        "tensor": "b",
        "other": "a",
        "early": 2,
    }
    assert fault(entry(shape="[3]"))[1] == {
        "tensor": "w",
        "found": 8,
        "expected": 12,
        "dtype": "F32",
        "shape": "[3]",
    }
    assert fault('{"w": 1x}')[1] == {
        "offset": 7,
        "expected": "a comma or the end of the list or object is expected",
    }


def test_the_first_fault_in_the_order_of_the_data_is_named_whatever_the_order_of_the_text() -> None:
    first = '"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}'
    second = '"b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}'
    assert fault("{" + first + "," + second + "}") == fault("{" + second + "," + first + "}")
    assert fault("{" + second + "," + first + "}")[0] == "header.size_mismatch"


def test_a_range_that_runs_back_never_passes_for_an_odd_size() -> None:
    # 60 bits are no whole number of bytes, and the range of the second tensor has minus one.
    back = '"b":{"dtype":"F4","shape":[15],"data_offsets":[8,7]}'
    assert fault('{"a":' + ENTRY + "," + back + "}", bytes(7))[0] == "header.reversed"
    unknown = '"b":{"dtype":"I4","shape":[1],"data_offsets":[8,7]}'
    assert fault('{"a":' + ENTRY + "," + unknown + "}", bytes(7))[0] == "header.reversed"


def test_limits_on_tensors_and_values_are_named() -> None:  # R045
    two = '{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
    assert fault(two, b"", Limits(tensors=1)) == ("limit.tensors", {"limit": 1, "found": 2})
    many = '{"w":{"x":[' + "0," * 50 + "0]}}"
    assert fault(many, b"", Limits(json_nodes=50))[0] == "limit.json_nodes"


def test_a_raised_limit_does_not_hide_that_loaders_refuse_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safetensors, "REFERENCE_CEILING", 10)
    assert notes(header(entry()))["header.beyond_reference"]["ceiling"] == 10


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (" " + entry(), "header.leading_space"),
        (entry() + "\n", "header.padding_space"),
        ('{"__metadata__":null,"w":' + ENTRY + "}", "header.metadata_null"),
        ('{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"scale":1}}', "header.field_extra"),
        (entry(dtype='"F128"'), "header.dtype_unknown"),
        (entry(shape="[" + "1," * 16 + "2]"), "header.rank_large"),
        ('{"__metadata__":{"a":"' + "x" * 40_000 + '"},"w":' + ENTRY + "}", "header.metadata_large"),
        (r'{"__metadata__":{"a":"\u001b[2J"},"w":' + ENTRY + "}", "header.metadata_control"),
    ],
)
def test_oddities_are_read_with_a_note(text: str, code: str) -> None:
    found = header(text)
    assert code in notes(found)
    assert found.names == ["w"]
    assert found.data_end - found.data_begin == 8


def test_an_unknown_dtype_is_listed_and_repeated_only_if_it_looks_like_one() -> None:
    found = header(entry(dtype='"I4"'))
    assert (found.dtypes, found.ends[0] - found.begins[0]) == (["I4"], 8)
    assert notes(found)["header.dtype_unknown"] == {"count": 1, "dtype": "I4"}
    secret = header(entry(dtype=f'"hf_{"x" * 34}"'))
    assert (
        "hf_"
        not in blocker(next(note for note in secret.notes if note.code == "header.dtype_unknown")).message
    )


def test_alignment_is_told_only_where_it_is_off() -> None:
    text = entry()
    aligned = text + " " * (-len(text) % 8)
    assert "header.unaligned" not in notes(header(aligned))
    assert notes(header(aligned + " "))["header.unaligned"] == {"offset": 8 + len(aligned) + 1}


def test_escapes_braces_and_commas_in_metadata_do_not_mislead_the_count() -> None:
    metadata = {"json": '{"a": ["\\\\", "\\"", {}]}', "b{": "},:", "__metadata__": "x", 'q"': "-1,[-1"}
    text = json.dumps({"__metadata__": metadata, 'w"\\': json.loads(ENTRY)})
    found = header(text)
    assert found.metadata == metadata
    assert found.names == ['w"\\']


def test_a_missing_field_cannot_be_made_up_for_by_another_entry() -> None:
    # The second entry has as many quotation marks too many as the first has too few.
    text = '{"a":{"shape":[0],"data_offsets":[0,0]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":"y"}}'
    assert fault(text) == ("header.field_missing", {"tensor": "a", "field": "dtype"})


# -- against the reference library


dtype_names = st.sampled_from(sorted(DTYPES))
dimensions = st.lists(st.integers(0, 5), max_size=4)
names = st.text(min_size=0, max_size=12).filter(lambda name: name != "__metadata__")


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Valid files: any names, dtypes and shapes, entries in any order of the text, any padding and metadata."""
    entries: dict[str, Any] = {}
    begin = 0
    for name in draw(st.lists(names, max_size=6, unique=True)):
        dtype, shape = DTYPES[draw(dtype_names)], draw(dimensions)
        if prod(shape) * dtype.bits % 8:
            shape = [*shape, 8]
        end = begin + prod(shape) * dtype.bits // 8
        entries[name] = {"dtype": dtype.name, "shape": shape, "data_offsets": [begin, end]}
        begin = end
    order = draw(st.permutations(list(entries)))
    document: dict[str, Any] = {name: entries[name] for name in order}
    if draw(st.booleans()):
        document["__metadata__"] = draw(st.dictionaries(st.text(max_size=6), st.text(max_size=9), max_size=3))
    text = json.dumps(document, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    return file_of(text + " " * draw(st.integers(0, 9)), bytes(begin))


def reference(file: bytes) -> dict[str, tuple[str, tuple[int, ...], int]] | None:
    """What the reference library reads: dtype, shape and bytes by name; null where it refuses the file."""
    try:
        found = deserialize(file)  # type: ignore[no-untyped-call]
    except SafetensorError:
        return None
    return {name: (info["dtype"], tuple(info["shape"]), len(info["data"])) for name, info in found}


def ours(file: bytes) -> dict[str, tuple[str, tuple[int, ...], int]] | None:
    """The same of ours; null where it refuses the file or says that loaders will."""
    try:
        found = read_header(MemoryReader(file), LIMITS)
    except Fault as fault:
        blocker(fault.finding, "file")
        return None
    if any(blocker(note, "file").severity == "error" for note in found.notes):
        return None
    rows = zip(found.names, found.dtypes, found.shapes, found.begins, found.ends, strict=True)
    return {name: (dtype, shape, end - begin) for name, dtype, shape, begin, end in rows}


@given(files())
def test_every_valid_file_is_read_as_the_reference_reads_it(file: bytes) -> None:  # R029
    found = ours(file)
    assert found is not None
    assert found == reference(file)


MUTATIONS = st.one_of(
    st.tuples(st.just("set"), st.integers(0, 1 << 20), st.integers(0, 255)),
    st.tuples(
        st.just("swap"), st.integers(0, 1 << 20), st.sampled_from(list(b'"{}[],:0123456789-.eE\\ \n\x00'))
    ),
    st.tuples(st.just("delete"), st.integers(0, 1 << 20), st.integers(1, 9)),
    st.tuples(st.just("repeat"), st.integers(0, 1 << 20), st.integers(1, 60)),
)


def mutated(file: bytes, mutation: tuple[str, int, int], keep_length: bool) -> bytes:
    kind, place, value = mutation
    length = int.from_bytes(file[:8], "little")
    first = 8 if keep_length else 0
    at = first + place % max(1, min(len(file), 8 + length) - first)
    match kind:
        case "set" | "swap":
            changed = file[:at] + bytes([value]) + file[at + 1 :]
        case "delete":
            changed = file[:at] + file[at + value :]
        case _:
            changed = file[: at + value] + file[at:]
    if keep_length:  # the change is in the text: let the length follow, so that the text is what is judged
        changed = struct.pack("<Q", length + len(changed) - len(file)) + changed[8:]
    return changed


@settings(max_examples=1_500, deadline=2_000)
@given(files(), MUTATIONS, st.booleans())
@example(file_of(entry(shape="[-0,2]")), ("set", 0, 0x36), False)
def test_a_mutated_file_is_never_read_where_the_reference_refuses_it_nor_read_differently(
    file: bytes, mutation: tuple[str, int, int], keep_length: bool
) -> None:  # R044
    changed = mutated(file, mutation, keep_length)
    theirs, found = reference(changed), ours(changed)
    if theirs is None:
        assert found is None
    elif found is not None:
        assert found == theirs


small_entries = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["U8", "F4", "F6_E2M3", "F16"]),
        "shape": st.lists(st.integers(0, 4) | st.sampled_from([15, 1 << 32, 1 << 63]), max_size=3),
        "data_offsets": st.lists(st.integers(0, 9), min_size=2, max_size=2),
    }
)


@settings(max_examples=1_000)
@given(st.dictionaries(st.sampled_from("abcd"), small_entries, max_size=3), st.integers(0, 9))
@example(
    {
        "a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
        "b": {"dtype": "F4", "shape": [15], "data_offsets": [8, 7]},
    },
    7,
)
def test_any_small_geometry_gets_the_verdict_of_the_reference(
    document: dict[str, Any], size: int
) -> None:  # R044
    file = file_of(json.dumps(document), bytes(size))
    assert ours(file) == reference(file)
