"""Values held against each other: every type, any layout, and where the first difference is."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from shardscope.engine.convert.copies.contents import Contents
from shardscope.engine.diffing.alike import Alike, stored_alike
from shardscope.engine.diffing.measuring import BLOCK
from shardscope.engine.diffing.numbers import in_words, table, values
from shardscope.engine.diffing.placing import index_of, place
from shardscope.engine.diffing.values import Comparing, Values, refusal
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.model.tensors import DTYPES
from tests.convert.material import Array, boxes, noise, opened, put, single
from tests.convert.test_copying import columns

BUDGET = 1 << 20


def held(folder: Path, one: LogicalTensor, other: LogicalTensor) -> Values:
    with opened(folder) as opener, Comparing(opener, BUDGET) as comparing:
        return comparing.compared(one, other)


def written(
    folder: Path, name: str, dtype: str, array: Array, shape: tuple[int, ...] | None = None
) -> LogicalTensor:
    return single(name, dtype, array.shape if shape is None else shape, put(folder, name, array))


def both(folder: Path, dtype: str, one: Array, other: Array, dtype_b: str | None = None) -> Values:
    return held(folder, written(folder, "one", dtype, one), written(folder, "other", dtype_b or dtype, other))


@pytest.mark.parametrize(
    ("dtype", "codes", "numbers"),
    [
        ("F8_E4M3", [0x00, 0x01, 0x08, 0x38, 0x7E, 0x7F, 0xB8], [0, 2**-9, 2**-6, 1, 448, np.nan, -1]),
        ("F8_E5M2", [0x01, 0x3C, 0x7B, 0x7C, 0xFC, 0x7E], [2**-16, 1, 57344, np.inf, -np.inf, np.nan]),
        ("F8_E4M3FNUZ", [0x40, 0x7F, 0x80, 0xC0], [1, 240, np.nan, -1]),
        ("F8_E5M2FNUZ", [0x40, 0x7F, 0x80], [1, 57344, np.nan]),
        ("F8_E8M0", [0, 127, 254, 255], [2**-127, 1, 2.0**127, np.nan]),
        ("F4", [0, 1, 2, 7, 9], [0, 0.5, 1, 6, -0.5]),
        ("F6_E2M3", [1, 8, 31, 33], [0.125, 1, 7.5, -0.125]),
        ("F6_E3M2", [1, 12, 31, 63], [0.0625, 1, 28, -28]),
    ],
)
def test_small_floats_are_what_their_standards_say(
    dtype: str, codes: list[int], numbers: list[float]
) -> None:
    assert np.array_equal(table(dtype)[codes], np.array(numbers), equal_nan=True)


def test_elements_of_less_than_a_byte_are_packed_from_the_lowest_bit_on() -> None:
    assert values(np.array([0x72, 0x19], "u1"), "F4").tolist() == [1, 6, -0.5, 0.5]
    packed = np.array([31 | 1 << 6, 1 >> 2 | 33 << 2 & 0xF0, 0], "u1")
    assert values(packed, "F6_E2M3")[:2].tolist() == [7.5, 0.125]


@pytest.mark.parametrize("dtype", [name for name in DTYPES if DTYPES[name].bits >= 8])
def test_every_type_is_the_same_as_itself_and_its_first_difference_is_found(
    tmp_path: Path, dtype: str
) -> None:
    width = DTYPES[dtype].bits // 8
    data = np.arange(1000 * width, dtype=np.uint64).astype("u1").reshape(1000, width)
    data[:, -1] = 0x12 if dtype != "BOOL" else 1
    other = data.copy()
    other[777, -1] ^= 0x03 if dtype != "BOOL" else 1
    one, two, three = (
        written(tmp_path, name, dtype, array, (10, 100))
        for name, array in zip("abc", (data, data, other), strict=True)
    )

    assert held(tmp_path, one, two).figures.verdict == "bits"
    found = held(tmp_path, one, three)
    assert (found.element, found.figures.differing, found.figures.verdict) == (777, 1, "differs")
    assert found.a != found.b
    assert index_of(777, (10, 100)) == (7, 77)


def test_figures_are_those_of_numpy(tmp_path: Path) -> None:
    one = noise((3 * BLOCK + 17,), "F32")
    other = one.copy()
    other[BLOCK + 5 : BLOCK + 900] *= np.float32(1.5)
    found = both(tmp_path, "F32", one, other).figures
    x, y = one.astype("f8"), other.astype("f8")

    assert found.differing == np.count_nonzero(x != y)
    assert found.max_abs == np.abs(x - y).max()
    assert found.max_rel == pytest.approx(1 / 3, rel=1e-6)
    assert found.cosine == pytest.approx(x @ y / np.sqrt(x @ x) / np.sqrt(y @ y), rel=1e-12)


def test_what_a_nan_an_infinity_and_a_zero_are_the_same_as(tmp_path: Path) -> None:
    nan, inf = np.nan, np.inf
    one = np.array([nan, nan, inf, inf, 0.0, 1.0, inf], "<f4")
    other = np.array([nan, 1.0, inf, -inf, -0.0, 1.0, 2.0], "<f4")
    other.view("u4")[0] ^= 1  # another NaN
    found = both(tmp_path, "F32", one, other)

    assert (found.element, found.a, found.b) == (0, "nan", "nan")
    assert (found.figures.differing, found.figures.bits_only, found.figures.not_finite) == (3, 2, 3)
    assert (found.figures.max_abs, found.figures.cosine) == (0.0, 1.0)


def test_numbers_of_two_types_are_compared_as_numbers(tmp_path: Path) -> None:
    halves = noise((5000,), "F32").astype("<f2")
    wide = halves.astype("<f4")
    assert both(tmp_path, "F16", halves, wide, "F32").figures.verdict == "numbers"
    wide[4321] += np.float32(1e-6)
    found = both(tmp_path, "F16", halves, wide, "F32")
    assert (found.element, found.figures.verdict, found.figures.differing) == (4321, "differs", 1)


@pytest.mark.parametrize("dtype", ["I64", "U64"])
def test_integers_of_64_bits_are_not_rounded(tmp_path: Path, dtype: str) -> None:
    one = np.array([2**62 + 1, 7], f"<{dtype[0].lower()}8")
    found = both(tmp_path, dtype, one, one - np.array([1, 0], one.dtype))
    assert (found.figures.differing, found.figures.max_abs) == (1, 1.0)
    assert (found.a, found.b) == (str(2**62 + 1), str(2**62))


def test_a_complex_number_is_one_element(tmp_path: Path) -> None:
    one = np.array([1 + 2j, 3 - 4j], "<c8")
    found = both(tmp_path, "C64", one, np.array([1 + 2j, 3 + 4j], "<c8"))
    assert (found.element, found.a, found.b, found.figures.differing) == (1, "3-4j", "3+4j", 1)


def test_layouts_and_byte_orders_do_not_matter_and_the_place_is_that_of_the_shard(tmp_path: Path) -> None:
    full = noise((256, 1024), "F32")
    shards = columns(tmp_path, full, "F32", 4)
    other = full.copy()
    other[200, 700] += 1
    turned = put(tmp_path, "turned", np.ascontiguousarray(other.T).byteswap(), before=64, big=True)
    two = single("turned", "F32", full.shape, turned, strides=(1, 256))
    found = held(tmp_path, shards, two)

    assert found.element == 200 * 1024 + 700
    here, there = (place(item, found.element, {}) for item in (shards, two))
    assert here is not None
    assert there is not None
    assert there.offset == 64 + 4 * (700 * 256 + 200)
    fragment = shards.fragments[700 // 256]
    assert here.file == fragment.record.file
    assert here.offset == fragment.record.begin + fragment.offset + 4 * (200 * 256 + 700 % 256)


def test_of_other_heights_the_rows_that_both_have_are_compared(tmp_path: Path) -> None:
    full = noise((64, 8), "F32")
    tall, low = (written(tmp_path, name, "F32", array) for name, array in (("t", full), ("l", full[:50])))
    for one, other in ((tall, low), (low, tall)):
        found = held(tmp_path, one, other).figures
        assert (found.verdict, found.elements) == ("bits", 400)


def test_what_cannot_be_compared_says_why(tmp_path: Path) -> None:
    one, other = (
        written(tmp_path, name, "F32", noise(shape, "F32")) for name, shape in (("a", (4, 3)), ("b", (3, 4)))
    )
    assert refusal(one, other) == "their shapes differ"
    unknown = single("c", "qint8", (4, 3), one.fragments[0].record)
    assert "does not exist in safetensors" in str(refusal(one, unknown))
    half = written(tmp_path, "d", "C64", noise((4, 3), "F32").astype("<c8"))
    assert refusal(one, half) == "one is complex and the other is not"
    assert refusal(one, one) is None


def test_it_stops_between_tiles(tmp_path: Path) -> None:
    import threading

    one = written(tmp_path, "a", "F32", noise((1 << 20,), "F32"))
    cancel = threading.Event()
    seen: list[int] = []

    def on_tile(elements: int) -> None:
        seen.append(elements)
        cancel.set()

    with opened(tmp_path) as opener, pytest.raises(Cancelled), Comparing(opener, BUDGET) as comparing:
        comparing.compared(one, one, cancel=cancel, on_tile=on_tile)
    assert len(seen) == 1


def test_words_tell_a_number_from_its_neighbours() -> None:
    assert in_words(np.array([0.1], "<f8").view("u1"), "F64") == "0.10000000000000001"
    assert in_words(np.array([0x3DCD], "<u2").view("u1"), "BF16") == "0.100097656"
    assert in_words(np.array([255], "u1"), "U8") == "255"
    assert in_words(np.array([9], "u1"), "F4") == "-0.5"


def test_an_element_that_no_fragment_holds_has_no_place(tmp_path: Path) -> None:
    record = put(tmp_path, "a", noise((2, 4), "F32"))
    half = boxes("t", "F32", (4, 4), [((0, 0), (2, 4), record, 0)])
    assert place(half, 15, {}) is None
    assert place(half, 99, {}) is None


def test_what_is_stored_alike_is_compared_as_bytes_and_padding_does_not_count(tmp_path: Path) -> None:
    full = noise((64, 1024), "F32")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    one, other = (columns(tmp_path / name, full, "F32", 4) for name in ("a", "b"))
    first, second = (tagged(tensor, name) for tensor, name in ((one, "a"), (other, "b")))
    assert stored_alike(first, second)
    with opened(tmp_path) as opener, Contents(opener) as contents:
        assert Alike(contents).same(first, second)
    assert held(tmp_path, first, second).figures.verdict == "bits"

    path = tmp_path / second.fragments[2].record.file
    data = bytearray(path.read_bytes())
    data[second.fragments[2].record.begin + second.fragments[2].offset + 4 * 300] ^= 1
    path.write_bytes(data)
    found = held(tmp_path, first, second)
    assert (found.figures.verdict, found.figures.differing) == ("differs", 1)
    assert found.element == 1024 * (300 // 256) + 512 + 300 % 256


def tagged(tensor: LogicalTensor, folder: str) -> LogicalTensor:
    """Return a tensor whose files are in a folder."""
    moved = tuple(
        replace(item, record=replace(item.record, file=f"{folder}/{item.record.file}"))
        for item in tensor.fragments
    )
    return replace(tensor, fragments=moved)


def test_what_is_not_stored_alike_is_not_taken_for_it(tmp_path: Path) -> None:
    full = noise((8, 8), "F32")
    one = written(tmp_path, "a", "F32", full)
    record = one.fragments[0].record
    turned = single("a", "F32", (8, 8), record, strides=(1, 8))
    others = [
        turned,
        single("a", "I32", (8, 8), record),
        single("a", "F32", (64,), record),
        single("a", "F32", (8, 8), replace(record, big_endian=True)),
        single("a", "F32", (8, 8), replace(record, coding="zstd")),
        boxes("a", "F32", (8, 8), [((0, 0), (4, 8), record, 0), ((4, 0), (4, 8), record, 128)]),
        replace(one, fragments=(replace(one.fragments[0], shape=(4, 8)),)),
    ]
    assert stored_alike(one, one)
    assert not any(stored_alike(one, other) for other in others)
    half = boxes("t", "F32", (8, 8), [((0, 0), (4, 8), record, 0)])
    with pytest.raises(Fault) as refused:  # the same bytes, and not all of the tensor
        held(tmp_path, half, half)
    assert refused.value.finding.code in ("map.uncovered", "map.incomplete")


def test_padding_of_shards_may_differ(tmp_path: Path) -> None:
    padded = Lowered(
        (5,),
        tuple(
            RankShard(rank, (3,), (Piece((3 - rank,), Side(3 * rank, (1,)), Side(0, (1,)), (rank,)),), rank)
            for rank in (0, 1)
        ),
    )
    tensors = []
    for name, last in (("a", 7.0), ("b", 8.0)):
        record = put(tmp_path, name, np.array([1, 2, 3, 4, 5, last], "<f4"))
        fragments = (Fragment(0, (3,), record, 0), Fragment(1, (3,), record, 12))
        tensors.append(LogicalTensor("t", "F32", (5,), padded, None, fragments))
    assert stored_alike(*tensors)
    found = held(tmp_path, *tensors)
    assert (found.figures.verdict, found.figures.elements, found.element) == ("bits", 5, None)
