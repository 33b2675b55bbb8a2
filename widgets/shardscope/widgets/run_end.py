"""How a conversion ended, as paragraphs: what appeared and what was proven of it, or what went wrong and what is left."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.engine.model.manifest import MANIFEST_NAME, Manifest, Run, Validation
from shardscope.engine.model.plan import Plan
from shardscope.engine.model.secrets import shown
from shardscope.widgets.figures import plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, heading, labelled
from shardscope.widgets.plan_paragraphs import left_out
from shardscope.widgets.plan_words import memory_of, took
from shardscope.widgets.safe import Tone

TONES: Final = {"held": Tone.OK, "differs": Tone.STOP}
OVERFLOWED: Final = 8
"""Tensors with numbers that became infinite, before the rest of them is counted."""


class Outcome(Struct, frozen=True):
    """An output that has appeared."""

    out: str
    """Where, as it was typed."""
    plan: Plan
    manifest: Manifest
    run: Run
    how: str
    """In how many steps it appeared."""
    previous: str | None
    """Name of the old output beside it."""
    again: str
    """The command that does it again."""
    verify: str
    """The command that holds it against its source once more."""
    notes: tuple[Blocker, ...] = ()
    before: int | None = None
    """Bytes that the process had resident when the run began; null where that was not measured."""


class Failure(Struct, frozen=True):
    """A conversion that ended without an output."""

    blocker: Blocker
    stopped: bool
    """By a person."""
    doing: str | None
    """What it did then; null where nothing was begun, so that nothing was made."""
    out: str
    stood: bool
    """Whether something stands at the target, as it did before."""
    finished: int
    files: int
    notes: tuple[Blocker, ...]
    """What became of the staging folder."""
    go_on: str | None
    """The command that goes on with what was kept."""
    fixed: bool = False
    """Whether it was a fix."""


def success(done: Outcome, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what appeared, what was verified, and what comes next."""
    tensors = {item.name for file in done.plan.files for item in file.tensors}
    word = "Resharded" if done.plan.target is not None else "Converted" if done.plan.fix is None else "Fixed"
    said = f"  {plural(len(tensors), 'tensor')} in {plural(len(done.plan.files), 'file')}, {size(done.run.staged_bytes)}"
    yield Paragraph(((f"{glyphs.ok} {word}", Tone.OK), said))
    if done.plan.fix is not None and done.plan.fix.lost:
        gone = f"{glyphs.stop} LOST  {plural(len(done.plan.fix.lost), 'part')}"
        yield Paragraph(((gone, Tone.STOP), " of the source, each with its reason in the manifest"), hang=2)
    yield Paragraph()
    yield labelled("output", done.out)
    yield labelled("manifest", f"{done.out.rstrip('/')}/{MANIFEST_NAME}")
    if done.previous is not None:
        yield labelled("old output", done.previous)
    yield labelled("took", f"{took(done.run)}, {memory_of(done.plan, done.run, done.before)}")
    if done.run.resumed_bytes:
        yield labelled("gone on", f"{size(done.run.resumed_bytes)} of an earlier run were verified and taken")
    yield from heading("Verified", f"then promoted by {done.how}")
    for item in done.manifest.validation:
        yield _validation(item)
    yield from _overflows(done.manifest)
    yield from _notes(done.notes, glyphs)
    yield from heading("Next")
    yield labelled("verify", done.verify)
    yield labelled("again", done.again)
    yield from left_out(done.manifest.left_out)


def _validation(item: Validation) -> Paragraph:
    return labelled(
        shown(item.what),
        (item.result, TONES.get(item.result, Tone.CAUTION)),
        f": {shown(item.says)}",
        width=14,
    )


def _overflows(manifest: Manifest) -> Iterator[Paragraph]:
    found = [item for file in manifest.outputs for item in file.tensors if item.overflowed]
    if not found:
        return
    yield from heading("Became infinite", "numbers that the new type does not reach")
    for item in found[:OVERFLOWED]:
        yield Paragraph(
            (shown(item.name, 60), f"  {plural(item.overflowed, 'number')} in {item.dtype}"), indent=2, hang=4
        )
    if len(found) > OVERFLOWED:
        yield Paragraph(((f"  and {len(found) - OVERFLOWED:,} more, see the manifest", Tone.MUTED),))


def _notes(notes: Sequence[Blocker], glyphs: Glyphs) -> Iterator[Paragraph]:
    for note in notes:
        tone = Tone.MUTED if note.severity is Severity.INFO else Tone.CAUTION
        more = () if note.severity is Severity.INFO else (f" {note.remedy}", (f"  {note.code}", Tone.MUTED))
        yield Paragraph(((f"{glyphs.note} ", tone), note.message, *more), hang=2)


def _not(done: Failure) -> str:
    return "Not fixed" if done.fixed else "Not converted"


def failure(done: Failure, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what went wrong, what was written and what was not, and how to go on."""
    word, tone = ("Stopped", Tone.CAUTION) if done.stopped else (_not(done), Tone.STOP)
    sign = glyphs.caution if done.stopped else glyphs.stop
    yield Paragraph(((f"{sign} {word}", tone),))
    yield Paragraph()
    yield Paragraph((done.blocker.message,))
    if not done.stopped:
        yield Paragraph((done.blocker.remedy,))
        yield Paragraph(((done.blocker.code, Tone.MUTED),))
        if done.doing is not None:
            yield Paragraph(((f"It failed while {done.doing}.", Tone.MUTED),))
    yield from heading("Written", "and not")
    if done.doing is None:
        yield labelled("nothing", "was made: it ended before anything was begun.")
    else:
        yield labelled(
            "staged", f"{done.finished:,} of {plural(done.files, 'file')} finished beside the target"
        )
    stands = "the folder that stood there, as it was" if done.stood else "nothing: no output appeared"
    yield labelled("at target", f"{done.out}: {stands}")
    kept = any(note.code == "stage.kept" for note in done.notes)
    if done.doing is not None and not kept:
        yield labelled("left over", "nothing: what was staged was removed")
    yield from _notes(done.notes, glyphs)
    if done.go_on is not None:
        yield from heading("To go on")
        yield Paragraph((done.go_on,), indent=2, hang=2)
