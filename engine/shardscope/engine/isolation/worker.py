"""The worker's side: lock in, say so, and decode what comes with a good record. It serves one invocation and is then thrown away.

Everything is imported before it locks itself in, since it cannot open a file afterwards. Descriptor 0 brings requests, 1 takes
answers. It ends by `_exit`, without the clean-up of an interpreter, for which it has no rights left.
"""

import os
from collections.abc import Callable
from typing import Final, TypeAlias

from shardscope.engine.isolation import frames
from shardscope.engine.isolation.escalation import Lacking, host, mismatch, runtime
from shardscope.engine.isolation.frames import Answer, Failed, Read, Ready, Refused, Start, Unfit
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.escalation import Circumstances, Escalation, Facility, IsolationProfile
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import Pickled

Decode: TypeAlias = Callable[[bytes, DecodeLimits, int], Pickled]
"""`decode(data, limits, pickles)`. Raises `Fault`."""

_REQUESTS: Final = 0
_ANSWERS: Final = 1
_NOTHING: Final = b"\x80\x02N."
"""The pickle of `None`."""


def main(parent: int) -> None:
    """Serve the process `parent` with the inert decoder, and end."""
    serve(parent, loaded())


def loaded() -> Decode:
    """Return the decoder with everything imported that it would otherwise import when it needs it first."""
    from shardscope.engine.parse.pickle_stream import rare  # noqa: F401
    from shardscope.engine.parse.pickled import arrays, read_pickles  # noqa: F401

    def decode(data: bytes, limits: DecodeLimits, pickles: int) -> Pickled:
        return read_pickles(data, limits, pickles=pickles)

    decode(_NOTHING, DecodeLimits(), 1)
    return decode


def serve(parent: int, decode: Decode) -> None:
    """Serve the process `parent` until its pipe ends, and end."""
    status = 1
    try:
        _oblige(parent, decode)
        status = 0
    finally:
        os._exit(status)


def _oblige(parent: int, decode: Decode) -> None:
    frame = frames.receive_frame(_REQUESTS)
    if frame is None:
        return
    start = frames.start_of(frame)
    try:
        here = Circumstances(start.operation, host(), runtime(), _locked(parent, start), start.limits)
    except Lacking as lacking:
        _say(Unfit(lacking.facility))
        return
    except ImportError:
        _say(Unfit(Facility.PACKAGES))
        return
    except MemoryError:
        _say(Unfit(Facility.MEMORY))
        return
    _say(Ready(here.profile))
    spent: set[str] = set()
    while (frame := frames.receive_frame(_REQUESTS)) is not None:
        answer = _answer(frames.request_of(frame).escalation, here, spent, decode)
        if answer is None:
            return
        frames.send(_ANSWERS, answer)


def _locked(parent: int, start: Start) -> IsolationProfile:
    from shardscope.engine.isolation.lockdown import die_with, lock_down

    die_with(parent)
    return lock_down(start.limits.worker_bytes, start.cpu_seconds)


def _say(word: Ready | Unfit) -> None:
    frames.send(_ANSWERS, frames.framed(frames.encode(word)))


def _answer(record: Escalation, here: Circumstances, spent: set[str], decode: Decode) -> bytes | None:
    """Return the framed answer to one request; null where its bytes did not come."""
    if record.length > here.limits.pickle_bytes:
        raise ValueError("more bytes are announced than the limits allow")
    try:
        data = frames.receive(_REQUESTS, record.length)
        if data is None:
            return None
        document = frames.encode(_decided(record, bytes(data), here, spent, decode))
        if len(document) > here.limits.reply_bytes:
            finding = Finding("limit.reply_bytes", {"limit": here.limits.reply_bytes, "found": len(document)})
            document = frames.encode(Refused(record.nonce, finding))
    except Exception as error:  # noqa: BLE001 - whatever it is, it costs the answer to this request alone
        document = frames.encode(Failed(record.nonce, type(error).__name__))
    return frames.framed(document)


def _decided(record: Escalation, data: bytes, here: Circumstances, spent: set[str], decode: Decode) -> Answer:
    if record.nonce in spent:
        return Refused(record.nonce, Finding("isolation.escalation_spent"))
    spent.add(record.nonce)
    finding = mismatch(record, data, here)
    if finding is not None:
        return Refused(record.nonce, finding)
    try:
        return Read(record.nonce, decode(data, here.limits, record.pickles))
    except Fault as fault:
        return Refused(record.nonce, fault.finding)
