"""What stands in the way: a sentence with the numbers in it, and a sentence of what to do."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive

from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone

ALIKE: Final = 4
"""Blockers of one code that are shown before the rest is counted."""
MORE: Final = 100
"""How many more are shown each time the count is chosen."""
_COLUMN: Final = 11
_TONES: Final = {Severity.ERROR: Tone.STOP, Severity.WARNING: Tone.CAUTION, Severity.INFO: Tone.MUTED}
_WORDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def severity_mark(severity: Severity, glyphs: Glyphs) -> tuple[str, Tone]:
    """Return the sign and the word of a severity."""
    sign = {
        Severity.ERROR: glyphs.stop,
        Severity.WARNING: glyphs.caution,
        Severity.INFO: glyphs.note,
    }[severity]
    return f"{sign} {_WORDS[severity]}", _TONES[severity]


class BlockersPanel(Paragraphs):
    """The list of blockers, the worst first.

    `BlockersPanel(blockers=None, *, glyphs=None, id=None, classes=None)`, then `show(blockers, mended, key)`: `mended` are the
    codes that a fix would mend, `key` is what to press for it.

    Message: `BlockerChosen` with the blocker; its `subject` is a path or a tensor. Keys `e`, `w`, `a` choose from which
    severity on they are listed.
    """

    PINNED = 1
    BINDING_GROUP_TITLE = "Blockers"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "only('error')", "Errors", tooltip="List errors only", show=False, id="blockers.errors"),
        Binding(
            "w",
            "only('warning')",
            "Warnings",
            tooltip="List errors and warnings",
            show=False,
            id="blockers.warnings",
        ),
        Binding("a", "only('info')", "All", tooltip="List all of them", show=False, id="blockers.all"),
        Binding(
            "x",
            "explain",
            "Explain",
            tooltip="Say what the code means, and what to do",
            id="blockers.explain",
        ),
    ]

    least: reactive[Severity] = reactive(Severity.INFO, repaint=False, init=False)
    """Blockers below this severity are not listed."""

    class BlockerChosen(Message):
        """A blocker was chosen."""

        def __init__(self, panel: "BlockersPanel", blocker: Blocker) -> None:
            super().__init__()
            self.panel = panel
            self.blocker = blocker

        @property
        def subject(self) -> str | None:
            """The path or the tensor that it is about."""
            return self.blocker.subject

        @property
        def control(self) -> "BlockersPanel":
            """The panel it happened in."""
            return self.panel

    class ExplanationWanted(Message):
        """The person wants to know what a code means."""

        def __init__(self, code: str) -> None:
            super().__init__()
            self.code = code

    def __init__(
        self,
        blockers: Sequence[Blocker] | None = None,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`blockers` is None while nothing was examined."""
        super().__init__(empty="Not examined yet", glyphs=glyphs, id=id, classes=classes)
        self._blockers: tuple[Blocker, ...] | None = None
        self._allowed: Counter[str] = Counter()
        self._mended: frozenset[str] = frozenset()
        self._key = ""
        if blockers is not None:
            self._take(blockers)

    def _take(self, blockers: Sequence[Blocker]) -> None:
        self._blockers = tuple(sorted(blockers, key=lambda item: (-item.severity.rank, item.code)))

    def show(self, blockers: Sequence[Blocker], mended: frozenset[str] = frozenset(), key: str = "") -> None:
        """Show other blockers, and of which codes a fix would mend them."""
        self._mended, self._key = mended, key
        self._take(blockers)
        self._allowed.clear()
        self.rows_changed(0)

    @property
    def blocker(self) -> Blocker | None:
        """The blocker under the cursor."""
        key = self.chosen
        return (
            None if key is None or not key.isdigit() or self._blockers is None else self._blockers[int(key)]
        )

    def paragraphs(self, width: int) -> Iterable[Paragraph]:  # noqa: ARG002 - the same at any width
        """Return a block of lines for each blocker that is listed."""
        if self._blockers is None:
            return ()
        return self._listed(self._blockers)

    def _listed(self, blockers: tuple[Blocker, ...]) -> Iterator[Paragraph]:
        if not blockers:
            yield Paragraph(
                (
                    (f"{self.glyphs.ok} nothing", Tone.OK),
                    " in the way, in what was examined. What was not examined is not clean.",
                )
            )
            return
        totals = Counter(item.code for item in blockers)
        listed: Counter[str] = Counter()
        told = False
        before: Blocker | None = None
        for number, item in enumerate(blockers):
            if item.severity.rank < self.least.rank:
                continue
            code = item.code
            listed[code] += 1
            allowed = ALIKE + self._allowed[code]
            if listed[code] <= allowed:
                said = before is not None and (before.code, before.remedy) == (code, item.remedy)
                yield from self._block(item, str(number), remedy="" if said else item.remedy)
                told, before = True, item
            elif listed[code] == allowed + 1:
                rest = totals[code] - allowed
                yield Paragraph(
                    (
                        f"{self.glyphs.ellipsis} {rest:,} more of ",
                        (code, Tone.MUTED),
                        (f"  (enter shows {min(rest, MORE):,})", Tone.MUTED),
                    ),
                    indent=_COLUMN,
                    hang=_COLUMN,
                    key=f"+{code}",
                )
                yield Paragraph()
        if not told:
            word = "errors" if self.least is Severity.ERROR else "errors or warnings"
            yield Paragraph((f"No {word}. a lists the rest.",))

    def _block(self, item: Blocker, key: str, remedy: str) -> Iterator[Paragraph]:
        mark, tone = severity_mark(item.severity, self.glyphs)
        yield Paragraph(((f"{mark:<{_COLUMN}}", tone), item.message), hang=_COLUMN, key=key)
        if remedy:
            yield Paragraph((remedy,), indent=_COLUMN, hang=_COLUMN, key=key)
        small: list[Part] = [(item.code, Tone.MUTED)]
        if item.code in self._mended:
            small.append((f"  can be mended: {self._key}", Tone.HERE))
        if item.blocks:
            small.append((f"  blocks {', '.join(item.blocks)}", Tone.MUTED))
        if item.subject is not None:
            small.append((f"  {item.subject}", Tone.MUTED))
        yield Paragraph(tuple(small), indent=_COLUMN, hang=_COLUMN, key=key)
        yield Paragraph()

    def draw_pinned(self, y: int) -> list[Segment]:  # noqa: ARG002 - there is one such line
        """Return how many there are of each severity, and how many are listed."""
        counts = Counter(item.severity for item in self._blockers or ())
        parts: list[Part] = [" "]
        for severity in Severity:
            if counts[severity]:
                mark, tone = severity_mark(severity, self.glyphs)
                sign, word = mark.split(" ", 1)
                parts += [
                    (f"{sign} {counts[severity]:,} {word}{'s' if counts[severity] != 1 else ''}", tone),
                    "   ",
                ]
        if counts:
            parts.append(("list: ", Tone.MUTED))
            for severity, key, word in (
                (Severity.ERROR, "e", "errors"),
                (Severity.WARNING, "w", "warnings"),
                (Severity.INFO, "a", "all"),
            ):
                tone = Tone.HERE if self.least is severity else Tone.MUTED
                mark = f"[{key} {word}]" if self.least is severity else f" {key} {word} "
                parts.append((mark, tone))
        return [
            Segment(text, self.tone_style(tone))
            for text, tone in ((part, Tone.PLAIN) if isinstance(part, str) else part for part in parts)
        ]

    def action_only(self, least: str) -> None:
        """List blockers from a severity on."""
        self.least = Severity(least)

    def action_explain(self) -> None:
        """Ask for an explanation of the blocker under the cursor."""
        if (chosen := self.blocker) is not None:
            self.post_message(self.ExplanationWanted(chosen.code))

    def watch_least(self) -> None:
        """List what is asked for."""
        self.rows_changed()

    def on_virtual_rows_row_selected(self, message: VirtualRows.RowSelected) -> None:
        """Say which blocker was chosen, or list more of a kind."""
        message.stop()
        key = self.chosen
        if key is not None and key.startswith("+"):
            line = self.cursor
            self._allowed[key[1:]] += MORE
            self.rows_changed()
            self.move_to(line)
        elif (chosen := self.blocker) is not None:
            self.post_message(self.BlockerChosen(self, chosen))
