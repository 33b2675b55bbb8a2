"""Decoding, contained: what the rest of the engine uses.

    with Containment(intent, limits) as worker:
        pickled = worker.read(data)

The parent reads bytes and hands them over; the worker has no file. What it answers is checked; what it does otherwise (ends, hangs,
floods) is a `Fault` about those bytes, and the next ones get a fresh worker.
"""

import threading
import time
from types import TracebackType
from typing import Final, Self

from shardscope.engine.isolation.approved import departure
from shardscope.engine.isolation.escalation import LEDGER, Lacking, host, runtime
from shardscope.engine.isolation.frames import Failed, Refused, Request, Start, Unfit
from shardscope.engine.isolation.process import Broken, Ended, Process, TooSlow
from shardscope.engine.isolation.seen import confirmed
from shardscope.engine.isolation.validation import accepted, validated
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.escalation import (
    Circumstances,
    Escalation,
    Facility,
    Intent,
    IsolationProfile,
    Operation,
)
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import Pickled

_GRACE_SECONDS: Final = 10
"""Beyond the decoder's own clock, for the transfer of bytes and of the answer."""
_PICKLES_OF_TIME: Final = 4
"""A worker has processor time for so many pickles that each take all of theirs; before it could run out it is replaced."""
_MOST_SECONDS: Final = 1 << 31
"""Of processor time that a kernel is asked to count."""


class Containment:
    """One invocation's decoding: a worker that is started for the first bytes and replaced when it is lost.

    For one thread: the worker ends with the thread that started it.
    """

    def __init__(
        self,
        intent: Intent,
        limits: DecodeLimits | None = None,
        *,
        cancel: threading.Event | None = None,
    ) -> None:
        """Take a person's wish to decode, which is used up by it. Raises `Fault` (`isolation.intent_spent`)."""
        self.limits = limits or DecodeLimits()
        self._cell = _Cell(intent.spend(), self.limits, cancel)

    def __enter__(self) -> Self:
        """Let the worker start while its first bytes are looked for. What is lacking is said when there are any."""
        self._cell.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cell.end()

    @property
    def profile(self) -> IsolationProfile | None:
        """Return the containment, as the worker measured it; null while there was nothing to read."""
        here = self._cell.here
        return None if here is None else here.profile

    def read(self, data: bytes | memoryview, pickles: int = 1) -> Pickled:
        """Return what `pickles` pickles at the start of `data` say.

        Raises `Fault` where they cannot be read or the worker is lost over them, or where this machine gives no containment
        (`isolation.unavailable`); `Cancelled` once `cancel` is set.
        """
        data = bytes(data)
        return self.read_escalated(self.escalate(data, pickles), data)

    def escalate(self, data: bytes, pickles: int = 1) -> Escalation:
        """Return a record that allows `read_escalated` to decode these bytes once, here. Raises `Fault`, `Cancelled`."""
        if len(data) > self.limits.pickle_bytes:
            raise Fault("limit.pickle_bytes", limit=self.limits.pickle_bytes, found=len(data))
        _, here = self._cell.worker()
        return LEDGER.issue(data, pickles, here)

    def read_escalated(self, record: Escalation, data: bytes) -> Pickled:
        """Return what the bytes say, and use the record up.

        Raises as `read` does, and `Fault` (`isolation.escalation_...`) for a record that is not for these bytes here and now.
        """
        process, here = self._cell.worker()
        LEDGER.spend(record, data, here)
        return self._cell.asked(process, record, data)


class _Cell:
    """The worker of the moment, and what was established about it."""

    def __init__(self, operation: Operation, limits: DecodeLimits, cancel: threading.Event | None) -> None:
        self.here: Circumstances | None = None
        self._operation: Operation = operation
        self._limits = limits
        self._cancel = cancel
        self._process: Process | None = None
        self._ready = False
        self._seconds_left = 0.0
        self._lacking: Facility | None = None

    def begin(self) -> None:
        """Start a worker where there is none, without waiting for it."""
        if self._process is None and self._lacking is None:
            self._seconds_left = float(self._cpu_seconds)
            try:
                self._process = Process(Start(self._operation, self._limits, self._cpu_seconds))
            except Lacking as lacking:
                self._lacking = lacking.facility

    def worker(self) -> tuple[Process, Circumstances]:
        """Return a worker that is ready, a fresh one where there is none. Raises `Fault`, `Cancelled`."""
        if self._ready and self._process is not None:
            if self.here is not None and self._process.alive() and self._seconds_left >= self._allowed:
                return self._process, self.here
            self._lose()
        self.begin()
        if self._process is not None:
            try:
                self.here = self._greeted(self._process)
            except Lacking as lacking:
                self._lacking = lacking.facility
            else:
                return self._process, self.here
        facility = self._lacking or Facility.INTERPRETER
        raise Fault("isolation.unavailable", facility=facility.value)

    def asked(self, process: Process, record: Escalation, data: bytes) -> Pickled:
        """Return the worker's answer to a record that is spent. Raises `Fault`, `Cancelled`."""
        began = time.monotonic()
        try:
            answer = process.ask(Request(record), data, self._limits.reply_bytes, self._allowed, self._cancel)
            self._seconds_left -= time.monotonic() - began
            if answer.nonce != record.nonce:
                raise Broken("it answers another request")
            if isinstance(answer, Refused):
                finding = accepted(answer.finding)
                raise Fault(finding.code, **finding.params)
            if not isinstance(answer, Failed):
                return validated(answer.pickled, record.pickles, len(data))
        except Ended as ended:
            self._lose()
            raise Fault("isolation.crashed", how=ended.how) from None
        except TooSlow:
            self._lose()
            seconds = self._limits.pickle_seconds
            raise Fault("limit.pickle_seconds", limit=seconds, found=seconds + _GRACE_SECONDS) from None
        except Broken as broken:
            self._lose()
            raise Fault("isolation.bad_reply", problem=broken.problem) from None
        except Fault:
            raise
        except BaseException:  # stopped in the middle of an answer that nobody waits for any more
            self._lose()
            raise
        self._lose()
        if answer.kind == "MemoryError":
            memory = self._limits.worker_bytes
            raise Fault("limit.worker_bytes", limit=memory, found=memory + 1)
        raise Fault("isolation.failed", kind=answer.kind)

    def end(self) -> None:
        """End the worker, if there is one."""
        if self._ready and self._process is not None:
            self._process.end()
            self._process = None
        self._lose()

    @property
    def _allowed(self) -> int:
        """Return the seconds that one pickle may take."""
        return (
            min(self._limits.pickle_seconds, _MOST_SECONDS // _PICKLES_OF_TIME - _GRACE_SECONDS)
            + _GRACE_SECONDS
        )

    @property
    def _cpu_seconds(self) -> int:
        return min(_PICKLES_OF_TIME * self._allowed, _MOST_SECONDS)

    def _departure(self, profile: IsolationProfile) -> Facility | None:
        return departure(profile, self._limits.worker_bytes, self._cpu_seconds)

    def _greeted(self, process: Process) -> Circumstances:
        """Wait for a worker that was started, and return what it is good for. Raises `Lacking`, `Cancelled`."""
        try:
            greeting = process.greeting(self._cancel)
            if isinstance(greeting, Unfit):
                raise Lacking(greeting.facility)
            missing = self._departure(greeting.profile) or confirmed(process.pid)
            if missing is not None:
                raise Lacking(missing)
            here = Circumstances(self._operation, host(), runtime(), greeting.profile, self._limits)
        except BaseException:
            self._lose()
            raise
        self._ready = True
        return here

    def _lose(self) -> None:
        """End the worker, if there is one, without waiting for what it does."""
        self._ready = False
        if self._process is not None:
            self._process.kill()
            self._process = None


def preflight(limits: DecodeLimits | None = None) -> IsolationProfile:
    """Return the containment that this machine gives, as a worker finds it that reads nothing and ends.

    Raises `Fault` (`isolation.unavailable`) where it gives none.
    """
    cell = _Cell("preflight", limits or DecodeLimits(), None)
    try:
        _, here = cell.worker()
    finally:
        cell.end()
    return here.profile
