"""Searching and ordering tensors: each kind of word, ties, cancelling, sizes that span several buckets."""

import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.widgets import samples

from shardscope.engine.model.progress import Cancelled
from shardscope.engine.model.tensors import TensorTable
from shardscope.widgets import tensor_query
from shardscope.widgets.tensor_query import COLUMNS, loose_words, matching_rows, rank_labels, sorted_rows

ROWS = (
    ("a/model-00001-of-00003.safetensors", "model.layers.2.self_attn.q_proj.weight", "BF16", (4_096, 4_096)),
    ("a/model-00001-of-00003.safetensors", "model.layers.10.self_attn.Q_proj.weight", "bf16", (512, 4_096)),
    ("a/model-00002-of-00003.safetensors", "model.embed[0].weight", "F32", (32_000, 4_096)),
    ("b/adapter.safetensors", "lora_A", "F8_E4M3", (8, 16)),
    ("b/adapter.safetensors", "scale", "F32", ()),
)


@pytest.fixture
def table() -> TensorTable:
    table = TensorTable()
    for file, name, dtype, shape in ROWS:
        elements = 1
        for size in shape:
            elements *= size
        table.append(file, name, dtype, shape, 100, 100 + elements * {"F32": 4, "F8_E4M3": 1}.get(dtype, 2))
    return table


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("", [0, 1, 2, 3, 4]),
        ("   ", [0, 1, 2, 3, 4]),
        ("q_proj", [0, 1]),
        ("Q_PROJ layers.2", [0]),
        ("!q_proj", [2, 3, 4]),
        ("!q_proj !lora", [2, 4]),
        ("*q_proj*", [0, 1]),
        ("*.weight", [0, 1, 2]),
        ("*embed[0]*", [2]),
        ("lora_?", [3]),
        ("~mlqp", [0, 1]),
        ("mlqp", [0, 1]),
        ("'mlqp", []),
        ("'q_proj", [0, 1]),
        ("!~mlqp", [2, 3, 4]),
        ("layer:2", [0]),
        ("layer:0-2,10,...", [0, 1]),
        ("layer:3-9", []),
        ("layer:2-", [0]),
        ("layer:x", []),
        ("!layer:2", [1, 2, 3, 4]),
        ("dtype:bf16", [0, 1]),
        ("dtype:f*", [2, 3, 4]),
        ("dtype:f", []),
        ("!dtype:F32", [0, 1, 3]),
        ("shape:4096", [0, 1, 2]),
        ("shape:512x4096", [1]),
        ("shape:[8,16]", [3]),
        ("shape:[]", [4]),
        ("file:b/", [3, 4]),
        ("file:*adapter*", [3, 4]),
        ("shard:1", [0, 1]),
        ("shard:2", [2]),
        ("shard:3", [0, 1, 2]),
        ("shard:adapter", [3, 4]),
        ("rank:tp=0", [0, 1]),
        ("rank:0,0", [0, 1]),
        ("rank:tp1", [2]),
        ("rank:7", []),
        (">100MiB", [2]),
        (">=4MiB <=32MiB", [0, 1]),
        ("<1kb", [3, 4]),
        ("=4", [4]),
        ("=128B", [3]),
        (">33MB", [0, 2]),
        (">33M", [2]),
        ("weight >33MB !embed", [0]),
        ("[red]", []),
        (">", []),
        ("!", []),
        ("dtype:", []),
        ("unknown:word", []),
    ],
)
def test_queries(table: TensorTable, query: str, rows: list[int]) -> None:
    ranks = {
        "a/model-00001-of-00003.safetensors": {"tp=0", "tp0", "0,0"},
        "a/model-00002-of-00003.safetensors": {"tp=1", "tp1", "1,0"},
    }
    assert list(matching_rows(table, query, ranks=ranks)) == rows


@given(st.text(max_size=30))
def test_no_query_fails_and_its_negation_is_the_rest(text: str) -> None:
    table = samples.tensors(40)
    found = set(matching_rows(table, text))
    assert found <= set(range(40))
    word = text.replace("!", "")
    if word.strip() and len(word.split()) == 1 and word == word.strip():
        exact = f"'{word}" if loose_words(word) and not word.startswith("~") else word
        assert set(matching_rows(table, f"!{word}")) == set(range(40)) - set(matching_rows(table, exact))


def test_ranks_are_found_by_axis_and_by_coordinate() -> None:
    labels = rank_labels(samples.TOPOLOGY)
    assert labels["model-00002-of-00003.safetensors"] == {"1,0", "tp=1", "tp1", "dp=0", "dp0"}


@pytest.mark.parametrize(
    ("column", "rows"),
    [
        ("name", [3, 2, 0, 1, 4]),  # layers.2 before layers.10
        ("dtype", [0, 2, 4, 3, 1]),
        ("shape", [4, 3, 1, 0, 2]),
        ("bytes", [4, 3, 1, 0, 2]),
        ("file", [0, 1, 2, 3, 4]),
    ],
)
def test_order_of_each_column(table: TensorTable, column: str, rows: list[int]) -> None:
    assert list(sorted_rows(table, range(5), column)) == rows


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("descending", [False, True])
def test_large_orders_are_stable_and_complete(
    column: str, descending: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small buckets, so that a few thousand rows take the way of a million.
    monkeypatch.setattr(tensor_query, "BUCKET", 64)
    monkeypatch.setattr(tensor_query, "CHUNK", 100)
    table = samples.tensors(3_000, files=12)
    rows = list(range(3_000))
    random.Random(7).shuffle(rows)
    key = tensor_query._key(table, column)
    expected = sorted(rows, key=key, reverse=descending)
    assert list(sorted_rows(table, rows, column, descending=descending)) == expected


def test_nothing_to_sort() -> None:
    assert list(sorted_rows(TensorTable(), range(0), "name")) == []


def test_an_unknown_column_is_our_own_mistake(table: TensorTable) -> None:
    with pytest.raises(ValueError, match="no such column"):
        sorted_rows(table, range(5), "colour")


def test_both_can_be_cancelled() -> None:
    table = samples.tensors(10)
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        matching_rows(table, "x", cancel)
    with pytest.raises(Cancelled):
        sorted_rows(table, range(10), "name", cancel)
