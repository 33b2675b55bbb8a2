"""Moves between live ranks: every one once, in one order for all, and shards that come out as the target's map says."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shardscope.engine import Move, gather, moves, scatter, stream
from shardscope.engine.geometry.execution.exchange import Readable
from shardscope.engine.geometry.execution.execute import slice_
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.transfer.compose import compose
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.mapdocuments import TransferDocument
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.schemas import TRANSFER
from shardscope.engine.model.shardmap import Contiguous, FlatRange, Scale, TensorMap, Trim
from shardscope.engine.model.transfer import TransferPlan
from tests.geometry.layouts import noise
from tests.geometry.trees import mesh_of, pairs_of_maps


class Ranks:
    """Shards in memory, and what was asked of them."""

    def __init__(self, **layouts: Lowered) -> None:
        self.layouts = layouts
        self.shards: dict[tuple[str, int], bytearray] = {}
        self.asked: list[Move] = []

    def hold(self, name: str, full: np.ndarray) -> "Ranks":
        for shard in self.layouts[name].ranks:
            data = slice_(self.layouts[name], full, shard.rank, checked=True).tobytes()
            self.shards[name, shard.rank] = bytearray(data)
        return self

    def empty(self, name: str, item: int) -> "Ranks":
        for shard in self.layouts[name].ranks:
            self.shards[name, shard.rank] = bytearray(shard.elements * item)
        return self

    def read(self, rank: int, move: Move) -> memoryview:
        self.asked.append(move)
        return gather(move, self.shards[move.tensor, rank])

    def write(self, rank: int, move: Move, data: Readable) -> None:
        scatter(move, data, self.shards[move.tensor, rank])


@settings(max_examples=60, deadline=None)
@given(both=pairs_of_maps(), most=st.sampled_from([1, 4, 12, 64, 1 << 20]))
def test_any_layout_becomes_any_other(both, most: int) -> None:  # type: ignore[no-untyped-def]
    (one, mesh), (two, other) = both
    source, target = lower(one, mesh), lower(two, other)
    try:
        plan = compose(target, source)
    except Fault as fault:
        assume(fault.finding.code == "map.uncovered")
        return
    assume(not any(shard.scaled for shard in (*source.ranks, *target.ranks)))
    full = noise(one.shape)
    here, there = Ranks(w=source).hold("w", full), Ranks(w=target).empty("w", 4)

    carried = stream({"w": plan}, {"w": "U32"}, here.read, there.write, most_bytes=most)

    assert there.shards == Ranks(w=target).hold("w", full).shards
    assert carried == 4 * plan.elements
    assert all(move.size <= max(most, 64) for move in here.asked)


def _plan() -> tuple[TransferPlan, Lowered, Lowered]:
    source = lower(TensorMap((8, 6), Contiguous("tp", 1, (2, 4))), mesh_of(tp=2))
    target = lower(TensorMap((8, 6), FlatRange("dp", (0, 20, 40), (20, 40, 60))), mesh_of(dp=3))
    return compose(target, source), source, target


def test_moves_come_by_pairs_and_are_the_same_for_everybody() -> None:
    plan, *_ = _plan()
    plans, dtypes = {"a": plan, "b": plan}, {"a": "F32", "b": "BF16"}
    found = [(move.source_rank, move.target_rank, move.tensor) for move in moves(plans, dtypes)]

    assert found == sorted(found)
    assert {pair[:2] for pair in found} == {(one.source_rank, one.target_rank) for one in plan.traffic}
    again = msgspec.json.decode(
        msgspec.json.encode(TransferDocument(TRANSFER, plans, dtypes)), type=TransferDocument
    )
    assert list(moves(again.tensors, again.dtypes)) == list(moves(plans, dtypes))


def test_padding_is_carried_by_no_move() -> None:
    source = lower(TensorMap((5,), Contiguous("tp", 0, (2, 3))), mesh_of(tp=2))
    target = lower(TensorMap((5,), Contiguous("tp", 0, (4, 4), Trim(0, 5, 8))), mesh_of(tp=2))
    full = noise((5,))
    here, there = Ranks(w=source).hold("w", full), Ranks(w=target).empty("w", 4)

    assert stream({"w": compose(target, source)}, {"w": "U32"}, here.read, there.write) == 20
    assert bytes(there.shards["w", 1][4:]) == bytes(12)


def test_what_changes_values_or_has_no_type_is_refused() -> None:
    source = lower(TensorMap((4,), Scale(2)), mesh_of(tp=1))
    plain = lower(TensorMap((4,), Contiguous("tp", 0, (4,))), mesh_of(tp=1))
    for plans, dtypes, code in (
        ({"w": compose(plain, source)}, {"w": "F32"}, "map.scaled"),
        ({"w": compose(plain, plain)}, {}, "convert.dtype"),
        ({"w": compose(plain, plain)}, {"w": "float"}, "convert.dtype"),
    ):
        with pytest.raises(Fault) as caught:
            list(moves(plans, dtypes))
        assert caught.value.finding.code == code


def test_bytes_that_are_too_few_and_moves_that_lead_out_are_refused() -> None:
    plan, source, target = _plan()
    here, there = Ranks(w=source).hold("w", noise((8, 6))), Ranks(w=target).empty("w", 4)
    with pytest.raises(Fault) as caught:
        stream({"w": plan}, {"w": "U32"}, lambda rank, move: here.read(rank, move)[:-1], there.write)
    assert caught.value.finding.code == "map.short_read"
    move = next(moves({"w": plan}, {"w": "U32"}))
    with pytest.raises(Fault) as caught:
        gather(move, bytes(3))
    assert caught.value.finding.code == "map.outside"
    with pytest.raises(Fault) as caught:
        scatter(move, bytes(move.size), bytearray(3))
    assert caught.value.finding.code == "map.outside"
    with pytest.raises(Fault) as caught:
        scatter(move, bytes(move.size + 1), there.shards["w", 0])
    assert caught.value.finding.code == "map.short_read"


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/resharding.md").read_text()
    (example,) = (block.split("```")[0] for block in text.split("```python example\n")[1:])
    scope: dict[str, object] = {"folder": tmp_path}
    exec(compile(example, "docs/resharding.md", "exec"), scope)
    assert json.loads(json.dumps(scope["carried"])) == 96
