"""Opcodes for numbers, texts and bytes that the loop of the machine does not know itself.

Text forms are taken as the picklers of Python 2 and 3 write them and in no other spelling.
"""

from struct import Struct as Layout
from typing import Final

from shardscope.engine.model.blocker import Fault
from shardscope.engine.parse.pickle_stream.state import INT32, UINT32, Machine
from shardscope.engine.parse.pickle_stream.text import quoted, real, unescaped, whole

UINT64: Final = Layout("<Q")


def line(machine: Machine, at: int) -> tuple[bytes, int]:
    """Return a line of a text opcode without its end, and the place after it."""
    longest = machine.stream.limits.pickle_string_bytes
    end = machine.data.find(b"\n", at, at + longest + 1)
    if end < 0:
        machine.stream.check("pickle_string_bytes", len(machine.data) - at)
        raise Fault("pickle.truncated", position=len(machine.data))
    machine.stream.built += end - at
    return machine.data[at:end], end + 1


def run(machine: Machine, at: int, length: int, field: str = "pickle_string_bytes") -> bytes:
    """Return `length` bytes at `at`. Raises `Fault` where they are not all there or too many."""
    machine.check_length(at, length, field)
    return machine.data[at : at + length]


# --- numbers


def int_text(machine: Machine, at: int) -> int:
    raw, after = line(machine, at)
    machine.stack.append(raw == b"01" if raw in (b"00", b"01") else number(machine, raw, at))
    return after


def long_text(machine: Machine, at: int) -> int:
    raw, after = line(machine, at)
    if not raw.endswith(b"L"):
        raise Fault("pickle.text_form", position=at)
    machine.stack.append(number(machine, raw[:-1], at))
    return after


def number(machine: Machine, raw: bytes, at: int) -> int:
    machine.stream.check("pickle_integer_bytes", len(raw))
    return whole(raw, at)


def float_text(machine: Machine, at: int) -> int:
    raw, after = line(machine, at)
    machine.stack.append(real(raw, at))
    return after


def long4(machine: Machine, at: int) -> int:
    length: int = INT32.unpack_from(machine.data, at)[0]
    if length < 0:
        raise Fault("pickle.length", position=at, length=length)
    raw = run(machine, at + 4, length, "pickle_integer_bytes")
    machine.stack.append(int.from_bytes(raw, "little", signed=True))
    return at + 4 + length


# --- texts and bytes


def string_text(machine: Machine, at: int) -> int:
    raw, after = line(machine, at)
    machine.stack.append(python2_text(machine, quoted(raw, at)))
    return after


def binstring(machine: Machine, at: int) -> int:
    length: int = INT32.unpack_from(machine.data, at)[0]
    if length < 0:
        raise Fault("pickle.length", position=at, length=length)
    machine.stack.append(python2_text(machine, run(machine, at + 4, length)))
    return at + 4 + length


def short_binstring(machine: Machine, at: int) -> int:
    length = machine.data[at]
    machine.stack.append(python2_text(machine, run(machine, at + 1, length)))
    return at + 1 + length


def python2_text(machine: Machine, raw: bytes) -> str | bytes:
    """Return a string of Python 2: text where it is UTF-8, as torch takes it, and otherwise bytes."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        machine.stream.note("pickle.python2_bytes")
        return raw


def unicode_text(machine: Machine, at: int) -> int:
    raw, after = line(machine, at)
    machine.stack.append(machine.without_surrogates(unescaped(raw, at)))
    return after


def binunicode8(machine: Machine, at: int) -> int:
    length: int = UINT64.unpack_from(machine.data, at)[0]
    machine.stack.append(machine.text(run(machine, at + 8, length)))
    return at + 8 + length


def short_binbytes(machine: Machine, at: int) -> int:
    length = machine.data[at]
    machine.stack.append(run(machine, at + 1, length))
    return at + 1 + length


def binbytes(machine: Machine, at: int) -> int:
    length: int = UINT32.unpack_from(machine.data, at)[0]
    machine.stack.append(run(machine, at + 4, length))
    return at + 4 + length


def binbytes8(machine: Machine, at: int) -> int:
    length: int = UINT64.unpack_from(machine.data, at)[0]
    machine.stack.append(run(machine, at + 8, length))
    return at + 8 + length
