"""The table of what stands out in the numbers of a checkpoint: findings of any kind, the worst first, while they still come in."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.widgets.blockers_panel import severity_mark
from shardscope.widgets.figures import size
from shardscope.widgets.glyphs import Glyphs, terminal_glyphs
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.virtual_table import Column, VirtualTable

COLUMNS: Final = (
    Column("", 9),
    Column("found", 16, tail=0.3),
    Column("in", 24, grow=1, tail=1),
    Column("where", 16, tail=0.7),
)
_SEVERITIES: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def kind_of(item: Blocker) -> str:
    """Return what was found in a word: its code without the room before it, where that is the scan's own."""
    return item.code.removeprefix("scan.")


def where(item: Blocker) -> str:
    """Return where it begins, as far as it says: the element, or the byte of a tensor or of a file."""
    params = item.params
    if isinstance(element := params.get("element"), int):
        return f"element {element:,}"
    if isinstance(begin := params.get("begin"), int):
        return f"byte {begin:,}"
    if isinstance(other := params.get("other"), str):
        return f"like {other}"
    if isinstance(count := params.get("bytes"), int):
        return size(count)
    return ""


def subject(item: Blocker) -> str:
    """Return what it is about: a tensor, several of them under one name, or a file."""
    for name in ("file", "tensor"):
        if name in item.params and item.params[name] is not None:
            return str(item.params[name])
    return item.subject or ""


class ScanRows:
    """Findings in the order in which they came. They are neutralised where they are drawn."""

    def __init__(self, findings: Iterable[Blocker] = (), glyphs: Glyphs | None = None) -> None:
        self.findings = list(findings)
        self._glyphs = glyphs or terminal_glyphs()

    @property
    def row_count(self) -> int:
        """How many there are."""
        return len(self.findings)

    def cell(self, row: int, column: int) -> Part:
        """Return what stands in a column of a finding."""
        item = self.findings[row]
        if column == 0:
            return severity_mark(item.severity, self._glyphs)
        if column == 1:
            return kind_of(item), Tone.STRONG
        return subject(item) if column == 2 else (where(item), Tone.MUTED)

    def key(self, row: int, column: int) -> tuple[int, str | int]:
        """Return what a finding is sorted by in a column."""
        item = self.findings[row]
        if column == 0:
            return -item.severity.rank, row
        if column == 1:
            return 0, kind_of(item)
        if column == 2:
            return 0, subject(item)
        at = item.params.get("element", item.params.get("begin"))
        return (0, at) if isinstance(at, int) else (1, where(item))


class Filter:
    """Which findings are listed: from a severity on, of one kind or of all, with all words of a text in them."""

    def __init__(self) -> None:
        self.least = Severity.INFO
        self.kind: str | None = None
        """A code; None for all."""
        self.words: tuple[str, ...] = ()

    def takes(self, item: Blocker) -> bool:
        """Tell whether a finding is listed."""
        if item.severity.rank < self.least.rank or self.kind not in (None, item.code):
            return False
        if not self.words:
            return True
        text = f"{item.code} {item.subject} {subject(item)} {item.message}".lower()
        return all(word in text for word in self.words)

    def search(self, text: str) -> None:
        """List those that have every word of a text in them."""
        self.words = tuple(text.lower().split())

    def step(self, kinds: Sequence[str], by: int) -> None:
        """Go to the next kind; behind the last one are all."""
        every = [None, *kinds]
        at = every.index(self.kind) if self.kind in every else 0
        self.kind = every[(at + by) % len(every)]

    @property
    def on(self) -> bool:
        """Whether it leaves anything out."""
        return self.least is not Severity.INFO or self.kind is not None or bool(self.words)


class ScanTable(VirtualTable):
    """Findings, in buckets by severity so that new ones find their place at once, whatever their number.

    `ScanTable()`, then `add(findings)` as they come, or `show_findings(all)`; change `filter` and call `refilter()`.
    """

    BINDING_GROUP_TITLE = "Findings"

    def __init__(self) -> None:
        self.rows = ScanRows()
        super().__init__(COLUMNS, self.rows, empty="Nothing was found so far")
        self.filter = Filter()
        self._listed: dict[Severity, list[int]] = {each: [] for each in _SEVERITIES}
        self._counts: Counter[str] = Counter()
        self._ranks: dict[str, int] = {}
        """By code, how bad it is."""

    @property
    def item(self) -> Blocker | None:
        """The finding under the cursor."""
        row = self.row
        return None if row is None or row >= self.rows.row_count else self.rows.findings[row]

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """Codes that were found and how often, the worst first, then as they came."""
        return sorted(self._counts.items(), key=lambda each: -self._ranks[each[0]])

    def add(self, findings: Sequence[Blocker]) -> None:
        """List more; the cursor stays on its finding, or on the first row where it was there."""
        begin = self.rows.row_count
        self.rows.findings += findings
        self._count(findings)
        self._take(range(begin, self.rows.row_count))
        if self.sort_column is None:
            self._show()
        else:  # put in order once a person asks again
            news = [
                row for row in range(begin, self.rows.row_count) if self.filter.takes(self.rows.findings[row])
            ]
            self.show_rows([*self.order, *news])

    def show_findings(self, findings: Sequence[Blocker]) -> None:
        """List these in the place of all others; the cursor stays on what it was on, where that is still there."""
        before = self.item
        self.rows = ScanRows(findings, self.glyphs)
        self.source = self.rows
        self._counts.clear()
        self._count(findings)
        self.order = ()
        self.refilter()
        if before is not None:
            alike = [
                row
                for row, item in enumerate(findings)
                if (item.code, item.subject) == (before.code, before.subject) and self.filter.takes(item)
            ]
            if alike:
                self.move_to_row(alike[0])

    def refilter(self) -> None:
        """List what the filter takes by now."""
        self._listed = {each: [] for each in _SEVERITIES}
        self._take(range(self.rows.row_count))
        if self.sort_column is None:
            self._show()
        else:
            self.sort_by(self.sort_column, descending=self.descending)

    def sort_by(self, column: int | None, *, descending: bool) -> None:
        """Put them in the order of a column; of their severity without one."""
        if column is None:
            self.sort_column = None
            self._show()
            return
        order = sorted(self._in_order(), key=lambda row: self.rows.key(row, column), reverse=descending)
        self.show_sorted(order, column, descending=descending)

    def _count(self, findings: Sequence[Blocker]) -> None:
        self._counts.update(item.code for item in findings)
        self._ranks.update((item.code, item.severity.rank) for item in findings)

    def _take(self, rows: range) -> None:
        for row in rows:
            item = self.rows.findings[row]
            if self.filter.takes(item):
                self._listed[item.severity].append(row)

    def _in_order(self) -> list[int]:
        return [row for severity in _SEVERITIES for row in self._listed[severity]]

    def _show(self) -> None:
        at_top = self.cursor == 0
        order = self._in_order()
        if at_top:
            self.order = order
            self.rows_changed(0)
        else:
            self.show_rows(order)
