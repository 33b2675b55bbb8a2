"""What stands beside the choices of a conversion: what there is, and what a plan comes to. Pure."""

from collections.abc import Iterator

from shardscope.app.explorer.convert.choices import keys_from
from shardscope.app.explorer.convert.draft import Draft
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.decoded import ComponentFigures
from shardscope.engine.model.plan import Plan
from shardscope.widgets.figures import plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, heading, labelled
from shardscope.widgets.plan_paragraphs import in_the_way, preview, sentences
from shardscope.widgets.plan_words import PlanFacts
from shardscope.widgets.safe import Tone


class Comes:
    """What a draft comes to: a plan, a reason why there is none, or nothing yet."""

    def __init__(
        self, plan: Plan | None = None, facts: PlanFacts | None = None, refused: Blocker | None = None
    ) -> None:
        self.plan = plan
        self.facts = facts
        self.refused = refused


def what_page(
    draft: Draft, components: tuple[ComponentFigures, ...], comes: Comes, glyphs: Glyphs
) -> Iterator[Paragraph]:
    """Yield what there is to write, and what of it would be written."""
    yield Paragraph((("In this checkpoint", Tone.STRONG),))
    for item in components:
        yield labelled(item.component, f"{plural(item.tensors, 'tensor')}, {size(item.bytes)}")
    if not components:
        yield Paragraph((("No tensor is listed.", Tone.CAUTION),))
    if draft.kind == "reshard":
        yield from heading("The target", plural(draft.numbers.ranks, "rank"))
        yield Paragraph(("Which dimension ranks cut is told by a table and never by a guess.",))
    else:
        yield from heading("The output")
        yield Paragraph(("Whole tensors, for any loader of safetensors.",))
    yield Paragraph((("No output is an exact resume of a training run.", Tone.MUTED),))
    yield from _coming(comes, glyphs)


def _coming(comes: Comes, glyphs: Glyphs) -> Iterator[Paragraph]:
    if comes.refused is not None:
        yield from heading("No plan")
        yield from sentences(comes.refused, glyphs)
    elif comes.plan is None or comes.facts is None:
        yield from heading("Planning", "nothing is written")
    else:
        yield from heading("So far")
        yield labelled("write", comes.facts.write, width=8)
        yield labelled("needs", comes.facts.needs, width=8)
        yield from in_the_way(comes.plan.blockers, glyphs)


def options_page(comes: Comes, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what the options come to."""
    if comes.refused is not None:
        yield from sentences(comes.refused, glyphs)
    elif comes.plan is None or comes.facts is None:
        yield Paragraph((("Planning", Tone.STRONG), ("  nothing is written", Tone.MUTED)))
    else:
        yield from preview(comes.plan, comes.facts, keys_from(3), glyphs)
