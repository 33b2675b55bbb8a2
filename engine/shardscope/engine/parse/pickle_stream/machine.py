"""The opcodes of a pickle read as data: a stack, a memo and marks, as CPython's `Lib/pickle.py` has them.

Nothing is imported, looked up or called: names become `Reference`s, calls become `Call`s, persistent ids become
`Persistent`s. Every object is built once, and every bound of `DecodeLimits` is looked at every few thousand opcodes.
"""

from struct import error as LayoutError  # noqa: N812 - what the standard library calls it
from typing import Final

from shardscope.engine.model.blocker import Fault
from shardscope.engine.parse.pickle_stream import opcodes as op
from shardscope.engine.parse.pickle_stream.rare import RARE
from shardscope.engine.parse.pickle_stream.records import Call, Dict, Persistent, Reference
from shardscope.engine.parse.pickle_stream.state import (
    FLOAT64,
    INT32,
    UINT16,
    UINT32,
    Machine,
    Stream,
)

BYTE_FOLLOWS: Final = frozenset(
    (
        op.BINGET, op.BINPUT, op.BININT1, op.LONG1, op.SHORT_BINUNICODE, op.SHORT_BINSTRING, op.SHORT_BINBYTES, op.PROTO,
    )
)  # fmt: skip
"""Opcodes with an argument, or a length, of one byte."""


def read_pickle(stream: Stream, start: int) -> tuple[object, int]:  # noqa: C901 - one loop, for speed
    """Read one pickle that begins at byte `start`. Return what STOP leaves and where the next byte is.

    Raises `Fault`: `pickle.truncated` where more bytes could help, `limit.*`, and `pickle.*` with the position.
    """
    machine = Machine(stream, start)
    data, stack, marks, memo = machine.data, machine.stack, machine.marks, machine.memo
    size = len(data)
    elements = stream.limits.pickle_elements
    at, end, code, opcodes = start, start, op.STOP, 0
    while True:
        machine.stack = stack
        barrier = machine.barrier(at, opcodes)
        try:
            while at < barrier:
                code = data[at]
                at += 1
                opcodes += 1
                if code == op.MEMOIZE:
                    memo.append(stack[-1])
                elif code == op.BINGET:
                    stack.append(memo[data[at]])
                    at += 1
                elif code == op.LONG_BINGET:
                    stack.append(memo[UINT32.unpack_from(data, at)[0]])
                    at += 4
                elif code == op.BININT1:
                    stack.append(data[at])
                    at += 1
                elif code == op.TUPLE1:
                    stack[-1] = (stack[-1],)
                elif code == op.REDUCE or code == op.NEWOBJ:
                    args = stack.pop()
                    callee = stack[-1]
                    if type(args) is not tuple:
                        raise Fault("pickle.target", position=at - 1)
                    if type(callee) is Reference:
                        callee.called += 1
                    elif type(callee) is not Call and type(callee) is not Persistent:
                        raise Fault("pickle.target", position=at - 1)
                    stack[-1] = Call(callee, args)
                elif code == op.MARK:
                    marks.append(stack)
                    stack = []
                elif code == op.BINPUT:
                    place = data[at]
                    if place == len(memo):
                        memo.append(stack[-1])
                    else:
                        memo = machine.put(place, stack[-1])
                    at += 1
                elif code == op.TUPLE2:
                    last = stack.pop()
                    stack[-1] = (stack[-1], last)
                elif code == op.EMPTY_TUPLE:
                    stack.append(())
                elif code == op.EMPTY_DICT:
                    stack.append(Dict())
                elif code == op.SETITEMS:
                    added = stack
                    stack = marks.pop()
                    target = stack[-1]
                    if type(target) is Dict and not len(added) & 1 and len(target) + len(added) <= elements:
                        target += added
                    else:
                        machine.extend(target, added, at - 1)
                elif code == op.BUILD:
                    state = stack.pop()
                    target = stack[-1]
                    if type(target) is not Call:
                        raise Fault("pickle.target", position=at - 1)
                    if target.states is None:
                        target.states = [state]
                    else:
                        target.states.append(state)
                elif code == op.SHORT_BINUNICODE:
                    end = at + 1 + data[at]
                    stack.append(data[at + 1 : end].decode())
                    at = end
                elif code == op.BININT:
                    stack.append(INT32.unpack_from(data, at)[0])
                    at += 4
                elif code == op.BININT2:
                    stack.append(UINT16.unpack_from(data, at)[0])
                    at += 2
                elif code == op.LONG1:
                    end = at + 1 + data[at]
                    stack.append(int.from_bytes(data[at + 1 : end], "little", signed=True))
                    at = end
                elif code == op.LONG_BINPUT:
                    place = UINT32.unpack_from(data, at)[0]
                    if place == len(memo):
                        memo.append(stack[-1])
                    else:
                        memo = machine.put(place, stack[-1])
                    at += 4
                elif code == op.BINUNICODE:
                    length = UINT32.unpack_from(data, at)[0]
                    end = at + 4 + length
                    machine.check_length(at + 4, length, "pickle_string_bytes")
                    stack.append(data[at + 4 : end].decode())
                    at = end
                elif code == op.TUPLE:
                    items = tuple(stack)
                    stack = marks.pop()
                    if len(items) > elements:
                        stream.check("pickle_elements", len(items))
                    stack.append(items)
                elif code == op.TUPLE3:
                    stack[-3:] = [(stack[-3], stack[-2], stack[-1])]
                elif code == op.NEWFALSE:
                    stack.append(False)
                elif code == op.NONE:
                    stack.append(None)
                elif code == op.NEWTRUE:
                    stack.append(True)
                elif code == op.EMPTY_LIST:
                    stack.append([])
                elif code == op.BINFLOAT:
                    stack.append(FLOAT64.unpack_from(data, at)[0])
                    at += 8
                elif code == op.APPENDS:
                    added = stack
                    stack = marks.pop()
                    machine.append(stack[-1], added, at - 1)
                elif code == op.STOP:
                    value = stack.pop()
                    machine.stack = stack
                    _finish(machine, at, opcodes)
                    return value, at
                else:
                    machine.stack = stack
                    rare = RARE.get(code)
                    if rare is None:
                        raise Fault("pickle.opcode", position=at - 1, opcode=f"0x{code:02x}")
                    at = rare(machine, at)
                    stack, memo = machine.stack, machine.memo
                    if machine.frame_end:
                        barrier = min(barrier, machine.frame_end)
            if at > size:
                raise Fault("pickle.truncated", position=size)
        except UnicodeDecodeError as error:
            if end > size:
                raise Fault("pickle.truncated", position=size) from None
            stack.append(machine.text(error.object))
            at = end
        except LayoutError:
            raise Fault("pickle.truncated", position=size) from None
        except LookupError:
            raise _underflow(code, at, size) from None


def _underflow(code: int, at: int, size: int) -> Fault:
    """Return why something was not where an opcode looks for it."""
    if at >= size and code in BYTE_FOLLOWS:
        return Fault("pickle.truncated", position=size)
    if code in (op.BINGET, op.LONG_BINGET, op.GET):
        return Fault("pickle.memo_unset", position=at - 1)
    return Fault("pickle.stack", position=at - 1)


def _finish(machine: Machine, at: int, opcodes: int) -> None:
    """Look at what a pickle leaves behind."""
    stream = machine.stream
    if machine.frame_end not in (0, at):
        stream.note("pickle.frame", position=at)
    machine.check_loose(at)
    if left := machine.standing():
        stream.note("pickle.stack_left", count=left)
    stream.opcodes += opcodes
    stream.check("pickle_opcodes", stream.opcodes)
    stream.check_built()
