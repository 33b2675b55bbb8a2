"""What stands beside the choices of a target: what a look at it showed. Pure."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardscope.app.explorer.output.destination import Destination
from shardscope.app.explorer.output.where_fields import STANDING
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.plan import Plan
from shardscope.widgets.figures import plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, labelled
from shardscope.widgets.plan_paragraphs import sentences
from shardscope.widgets.safe import Part, Tone

if TYPE_CHECKING:
    from shardscope.engine.convert.admitting.target import TargetLook


def where_page(
    draft: Destination, look: "TargetLook | None", earlier: Blocker | None, plan: Plan | None, glyphs: Glyphs
) -> Iterator[Paragraph]:
    """Yield whether an output can appear at the target of a draft."""
    if not draft.out:
        yield Paragraph((("Name a folder that is to be made.", Tone.STRONG),))
        yield Paragraph(
            (
                "The output is staged beside it, verified, and appears there by one rename: whole or not at all.",
            )
        )
        return
    if look is None:
        yield Paragraph((("Looking at the target", Tone.MUTED),))
        return
    if look.refused is not None:
        yield from sentences(look.refused, glyphs)
        if look.refused.code == "stage.target_exists":
            yield Paragraph((("r", Tone.HERE), " has it exchanged instead."), indent=2, hang=2)
    else:
        yield Paragraph(((f"{glyphs.ok} ", Tone.OK), "An output can appear there."), hang=2)
    yield Paragraph()
    standing: Part = (look.stands or "not known", Tone.PLAIN if look.stands else Tone.CAUTION)
    yield labelled("there now", standing)
    if look.stands == "folder":
        yield labelled("", STANDING[draft.standing])
    if look.free_bytes is not None:
        room = look.free_bytes.value
        yield labelled("free", (size(room), Tone.PLAIN if room is not None else Tone.CAUTION))
    if look.beside_source is not None:
        same = "the source's" if look.beside_source else "another one than the source's"
        yield labelled("file system", f"{same}; staged on the target's own")
    if plan is not None:
        yield labelled("needed", size(plan.estimates.temporary_bytes.bytes))
    if earlier is not None:
        yield labelled("earlier run", earlier.message)
        yield labelled("", ("u", Tone.HERE), " goes on with it.")
    elif look.leftovers:
        yield labelled(
            "left over",
            f"{plural(look.leftovers, 'staging folder')} of earlier runs: `shardscope clean` lists them",
        )
