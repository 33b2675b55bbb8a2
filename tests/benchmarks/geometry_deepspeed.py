"""Rebuilding and cutting by the same affine maps, ours against DeepSpeed's: `python tests/benchmarks/geometry_deepspeed.py [MIB]`.

Needs torch and deepspeed beside shardscope's own dependencies, as the environment of `make test-producers` has them.
"""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch  # type: ignore[import-not-found,unused-ignore]
from deepspeed.checkpoint import affine  # type: ignore[import-not-found,unused-ignore]
from tests.benchmarks.pairs import measure

from shardscope.engine.geometry.execution.execute import assemble, slice_
from shardscope.engine.geometry.interchange.deepspeed import write_parameter
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.shardmap import (
    Contiguous,
    DeviceMesh,
    Interleave,
    MeshAxis,
    Node,
    Part,
    SubParamConcat,
    TensorMap,
)

RANKS = 8
COLUMNS = 4096


def layouts(rows: int) -> dict[str, Node]:
    """Return the layouts that are compared, for a tensor of `rows` x `COLUMNS`."""
    third = rows // 3
    part = Contiguous("tp", 0, (third // RANKS,) * RANKS)
    return {
        "rows": Contiguous("tp", 0, (rows // RANKS,) * RANKS),
        "columns": Contiguous("tp", 1, (COLUMNS // RANKS,) * RANKS),
        "fused rows": SubParamConcat(0, tuple(Part(third, part) for _ in range(3))),
        "interleaved": Interleave("tp", 0, 4, third // (4 * RANKS), 3),
    }


def compare(name: str, shape: tuple[int, int], node: Node) -> None:
    """Measure both directions of one layout; checks are done by neither in the timed part."""
    lowered = lower(TensorMap(shape, node), DeviceMesh((MeshAxis("tp", RANKS),)))
    theirs = affine.ParamAffineMap.from_dict(write_parameter(lowered, name))
    full = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    full_there = torch.from_numpy(full)
    shards: dict[int, Any] = {rank: slice_(lowered, full, rank, checked=True) for rank in range(RANKS)}
    shards_there = {rank: torch.from_numpy(shard) for rank, shard in shards.items()}
    assert np.array_equal(theirs.rebuild(shards_there).numpy(), assemble(lowered, shards, checked=True))
    measure(
        f"{name}: assemble",
        lambda: theirs.rebuild(shards_there),
        lambda: assemble(lowered, shards, checked=True),
        pairs=7,
        bar=1.0,
    )
    measure(
        f"{name}: slice every rank",
        lambda: [theirs.extract(full_there, rank) for rank in range(RANKS)],
        lambda: [slice_(lowered, full, rank, checked=True) for rank in range(RANKS)],
        pairs=7,
        bar=1.0,
    )


def main() -> None:
    """Compare every layout on a tensor of the size asked for."""
    torch.set_num_threads(1)
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    rows = (mib << 20) // (4 * COLUMNS) // (3 * 4 * RANKS) * (3 * 4 * RANKS)
    for name, node in layouts(rows).items():
        compare(name, (rows, COLUMNS), node)


if __name__ == "__main__":
    main()
