"""How far the reading of all numbers of a selection is, and what is said of it: unread, being read, stopped, failed, done."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from shardscope.engine.model.gathered import Gathered
from shardscope.engine.model.peek import Statistics
from shardscope.widgets.figure_words import figure
from shardscope.widgets.figures import number, size
from shardscope.widgets.paragraphs import Paragraph
from shardscope.widgets.safe import Part, Tone

ReadingState = Literal["unread", "reading", "stopped", "failed", "done"]


class Reading(Struct, frozen=True):
    """Where the reading is at."""

    state: ReadingState = "unread"
    known: Gathered | None = None
    """What is known by now, of the first elements alone unless it is complete."""
    bytes: int = 0
    """Of the whole selection."""
    why: tuple[str, str, str] | None = None
    """Where it failed: a sentence, what to do, a code."""
    key: str = "s"
    """What to press to begin."""
    stop_key: str = "c"

    @property
    def statistics(self) -> Statistics | None:
        """The figures that are known; None before the first numbers."""
        known = self.known
        return None if known is None or not (known.done or known.complete) else known.statistics

    @property
    def partial(self) -> bool:
        """Whether figures are of a part alone."""
        return self.state != "done" and self.statistics is not None


def standing(reading: Reading) -> Iterator[Paragraph]:
    """Yield what is said above figures: of how many numbers they are, and what can be done."""
    known = reading.known
    whole = size(reading.bytes)
    done = 0 if known is None else known.done
    if known is not None and known.elements:
        share = f"{number(done)} of {number(known.elements)} elements, {100 * done // known.elements} %"
    else:
        share = "no element"
    match reading.state:
        case "unread":
            yield Paragraph((f"Not read yet. Figures need every number: {whole}.",))
            yield Paragraph((f"Press {reading.key} to read; {reading.stop_key} stops it at any time.",))
        case "reading":
            yield Paragraph((("PARTIAL", Tone.CAUTION), f"  so far {share}; {reading.stop_key} stops."))
        case "stopped":
            yield Paragraph((("PARTIAL", Tone.CAUTION), f"  stopped after {share}."))
            yield Paragraph(((f"Press {reading.key} to read all of it.", Tone.MUTED),))
        case "failed":
            message, remedy, code = reading.why or ("", "", "")
            yield Paragraph(((message, Tone.STOP),))
            yield Paragraph((remedy,))
            yield Paragraph(((code, Tone.MUTED),))
            if done:
                yield Paragraph((("PARTIAL", Tone.CAUTION), f"  up to there {share}."))
        case "done":
            if known is not None and not known.elements:
                yield Paragraph(("No element is selected.",))
            else:
                yield Paragraph((("all", Tone.OK), f"  {number(done)} elements, {whole}"))


def summary(reading: Reading) -> tuple[Part, ...]:
    """Return the figures on one line, for the foot of the numbers."""
    found = reading.statistics
    if found is None:
        if reading.state == "unread":
            words = f"statistics: {reading.key} reads {size(reading.bytes)}"
            return ((words, Tone.MUTED),) if reading.bytes else ()
        return (("could not be read", Tone.STOP),) if reading.state == "failed" else ()
    parts: list[Part] = [("PARTIAL  ", Tone.CAUTION)] if reading.partial else []
    words = (
        f"min {short(found.min)}  max {short(found.max)}  mean {short(found.mean)}  std {short(found.std)}"
    )
    parts.append((words, Tone.MUTED))
    if found.nans:
        parts.append((f"  {number(found.nans)} NaN", Tone.STOP))
    if infinite := found.positive_infinite + found.negative_infinite:
        parts.append((f"  {number(infinite)} inf", Tone.CAUTION))
    return tuple(parts)


def short(value: float | None) -> str:
    """Return a figure with four digits."""
    return figure(value) if value is None or isinstance(value, int) else f"{value:.4g}"
