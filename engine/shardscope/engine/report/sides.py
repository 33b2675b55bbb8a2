"""A finished report beside what it was made of, line by line.

The right side is cut from the very bytes that are written, never made a second time. Only numbers of lines are kept: what differs
in a line, and why, is found when somebody looks at it.
"""

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.descriptor import Descriptor, to_json
from shardscope.engine.model.report_lines import ReportLine, Span
from shardscope.engine.model.reports import Report, ReportFailure
from shardscope.engine.model.secrets import redact
from shardscope.engine.model.text import json_escape
from shardscope.engine.report.building import DESCRIPTOR, README, REPORT, Built
from shardscope.engine.report.findings import LEFT_OUT
from shardscope.engine.report.names import Replacement
from shardscope.engine.report.readme import readme

if TYPE_CHECKING:
    from shardscope.engine.model.documents import ErrorBody

MANY: Final = 64
"""Members from which on a value is first compared as text."""
ABSENT: Final = -1
"""Stands for the number of a line that one side does not have."""
REASONS: Final = {"name": "name", "path": "path", "this machine": "host or user"}
"""Why a word became a token, where the reason of the token is no word for a person."""
_TOKEN: Final = re.compile(r"\{\d+\}")
_WORDS: Final = (
    (LEFT_OUT, "free text"),
    ("left out: what a small file holds could be guessed by it", "digest"),
    ('"sha256": null', "digest"),
)
"""What stands where something was left out without a token, and why."""


class Lines(Sequence[str]):
    """The lines of a text, by their offsets."""

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self._starts = array("Q", [0])
        self._starts.extend(match.end() for match in re.finditer("\n", text))

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: Any) -> Any:
        """Return one line, without its end."""
        start = self._starts[index]
        last = index + 1 == len(self._starts)
        return self.text[start : len(self.text) if last else self._starts[index + 1] - 1]


class Side:
    """One file of the bundle with what it was made of."""

    def __init__(self, name: str, before: str, after: str) -> None:
        self.name: Final = name
        self.before: Final = Lines(before)
        self.after: Final = Lines(after)
        self.rows = array("q")
        """Two numbers of lines for each row: before and after."""
        self.changed = array("Q")
        """Rows that differ, ascending."""
        self.doubled = array("Q")
        """Those of them that have both sides."""
        if before == after or not name.endswith(".json"):
            self._paired()
        else:
            _Walk(self, before.split("\n"), after.split("\n")).whole(before, after)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.rows) // 2

    def row(self, before: int, after: int, *, changed: bool) -> None:
        """Add a row."""
        if changed:
            self.changed.append(self.count)
            if ABSENT not in (before, after):
                self.doubled.append(self.count)
        self.rows.extend((before, after))

    def stretch(self, before: int, after: int, count: int, changed: Sequence[int]) -> None:
        """Add rows of lines that follow one another on both sides; `changed` are those that differ, counted from the first."""
        first = self.count
        self.changed.extend(first + line for line in changed)
        self.doubled.extend(first + line for line in changed)
        rows = array("q", bytes(16 * count))
        rows[::2] = array("q", range(before, before + count))
        rows[1::2] = array("q", range(after, after + count))
        self.rows.extend(rows)

    def _paired(self) -> None:
        here, there = len(self.before), len(self.after)
        for line in range(max(here, there)):
            one, other = line if line < here else ABSENT, line if line < there else ABSENT
            self.row(one, other, changed=ABSENT in (one, other) or self.before[line] != self.after[line])


class _Walk:
    """Walks through two JSON documents at once and pairs their lines, as `msgspec.json.format` sets them.

    Where both have as many lines, and those that differ say something of the same key, nothing has to be taken apart: a tree of a
    hundred thousand files is compared as text.
    """

    def __init__(self, side: Side, before: list[str], after: list[str]) -> None:
        self._side = side
        self._before = before
        self._after = after

    def whole(self, before: str, after: str) -> None:
        """Pair all lines."""
        if not self._alike(0, len(self._before), 0, len(self._after)):
            end = self.both(msgspec.json.decode(before), 0, msgspec.json.decode(after), 0, 0)
            self._side.row(*end, changed=False)  # what follows the last line end: nothing

    def _alike(self, here: int, end: int, there: int, until: int) -> bool:
        """Pair the lines of two stretches where they say the same things, and tell whether they do."""
        if end - here != until - there:
            return False
        pairs = zip(self._before[here:end], self._after[there:until], strict=True)
        changed = [line for line, (one, other) in enumerate(pairs) if one != other]
        for line in changed:
            if _key(self._before[here + line]) != _key(self._after[there + line]):
                return False
        self._side.stretch(here, there, end - here, changed)
        return True

    def both(self, before: Any, here: int, after: Any, there: int, depth: int) -> tuple[int, int]:
        """Pair two values that begin at lines `here` and `there`; return the lines after them."""
        row = self._side.row
        if not before or not after or type(before) is not type(after) or not isinstance(before, dict | list):
            row(here, there, changed=before != after)
            ends = here + _lines(before), there + _lines(after)
            for line in range(here + 1, ends[0]):
                row(line, ABSENT, changed=True)
            for line in range(there + 1, ends[1]):
                row(ABSENT, line, changed=True)
            return ends
        if depth == 1 or len(before) >= MANY:
            end, until = _end(self._before, here), _end(self._after, there)
            if self._alike(here, end, there, until):
                return end, until
        row(here, there, changed=False)
        depth += 1
        if isinstance(before, dict) and list(before) == list(after):
            here, there = here + 1, there + 1
            for key, value in before.items():
                here, there = self.both(value, here, after[key], there, depth)
        elif isinstance(before, list) and len(before) == len(after):
            here, there = here + 1, there + 1
            for one, other in zip(before, after, strict=True):
                here, there = self.both(one, here, other, there, depth)
        else:
            here, there = self._unlike(_keyed(before), here + 1, _keyed(after), there + 1, depth)
        row(here, there, changed=False)
        return here + 1, there + 1

    def _unlike(
        self, before: dict[Any, Any], here: int, after: dict[Any, Any], there: int, depth: int
    ) -> tuple[int, int]:
        """Pair what has the same key, in the order that is written, and then show what has none."""
        starts = {}
        for key, value in before.items():
            starts[key] = here
            here += _lines(value)
        for key, value in after.items():
            if key in before:
                _, there = self.both(before[key], starts[key], value, there, depth)
            else:
                end = there + _lines(value)
                for line in range(there, end):
                    self._side.row(ABSENT, line, changed=True)
                there = end
        for key, value in before.items():
            if key not in after:
                for line in range(starts[key], starts[key] + _lines(value)):
                    self._side.row(line, ABSENT, changed=True)
        return here, there


def _key(line: str) -> str:
    """Return what a line says something of: its indent and key, and whether it opens or closes anything."""
    head, colon, value = line.partition('": ')
    if colon:
        return head + value if value in ("{", "[") else head
    text = line.lstrip()
    return line if text[:1] in ("{", "[", "}", "]", "") else line[: len(line) - len(text)]


def _end(lines: list[str], start: int) -> int:
    """Return the line after the value that begins at `start` and takes several: it ends at the same indent."""
    first = lines[start]
    close = first[: len(first) - len(first.lstrip())] + ("]" if first.endswith("[") else "}")
    for line in range(start + 1, len(lines)):
        if lines[line].startswith(close):
            return line + 1
    return len(lines)


def _keyed(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else dict(enumerate(value))


def _lines(value: Any) -> int:
    """Return how many lines a JSON value takes."""
    if not value or not isinstance(value, dict | list):
        return 1
    return 2 + sum(map(_lines, value.values() if isinstance(value, dict) else value))


class ReportPreview:
    """Every line of a bundle beside what it was made of."""

    def __init__(self, sides: Sequence[Side], key: Sequence[Replacement], counts: Mapping[str, int]) -> None:
        self.sides: Final = tuple(sides)
        self.counts: Final = dict(counts)
        """How many different texts were replaced or left out, by reason."""
        self._key = {each.token: each for each in key}
        self.titles: list[int] = []
        """The row of each file's title."""
        self.changed = array("Q")
        """Rows that are not repeated as they are, ascending."""
        self.doubled = array("Q")
        """Those of them that have both sides."""
        row = 0
        for side in self.sides:
            self.titles.append(row)
            self.changed.extend(row + 1 + line for line in side.changed)
            self.doubled.extend(row + 1 + line for line in side.doubled)
            row += 1 + side.count
        self.row_count: Final = row
        """Titles included."""

    def line(self, row: int) -> ReportLine:
        """Return one row."""
        number = bisect_right(self.titles, row) - 1
        side, place = self.sides[number], row - self.titles[number] - 1
        if place < 0:
            return ReportLine("file", None, side.name)
        one, other = side.rows[2 * place], side.rows[2 * place + 1]
        before = None if one == ABSENT else side.before[one]
        after = None if other == ABSENT else side.after[other]
        changed = bisect_right(side.changed, place)
        if not changed or side.changed[changed - 1] != place:
            return ReportLine("line", before, after)
        return self._changed(before, after)

    def _changed(self, before: str | None, after: str | None) -> ReportLine:
        shown = None if before is None else redact(before)
        if after is None or before is None:
            return ReportLine("line", shown, after, ("left out" if after is None else "added",))
        why: dict[str, None] = {}
        removed: list[Span] = []
        put: list[Span] = []
        end = 0
        for match in _TOKEN.finditer(after):
            token = self._key.get(match[0])
            if token is None:
                continue
            why[REASONS.get(token.reason, token.reason)] = None
            put.append(match.span())
            found = _found(shown or "", token, end)
            if found is not None:
                removed.append(found)
                end = found[1]
        for words, reason in _WORDS:
            if (place := after.find(words)) >= 0:
                why[reason] = None
                put.append((place, place + len(words)))
        return ReportLine(
            "line", shown, after, tuple(why or ("left out",)), tuple(removed), tuple(sorted(put))
        )

    def written(self, name: str) -> str:
        """Return what the right side shows of one file, all of it."""
        (side,) = (side for side in self.sides if side.name == name)
        return "\n".join(side.after[line] for line in side.rows[1::2] if line != ABSENT)


def _found(text: str, token: Replacement, start: int) -> Span | None:
    """Return where the original of a token stands in a line: as it is, as JSON writes it, or as a redacted secret."""
    for form in (
        token.original,
        json_escape(json.dumps(token.original, ensure_ascii=False)[1:-1]),
        f"[{token.reason}]",
    ):
        place = text.find(form, start)
        if place >= 0:
            return place, place + len(form)
    return None


def preview(
    built: Built,
    descriptor: Descriptor | None,
    failed: "Blocker | ErrorBody | None",
    key: Sequence[Replacement],
) -> ReportPreview:
    """Return a finished report beside what it was made of: the descriptor and the failure as they are."""
    plain = _plain(built.report, descriptor, failed)
    shown = None if "descriptor" in built.report.options.without else descriptor
    texts = {README: json_escape(readme(plain, shown)), REPORT: to_json(plain)}
    if descriptor is not None:
        texts[DESCRIPTOR] = to_json(descriptor)
    return ReportPreview(list(_sides(built.members, texts)), key, built.report.replaced)


def _sides(members: Mapping[str, bytes], texts: Mapping[str, str]) -> Iterator[Side]:
    for name, data in members.items():
        after = data.decode()
        yield Side(name, texts.get(name, after), after)


def _plain(report: Report, descriptor: Descriptor | None, failed: "Blocker | ErrorBody | None") -> Report:
    """Return a report as it would be without replacing anything."""
    if descriptor is not None:
        found = descriptor.classification
        report = replace(report, producer=descriptor.producer, format=found.format)
    if failed is None:
        return report
    stage = failed.stage.value if isinstance(failed, Blocker) else failed.stage
    failure = ReportFailure(failed.code, failed.message, failed.remedy, failed.subject, failed.params, stage)
    return replace(report, failure=failure)
