"""Run by a test in an interpreter of its own: how much a transfer of 4 GiB adds to the memory of a process, in bytes.

`python transfer_memory.py rows|columns BUDGET_MIB WORKERS`
"""

import sys
from pathlib import Path

from shardscope.engine.geometry.execution.stream import transfer
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.transfer.compose import compose
from shardscope.engine.model.shardmap import Contiguous, DeviceMesh, MeshAxis, TensorMap

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.memory import peak_bytes

SHAPE = (32768, 65536)  # 4 GiB of bfloat16


def main() -> None:
    case, budget, workers = sys.argv[1], int(sys.argv[2]) << 20, int(sys.argv[3])
    source_dim, target_dim = (0, 1) if case == "rows" else (1, 0)
    meshes = DeviceMesh((MeshAxis("tp", 4),)), DeviceMesh((MeshAxis("tp", 8),))
    source, target = (
        lower(TensorMap(SHAPE, Contiguous("tp", dim, (SHAPE[dim] // degree,) * degree)), mesh)
        for dim, degree, mesh in ((source_dim, 4, meshes[0]), (target_dim, 8, meshes[1]))
    )
    plan = compose(target, source)
    done = 0

    def read(rank: int, offset: int, length: int) -> bytes:
        return bytes(length)

    def write(rank: int, offset: int, data: memoryview) -> None:
        nonlocal done
        done += len(data)

    before = peak_bytes()
    transfer(plan, source, target, dtype="BF16", read=read, write=write, budget_bytes=budget, workers=workers)
    assert done == 2 * SHAPE[0] * SHAPE[1]
    print(peak_bytes() - before)


if __name__ == "__main__":
    main()
