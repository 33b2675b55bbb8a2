"""What containment costs: to start the worker, and to have a stream read in it and not here.

Bar: the worker adds to an inspection at most 3x the time of `python -c 'import msgspec'`.
"""

import pickle
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.pairs import measure

from shardscope.engine.isolation.containment import Containment
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.parse.pickled import read_pickles

START_BAR = 3.0
NOTHING = pickle.dumps(None)
ENTRIES = 200_000


def contained(data: bytes) -> None:
    with Containment(Intent("inspect", "command line")) as worker:
        worker.read(data)


def main() -> int:
    def interpreter() -> None:
        subprocess.run([sys.executable, "-c", "import msgspec"], check=True)

    start = measure(
        "start of the worker by an interpreter with msgspec",
        interpreter,
        lambda: contained(NOTHING),
        21,
        START_BAR,
    )
    named = {f"model.layers.{number}.weight": (number, 1.5, None) for number in range(ENTRIES)}
    data = pickle.dumps(named, 2)
    limits = DecodeLimits()
    measure(
        f"{len(data):,} bytes read in the worker by read here",
        lambda: read_pickles(data, limits),
        lambda: contained(data),
        7,
    )
    with Containment(Intent("inspect", "command line")) as worker:
        worker.read(NOTHING)
        measure(
            "a small pickle in a worker that runs by the same read here, 100 times",
            lambda: [read_pickles(NOTHING, limits) for _ in range(100)],
            lambda: [worker.read(NOTHING) for _ in range(100)],
            9,
        )
    return int(start.median > START_BAR)


if __name__ == "__main__":
    sys.exit(main())
