"""Admission as paragraphs: each figure of a plan against its limit, what was decided, and what is not promised."""

from collections.abc import Iterator
from typing import Final

from shardscope.engine.model.plan import Admission, AdmissionCheck, Plan, Verdict
from shardscope.engine.model.secrets import shown
from shardscope.widgets.figures import plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, labelled
from shardscope.widgets.plan_paragraphs import Keys, decision
from shardscope.widgets.plan_words import PlanFacts, figures
from shardscope.widgets.safe import Part, Tone

LABEL: Final = 17
ROW: Final = 15
"""Cells of the name of a figure."""
FIGURE: Final = 10
LIMIT: Final = 21
DECISIONS: Final = 6
"""Decisions that are named before the rest of them is counted."""
TONES: Final[dict[Verdict, Tone]] = {"admitted": Tone.OK, "denied": Tone.STOP, "unknown": Tone.CAUTION}
CHANGES: Final = {
    "disk": "make room there, choose another target, or write less (component, types)",
    "files": "make room for files there, or write larger files",
    "quota": "ask for more of the quota, choose another target, or write less",
    "quota of files": "ask for more of the quota, or write larger files",
    "size of a file": "write smaller files, or raise the limit (ulimit -f)",
    "memory budget": "give more to the buffers, or fewer workers",
    "RAM": "end something else, or give less to buffers and workers",
    "control group": "raise the limit of the control group, or give less to buffers and workers",
    "address space": "raise the limit (ulimit -v), or give less to buffers and workers",
    "open files": "raise the limit (ulimit -n), or fewer workers",
}
"""What would let a plan start that a figure denies."""
LIMITS: Final = {
    "disk": "free on target",
    "files": "can be made there",
    "quota": "left of the quota",
    "quota of files": "left of the quota",
    "size of a file": "limit of a file",
    "memory budget": "your budget",
    "RAM": "of RAM available",
    "control group": "left in control group",
    "address space": "limit of the process",
    "open files": "may be opened",
}
"""What limits are, in few words; where they deny a plan, what they rest on is told in full."""
NOT_PROMISED: Final = "exact training resume; quality of the model; speed"


def terms(plan: Plan, facts: PlanFacts, keys: Keys, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what a person confirms."""
    said = (
        plural(facts.tensors, "tensor"),
        f"{plural(plan.source.files, 'file')} in",
        f"{plural(len(plan.files), 'file')} out",
        facts.types,
    )
    yield Paragraph(((f" {glyphs.dot} ".join(said), Tone.STRONG),))
    yield Paragraph(((f"{'':<{ROW}}{'this plan':>{FIGURE}}  limit", Tone.MUTED),))
    yield _row("read", size(plan.source.bytes), "", ())
    if plan.admission is None:
        yield Paragraph((("Not held against this machine yet.", Tone.CAUTION),))
        return
    for check in plan.admission.checks:
        yield _check(check, glyphs)
    yield from refusals(plan.admission, glyphs)
    yield Paragraph()
    yield from _decided(plan, keys)
    yield labelled("not promised", NOT_PROMISED, width=LABEL)


def _check(check: AdmissionCheck, glyphs: Glyphs) -> Paragraph:
    needs, has = figures(check)
    word = {"admitted": "ok", "denied": "denied", "unknown": "unknown"}[check.verdict]
    sign = {"admitted": glyphs.ok, "denied": glyphs.stop, "unknown": glyphs.caution}[check.verdict]
    limit = LIMITS.get(check.what, shown(check.basis))
    tone = TONES[check.verdict]
    return _row(
        shown(check.what), needs, has, ((f"{limit:<{LIMIT}} ", Tone.MUTED), (f"{sign}\u00a0{word}", tone))
    )


def _row(label: str, needs: str, has: str, parts: tuple[Part, ...]) -> Paragraph:
    figure: tuple[Part, ...] = (
        f"{needs:>{FIGURE}}  ".replace(" ", "\u00a0"),
        f"{has:<{FIGURE + 1}}".replace(" ", "\u00a0"),
    )
    return Paragraph(
        ((f"{label:<{ROW}}".replace(" ", "\u00a0"), Tone.MUTED), *figure, *parts),
        hang=ROW + 2 * FIGURE + 3,
    )


def refusals(admission: Admission, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield which figures deny a plan, and what would change them."""
    for check in admission.checks:
        if check.verdict == "admitted":
            continue
        needs, has = figures(check)
        tone = TONES[check.verdict]
        sign = glyphs.stop if check.verdict == "denied" else glyphs.caution
        said = (
            f"{needs} needed, {has} there"
            if check.verdict == "denied"
            else "cannot be read, and is never guessed"
        )
        yield Paragraph(((f"{sign} {check.verdict}: {shown(check.what)}: ", tone), said), hang=2)
        yield Paragraph(((shown(check.basis), Tone.MUTED),), indent=2, hang=2)
        yield Paragraph(
            (f"To change it: {CHANGES.get(check.what, 'choose another target')}.",), indent=2, hang=2
        )


def _decided(plan: Plan, keys: Keys) -> Iterator[Paragraph]:
    label = "decided for you"
    for item in plan.decisions[:DECISIONS]:
        words = decision(item, keys)
        yield labelled(label, *words.parts, width=LABEL)
        label = ""
    if len(plan.decisions) > DECISIONS:
        yield labelled(
            "", (f"and {len(plan.decisions) - DECISIONS:,} more, see the options", Tone.MUTED), width=LABEL
        )
    for left in plan.left_out:
        yield labelled(label, f"{shown(left.what.replace('_', ' '))} left out", width=LABEL)
        label = ""
