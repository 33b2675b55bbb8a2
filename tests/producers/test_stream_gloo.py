"""A transfer plan over torch.distributed (gloo): the ranks of two layouts as processes that send and receive tensors."""

import multiprocessing
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from shardscope.engine import gather, moves, scatter
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.transfer.compose import compose
from shardscope.engine.model.mapdocuments import TransferDocument
from shardscope.engine.model.schemas import TRANSFER
from tests.geometry.test_stream_pipes import SOURCE, TARGET, TENSORS, shards

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

WORLD = 4
"""The source has four ranks, the target three: rank r of both is process r."""


def work(rank: int, plan: bytes, meeting: str, results: Any) -> None:
    """One process: every move that it has a part in, in the order that all have."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=WORLD)
    document = msgspec.json.decode(plan, type=TransferDocument)
    held = shards(SOURCE, rank, 0)
    made = shards(TARGET, rank, 1) if rank < 3 else {}
    for move in moves(document.tensors, document.dtypes, most_bytes=4096):
        if rank not in (move.source_rank, move.target_rank):
            continue
        if move.source_rank == move.target_rank:
            scatter(move, gather(move, held[move.tensor]), made[move.tensor])
        elif move.source_rank == rank:
            dist.send(
                torch.frombuffer(bytearray(gather(move, held[move.tensor])), dtype=torch.uint8),
                move.target_rank,
            )
        else:
            data = torch.empty(move.size, dtype=torch.uint8)
            dist.recv(data, move.source_rank)
            scatter(move, data.numpy().data, made[move.tensor])
    dist.barrier()
    results.put((rank, {name: bytes(data) for name, data in made.items()}))
    dist.destroy_process_group()


def test_ranks_of_torch_distributed_reshard_among_themselves(tmp_path: Path) -> None:
    plans = {name: compose(lower(two, TARGET), lower(one, SOURCE)) for name, (one, two, _) in TENSORS.items()}
    dtypes = {name: dtype for name, (*_, dtype) in TENSORS.items()}
    plan = msgspec.json.encode(TransferDocument(TRANSFER, plans, dtypes))
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    workers = [
        spawn.Process(target=work, args=(rank, plan, str(tmp_path / "meeting"), results))
        for rank in range(WORLD)
    ]
    for worker in workers:
        worker.start()
    found = dict(results.get(timeout=120) for _ in range(WORLD))
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0

    from shardscope.engine.geometry.execution.execute import assemble
    from tests.geometry.test_stream_pipes import WIDTH, value

    for name, (_, two, dtype) in TENSORS.items():
        layout = lower(two, TARGET)
        made = {
            shard.rank: np.frombuffer(found[shard.rank][name], WIDTH[dtype]).reshape(shard.shape)
            for shard in layout.ranks
        }
        assert np.array_equal(assemble(layout, made), value(name))
    assert sys.modules.get("torch") is torch
