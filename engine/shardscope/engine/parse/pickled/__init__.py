"""Pickles as typed facts: the machine reads the opcodes, and a closed table says what they come to.

What this package needs is imported at the first call, for readers of its facts need none of it.
"""

import gc
from typing import Final

from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import Pickled

CUT_SHORT: Final = ("pickle.truncated", "pickle.frame_length")
"""Codes that a stream gets which is not all there: more bytes may help."""


def read_pickles(data: memoryview | bytes, limits: DecodeLimits, *, pickles: int | None = 1) -> Pickled:
    """Read as many pickles as `pickles` says, one after another from the first byte; null reads up to the end of `data`.

    Bytes behind them are left alone: `Pickled.ends` says where each pickle ends, and one root belongs to each. Behind a single
    pickle there should be none, which a finding says.

    Raises `Fault`: one of `CUT_SHORT` where the bytes end before the pickles do, `limit.*` where a bound is reached, and
    `pickle.*` where a stream does not hold together.
    """
    from shardscope.engine.parse.pickle_stream.machine import read_pickle
    from shardscope.engine.parse.pickle_stream.state import Stream
    from shardscope.engine.parse.pickled import evidence
    from shardscope.engine.parse.pickled.facts import Facts
    from shardscope.engine.parse.pickled.table import TABLE

    collecting = gc.isenabled()
    gc.disable()  # millions of objects that all stay until the end: looking through them is most of the time
    try:
        stream = Stream(bytes(data), limits)
        facts = Facts(stream, TABLE)
        roots: list[int] = []
        ends: list[int] = []
        at = 0
        values = []
        while len(roots) < pickles if pickles is not None else at < len(stream.data) or not roots:
            value, at = read_pickle(stream, at)
            values.append(value)
            ends.append(at)
            roots.append(facts.root(value))
        if pickles == 1 and at < len(stream.data):
            stream.note("pickle.trailing", count=len(stream.data) - at)
        references = evidence.references(facts)
        return Pickled(
            nodes=facts.done(),
            roots=roots,
            storages=facts.storages,
            references=references,
            ends=ends,
            opcodes=stream.opcodes,
            protocol=stream.protocol,
            findings=evidence.findings(facts, references),
        )
    finally:
        if collecting:
            gc.enable()
