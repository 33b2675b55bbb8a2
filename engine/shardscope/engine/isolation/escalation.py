"""Issuing a record for one decoding, and refusing every other use of it.

Both sides call `mismatch` with circumstances that each of them established for itself: the record that comes over the pipe is
compared, never taken over.
"""

import hashlib
import os
import sys
import threading
from typing import Final

from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.escalation import Circumstances, Escalation, Facility, Runtime
from shardscope.engine.version import __version__

_IDENTITIES: Final = ("/proc/sys/kernel/random/boot_id", "/etc/machine-id")
"""proc(5): a name for each start of the kernel; machine-id(5): one for an installation. Neither leaves this function as it is."""


class Lacking(Exception):  # noqa: N818 - an answer, not an error
    """This machine lacks something that containment needs."""

    def __init__(self, facility: Facility) -> None:
        super().__init__(facility.value)
        self.facility = facility


def host() -> str:
    """Return what tells this machine from others, hashed. Raises `Lacking` where nothing does."""
    for path in _IDENTITIES:
        try:
            with open(path, "rb") as file:
                identity = file.read(256).strip()
        except OSError:
            continue
        if identity:
            name = os.uname().nodename.encode(errors="surrogateescape")
            return hashlib.sha256(b"shardscope\0" + identity + b"\0" + name).hexdigest()
    raise Lacking(Facility.HOST)


def runtime() -> Runtime:
    """Return what decodes here."""
    return Runtime(f"{sys.implementation.name} {sys.version}", __version__)


def mismatch(record: Escalation, data: bytes, here: Circumstances) -> Finding | None:
    """Return in what a record differs from the bytes and the circumstances at hand; null where it is good for them."""
    recorded = record.circumstances
    differences = (
        ("bytes", record.length != len(data) or record.sha256 != hashlib.sha256(data).hexdigest()),
        ("operation", recorded.operation != here.operation),
        ("host", recorded.host != here.host),
        ("runtime", recorded.runtime != here.runtime),
        ("profile", recorded.profile != here.profile),
        ("limits", recorded.limits != here.limits),
    )
    return next((Finding(f"isolation.escalation_{what}") for what, differs in differences if differs), None)


class Ledger:
    """Records that were issued and not yet used. A record that is not among them was used, or is from elsewhere."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._lock = threading.Lock()

    def issue(self, data: bytes, pickles: int, circumstances: Circumstances) -> Escalation:
        """Return a record for decoding so many pickles of `data` once."""
        record = Escalation(
            os.urandom(16).hex(), hashlib.sha256(data).hexdigest(), len(data), pickles, circumstances
        )
        with self._lock:
            self._open.add(record.nonce)
        return record

    def spend(self, record: Escalation, data: bytes, here: Circumstances) -> None:
        """Use a record up, whether or not it is good. Raises `Fault` unless it was open and is for these bytes, here."""
        with self._lock:
            if record.nonce not in self._open:
                raise Fault("isolation.escalation_spent")
            self._open.remove(record.nonce)
        finding = mismatch(record, data, here)
        if finding is not None:
            raise Fault(finding.code, **finding.params)


LEDGER: Final = Ledger()
"""Of this process. It is never written down, so that no record outlives the invocation."""
