"""One input to one target: what has to hold of every answer, whatever it is."""

import time
from collections.abc import Callable

from shardscope.engine.model.blocker import Fault, blocker
from tests.fuzz.targets import SECONDS, Target

Clock = Callable[[], float]


def attempt(target: Target, data: bytes, clock: Clock = time.process_time) -> str:
    """Return the code with which an input ended, or `read`. Raises `AssertionError` with whatever else came out of it."""
    began = clock()
    try:
        target.read(data)
        ended = "read"
    except Fault as fault:
        blocker(fault.finding, "file")
        ended = fault.finding.code
    except Exception as error:
        raise AssertionError(f"{target.name}: {error!r} from {data[:200]!r}") from error
    took = clock() - began
    assert took < SECONDS, f"{target.name}: {took:.1f} s for {data[:200]!r}"
    return ended
