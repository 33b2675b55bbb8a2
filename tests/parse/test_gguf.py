"""Headers of GGUF files: both byte orders, three versions, and every way for lengths, counts and offsets to lie."""

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.facts import GgufArray, GgufText
from shardscope.engine.model.ggml import BLOCK_TYPES, GGML_TYPES
from shardscope.engine.model.limits import Limits
from shardscope.engine.parse.gguf import read_header
from tests.parse.gguf_files import LITTLE, Order, Row, gguf, number, pair, texts, word
from tests.parse.readers import FileReader, MemoryReader

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "gguf"
BIG = Order(">")
OLD = Order("<", wide=False)
LIMITS = Limits()


def code_of(data: bytes, limits: Limits = LIMITS) -> str:
    with pytest.raises(Fault) as caught:
        read_header(MemoryReader(data), limits)
    return caught.value.finding.code


def notes_of(data: bytes) -> set[str]:
    return {finding.code for finding in read_header(MemoryReader(data), LIMITS).notes}


@pytest.mark.parametrize(("name", "big"), [("llama_mixed", False), ("llama_mixed_be", True)])
def test_what_the_package_writes_is_read(name: str, big: bool) -> None:
    data = (FIXTURES / name / "checkpoint" / "tiny-q4.gguf").read_bytes()
    header = read_header(MemoryReader(data), LIMITS)
    found = dict(zip(header.names, zip(header.dtypes, header.shapes, strict=True), strict=True))

    assert (header.head.version, header.head.big_endian) == (3, big)
    assert found["token_embd.weight"] == ("Q8_0", (48, 64))
    assert found["blk.1.ffn_down.weight"] == ("Q8_0", (64, 96))
    assert found["output.weight"] == ("BF16", (48, 64))
    assert header.metadata["llama.block_count"] == 2
    assert header.metadata["llama.rope.freq_base"] == 10000.0
    assert header.metadata["tokenizer.ggml.add_bos_token"] is True
    assert header.metadata["tokenizer.ggml.tokens"] == GgufArray("string", 48)
    assert header.ends[-1] <= len(data)
    assert {finding.code for finding in header.notes} == ({"gguf.big_endian"} if big else set())


@pytest.mark.parametrize(("version", "order"), [(1, OLD), (2, LITTLE), (3, LITTLE), (3, BIG)])
def test_every_version_and_byte_order_says_the_same(version: int, order: Order) -> None:
    rows = [Row("a", (6, 5), 0, 0), Row("b", (32, 2, 3), 8, 128)]
    pairs = [word("general.architecture", "x", order), number("x.block_count", 2, order)]
    data = gguf(rows, pairs, version=version, order=order, data=128 + 34 * 6 + 20)
    header = read_header(MemoryReader(data), LIMITS)

    assert header.metadata == {"general.architecture": "x", "x.block_count": 2}
    assert (header.names, header.dtypes, header.shapes) == (["a", "b"], ["F32", "Q8_0"], [(5, 6), (3, 2, 32)])
    assert [end - begin for begin, end in zip(header.begins, header.ends, strict=True)] == [120, 204]
    assert header.begins == [header.data_begin, header.data_begin + 128]


def test_no_byte_of_the_data_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf([Row("a", (1 << 30,))], data=0))
    with path.open("r+b") as file:
        file.truncate(1 << 32)
    with FileReader(str(path)) as reader:
        read_header(reader, LIMITS)
        assert reader.bytes_read < 1 << 21


VALUES = [
    (0, b"\xff", 255), (1, b"\xff", -1), (2, b"\x01\x02", 513), (3, b"\xff\xff", -1), (4, struct.pack("<I", 7), 7),
    (5, struct.pack("<i", -7), -7), (6, struct.pack("<f", 0.5), 0.5), (7, b"\1", True), (8, LITTLE.text("é"), "é"),
    (10, struct.pack("<Q", 1 << 60), 1 << 60), (11, struct.pack("<q", -5), -5), (12, struct.pack("<d", 0.25), 0.25),
    (9, struct.pack("<IQ", 4, 3) + bytes(12), GgufArray("uint32", 3)),
    (9, struct.pack("<IQ", 8, 2) + LITTLE.text("a") + LITTLE.text(""), GgufArray("string", 2)),
    (9, struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 0, 2) + b"ab", GgufArray("array", 1)),
    (8, LITTLE.text("x" * 70_000), GgufText(70_000)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "raw", "value"), VALUES)
def test_a_value_of_each_type_is_told(kind: int, raw: bytes, value: object) -> None:
    data = gguf(pairs=[pair("k", kind, raw), number("after", 9)])
    assert read_header(MemoryReader(data), LIMITS).metadata == {"k": value, "after": 9}


def test_a_vocabulary_longer_than_a_window_is_stepped_over() -> None:
    words = ["w" * (n % 40) for n in range(120_000)]
    reader = MemoryReader(gguf(pairs=[texts("tokens", *words), number("after", 9)]))
    header = read_header(reader, LIMITS)

    assert header.metadata == {"tokens": GgufArray("string", 120_000), "after": 9}
    assert max(length for _, length in reader.reads) <= 1 << 20


COUNT = struct.pack("<Q", 1 << 62)
MALFORMED: dict[str, tuple[bytes, str]] = {
    "no bytes": (b"", "gguf.magic"),
    "another magic": (b"GGUX" + bytes(40), "gguf.magic"),
    "magic alone": (b"GGUF", "gguf.truncated"),
    "half a head": (gguf()[:20], "gguf.truncated"),
    "version 0": (gguf(version=0), "gguf.version"),
    "version 4": (gguf(version=4), "gguf.version"),
    "version 4 of the other order": (gguf(version=4, order=BIG), "gguf.version"),
    "more tensors than bytes": (gguf(tensors=1 << 60), "gguf.counts"),
    "more keys than bytes": (gguf(keys=1 << 60), "gguf.counts"),
    "counts that overflow together": (gguf(tensors=(1 << 64) - 1, keys=(1 << 64) - 1), "gguf.counts"),
    "a tensor more than there is": (gguf(tensors=2, data=None), "gguf.counts"),
    "keys that are zeros": (gguf(keys=4), "gguf.key_twice"),
    "a key longer than the file": (gguf(pairs=[struct.pack("<Q", 60_000) + bytes(30)]), "gguf.cut_off"),
    "a key longer than keys are": (gguf(pairs=[COUNT + bytes(30)]), "gguf.malformed"),
    "a text longer than the file": (gguf(pairs=[pair("k", 8, struct.pack("<Q", 1 << 40))]), "gguf.cut_off"),
    "a text whose end overflows": (gguf(pairs=[pair("k", 8, b"\xff" * 8)]), "gguf.cut_off"),
    "a type that is none": (gguf(pairs=[pair("k", 13, bytes(8))]), "gguf.malformed"),
    "a truth value of 2": (gguf(pairs=[pair("k", 7, b"\2")]), "gguf.malformed"),
    "a list of a type that is none": (gguf(pairs=[pair("k", 9, struct.pack("<IQ", 99, 1))]), "gguf.malformed"),
    "a list of numbers beyond the file": (gguf(pairs=[pair("k", 9, struct.pack("<I", 12) + COUNT)]), "gguf.cut_off"),
    "a list of 2**62 texts": (gguf(pairs=[pair("k", 9, struct.pack("<I", 8) + COUNT)]), "limit.json_nodes"),
    "a list of 2**62 lists": (gguf(pairs=[pair("k", 9, struct.pack("<I", 9) + COUNT)]), "limit.json_nodes"),
    "more texts than bytes": (gguf(pairs=[pair("k", 9, struct.pack("<IQ", 8, 1000))]), "gguf.cut_off"),
    "a text in a list beyond the file": (
        gguf(pairs=[pair("k", 9, struct.pack("<IQQ", 8, 1, 1 << 50))]), "gguf.cut_off"),
    "lists nested without end": (gguf(pairs=[pair("k", 9, struct.pack("<IQ", 9, 1) * 9)]), "gguf.malformed"),
    "a key twice": (gguf(pairs=[number("k", 1), number("k", 2)]), "gguf.key_twice"),
    "an alignment of 0": (gguf(pairs=[number("general.alignment", 0)]), "gguf.alignment"),
    "an alignment of 24": (gguf(pairs=[number("general.alignment", 24)]), "gguf.alignment"),
    "an alignment of 2**31": (gguf(pairs=[number("general.alignment", 1 << 31)]), "gguf.alignment"),
    "an alignment in words": (gguf(pairs=[word("general.alignment", "32")]), "gguf.alignment"),
    "an alignment of true": (gguf(pairs=[pair("general.alignment", 7, b"\1")]), "gguf.alignment"),
    "five dimensions": (gguf([Row(dims=(1,) * 5)]), "gguf.shape"),
    "2**32 - 1 dimensions": (
        gguf([], tensors=1, data=None) + LITTLE.text("a") + b"\xff" * 4 + bytes(40), "gguf.shape"),
    "a dimension below zero": (gguf([Row(dims=((1 << 64) - 4,))]), "gguf.shape"),
    "elements that overflow": (gguf([Row(dims=(1 << 32, 1 << 32))]), "gguf.shape"),
    "half a block": (gguf([Row(dims=(48, 2), type=2)]), "gguf.block"),
    "blocks of a scalar": (gguf([Row(dims=(), type=2)]), "gguf.block"),
    "an offset off the alignment": (gguf([Row(offset=8)]), "gguf.misaligned"),
    "two tensors in one place": (gguf([Row("a", (16,)), Row("b", (16,))]), "gguf.overlap"),
    "a tensor within another": (gguf([Row("a", (64,)), Row("b", (4,), 0, 32)], data=256), "gguf.overlap"),
    "a name twice": (gguf([Row("a"), Row("a", offset=32)]), "gguf.name_twice"),
    "an end beyond 63 bits": (gguf([Row("a", (32,), 0, ((1 << 64) - 32))]), "gguf.shape"),
    "descriptions that end early": (gguf([Row("a", (4,))], data=None)[:-9], "gguf.cut_off"),
    "a name beyond the file": (
        gguf([], tensors=1, data=None) + struct.pack("<Q", 9_000) + bytes(40), "gguf.cut_off"),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_what_cannot_be_is_refused_by_its_code(name: str) -> None:
    data, code = MALFORMED[name]
    assert code_of(data) == code


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (gguf(data=0), "gguf.data_cut_off"),
        (gguf(data=4096), "gguf.overlong"),
        (gguf([Row("a"), Row("b", offset=256)], data=272), "gguf.gap"),
        (gguf([Row("a", (4,), 9, 0)], data=40), "gguf.type_unknown"),
        (gguf([Row("x" * 64)]), "gguf.name_long"),
        (gguf([Row(b"\xff\xfe")]), "gguf.not_utf8"),
        (gguf(pairs=[pair(b"\xff", 4, bytes(4))]), "gguf.not_utf8"),
        (gguf([Row("a\x1b[31m")]), "header.name_control"),
        (gguf([Row("")]), "header.name_empty"),
    ],
)
def test_what_is_only_odd_is_noted_and_listed(data: bytes, code: str) -> None:
    assert code in notes_of(data)


def test_a_tensor_of_an_unknown_type_reaches_to_the_next() -> None:
    data = gguf([Row("a", (8,), 77, 0), Row("b", (4,), 0, 64)], data=96)
    header = read_header(MemoryReader(data), LIMITS)
    assert header.dtypes == ["ggml 77", "F32"]
    assert header.ends[0] - header.begins[0] == 64


def test_tensors_may_be_described_in_another_order_than_they_lie() -> None:
    header = read_header(MemoryReader(gguf([Row("b", offset=32), Row("a", offset=0)])), LIMITS)
    assert header.names == ["b", "a"]
    assert not header.notes


def test_limits_are_kept() -> None:
    rows = [Row(f"t{n}", offset=32 * n) for n in range(4)]
    data = gguf(rows, [texts("k", *"abc")], data=128)

    assert code_of(data, Limits(tensors=3)) == "limit.tensors"
    assert code_of(data, Limits(header_bytes=64)) == "limit.header_bytes"
    assert code_of(data, Limits(json_nodes=3)) == "limit.json_nodes"
    assert len(read_header(MemoryReader(data), Limits(tensors=4)).names) == 4


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_header_ends_in_a_code_or_a_listing(data: st.DataObject) -> None:
    whole = bytearray(
        gguf([Row("a", (4, 8)), Row("b", (32,), 2, 128)], [word("k", "v"), texts("t", "a", "bc")], data=160)
    )
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    with suppress(Fault):  # any other exception fails
        header = read_header(MemoryReader(bytes(whole[:cut])), LIMITS)
        assert len(header.names) == len(header.begins) == len(header.ends)


def test_the_table_of_types_is_that_of_blocks() -> None:
    assert all(kind.bytes > 0 and kind.block > 0 for kind in GGML_TYPES.values())
    assert len({kind.name for kind in GGML_TYPES.values()}) == len(GGML_TYPES)
    assert BLOCK_TYPES["Q4_K"].bits == 4.5
