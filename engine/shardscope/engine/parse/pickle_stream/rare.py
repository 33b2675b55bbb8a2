"""Opcodes that real checkpoints have few of, in a table: each takes the machine and the place after it, and returns the next."""

import re
from collections.abc import Callable
from typing import Final

from shardscope.engine.model.blocker import Fault
from shardscope.engine.parse.pickle_stream import opcodes as op
from shardscope.engine.parse.pickle_stream import values
from shardscope.engine.parse.pickle_stream.records import Call, Dict, FrozenSet, Persistent, Reference, Set
from shardscope.engine.parse.pickle_stream.state import SMALLEST_FRAME, Machine
from shardscope.engine.parse.pickle_stream.values import UINT64, line

Handler = Callable[[Machine, int], int]

PROTOCOLS: Final = 5
"""The highest protocol there is."""
EXTENSION_BYTES: Final = {op.EXT1: 1, op.EXT2: 2, op.EXT4: 4}


def pop_mark(machine: Machine) -> list[object]:
    """Return what lies above the last mark, and remove the mark."""
    above, machine.stack = machine.stack, machine.marks.pop()
    return above


def callable_record(value: object, at: int) -> Reference | Call | Persistent:
    """Return a callee, counted as called. Raises `Fault` where it is a plain value."""
    if isinstance(value, Reference):
        value.called += 1
        return value
    if isinstance(value, Call | Persistent):
        return value
    raise Fault("pickle.target", position=at - 1)


# --- protocol and frames


def proto(machine: Machine, at: int) -> int:
    version = machine.data[at]
    if version > PROTOCOLS:
        raise Fault("pickle.protocol", position=at, found=version)
    if at - 1 > machine.start:
        machine.stream.note("pickle.protocol_again", position=at - 1)
    machine.stream.protocol = max(machine.stream.protocol, version)
    return at + 1


def frame(machine: Machine, at: int) -> int:
    (length,) = UINT64.unpack_from(machine.data, at)
    after = at + 8
    if after + length > len(machine.data):
        raise Fault("pickle.frame_length", position=at - 1, length=length, left=len(machine.data) - after)
    inside = machine.frame_end > at
    if inside or length < SMALLEST_FRAME:
        machine.stream.note("pickle.frame", position=at - 1)
    if not inside:
        machine.check_loose(at - 1)
        machine.frame_end = after + length
        machine.loose = 0
    return after


# --- stack and memo


def pop(machine: Machine, at: int) -> int:
    if machine.stack:
        machine.stack.pop()
    else:
        pop_mark(machine)
    return at


def drop_mark(machine: Machine, at: int) -> int:
    pop_mark(machine)
    return at


def dup(machine: Machine, at: int) -> int:
    machine.stack.append(machine.stack[-1])
    return at


def get(machine: Machine, at: int) -> int:
    raw, after = line(machine, at)
    machine.stack.append(machine.memo[memo_place(raw, at)])
    return after


def put(machine: Machine, at: int) -> int:
    raw, after = line(machine, at)
    machine.put(memo_place(raw, at), machine.stack[-1])
    return after


def memo_place(raw: bytes, at: int) -> int:
    """Return a number of the memo as the picklers write it."""
    if not re.fullmatch(rb"0|[1-9][0-9]{0,18}", raw):
        raise Fault("pickle.memo_place", position=at)
    return int(raw)


def no_buffer(machine: Machine, at: int) -> int:
    raise Fault("pickle.buffer", position=at - 1)


# --- containers


def append(machine: Machine, at: int) -> int:
    value = machine.stack.pop()
    machine.append(machine.stack[-1], [value], at - 1)
    return at


def setitem(machine: Machine, at: int) -> int:
    value = machine.stack.pop()
    key = machine.stack.pop()
    machine.extend(machine.stack[-1], [key, value], at - 1)
    return at


def list_above_mark(machine: Machine, at: int) -> int:
    above = pop_mark(machine)
    machine.stream.check("pickle_elements", len(above))
    machine.stack.append(above)
    return at


def dict_above_mark(machine: Machine, at: int) -> int:
    above = pop_mark(machine)
    found = Dict()
    machine.extend(found, above, at - 1)
    machine.stack.append(found)
    return at


def empty_set(machine: Machine, at: int) -> int:
    machine.stack.append(Set())
    return at


def additems(machine: Machine, at: int) -> int:
    added = pop_mark(machine)
    target = machine.stack[-1]
    if type(target) is Set:
        target += added
        machine.stream.check("pickle_elements", len(target))
    elif type(target) is Call:
        machine.append(target, added, at - 1)
    else:
        raise Fault("pickle.target", position=at - 1)
    return at


def frozenset_above_mark(machine: Machine, at: int) -> int:
    above = pop_mark(machine)
    machine.stream.check("pickle_elements", len(above))
    machine.stack.append(FrozenSet(above))
    return at


# --- names and calls


def global_lines(machine: Machine, at: int) -> int:
    reference, after = named(machine, at)
    machine.stack.append(reference)
    return after


def named(machine: Machine, at: int) -> tuple[Reference, int]:
    """Return the reference of two lines, and the place after them."""
    module, middle = line(machine, at)
    name, after = line(machine, middle)
    try:
        return machine.stream.reference(module.decode(), name.decode(), at), after
    except UnicodeDecodeError:
        raise Fault("pickle.name", position=at) from None


def stack_global(machine: Machine, at: int) -> int:
    name = machine.stack.pop()
    module = machine.stack.pop()
    if not (isinstance(module, str) and isinstance(name, str)):
        raise Fault("pickle.name", position=at - 1)
    machine.stack.append(machine.stream.reference(module, name, at - 1))
    return at


def inst(machine: Machine, at: int) -> int:
    reference, after = named(machine, at)
    args = pop_mark(machine)
    machine.stack.append(Call(callable_record(reference, at), tuple(args)))
    return after


def obj(machine: Machine, at: int) -> int:
    callee, *args = machine.stack or [
        pop(machine, at)
    ]  # an empty stack is one object too few, and so is no mark
    pop_mark(machine)
    machine.stack.append(Call(callable_record(callee, at), tuple(args)))
    return at


def newobj_ex(machine: Machine, at: int) -> int:
    kwargs, args = machine.stack.pop(), machine.stack.pop()
    callee = callable_record(machine.stack.pop(), at)
    if type(kwargs) is not Dict or type(args) is not tuple:
        raise Fault("pickle.target", position=at - 1)
    machine.stack.append(Call(callee, args, kwargs))
    return at


def extension(machine: Machine, at: int) -> int:
    machine.check_length(at, EXTENSION_BYTES[machine.data[at - 1]], "pickle_string_bytes")
    raise Fault("pickle.extension", position=at - 1)


def persid(machine: Machine, at: int) -> int:
    raw, after = line(machine, at)
    try:
        machine.stack.append(Persistent(raw.decode("ascii")))
    except UnicodeDecodeError:
        raise Fault("pickle.text_form", position=at) from None
    return after


def binpersid(machine: Machine, at: int) -> int:
    machine.stack[-1] = Persistent(machine.stack[-1])
    return at


RARE: Final[dict[int, Handler]] = {
    op.BINPERSID: binpersid,
    op.GLOBAL: global_lines,
    op.STACK_GLOBAL: stack_global,
    op.APPEND: append,
    op.SETITEM: setitem,
    op.PROTO: proto,
    op.FRAME: frame,
    op.SHORT_BINBYTES: values.short_binbytes,
    op.BINBYTES: values.binbytes,
    op.BINBYTES8: values.binbytes8,
    op.BYTEARRAY8: values.binbytes8,
    op.BINUNICODE8: values.binunicode8,
    op.LONG4: values.long4,
    op.EMPTY_SET: empty_set,
    op.ADDITEMS: additems,
    op.FROZENSET: frozenset_above_mark,
    op.NEWOBJ_EX: newobj_ex,
    op.POP: pop,
    op.POP_MARK: drop_mark,
    op.DUP: dup,
    op.LIST: list_above_mark,
    op.DICT: dict_above_mark,
    op.OBJ: obj,
    op.INST: inst,
    op.GET: get,
    op.PUT: put,
    op.INT: values.int_text,
    op.LONG: values.long_text,
    op.FLOAT: values.float_text,
    op.STRING: values.string_text,
    op.UNICODE: values.unicode_text,
    op.BINSTRING: values.binstring,
    op.SHORT_BINSTRING: values.short_binstring,
    op.PERSID: persid,
    op.EXT1: extension,
    op.EXT2: extension,
    op.EXT4: extension,
    op.NEXT_BUFFER: no_buffer,
    op.READONLY_BUFFER: no_buffer,
}
"""Every opcode that the loop of the machine does not know itself."""
