"""Runs conversions in processes of their own and kills them: `python -m tests.convert.crash_driver`.

Reads one order a line, forks a process for it, and answers with one line of JSON. A fork of this small process costs
a few milliseconds, where starting Python for each would cost a few hundred.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from shardscope.engine.convert.disk import leftovers
from shardscope.engine.convert.stage import folder, promotion
from tests.convert.targets import convert


def without_flags(*arguments: object) -> None:
    raise OSError(22, "invalid argument")


def run(order: dict[str, object]) -> None:
    """Convert in this process, as ordered, and die at the step that is ordered."""
    if order["gap"]:
        for module, name in ((leftovers, "rename_new"), (promotion, "exchange"), (folder, "exchange")):
            setattr(module, name, without_flags)
    taken = 0

    def at(step: str) -> None:
        nonlocal taken
        if taken == order.get("step"):
            os.kill(os.getpid(), signal.SIGKILL)
        taken += 1

    target = Path(str(order["target"]))
    convert(target, replace=bool(order["replace"]), allow_gap=bool(order["gap"]), at=at)


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run(order)
                status = 0
            finally:
                os._exit(status)
        if "seconds" in order:
            time.sleep(random.Random(order["seed"]).uniform(0, order["seconds"]))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        ended = None if killed else os.waitstatus_to_exitcode(status)
        print(json.dumps({"killed": killed, "ended": ended, "seconds": time.monotonic() - began}), flush=True)


if __name__ == "__main__":
    main()
