"""The panes beside the grid of numbers: what all of them come to, and how they are spread over signs and magnitudes."""

from collections.abc import Iterable, Iterator
from typing import Final

from shardscope.engine.model.peek import Landmarks, Statistics
from shardscope.widgets.figure_words import bars, figure, part, used
from shardscope.widgets.figures import number
from shardscope.widgets.paragraphs import Paragraph, Paragraphs
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.value_reading import Reading, standing

LABEL: Final = 19
FIGURE: Final = 22
BARS: Final = 24
"""Lines of a histogram for each sign, at most; beyond that, exponents side by side share one."""
_COUNT: Final = 20


class ReadingPane(Paragraphs):
    """A pane of sentences and figures about one reading. The keys are the screen's: `action_cursor` and the like scroll."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - the word of Textual
        self.reading = Reading()
        super().__init__(id=id)
        self.can_focus = False

    def show(self, reading: Reading) -> None:
        """Show what is known by now; where a person has scrolled to stays in sight."""
        self.reading = reading
        self.rows_changed()


class ValueStatistics(ReadingPane):
    """The figures, one a line, with the place of what has one."""

    def paragraphs(self, width: int) -> Iterable[Paragraph]:  # noqa: ARG002 - lines are short
        """Return what there is to say."""
        yield from standing(self.reading)
        found = self.reading.statistics
        if found is not None and found.numbers:
            known = self.reading.known
            yield Paragraph()
            yield from figures(found, (None if known is None else known.landmarks) or Landmarks())


def figures(found: Statistics, at: Landmarks) -> Iterator[Paragraph]:
    """Yield the figures."""

    def line(
        label: str, value: str, place: tuple[int, ...] | None = None, tone: Tone = Tone.PLAIN
    ) -> Paragraph:
        parts: list[Part] = [(f"{label:<{LABEL}}", Tone.MUTED), (f"{value:<{FIGURE}}", tone)]
        if place is not None:
            parts.append((f"at {index(place)}", Tone.MUTED))
        return Paragraph(tuple(parts), hang=LABEL)

    def count(
        label: str, value: int, place: tuple[int, ...] | None = None, tone: Tone = Tone.PLAIN
    ) -> Paragraph:
        return line(label, part(value, found.numbers), place, tone if value else Tone.MUTED)

    largest, where = largest_of(found, at)
    yield line("numbers", number(found.numbers))
    yield line("min", figure(found.min), at.min)
    yield line("max", figure(found.max), at.max)
    yield line("largest |x|", figure(largest), where)
    yield line("mean", figure(found.mean))
    yield line("std", figure(found.std))
    yield line("L2", figure(found.l2))
    yield count("zeros", found.zeros)
    yield count("NaN", found.nans, at.nan, Tone.STOP)
    yield count("+inf", found.positive_infinite, at.positive_infinite, Tone.CAUTION)
    yield count("-inf", found.negative_infinite, at.negative_infinite, Tone.CAUTION)
    yield line("sign and exponent", used(found))
    if found.distinct is not None:
        yield line("different values", number(found.distinct))


def largest_of(found: Statistics, at: Landmarks) -> tuple[float | None, tuple[int, ...] | None]:
    """Return the largest magnitude, and where it was met first."""
    if found.min is None or found.max is None:
        return None, None
    return (abs(found.min), at.min) if -found.min > found.max else (abs(found.max), at.max)


def index(place: tuple[int, ...]) -> str:
    """Return an index as it is written."""
    return f"[{', '.join(map(str, place))}]"


class ValueHistogram(ReadingPane):
    """How many finite numbers there are of each sign and magnitude."""

    def paragraphs(self, width: int) -> Iterable[Paragraph]:
        """Return a line for each bar."""
        yield from standing(self.reading)
        found = self.reading.statistics
        if found is None or not found.numbers:
            return
        lines = bars(found, BARS)
        most = max((count for _, count in lines), default=0) or 1
        label = max(len(word) for word, _ in lines)
        room = max(4, width - label - _COUNT - 3)
        yield Paragraph((("Finite numbers by sign and magnitude", Tone.MUTED),))
        for word, count in lines:
            bar = self.glyphs.full * -(-count * room // most)
            tone = Tone.PLAIN if count else Tone.MUTED
            yield Paragraph(
                (
                    (f"{word:>{label}}  ", Tone.MUTED),
                    (f"{part(count, found.numbers):<{_COUNT}}", tone),
                    (bar, Tone.HERE),
                )
            )
