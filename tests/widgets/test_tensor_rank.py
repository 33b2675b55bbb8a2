"""Relevance: whole parts before beginnings, before what holds a word, before what only has its letters in order."""

import threading

import pytest
from tests.app.fakes import tensor_table
from tests.widgets import samples

from shardscope.engine.model.progress import Cancelled
from shardscope.widgets.tensor_query import loose_words, matching_rows
from shardscope.widgets.tensor_rank import ranked_rows, score

NAMES = (
    "model.large_projection.weight",  # only its letters, far apart
    "model.m_l_p.weight",
    "model.premlp.weight",
    "model.mlp_gate.weight",
    "model.mlp.weight",
)


def test_the_best_answers_come_first() -> None:
    table = tensor_table((name, "F32", (), 4, "f") for name in NAMES)
    found = ranked_rows(table, matching_rows(table, "mlp"), ["mlp"])
    assert [NAMES[row] for row in found.rows] == list(reversed(NAMES))
    assert found.typed == 3


def test_each_word_counts_and_ties_keep_their_order() -> None:
    table = samples.tensors(400)
    found = ranked_rows(table, matching_rows(table, "layers q_proj"), ["layers", "q_proj"])
    assert found.typed == len(found.rows) == 100
    assert list(found.rows) == sorted(found.rows)


@pytest.mark.parametrize(
    ("text", "word", "wanted"),
    [
        ("a.mlp.b", "mlp", 0),
        ("mlp", "mlp", 0),
        ("a.mlp2", "mlp", 1),
        ("a.xmlp", "mlp", 2),
        ("a.m_lp", "mlp", 5),
    ],
)
def test_scores(text: str, word: str, wanted: int) -> None:
    assert score(text, word) == wanted


def test_a_word_in_fewer_pieces_is_better() -> None:
    assert score("layers.0.q_proj", "lq") < score("l.a.y.e.q", "laq")


def test_only_words_about_names_are_loose() -> None:
    query = "mlp !norm 'exact dtype:bf16 *.weight >1GiB ~abc dtype: rank:0 weird:word"
    assert loose_words(query) == ["mlp", "abc", "dtype:", "weird:word"]


def test_a_word_in_quotes_is_not_loose() -> None:
    table = tensor_table((name, "F32", (), 4, "f") for name in NAMES)
    assert list(matching_rows(table, "'mlp")) == [2, 3, 4]
    assert list(matching_rows(table, "!mlp")) == [0, 1]


def test_ranking_can_be_cancelled() -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        ranked_rows(samples.tensors(3), range(3), ["q"], cancel)
