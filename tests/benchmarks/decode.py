"""Reading opcodes as data, against CPython's C unpickler on the same bytes.

`python tests/benchmarks/decode.py`: `.metadata` of a distributed checkpoint, made with stand-ins for PyTorch's classes. The bars are
10x the time of the C unpickler (collector off, a clean dispatch table, stand-ins in reach) for the loop over 4.4 million opcodes and
2x its memory; and for 64 ranks x 2,000 tensors, 128,000 chunks, 3x the time of the loop alone for the whole way to typed facts on the
other side of a pipe, in less than 1 GiB.
"""

import gc
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import msgspec
from tests.benchmarks.pairs import measure
from tests.memory import peak_bytes
from tests.parse import standins

from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import DcpChunks, Pickled
from shardscope.engine.parse.pickle_stream.machine import read_pickle
from shardscope.engine.parse.pickle_stream.state import Stream
from shardscope.engine.parse.pickled import read_pickles

LOOP = (1_130, 64)
"""Tensors and ranks: 72,320 chunks, each of them three records, in 4.4 million opcodes."""
CATALOGUE = (2_000, 64)
TIME_BAR, MEMORY_BAR, CATALOGUE_BAR = 10.0, 2.0, 3.0
CATALOGUE_BYTES = 1 << 30


def unpickled(data: bytes) -> object:
    """Return what CPython makes of trusted bytes of ours."""
    with standins.in_reach():
        return pickle.loads(data)


def looped(data: bytes) -> object:
    """Return the records of the machine."""
    return read_pickle(Stream(data, DecodeLimits()), 0)


def catalogued(data: bytes) -> Pickled:
    """Return typed facts as they come out of the worker's pipe."""
    wire = msgspec.msgpack.encode(read_pickles(data, DecodeLimits()))
    return msgspec.msgpack.decode(wire, type=Pickled)


WORK = {"unpickled": unpickled, "looped": looped, "catalogued": catalogued}


def peak_of(work: str, path: Path) -> int:
    """Return the memory that work on a pickle adds to a process that has read it, in a process of its own."""
    answer = subprocess.run(
        [sys.executable, __file__, work, path], check=True, capture_output=True, text=True
    )
    return int(answer.stdout)


def child(work: str, path: Path) -> None:
    """Do work on a pickle and print what it added to the most memory that was ever resident."""
    data = path.read_bytes()
    gc.disable()
    WORK["unpickled"](standins.pickled(standins.metadata(1, 1)))
    catalogued(standins.pickled(standins.metadata(1, 1)))
    before = peak_bytes()
    kept = WORK[work](data)
    print(peak_bytes() - before)
    del kept


def compare_memory(name: str, work: str, path: Path, bar: float) -> None:
    """Print the memory of some work as a ratio to the C unpickler's, and that of the unpickler to itself."""
    again, reference, subject = peak_of("unpickled", path), peak_of("unpickled", path), peak_of(work, path)
    ratio = subject / reference
    print(
        f"{name}: {ratio:.2f}x  (reference by itself {again / reference:.2f}, {subject >> 20} MiB by {reference >> 20} MiB)"
        f"  bar {bar:.2f}: {'met' if ratio <= bar else 'MISSED'}"
    )


def main() -> None:
    """Measure everything."""
    gc.disable()
    data = standins.pickled(standins.metadata(*LOOP))
    stream = Stream(data, DecodeLimits())
    read_pickle(stream, 0)
    print(f"{len(data) / 1e6:.1f} MB, {stream.opcodes:,} opcodes")
    measure("loop over opcodes / C unpickler", lambda: unpickled(data), lambda: looped(data), bar=TIME_BAR)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metadata"
        path.write_bytes(data)
        compare_memory("memory of the loop / C unpickler", "looped", path, MEMORY_BAR)

        data = standins.pickled(standins.metadata(*CATALOGUE, plans=False))
        found = catalogued(data)
        root = found.nodes[found.roots[0]]
        assert isinstance(root, DcpChunks)
        print(f"{len(data) / 1e6:.1f} MB, {found.opcodes:,} opcodes, {sum(root.counts):,} chunks")
        measure(
            "typed facts over the wire / loop alone",
            lambda: looped(data),
            lambda: catalogued(data),
            pairs=7,
            bar=CATALOGUE_BAR,
        )
        path.write_bytes(data)
        taken = peak_of("catalogued", path) + len(data)
        met = "met" if taken < CATALOGUE_BYTES else "MISSED"
        print(
            f"memory of the facts with the pickle: {taken >> 20} MiB  bar {CATALOGUE_BYTES >> 20} MiB: {met}"
        )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(sys.argv[1], Path(sys.argv[2]))
    else:
        main()
