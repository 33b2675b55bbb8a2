"""What shardscope and its worker say to each other, over two pipes.

A frame is eight bytes of length, most significant first, and one msgpack document of a known type. The worker hears `Start` once and
answers `Ready` or `Unfit`; then each `Request`, behind which the pickle's own bytes follow, is answered with one `Answer`.
"""

import os
from collections.abc import Callable
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.escalation import Escalation, Facility, IsolationProfile, Operation
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import Pickled

PREFIX_BYTES: Final = 8
WORD_BYTES: Final = 1 << 16
"""Of every frame but an answer, at the most."""
TRANSFER_BYTES: Final = 1 << 20
"""Written or read at once."""


class Start(Struct, frozen=True, forbid_unknown_fields=True):
    """The first thing that a worker hears."""

    operation: Operation
    limits: DecodeLimits
    cpu_seconds: int


class Ready(Struct, frozen=True, tag="ready", forbid_unknown_fields=True):
    """The worker has locked itself in."""

    profile: IsolationProfile


class Unfit(Struct, frozen=True, tag="unfit", forbid_unknown_fields=True):
    """The worker cannot lock itself in, and ends."""

    facility: Facility


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """`escalation.length` bytes follow the frame."""

    escalation: Escalation


class Read(Struct, frozen=True, tag="read", forbid_unknown_fields=True):
    """What the bytes say."""

    nonce: str
    pickled: Pickled


class Refused(Struct, frozen=True, tag="refused", forbid_unknown_fields=True):
    """The bytes, or the record, are refused. The worker goes on."""

    nonce: str
    finding: Finding


class Failed(Struct, frozen=True, tag="failed", forbid_unknown_fields=True):
    """The decoder ran out of memory or met an error of its own. The worker is not used again."""

    nonce: str
    kind: Annotated[str, Meta(pattern=r"\A[A-Za-z_]{1,64}\Z")]
    """The name of the exception."""


Document: TypeAlias = bytes | bytearray
Greeting: TypeAlias = Ready | Unfit
Answer: TypeAlias = Read | Refused | Failed

encode: Final = msgspec.msgpack.Encoder().encode
start_of: Final[Callable[[Document], Start]] = msgspec.msgpack.Decoder(Start).decode
greeting_of: Final[Callable[[Document], Greeting]] = msgspec.msgpack.Decoder(Ready | Unfit).decode
request_of: Final[Callable[[Document], Request]] = msgspec.msgpack.Decoder(Request).decode
answer_of: Final[Callable[[Document], Answer]] = msgspec.msgpack.Decoder(Read | Refused | Failed).decode


def framed(document: bytes) -> bytes:
    """Return a document behind its length."""
    return len(document).to_bytes(PREFIX_BYTES, "big") + document


def receive(descriptor: int, length: int) -> bytearray | None:
    """Return the next `length` bytes of a pipe, waiting for them; null where it ends before."""
    data = bytearray(length)
    view = memoryview(data)
    done = 0
    while done < length:
        count = os.readv(descriptor, [view[done : done + TRANSFER_BYTES]])
        if count == 0:
            return None
        done += count
    return data


def receive_frame(descriptor: int) -> bytearray | None:
    """Return the next frame of a pipe, waiting for it; null where the pipe ends. Raises `ValueError` for one that is too long."""
    prefix = receive(descriptor, PREFIX_BYTES)
    if prefix is None:
        return None
    length = int.from_bytes(prefix, "big")
    if length > WORD_BYTES:
        raise ValueError(f"a frame of {length} bytes")
    return receive(descriptor, length)


def send(descriptor: int, data: bytes) -> None:
    """Write all of `data` to a pipe, waiting for room."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view[:TRANSFER_BYTES]) :]
