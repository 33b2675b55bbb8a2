"""The opcodes of a pickle read as data: a stack, a memo and marks, as CPython's `Lib/pickle.py` has them.

Nothing is imported, looked up or called: names become `Reference`s, calls become `Call`s, persistent ids become
`Persistent`s. Every object is built once, and every bound of `DecodeLimits` is looked at every few thousand opcodes.
"""

import time
from collections.abc import Iterable
from struct import Struct as Layout
from struct import error as LayoutError  # noqa: N812 - what the standard library calls it
from typing import Final

from shardscope.engine.model.blocker import Fault, Finding, Param
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.parse.pickle_stream import opcodes as op
from shardscope.engine.parse.pickle_stream.records import Call, Dict, Reference

BLOCK: Final = 16 << 10
"""Bytes of the stream between two looks at the limits; an opcode takes at least one."""
OPCODE_BYTES: Final = 64
"""What an opcode is taken to build: a tuple of one or two, an empty list, a number."""

UINT16: Final = Layout("<H")
INT32: Final = Layout("<i")
UINT32: Final = Layout("<I")
FLOAT64: Final = Layout(">d")


class SparseMemo(dict[int, object]):
    """A memo with gaps, for streams that number their objects as no pickler does."""

    __slots__ = ()

    def append(self, value: object) -> None:
        """Keep `value` under the number that MEMOIZE gives it."""
        self[len(self)] = value


Memo = list[object] | SparseMemo


class Stream:
    """Pickles one after another in the same bytes, and what is counted over all of them."""

    __slots__ = (
        "_deadline",
        "built",
        "data",
        "findings",
        "limits",
        "noted",
        "opcodes",
        "protocol",
        "references",
    )

    def __init__(self, data: bytes, limits: DecodeLimits) -> None:
        if len(data) > limits.pickle_bytes:
            raise Fault("limit.pickle_bytes", limit=limits.pickle_bytes, found=len(data))
        self.data = data
        self.limits = limits
        self.references: dict[tuple[str, str], Reference] = {}
        self.opcodes = 0
        self.protocol = 0
        self.built = 0
        """Bytes of long texts and integers, by their length in the stream."""
        self.findings: list[Finding] = []
        self.noted: set[str] = set()
        self._deadline = time.monotonic() + limits.pickle_seconds

    def reference(self, module: str, name: str) -> Reference:
        """Return the one record of a name, and count it."""
        found = self.references.get((module, name))
        if found is None:
            found = self.references[module, name] = Reference(module, name)
        found.named += 1
        return found

    def note(self, code: str, **params: Param) -> None:
        """Say something that stops nothing, once for each code."""
        if code not in self.noted:
            self.noted.add(code)
            self.findings.append(Finding(code, params))

    def check(self, field: str, found: int) -> None:
        """Raise the `Fault` of a limit that is passed."""
        limit: int = getattr(self.limits, field)
        if found > limit:
            raise Fault(f"limit.{field}", limit=limit, found=found)

    def check_clock(self) -> None:
        """Raise the `Fault` of the limit on time where it has run out."""
        late = time.monotonic() - self._deadline
        if late > 0:
            limit = self.limits.pickle_seconds
            raise Fault("limit.pickle_seconds", limit=limit, found=limit + 1 + int(late))


class Machine:
    """One pickle while it is read."""

    __slots__ = ("data", "frame_end", "loose", "marks", "memo", "stack", "start", "stream")

    def __init__(self, stream: Stream, start: int) -> None:
        self.stream = stream
        self.data = stream.data
        self.start = start
        self.stack: list[object] = []
        """What lies above the last mark."""
        self.marks: list[list[object]] = []
        """The stacks below each mark."""
        self.memo: Memo = []
        self.frame_end = 0
        """Where the frame ends that is being read; 0 outside of frames."""
        self.loose = 0
        """Where the last frame ended; 0 within a frame and where there was none."""

    def barrier(self, at: int, opcodes: int) -> int:
        """Look at the limits and return up to where the next opcodes may begin.

        Raises `Fault` where a limit is passed or the stream has no more bytes.
        """
        stream = self.stream
        if at >= len(self.data):
            raise Fault("pickle.truncated", position=len(self.data))
        stream.check("pickle_opcodes", stream.opcodes + opcodes)
        stream.check("pickle_depth", len(self.marks))
        stream.check("pickle_stack", len(self.marks) + len(self.stack) + sum(map(len, self.marks)))
        stream.check("pickle_memo", len(self.memo))
        stream.check("pickle_built_bytes", stream.built + (stream.opcodes + opcodes) * OPCODE_BYTES)
        stream.check_clock()
        if self.frame_end:
            if at >= self.frame_end:
                self.leave_frame(at)
            else:
                return min(at + BLOCK, self.frame_end)
        return min(at + BLOCK, len(self.data))

    def leave_frame(self, at: int) -> None:
        """End the frame; an opcode that reaches out of it deserves a word."""
        if at > self.frame_end:
            self.stream.note("pickle.frame", position=self.frame_end)
        self.loose = at
        self.frame_end = 0

    def put(self, place: int, value: object) -> Memo:
        """Keep `value` in the memo under a number of the stream's choosing and return the memo, which may be another one."""
        memo = self.memo
        if place == len(memo):
            memo.append(value)
        elif isinstance(memo, SparseMemo) or place < len(memo):
            memo[place] = value
        else:
            sparse = SparseMemo(enumerate(memo))
            sparse[place] = value
            self.memo = sparse
        return self.memo

    def text(self, raw: bytes) -> str:
        """Return text that is not UTF-8 only by lone surrogates, which Python's pickler writes; they become escapes.

        Raises `Fault` for other bytes.
        """
        try:
            text = raw.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise Fault("pickle.text", position=error.start) from None
        return self.without_surrogates(text)

    def without_surrogates(self, text: str) -> str:
        """Return text that can be encoded: lone surrogates become escapes, and that is said."""
        if text.isascii():
            return text
        try:
            text.encode()
        except UnicodeEncodeError:
            self.stream.note("pickle.surrogate")
            return text.encode("utf-8", "backslashreplace").decode()
        return text

    def extend(self, target: object, added: list[object], at: int) -> None:
        """Do what SETITEM(S) does: `added` are keys and values in turns.

        Raises `Fault` where that cannot be.
        """
        if len(added) & 1:
            raise Fault("pickle.stack", position=at)
        if type(target) is Dict:
            target += added
            found = len(target)
        elif type(target) is Call:
            target.items = _joined(target.items, added)
            found = len(target.items)
        else:
            raise Fault("pickle.target", position=at)
        self.stream.check("pickle_elements", found)

    def append(self, target: object, added: list[object], at: int) -> None:
        """Do what APPEND(S) does. Raises `Fault` where that cannot be."""
        if type(target) is list:
            target += added
            found = len(target)
        elif type(target) is Call:
            target.appends = _joined(target.appends, added)
            found = len(target.appends)
        else:
            raise Fault("pickle.target", position=at)
        self.stream.check("pickle_elements", found)


def _joined(before: list[object] | None, added: Iterable[object]) -> list[object]:
    if before is None:
        return list(added)
    before += added
    return before


def read_pickle(stream: Stream, start: int) -> tuple[object, int]:  # noqa: C901 - one loop, for speed
    """Read one pickle that begins at byte `start`. Return what STOP leaves and where the next byte is.

    Raises `Fault`: `pickle.truncated` where more bytes could help, `limit.*`, and `pickle.*` with the position.
    """
    from shardscope.engine.parse.pickle_stream.rare import RARE

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
                    elif type(callee) is not Call:
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
                    end = at + 4 + UINT32.unpack_from(data, at)[0]
                    stream.built += end - at
                    if end - at > stream.limits.pickle_string_bytes:
                        stream.check("pickle_string_bytes", end - at - 4)
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
                    _finish(machine, opcodes)
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
    if at >= size:
        return Fault("pickle.truncated", position=size)
    if code in (op.BINGET, op.LONG_BINGET, op.GET):
        return Fault("pickle.memo_unset", position=at - 1)
    return Fault("pickle.stack", position=at - 1)


def _finish(machine: Machine, opcodes: int) -> None:
    """Look at what a pickle leaves behind."""
    stream = machine.stream
    machine.stack, stack = [], machine.stack
    left = len(stack) + sum(map(len, machine.marks)) + len(machine.marks)
    if left:
        stream.note("pickle.stack_left", count=left)
    stream.opcodes += opcodes
    stream.check("pickle_opcodes", stream.opcodes)
    stream.check("pickle_built_bytes", stream.built + stream.opcodes * OPCODE_BYTES)
