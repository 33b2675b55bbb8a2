"""What the machine keeps while it reads: of a stream its counts and its names, of one pickle a stack, marks and a memo."""

import time
from collections.abc import Iterable
from struct import Struct as Layout
from typing import Final

from shardscope.engine.model.blocker import Fault, Finding, Param
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.parse.pickle_stream.records import Call, Dict, Reference

BLOCK: Final = 16 << 10
"""Bytes of the stream between two looks at the limits; an opcode takes at least one."""
OPCODE_BYTES: Final = 40
"""What an opcode is taken to build: an empty list has 56 bytes, a short tuple as many, and most opcodes build nothing."""
LONGEST_NAME: Final = 2_000
"""Characters of a module or of a name in it: far beyond any real one."""
SMALLEST_FRAME: Final = 4
"""Bytes: no pickler frames less (CPython, `_Framer._FRAME_SIZE_MIN`)."""
LARGE: Final = 64 << 10
"""Bytes from which texts are written between frames (`_Framer._FRAME_SIZE_TARGET`)."""

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

    def reference(self, module: str, name: str, at: int) -> Reference:
        """Return the one record of a name, and count it. Raises `Fault` for one that is too long for any name."""
        found = self.references.get((module, name))
        if found is None:
            if len(module) > LONGEST_NAME or len(name) > LONGEST_NAME:
                raise Fault("pickle.name", position=at)
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

    def check_built(self, opcodes: int = 0) -> None:
        """Raise the `Fault` of the limit on what is built where it is passed; `opcodes` are those not yet counted."""
        self.check("pickle_built_bytes", self.built + (self.opcodes + opcodes) * OPCODE_BYTES)

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
        stream.check("pickle_stack", self.standing())
        stream.check("pickle_memo", len(self.memo))
        stream.check_built(opcodes)
        stream.check_clock()
        if self.frame_end:
            if at >= self.frame_end:
                self.leave_frame(at)
            else:
                return min(at + BLOCK, self.frame_end)
        return min(at + BLOCK, len(self.data))

    def standing(self) -> int:
        """Return how much lies on the stack, marks included."""
        return len(self.marks) + len(self.stack) + sum(map(len, self.marks))

    def leave_frame(self, at: int) -> None:
        """End the frame; an opcode that reaches out of it deserves a word."""
        if at > self.frame_end:
            self.stream.note("pickle.frame", position=self.frame_end)
        self.loose = at
        self.frame_end = 0

    def check_loose(self, at: int) -> None:
        """Say it where more opcodes lie behind a frame than a pickler leaves there."""
        if self.loose and SMALLEST_FRAME <= at - self.loose < LARGE:
            self.stream.note("pickle.frame", position=self.loose)

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

    def check_length(self, at: int, length: int, field: str) -> None:
        """Raise the `Fault` of an argument of `length` bytes at `at` that is not all there or too long, and count it."""
        if at + length > len(self.data):
            raise Fault("pickle.truncated", position=len(self.data))
        self.stream.check(field, length)
        self.stream.built += length

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
