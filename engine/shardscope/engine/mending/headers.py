"""A safetensors file tensor by tensor, however damaged: which are whole, which are lost, and what its header has wrong beside that."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Fault, Finding, Param
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.repair import Lost, Repair
from shardscope.engine.model.source import Entry, Reader
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import counted
from shardscope.engine.parse.header_text import Columns
from shardscope.engine.parse.safetensors import read_damaged

_MOST_BITS: Final = 64
_SHOWN: Final = 8
_SHOWN_WORD: Final = 16


class Flaw(Struct, frozen=True):
    """Something that is wrong with a file, and what mends it."""

    finding: Finding
    repair: Repair


class Stored(Struct, frozen=True, gc=False):
    """A tensor of which every byte is there."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    """First byte in the file."""
    end: int


class WeightFile(Struct, frozen=True):
    """What a file holds."""

    entry: Entry
    readable: bool
    """Whether its header could be read at all."""
    data_begin: int = 0
    head_sha256: str = ""
    """Of the bytes before the data."""
    tensors: tuple[Stored, ...] = ()
    """In the order of the data."""
    lost: tuple[Lost, ...] = ()
    metadata: dict[str, str] = {}
    unread: dict[str, str] = {}
    """Metadata that are no text, as JSON, cut."""
    flaws: tuple[Flaw, ...] = ()

    @property
    def names(self) -> list[str]:
        """Of every tensor that its header names and that is known apart from others."""
        return [tensor.name for tensor in self.tensors] + [item.name for item in self.lost if item.name]

    @property
    def sound(self) -> bool:
        """Whether its header can stay as it is: what needs more than a word has to be made anew."""
        return self.readable and not any(flaw.repair in ("header", "salvage") for flaw in self.flaws)


def unreadable(entry: Entry, fault: Fault) -> WeightFile:
    """Return a file of which nothing can be read, for the reason of `fault`."""
    finding = fault.finding
    lost = Lost(None, entry.text, None, entry.size, finding.code, "its header cannot be read")
    return WeightFile(entry, readable=False, lost=(lost,), flaws=(Flaw(finding, "salvage"),))


def read_file(entry: Entry, reader: Reader, limits: Limits) -> WeightFile:
    """Return what can be read of a file. Raises `Fault` where that is nothing: those of `parse.safetensors.read_damaged`."""
    faults: list[Fault] = []
    begin, columns = read_damaged(reader, limits, faults.append)
    sweep = _Sweep(entry, begin, reader.size, columns)
    for fault in faults:
        sweep.hear(fault.finding)
    sweep.run()
    flaws = [Flaw(note, "header") for note in columns.notes if CODES[note.code].severity.rank > 0]
    return WeightFile(
        entry,
        readable=True,
        data_begin=begin,
        head_sha256=hashlib.sha256(reader.pread(0, begin)).hexdigest(),
        tensors=tuple(sweep.whole),
        lost=tuple(sweep.lost),
        metadata=columns.metadata,
        unread=columns.unread,
        flaws=(*sweep.flaws, *flaws),
    )


class _Sweep:
    """The tensors of one header, held against each other and against the bytes that are there."""

    def __init__(self, entry: Entry, begin: int, size: int, columns: Columns) -> None:
        self._file = entry.text
        self._begin = begin
        self._available = size - begin
        self._columns = columns
        self.whole: list[Stored] = []
        self.lost: list[Lost] = []
        self.flaws: list[Flaw] = []
        self._out: dict[int, tuple[Finding, str]] = {}
        """Rows that are lost: the first finding about each, and the clause that tells it."""

    def hear(self, finding: Finding) -> None:
        """Take up what the text of the header has wrong."""
        if finding.code == "header.padding":
            self.flaws.append(Flaw(finding, "header"))
        elif finding.code.startswith("header.metadata"):
            self.flaws.append(Flaw(finding, "metadata"))
        elif finding.code != "header.name_duplicate":
            self.flaws.append(Flaw(finding, "salvage"))
            name = str(finding.params["tensor"])
            why = "its entry in the header is none"
            self.lost.append(Lost(name, self._file, None, None, finding.code, why))

    def run(self) -> None:
        """Sort the rows into those that are whole and those that are lost."""
        columns = self._columns
        same = self._repeated()
        rows = [row for row in range(len(columns.names)) if row not in same and row not in self._out]
        rows.sort(key=lambda row: (columns.begins[row], columns.ends[row]))
        for row in rows:
            self._alone(row)
        placed = [row for row in rows if row not in self._out]
        self._overlaps(placed)
        self._ends(placed)
        for row in rows:
            if row not in self._out:
                self.whole.append(self._stored(row))
        for row, (finding, why) in sorted(self._out.items()):
            self.lost.append(self._lost(row, finding.code, why))
        self._say()

    def _repeated(self) -> set[int]:
        """Return the rows that only repeat another one; rows of one name that are not the same are lost."""
        columns = self._columns
        if len(set(columns.names)) == len(columns.names):
            return set()
        rows: defaultdict[str, list[int]] = defaultdict(list)
        for row, name in enumerate(columns.names):
            rows[name].append(row)
        spare: set[int] = set()
        for name, some in rows.items():
            if len(some) == 1:
                continue
            finding = Finding("header.name_duplicate", {"tensor": name})
            kinds = {
                (columns.dtypes[row], columns.shapes[row], columns.begins[row], columns.ends[row])
                for row in some
            }
            if len(kinds) == 1:
                self.flaws.append(Flaw(finding, "header"))
                spare.update(some[1:])
            else:
                self._out[some[0]] = finding, "its header lists it twice, and not the same"
                spare.update(some[1:])
        return spare

    def _alone(self, row: int) -> None:
        """Judge a row by itself: whether its range, its shape and its type say the same."""
        columns = self._columns
        name, dtype, shape = columns.names[row], columns.dtypes[row], columns.shapes[row]
        begin, end = columns.begins[row], columns.ends[row]
        if begin > end:
            finding = Finding("header.reversed", {"tensor": name, "begin": begin, "end": end})
            self._out[row] = finding, "its range ends before it begins"
            return
        known = DTYPES.get(dtype)
        if known is None:
            finding = Finding("header.dtype_unknown", {"count": 1, "dtype": "not shown"})
            self._out[row] = finding, "its type is unknown"
            return
        bits = prod(shape) * known.bits
        said = {"tensor": name, "dtype": dtype, "shape": _in_words(shape)}
        if bits >> _MOST_BITS or any(extent >> _MOST_BITS for extent in shape):
            finding = Finding("header.shape_overflow", {"tensor": name, "shape": _in_words(shape)})
            self._out[row] = finding, "its shape is larger than any file"
        elif bits % 8:
            finding = Finding("header.subbyte_unaligned", {**said, "bits": bits})
            self._out[row] = finding, "its elements do not end on a byte"
        elif bits // 8 != end - begin:
            sizes = {"found": end - begin, "expected": bits // 8}
            finding = Finding("header.size_mismatch", {**said, **sizes})
            self._out[row] = (
                finding,
                f"its range has {end - begin:,} bytes, type and shape ask for {bits // 8:,}",
            )

    def _overlaps(self, rows: Sequence[int]) -> None:
        """Find rows that share bytes with another one: both are lost. An empty tensor within another shares none."""
        columns = self._columns
        reached, holder = 0, -1
        for row in rows:
            begin, end = columns.begins[row], columns.ends[row]
            if begin < reached:
                other = columns.names[holder]
                params: dict[str, Param] = {
                    "tensor": columns.names[row],
                    "other": other,
                    "early": reached - begin,
                }
                finding = Finding("header.overlap", params)
                if begin == end:
                    self.flaws.append(Flaw(finding, "header"))
                else:
                    why = "it shares bytes with another tensor"
                    self._out.setdefault(row, (finding, why))
                    self._out.setdefault(holder, (finding, why))
            elif begin > reached and not (
                self._out or self.lost
            ):  # what is lost leaves holes that nobody has to hear of
                missing: dict[str, Param] = {"tensor": columns.names[row], "missing": begin - reached}
                self.flaws.append(Flaw(Finding("header.gap", missing), "header"))
            if end > reached:
                reached, holder = end, row

    def _ends(self, rows: Sequence[int]) -> None:
        """Hold the rows against the end of the file."""
        columns = self._columns
        declared = max((columns.ends[row] for row in rows), default=0)
        if declared < self._available and not (self._out or self.lost):
            extra = Finding("header.overlong", {"extra": self._available - declared})
            self.flaws.append(Flaw(extra, "header"))
        if declared <= self._available:
            return
        sizes: dict[str, Param] = {
            "missing": declared - self._available,
            "expected": declared,
            "found": max(0, self._available),
        }
        finding = Finding("header.truncated", sizes)
        for row in rows:
            end = columns.ends[row]
            if end > self._available:
                beyond = min(end - self._available, end - columns.begins[row])
                self._out.setdefault(row, (finding, f"{counted(beyond, 'byte')} of it are not in the file"))

    def _say(self) -> None:
        """Say of each kind of damage what it is: once for each that has a sentence of its own."""
        seen: set[str] = set()
        unknown = [row for row, (found, _) in self._out.items() if found.code == "header.dtype_unknown"]
        for _, (finding, _) in sorted(self._out.items()):
            if finding.code in seen:
                continue
            seen.add(finding.code)
            if finding.code == "header.dtype_unknown":
                self.flaws.append(Flaw(self._unknown(unknown), "salvage"))
            else:
                self.flaws.append(Flaw(finding, "salvage"))
        self.flaws = list(_first_of_each(self.flaws))

    def _unknown(self, rows: Sequence[int]) -> Finding:
        word = self._columns.dtypes[rows[0]]
        shown = word if word.isalnum() and len(word) <= _SHOWN_WORD else "not shown"
        return Finding("header.dtype_unknown", {"count": len(rows), "dtype": shown})

    def _stored(self, row: int) -> Stored:
        columns = self._columns
        begin = self._begin
        return Stored(
            columns.names[row],
            columns.dtypes[row],
            columns.shapes[row],
            begin + columns.begins[row],
            begin + columns.ends[row],
        )

    def _lost(self, row: int, code: str, why: str) -> Lost:
        columns = self._columns
        begin, end = columns.begins[row], columns.ends[row]
        if begin > end or end >> _MOST_BITS:
            return Lost(columns.names[row], self._file, None, None, code, why)
        present = max(0, min(end, self._available) - begin)
        return Lost(columns.names[row], self._file, end - begin, present, code, why)


def _first_of_each(flaws: Sequence[Flaw]) -> Iterator[Flaw]:
    """Yield one flaw of each code: a header of a million gaps has one thing wrong."""
    seen: set[tuple[str, str]] = set()
    for flaw in flaws:
        key = (flaw.finding.code, flaw.repair)
        if key not in seen:
            seen.add(key)
            yield flaw


def _in_words(shape: Sequence[int]) -> str:
    more = ["..."] if len(shape) > _SHOWN else []
    return f"[{', '.join([*map(str, shape[:_SHOWN]), *more])}]"
