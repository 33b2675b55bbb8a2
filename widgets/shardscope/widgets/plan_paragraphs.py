"""A plan as paragraphs: the answer first, then every decision with its evidence and the key that changes it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.engine.model.plan import Decision, LeftOut, Plan
from shardscope.engine.model.secrets import shown
from shardscope.widgets.figures import plural
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, heading, labelled
from shardscope.widgets.plan_table import PlanTensors
from shardscope.widgets.plan_words import NAME, PlanFacts, absent, made_of, why, words_of
from shardscope.widgets.safe import Part, Tone

LABEL: Final = 8
RENAMES: Final = 6
"""Renamed tensors that are shown before the rest of them is counted."""
Keys = Mapping[str, str]
"""From an option of the command line to the key that changes it here."""


def preview(plan: Plan, facts: PlanFacts, keys: Keys, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what a plan comes to."""
    yield Paragraph(((made_of(plan), Tone.STRONG),))
    yield labelled("read", facts.read, width=LABEL)
    yield labelled("write", facts.write, width=LABEL)
    yield labelled("types", facts.types, width=LABEL)
    yield labelled("needs", facts.needs, width=LABEL)
    if plan.carried:
        yield labelled("carried", ", ".join(shown(item.name, NAME) for item in plan.carried), width=LABEL)
    yield from in_the_way(plan.blockers, glyphs)
    yield from decided(plan.decisions, keys)
    yield from renamed(plan, facts, glyphs)
    yield from left_out(plan.left_out)
    yield from to_know(plan.notes, glyphs)


def in_the_way(blockers: Sequence[Blocker], glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what lets nothing start."""
    errors = [item for item in blockers if item.severity is Severity.ERROR]
    if errors:
        yield from heading("In the way", f"{plural(len(errors), 'blocker')}: nothing starts")
    for item in errors:
        yield from sentences(item, glyphs)


def sentences(item: Blocker, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield a blocker: its sentence, what to do, and its code."""
    sign: Part = (
        (f"{glyphs.stop} ", Tone.STOP)
        if item.severity is Severity.ERROR
        else (f"{glyphs.caution} ", Tone.CAUTION)
    )
    yield Paragraph((sign, shown(item.message)), hang=2)
    yield Paragraph((shown(item.remedy), ("  ", Tone.MUTED), (item.code, Tone.MUTED)), indent=2, hang=2)


def decided(decisions: Sequence[Decision], keys: Keys) -> Iterator[Paragraph]:
    """Yield what was not forced: what was chosen, why, and which key changes it."""
    if decisions:
        yield from heading("Decided", "and what changes it")
    for item in decisions:
        yield decision(item, keys)
        if reasons := why(item):
            yield Paragraph(((reasons, Tone.MUTED),), indent=2, hang=2)


def decision(item: Decision, keys: Keys) -> Paragraph:
    """Return one decision on a line."""
    parts: list[Part] = [(f"{words_of(item.kind)}  ", Tone.MUTED), shown(item.choice)]
    if item.option:
        option = item.option.split(" ")[0]
        said = keys.get(option, shown(item.option).replace(" ", "\u00a0"))
        parts.append((f"  [{said}]", Tone.HERE))
    return Paragraph(tuple(parts), hang=2)


def renamed(plan: Plan, facts: PlanFacts, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what tensors are called that have another name in the output."""
    if not facts.renamed:
        return
    tensors = PlanTensors(plan.files, facts.renamed)
    yield from heading("Renamed", plural(len(facts.renamed), "tensor"))
    for row in range(min(RENAMES, tensors.row_count)):
        item, _ = tensors.at(row)
        yield Paragraph(
            (
                (shown(item.source, NAME), Tone.MUTED),
                (f" {glyphs.trail} ", Tone.MUTED),
                shown(item.name, NAME),
            ),
            hang=2,
        )
    if tensors.row_count > RENAMES:
        yield Paragraph(((f"and {tensors.row_count - RENAMES:,} more, see the plan", Tone.MUTED),))


def left_out(items: Sequence[LeftOut]) -> Iterator[Paragraph]:
    """Yield what an output does not have."""
    if items:
        yield from heading("Left out", "an output is weights, never an exact resume")
    for item in items:
        yield Paragraph(((f"{words_of(item.what)}  ", Tone.MUTED), absent(item)), hang=2)


def to_know(notes: Sequence[Blocker], glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what stops nothing, and has to be known before the output is used."""
    if notes:
        yield from heading("To know before it is used")
    for item in notes:
        yield Paragraph(
            ((f"{glyphs.note} ", Tone.CAUTION), shown(item.message), (f"  {item.code}", Tone.MUTED)), hang=2
        )
