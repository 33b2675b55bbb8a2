"""Every change of a fix as rows under headings: what is in the way, what is lost, what is wrong, then old and new."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from shardscope.engine.model.fix import Ailment, FixDocument
from shardscope.engine.model.repair import Lost
from shardscope.engine.model.secrets import shown
from shardscope.widgets.figures import plural
from shardscope.widgets.fix_words import NAME, Row, lost, sections
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Tone

Kind = Literal[
    "heading", "stop", "lost", "wrong", "salvaged", "mended", "added", "removed", "changed", "kept"
]
SIGN: Final = 4
"""Cells before what a row says."""
_TONES: Final[dict[Kind, Tone]] = {
    "heading": Tone.STRONG,
    "stop": Tone.STOP,
    "lost": Tone.STOP,
    "wrong": Tone.CAUTION,
    "salvaged": Tone.CAUTION,
    "mended": Tone.OK,
    "added": Tone.OK,
    "removed": Tone.CAUTION,
    "changed": Tone.HERE,
    "kept": Tone.MUTED,
}
_IN: Final = " (in "
"""Before the file of a change: what a row has no room for first."""
_LEAST: Final = 8
"""Cells of an explanation that are worth drawing."""
_KINDS: Final[dict[str, Kind]] = {"+": "added", "-": "removed", "~": "changed"}


class Line(Struct, frozen=True):
    """One row. Texts are neutralised."""

    kind: Kind
    says: str
    why: str = ""
    """What stands after it, and in the dialog below it."""
    bad: bool = False
    """Of a heading: what stands under it stops everything, or is lost."""


def lines_of(document: FixDocument) -> Iterator[Line]:
    """Yield the rows of a fix, the worst first."""
    blockers = document.plan.blockers
    if blockers:
        yield Line("heading", "In the way", "nothing starts", bad=True)
        for item in blockers:
            yield Line("stop", shown(item.message), f"{shown(item.remedy)}  {item.code}")
    if document.lost:
        count = len(document.lost)
        yield Line(
            "heading", f"LOST  {count:,}", "the source does not have them whole: no output will", bad=True
        )
        for gone in document.lost:
            yield _lost(gone)
    if document.found:
        wrong = [_ailment(each) for each in document.found]
        kinds: tuple[Kind, ...] = ("mended", "salvaged")
        counts = {kind: sum(line.kind == kind for line in wrong) for kind in kinds}
        said = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count) or "none mended"
        yield Line("heading", f"Wrong in the source  {len(wrong):,}", said)
        yield from wrong
    for section in sections(document):
        yield Line("heading", f"{section.title}  {len(section.rows):,}")
        for row in section.rows:
            yield _change(row)
    if document.kept:
        yield Line("heading", f"As in the source  {len(document.kept):,}", "byte for byte")
        for name in document.kept:
            yield Line("kept", shown(name))


def becomes(item: Ailment) -> str:
    """Return what becomes of something that is wrong: what is salvaged is not whole again."""
    if item.mended:
        return "salvaged" if item.repair == "salvage" else "mended"
    return "stays" if item.repair is None else f"needs {item.repair}"


def _ailment(item: Ailment) -> Line:
    word = becomes(item)
    kind: Kind = "salvaged" if word == "salvaged" else "mended" if item.mended else "wrong"
    return Line(kind, f"{word}  {shown(item.blocker.message)}", item.blocker.code)


def _change(row: Row) -> Line:
    """Return a row in which old and new come before the file."""
    says, _, file = row.says.rpartition(_IN)
    if not says or not file.endswith(")"):
        return Line(_KINDS[row.sign], row.says, row.why)
    return Line(_KINDS[row.sign], says, "; ".join(filter(None, (f"in {file[:-1]}", row.why))))


def _lost(item: Lost) -> Line:
    """Return a row that begins with the name, so that this is what stays where there is no room for all."""
    name = "all tensors" if item.name is None else shown(item.name, NAME)
    return Line("lost", f"lost  {name}", lost(item)[len(name) :].lstrip(" ,:"))


def sign(kind: Kind, glyphs: Glyphs) -> str:
    """Return what tells a row without colour."""
    match kind:
        case "stop" | "lost":
            return glyphs.stop
        case "wrong" | "salvaged":
            return glyphs.caution
        case "mended":
            return glyphs.ok
        case "added":
            return "+"
        case "removed":
            return "-"
        case "changed":
            return "~"
        case "kept":
            return "="
        case "heading":
            return ""


def changing(lines: Sequence[Line]) -> str:
    """Return how many rows there are of each kind of change."""
    counts = {kind: sum(line.kind == kind for line in lines) for kind in ("added", "removed", "changed")}
    words = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    gone = sum(line.kind == "lost" for line in lines)
    return ", ".join([*words, *([f"{gone:,} LOST"] if gone else [])]) or plural(0, "change")


class FixRows(VirtualRows):
    """The rows of a fix.

    `FixRows(lines=(), *, glyphs=None, id=None, classes=None)`, then `show(lines)`. Enter, or a click on the row of the cursor,
    posts `RowSelected`.
    """

    BINDING_GROUP_TITLE = "Changes"

    def __init__(
        self,
        lines: Sequence[Line] = (),
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """Show `lines`."""
        super().__init__(empty="Nothing would change", glyphs=glyphs, id=id, classes=classes)
        self.lines = tuple(lines)

    def show(self, lines: Sequence[Line]) -> None:
        """Show other rows; the same ones stay as they are scrolled."""
        if self.lines is not lines:
            self.lines = tuple(lines)
            self.rows_changed(0)

    def row_count(self) -> int:
        """Return how many rows there are."""
        return len(self.lines)

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return one row in segments."""
        item = self.lines[line]
        tone = _TONES[item.kind]
        if item.kind == "heading":
            tone = Tone.STOP if item.bad else tone
            return self._said(f" {item.says}", tone, item.why, self.room, style)
        mark = self.segment((f"  {sign(item.kind, self.glyphs)}", tone), SIGN, style)
        says = tone if item.kind in ("stop", "lost", "kept") else Tone.PLAIN
        return [mark, *self._said(item.says, says, item.why, max(1, self.room - SIGN - 1), style)]

    def _said(self, says: str, tone: Tone, why: str, room: int, style: Style | None) -> list[Segment]:
        """Return a text, and after it what explains it as far as there is room."""
        width = cell_len(says)
        if not why or width + _LEAST > room:
            return [self.segment((says, tone), room, style, tail=0.4)]
        first = self.segment((says, tone), width, style)
        return [first, self.segment((f"  {why}", Tone.MUTED), room - width, style)]
