"""What stands beside the choices of a fix: what is wrong and what mends it, or what the choice under the cursor comes to. Pure."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from shardscope.app.explorer.fix.draft import Draft
from shardscope.app.explorer.fix.fields import KEYS, Known, keys_listed, repair_of
from shardscope.app.explorer.fix.made import Made, Matched
from shardscope.app.explorer.fix.metadata import KeyOf, value_of
from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.engine.model.fix import Ailment, FixDocument
from shardscope.engine.model.repair import Lost
from shardscope.engine.model.secrets import shown
from shardscope.widgets.figures import plural
from shardscope.widgets.fix_rows import becomes
from shardscope.widgets.fix_words import DOES, lost
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, heading
from shardscope.widgets.plan_paragraphs import sentences
from shardscope.widgets.safe import Part, Tone

FEW, MANY = 8, 100
"""Things that are listed before the rest is counted: lost ones, and others."""
NAME, VALUE = 120, 2_000


class Comes(Struct, frozen=True):
    """What is known of a checkpoint, and what a draft comes to."""

    found: tuple[Ailment, ...] = ()
    """What is wrong; before a plan none of it is mended."""
    lost: tuple[Lost, ...] = ()
    """What the source does not have whole."""
    document: FixDocument | None = None
    made: Made | None = None
    matched: tuple[Matched, ...] = ()
    refused: Blocker | None = None
    looked: bool = False
    """Whether what is wrong is known."""


def page(draft: Draft, known: Known, comes: Comes, here: str, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what belongs beside the choice `here`."""
    if not comes.looked:
        if comes.refused is not None:
            yield from sentences(comes.refused, glyphs)
            yield Paragraph()
            yield Paragraph((("u", Tone.HERE), "  chooses weight files by name."))
        else:
            yield Paragraph((("Reading", Tone.STRONG), ("  headers and index", Tone.MUTED)))
        return
    repair = repair_of(here)
    if repair is not None:
        yield Paragraph(((repair, Tone.STRONG), f"  {DOES[repair]}"))
        if repair not in draft.chosen:
            yield Paragraph((("space", Tone.HERE), " chooses it.", (f"  {KEYS[repair]} too", Tone.MUTED)))
    if here != repair and repair is not None:
        yield Paragraph()
        yield from _about(draft, known, comes, here)
        yield from _comes_to(draft, comes, glyphs)
        return
    if repair == "drop" and draft.drop and repair in draft.chosen:
        yield Paragraph()
        yield from _matches(comes.matched)
    yield from _wrong(comes, glyphs)
    yield from _comes_to(draft, comes, glyphs)


def _wrong(comes: Comes, glyphs: Glyphs) -> Iterator[Paragraph]:
    notes = sum(item.blocker.severity is Severity.INFO for item in comes.found)
    if len(comes.found) == notes:
        yield Paragraph()
        yield Paragraph(((f"{glyphs.ok} Nothing is wrong here", Tone.OK), " that a fix would mend."), hang=2)
        yield Paragraph(
            (("Choose what to change: files, names, metadata, tensors.", Tone.MUTED),), indent=2, hang=2
        )
    else:
        yield from heading("Wrong here", f"{len(comes.found) - notes:,}")
    for item in comes.found[:MANY]:
        yield from _ailment(item, glyphs)
    yield from _rest(comes.found, MANY)
    if comes.lost:
        yield from heading(
            "Lost", f"{plural(len(comes.lost), 'part')}, since the source does not have them whole"
        )
        for gone in comes.lost[:FEW]:
            yield Paragraph(((f"{glyphs.stop} lost  ", Tone.STOP), lost(gone)), hang=2)
        yield from _rest(comes.lost, FEW)


def _ailment(item: Ailment, glyphs: Glyphs) -> Iterator[Paragraph]:
    if item.mended and item.repair == "salvage":
        mark: Part = (f"{glyphs.caution} {becomes(item)}  ", Tone.CAUTION)
    elif item.mended:
        mark = (f"{glyphs.ok} {becomes(item)}  ", Tone.OK)
    elif item.repair is None or item.blocker.severity is Severity.INFO:
        mark = (f"{glyphs.note} stays  ", Tone.MUTED)
    else:
        does = "saves the rest" if item.repair == "salvage" else "mends it"
        mark = (f"{glyphs.caution} {item.repair} {does} ({KEYS[item.repair]})  ", Tone.CAUTION)
    yield Paragraph((mark, shown(item.blocker.message), (f"  {item.blocker.code}", Tone.MUTED)), hang=2)


def _rest(listed: Sequence[object], most: int) -> Iterator[Paragraph]:
    if len(listed) > most:
        yield Paragraph(((f"and {len(listed) - most:,} more", Tone.MUTED),), indent=2)


def _about(draft: Draft, known: Known, comes: Comes, here: str) -> Iterator[Paragraph]:
    if here in ("tensors", "untie"):
        yield from _matches(comes.matched)
    elif here in ("rules", "pairs", "prefixes"):
        yield from _renames(comes.made)
    elif here.startswith("key "):
        keys = keys_listed(draft, known)
        number = int(here.removeprefix("key "))
        if number < len(keys):
            yield from _key(draft, keys[number])
    elif here in ("strip", "new_key"):
        yield Paragraph((f"{plural(len(known.keys), 'key')} in the headers.",))


def _matches(matched: Sequence[Matched]) -> Iterator[Paragraph]:
    if not matched:
        yield Paragraph((("No pattern yet.", Tone.CAUTION), " t types one, such as lm_head.*"))
    for item in matched:
        tone = Tone.STRONG if item.count else Tone.CAUTION
        said = plural(item.count, "tensor") if item.count else "fits nothing"
        yield Paragraph(((f"{said}  ", tone), shown(item.pattern, NAME)), hang=2)
        for name in item.first[:MANY]:
            yield Paragraph((("-\u00a0", Tone.CAUTION), shown(name, NAME)), indent=2, hang=4)
        if item.count > min(MANY, len(item.first)):
            yield Paragraph(
                ((f"and {item.count - min(MANY, len(item.first)):,} more", Tone.MUTED),), indent=2
            )


def _renames(made: Made | None) -> Iterator[Paragraph]:
    if made is None:
        yield Paragraph((("No name changes yet.", Tone.MUTED),))
        return
    yield Paragraph(((plural(made.renames, "name") + " would change", Tone.STRONG),))
    for old, new in made.renamed[:MANY]:
        yield Paragraph((("~\u00a0", Tone.HERE), shown(old, NAME)), hang=2)
        yield Paragraph((("->\u00a0", Tone.MUTED), shown(new, NAME)), indent=2, hang=5)
    if made.renames > min(MANY, len(made.renamed)):
        yield Paragraph(
            ((f"and {made.renames - min(MANY, len(made.renamed)):,} more", Tone.MUTED),), indent=2
        )


def _key(draft: Draft, key: KeyOf) -> Iterator[Paragraph]:
    yield Paragraph(((shown(key.name, NAME), Tone.STRONG), (f"  in {plural(key.files, 'file')}", Tone.MUTED)))
    for value in key.values[:FEW]:
        yield Paragraph((f'"{shown(value, VALUE, possible=True)}"',), indent=2, hang=2)
    yield from _rest(key.values, FEW)
    new = value_of(draft, key)
    if new != value_of(Draft(), key):
        yield Paragraph((("becomes  ", Tone.MUTED), new))
    yield Paragraph(
        (("enter", Tone.HERE), " edits it   ", ("space", Tone.HERE), " takes it away, or leaves it")
    )


def _comes_to(draft: Draft, comes: Comes, glyphs: Glyphs) -> Iterator[Paragraph]:
    if comes.refused is not None:
        yield from heading("No plan")
        yield from sentences(comes.refused, glyphs)
    elif not draft.what:
        if draft.chosen:
            yield from heading("No plan", f"{draft.chosen[0]}: say what")
    elif comes.document is None:
        yield from heading("Planning", "nothing is written")
    else:
        yield from heading("Comes to", "n shows every change")
        if comes.made is not None:
            yield Paragraph((comes.made.summary,))
            yield Paragraph(((comes.made.counts, Tone.MUTED),))
        for item in comes.document.plan.blockers[:1]:
            yield from heading("In the way")
            yield from sentences(item, glyphs)
