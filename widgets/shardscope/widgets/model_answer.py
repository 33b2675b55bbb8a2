"""What a model is made of, in words: the answer first, then what contradicts it, then its parameters and their types."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from shardscope.engine.model.anatomy import DtypeRow, ModelDocument
from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.widgets.blockers_panel import severity_mark
from shardscope.widgets.figures import magnitude, number, plural, share, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, heading, labelled
from shardscope.widgets.safe import Part, Tone, elide, visible

LABEL: Final = 14
NAME: Final = 120
"""Cells of the longest name."""
ALIKE: Final = 3
"""Findings of one code that are told before the rest is counted."""
TYPES: Final = 8
"""Types that have a letter of their own."""
OTHERS: Final = "*"
"""The letter of all other types together."""
_BAR: Final = 60
_MARK: Final = 11
_TONES: Final = (Tone.HERE, Tone.PLAIN, Tone.OK, Tone.MUTED)
"""Of neighbours in a bar: the letters are the truth."""


def short(name: str, glyphs: Glyphs, width: int = NAME) -> str:
    """Return a name of a checkpoint, its middle left out where it is long."""
    return elide(visible(name), width, glyphs.ellipsis)


def answer(document: ModelDocument, title: str, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what it is, and whether its parts fit each other. `title` is that of its format."""
    unnamed = "A model without a configuration" if document.adapter is None else "An adapter"
    name = unnamed if document.title is None else short(document.title, glyphs, 60)
    yield Paragraph(((name, Tone.STRONG),), side=(title, Tone.MUTED))
    total = document.parameters.total
    words = magnitude(total)
    said: list[Part] = [(number(total), Tone.STRONG), f" ({words})" if words else ""]
    said.append((f"  in {plural(document.tensors, 'tensor')}", Tone.MUTED))
    yield labelled("parameters", *said, width=LABEL)
    yield labelled("fits?", *_fits(document, glyphs), width=LABEL)


def _fits(document: ModelDocument, glyphs: Glyphs) -> Iterator[Part]:
    """Yield whether weights and configuration fit. What was not compared is not said to fit."""
    counts = Counter(item.severity for item in document.findings)
    for severity in (Severity.ERROR, Severity.WARNING):
        if counts[severity]:
            mark, tone = severity_mark(severity, glyphs)
            sign, _, word = mark.partition(" ")
            yield f"{sign} {plural(counts[severity], word)}", tone
            yield "  "
    compared = [fact for fact in document.facts if fact.agrees is not None]
    agreed = sum(fact.agrees is True for fact in compared)
    if document.adapter is not None:
        yield from _base(document, glyphs)
    elif compared:
        words = f"{agreed:,} of {plural(len(compared), 'size')} {'agrees' if agreed == 1 else 'agree'} with {_where(document)}"
        yield (
            (words, Tone.PLAIN)
            if counts.total() or agreed < len(compared)
            else (f"{glyphs.ok} {words}", Tone.OK)
        )
    elif document.configuration is None:
        yield "nothing declares sizes to hold the shapes against", Tone.CAUTION
    else:
        yield f"no size of {_where(document)} could be held against the shapes", Tone.CAUTION


def _base(document: ModelDocument, glyphs: Glyphs) -> Iterator[Part]:
    adapter = document.adapter
    if adapter is None or adapter.fitting is None:
        yield "not held against its base", Tone.CAUTION
    elif adapter.unfitting:
        yield (
            f"{plural(adapter.unfitting, 'tensor')} of {adapter.fitting + adapter.unfitting:,} do not fit the base",
            Tone.STOP,
        )
    else:
        yield f"{glyphs.ok} {plural(adapter.fitting, 'tensor')} fit the base", Tone.OK


def _where(document: ModelDocument) -> str:
    return "what is declared" if document.configuration is None else visible(document.configuration, 60)


def findings(found: Sequence[Blocker], glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what is wrong, the worst first: `finding:N` is the key of the one at N."""
    order = sorted(range(len(found)), key=lambda at: (-found[at].severity.rank, at))
    said: tuple[str, str] | None = None
    told: Counter[str] = Counter()
    totals = Counter(item.code for item in found)
    if order:
        yield Paragraph()
    for at in order:
        item = found[at]
        told[item.code] += 1
        key = f"finding:{at}"
        if told[item.code] > ALIKE + 1:
            continue
        if told[item.code] == ALIKE + 1 and totals[item.code] > ALIKE + 1:
            rest = totals[item.code] - ALIKE
            yield Paragraph(
                (f"{glyphs.ellipsis} {rest:,} more of ", (item.code, Tone.MUTED)), indent=_MARK, hang=_MARK
            )
            continue
        mark, tone = severity_mark(item.severity, glyphs)
        yield Paragraph(((f"{mark:<{_MARK}}", tone), item.message), hang=_MARK, key=key)
        if said != (item.code, item.remedy):  # findings that are alike need the same thing done
            yield Paragraph((item.remedy, (f"  {item.code}", Tone.MUTED)), indent=_MARK, hang=_MARK, key=key)
        said = (item.code, item.remedy)


def parameters(document: ModelDocument, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what the total is made of, and what stands beside it. `tied` is the key of the first name that is tied."""
    counts, total = document.parameters, document.parameters.total
    rows: list[tuple[str, Part, str, str | None]] = []
    if counts.active is not None:
        words = "experts by their number per token"
        rows.append(("for a token", _figure(counts.active, total), words, None))
    if counts.experts:
        rows.append(("experts", _figure(counts.experts, total), "all of them", None))
    if counts.embeddings:
        rows.append(("embeddings", _figure(counts.embeddings, total), "", None))
    if counts.frozen is not None:
        rows.append(("frozen", _figure(counts.frozen, total), "not trained, as the checkpoint tells", None))
    if counts.tied:
        more = f"and {len(counts.tied) - 1:,} more, " if len(counts.tied) > 1 else ""
        rows.append(("tied", short(counts.tied[0], glyphs, 60), f"{more}counted once", "tied"))
    if counts.companions:
        rows.append(("beside them", number(counts.companions), "scales and zero points", None))
    if counts.buffers:
        rows.append(("beside them", number(counts.buffers), "in buffers", None))
    if counts.unknown:
        rows.append(("left out", number(counts.unknown), "packed tensors whose size is not known", None))
    if rows:
        yield from heading("Parameters", "ties once, packed weights unpacked")
    for label, figure, words, key in rows:
        said = labelled(label, figure, (f"  {words}" if words else "", Tone.MUTED), width=LABEL)
        yield Paragraph(said.parts, hang=said.hang, key=key)


def _figure(part: int, whole: int) -> str:
    return f"{number(part)}, {share(part, whole)}"


def types(rows: Sequence[DtypeRow], width: int) -> Iterator[Paragraph]:
    """Yield in which types the bytes are: a bar of letters, and what they stand for. `type:N` is the key of the one at N."""
    if not rows:
        return
    yield from heading("Stored as", "each letter of the bar a share of the bytes")
    named = _lettered(rows)
    bar = letters([count for _, _, _, count in named], min(_BAR, width - 2))
    parts: list[Part] = ["  "]
    for place, (letter, *_) in enumerate(named):
        if bar[place]:
            parts.append((letter * bar[place], _TONES[place % len(_TONES)]))
    yield Paragraph(tuple(parts))
    total = sum(row.bytes for row in rows)
    for place, (letter, dtype, tensors, count) in enumerate(named):
        yield Paragraph(
            (
                (f"  {letter}  ", _TONES[place % len(_TONES)]),
                f"{visible(dtype, 20):<12}{size(count):>12}",
                (f"{share(count, total):>8}  in {plural(tensors, 'tensor')}", Tone.MUTED),
            ),
            key=None if letter == OTHERS else f"type:{place}",
        )


def _lettered(rows: Sequence[DtypeRow]) -> list[tuple[str, str, int, int]]:
    """Return letter, type, tensors and bytes of each; beyond the letters there are, all others are one."""
    kept = rows if len(rows) <= TYPES else rows[: TYPES - 1]
    named = [(chr(ord("A") + at), row.dtype, row.tensors, row.bytes) for at, row in enumerate(kept)]
    if others := rows[len(kept) :]:
        tensors, count = sum(row.tensors for row in others), sum(row.bytes for row in others)
        named.append((OTHERS, f"{len(others):,} others", tensors, count))
    return named


def letters(counts: Sequence[int], cells: int) -> list[int]:
    """Return how many of `cells` each count gets: one where it is anything at all, the others in proportion."""
    total, held = sum(counts), sum(count > 0 for count in counts)
    if not total or cells < held:
        return [0] * len(counts)
    found = [(count > 0) + count * (cells - held) // total for count in counts]
    largest = max(range(len(counts)), key=counts.__getitem__)
    found[largest] += cells - sum(found)
    return found
