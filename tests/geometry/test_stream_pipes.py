"""Ranks that are processes: each with its own shards, pipes between them, and nothing shared but the plan."""

import multiprocessing
import os
from multiprocessing.connection import Connection

import msgspec
import numpy as np

from shardscope.engine import gather, moves, scatter
from shardscope.engine.geometry.execution.execute import assemble, slice_
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.transfer.compose import compose
from shardscope.engine.model.mapdocuments import TransferDocument
from shardscope.engine.model.schemas import TRANSFER
from shardscope.engine.model.shardmap import Contiguous, DeviceMesh, FlatRange, Replicate, TensorMap
from tests.geometry.trees import mesh_of

SOURCE = mesh_of(tp=4)
TARGET = mesh_of(dp=3)
TENSORS: dict[str, tuple[TensorMap, TensorMap, str]] = {
    "rows": (
        TensorMap((96, 40), Contiguous("tp", 0, (24,) * 4)),
        TensorMap((96, 40), FlatRange("dp", (0, 1280, 2560), (1280, 2560, 3840))),
        "F32",
    ),
    "columns": (
        TensorMap((50, 64), Contiguous("tp", 1, (16,) * 4)),
        TensorMap((50, 64), Contiguous("dp", 0, (20, 20, 10))),
        "BF16",
    ),
    "norm": (TensorMap((64,), Replicate()), TensorMap((64,), Replicate()), "F32"),
}
WIDTH = {"F32": "<u4", "BF16": "<u2"}


def value(name: str) -> np.ndarray:
    tensor, _, dtype = TENSORS[name]
    return np.random.default_rng(len(name)).integers(0, 1 << 16, tensor.shape).astype(WIDTH[dtype])


def shards(mesh: DeviceMesh, rank: int, side: int) -> dict[str, bytearray]:
    found = {}
    for name, (one, two, _) in TENSORS.items():
        lowered = lower(two if side else one, mesh)
        full = value(name)
        data = slice_(lowered, full, rank, checked=True)
        found[name] = bytearray(data.tobytes() if side == 0 else bytes(data.nbytes))
    return found


def sender(rank: int, plan: bytes, to: dict[int, Connection]) -> None:
    """Has the shards of a source rank and nothing else; takes its own moves out of the sequence that all have."""
    document = msgspec.json.decode(plan, type=TransferDocument)
    held = shards(SOURCE, rank, 0)
    for move in moves(document.tensors, document.dtypes, most_bytes=1000):
        if move.source_rank == rank:
            to[move.target_rank].send_bytes(gather(move, held[move.tensor]))
    os._exit(0)


def receiver(rank: int, plan: bytes, of: dict[int, Connection], result: Connection) -> None:
    document = msgspec.json.decode(plan, type=TransferDocument)
    made = shards(TARGET, rank, 1)
    for move in moves(document.tensors, document.dtypes, most_bytes=1000):
        if move.target_rank == rank:
            scatter(move, of[move.source_rank].recv_bytes(), made[move.tensor])
    result.send_bytes(msgspec.msgpack.encode({name: bytes(data) for name, data in made.items()}))
    os._exit(0)


def test_processes_with_pipes_between_them_reshard_without_the_whole() -> None:
    plans = {name: compose(lower(two, TARGET), lower(one, SOURCE)) for name, (one, two, _) in TENSORS.items()}
    dtypes = {name: dtype for name, (*_, dtype) in TENSORS.items()}
    plan = msgspec.json.encode(TransferDocument(TRANSFER, plans, dtypes))
    spawn = multiprocessing.get_context("spawn")
    pipes = {(s, t): spawn.Pipe(duplex=False) for s in range(4) for t in range(3)}
    results = [spawn.Pipe(duplex=False) for _ in range(3)]
    workers = [
        spawn.Process(target=sender, args=(s, plan, {t: pipes[s, t][1] for t in range(3)})) for s in range(4)
    ]
    workers += [
        spawn.Process(target=receiver, args=(t, plan, {s: pipes[s, t][0] for s in range(4)}, results[t][1]))
        for t in range(3)
    ]
    for worker in workers:
        worker.start()
    found = [msgspec.msgpack.decode(results[t][0].recv_bytes()) for t in range(3) if results[t][0].poll(60)]
    for worker in workers:
        worker.join(20)
        assert worker.exitcode == 0

    for name, (_, two, dtype) in TENSORS.items():
        lowered = lower(two, TARGET)
        made = {
            shard.rank: np.frombuffer(found[shard.rank][name], WIDTH[dtype]).reshape(shard.shape)
            for shard in lowered.ranks
        }
        assert np.array_equal(assemble(lowered, made), value(name))
