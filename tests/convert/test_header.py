"""Headers that the reference library reads, in an order that keeps elements aligned."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

from shardscope.engine.convert.plans.header import ALIGNMENT, MOST_BYTES, build, length, ordered
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.tensors import DTYPES


class Item(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]


ITEMS = st.lists(
    st.builds(
        Item,
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
        st.sampled_from([name for name, row in DTYPES.items() if row.bits % 8 == 0]),
        st.lists(st.integers(0, 5), max_size=3).map(tuple),
    ),
    max_size=8,
    unique_by=lambda item: item.name,
)


@given(ITEMS)
def test_tensors_lie_end_to_end_and_aligned(items: list[Item]) -> None:
    if any(item.name == "__metadata__" for item in items):
        return
    made = build(items)
    text = json.loads(made.data[8:])

    assert made == build(items)
    assert int.from_bytes(made.data[:8], "little") == len(made.data) - 8
    assert len(made.data) % ALIGNMENT == 0
    assert text.pop("__metadata__") == {"format": "pt"}
    at = len(made.data)
    for item in ordered(items):
        begin, end = (len(made.data) + offset for offset in text[item.name]["data_offsets"])
        assert begin == at == made.offsets[items.index(item)]
        assert begin % (DTYPES[item.dtype].bits // 8) == 0
        assert (text[item.name]["dtype"], tuple(text[item.name]["shape"])) == (item.dtype, item.shape)
        at = end
    assert at == made.size


def test_the_reference_library_reads_it(tmp_path: Path) -> None:
    items = [
        Item("z", "U8", (3,)), Item('ünïcode "quoted"\\', "F32", (2, 2)), Item("e", "BF16", (0, 4)), Item("s", "I64", ()),
    ]  # fmt: skip
    made = build(items)
    (tmp_path / "a").write_bytes(made.data + bytes(made.size - len(made.data)))

    with safe_open(tmp_path / "a", "np") as file:
        assert set(file.keys()) == {item.name for item in items}
        assert file.metadata() == {"format": "pt"}
        assert file.get_slice("e").get_shape() == [0, 4]
    assert length(items) == len(made.data)
    assert [item.name for item in ordered(items)] == ["s", items[1].name, "e", "z"]


@pytest.mark.parametrize(
    ("items", "code"),
    [
        ([Item("a", "F32", (1,)), Item("a", "F32", (1,))], "convert.header_name"),
        ([Item("__metadata__", "F32", (1,))], "convert.header_name"),
        ([Item("\udc80", "F32", (1,))], "convert.header_name"),
        ([Item("a", "qint8", (1,))], "convert.dtype"),
        ([Item("a", "F4", (3,))], "map.sub_byte"),
        ([Item("a" * (MOST_BYTES - 50), "F32", (1,))], "convert.header_size"),
    ],
)
def test_what_no_reader_takes_is_not_written(items: list[Item], code: str) -> None:
    with pytest.raises(Fault) as caught:
        build(items)
    assert caught.value.finding.code == code
