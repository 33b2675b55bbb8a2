"""How ranks cut sections on their own, and share those of which there are fewer than ranks: against numpy, row by row."""

import numpy as np
import pytest

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.execution.execute import assemble
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.mapping.cuts import shard_map
from shardscope.engine.geometry.mapping.sections import Asked
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.mapping import Kind, ModelFacts, Section, View
from shardscope.engine.model.shardmap import DeviceMesh, MeshAxis

ASKED = Asked("table", "w")
QKV = Kind(
    "qkv",
    ("qkv",),
    cut=0,
    each=True,
    view=View(
        0,
        (),
        (Section("query", "heads"), Section("key", "groups", True), Section("value", "groups", True)),
        ("head_size",),
    ),
)


def shards(ranks: int, heads: int, groups: int, size: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the rows [queries, keys, values] of a projection, and what each rank has of them, as vLLM loads them."""
    rows = (heads + 2 * groups) * size
    whole = np.arange(rows * 3).reshape(rows, 3)
    query, key, value = np.split(whole, [heads * size, (heads + groups) * size])
    held = []
    for rank in range(ranks):
        copies = max(1, ranks // groups)
        kept = max(1, groups // ranks) * size
        at = rank // copies * kept
        share = heads // ranks * size
        held.append(
            np.concatenate([query[rank * share :][:share], key[at : at + kept], value[at : at + kept]])
        )
    return whole, held


# R077
@pytest.mark.parametrize(
    ("ranks", "heads", "groups"), [(2, 4, 2), (2, 4, 4), (4, 8, 2), (8, 8, 1), (4, 4, 1), (3, 6, 3)]
)
def test_ranks_share_keys_and_values_where_there_are_fewer_than_ranks(
    ranks: int, heads: int, groups: int
) -> None:
    whole, held = shards(ranks, heads, groups, 2)
    facts = ModelFacts(heads=heads, groups=groups, head_size=2)
    mapped = shard_map(QKV, [shard.shape for shard in held], facts, ASKED)
    lowered = lower(mapped, DeviceMesh((MeshAxis("tp", ranks),)))

    assert mapped.shape == whole.shape
    assert not check(lowered).findings
    found = assemble(lowered, dict(enumerate(held)))
    assert np.array_equal(found, whole)


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (ModelFacts(heads=4, groups=2, head_size=4), "mapping.shards"),
        (ModelFacts(heads=8, groups=2, head_size=2), "mapping.shards"),
        (ModelFacts(heads=3, groups=3, head_size=2), "mapping.shards"),
        (ModelFacts(heads=4, groups=2), "mapping.fact_missing"),
        (ModelFacts(groups=2, head_size=2), "mapping.fact_missing"),
    ],
)
def test_facts_that_do_not_come_to_the_shards_are_refused(facts: ModelFacts, code: str) -> None:
    _, held = shards(2, 4, 2, 2)
    with pytest.raises(Fault) as caught:
        shard_map(QKV, [shard.shape for shard in held], facts, ASKED)
    assert caught.value.finding.code == code


def test_a_unit_is_never_cut_among_the_ranks_that_share_it() -> None:
    facts = ModelFacts(heads=6, groups=2, head_size=4)
    with pytest.raises(Fault) as caught:
        shard_map(QKV, [(16, 3)] * 3, facts, ASKED)
    assert caught.value.finding.params["reason"] == "2 units of key shared by 3 ranks"


def test_what_is_wrong_is_said_in_the_words_of_who_asks() -> None:
    def wrong(reason: str) -> Fault:
        return Fault("megatron.shard_shape", tensor="w", reason=reason)

    with pytest.raises(Fault) as caught:
        shard_map(QKV, [(8, 3), (9, 3)], ModelFacts(), ASKED, wrong=wrong)
    assert caught.value.finding.code == "megatron.shard_shape"
