"""Pickles as typed facts: the machine reads the opcodes, and a closed table says what they come to.

Imports are few and light: the contained worker does nothing but this.
"""

import gc

from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import Pickled


def read_pickles(data: memoryview | bytes, limits: DecodeLimits, *, pickles: int | None = 1) -> Pickled:
    """Read as many pickles as `pickles` says, one after another from the first byte; null reads up to the end of `data`.

    Bytes behind them are left alone: `Pickled.ends` says where each pickle ends. One root belongs to each.

    Raises `Fault`: `pickle.truncated` where the bytes end before the pickles do and more of them could help, `limit.*` where a
    bound is reached, and `pickle.*` where a stream does not hold together.
    """
    from shardscope.engine.parse.pickle_stream.machine import Stream, read_pickle
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
        references = facts.references()
        return Pickled(
            nodes=facts.done(),
            roots=roots,
            storages=facts.storages,
            references=references,
            ends=ends,
            opcodes=stream.opcodes,
            protocol=stream.protocol,
            findings=facts.findings(references),
        )
    finally:
        if collecting:
            gc.enable()
