"""What the shard map says of a tensor as a whole: the states that it can be in, in plain words, the gravest first."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardscope.engine.model.text import counted, display_name
from shardscope.widgets.figures import plural
from shardscope.widgets.safe import Part, Tone

if TYPE_CHECKING:
    from shardscope.app.explorer.shardmap.subject import Subject
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.peeking.tensormaps import Chart


def standing(subject: "Subject", chart: "Chart") -> Iterator[Part]:
    """Yield a sentence for each thing that has to be known of a tensor and its map."""
    tensor = subject.tensor
    for one in (*chart.blockers, *elsewhere(subject)):
        yield one.message, Tone.STOP
    if not subject.is_decoded:
        more = f": {subject.offer}" if subject.offer else "."
        yield f"Not decoded. This is what one header says, and no more{more}", Tone.CAUTION
    if tensor.part_of is not None:
        yield (
            f"This is what rank {tensor.part_of} holds under the name. Nothing here tells how the ranks make a whole.",
            Tone.CAUTION,
        )
    if tensor.alias_of is not None:
        yield f"Tied: it shares all its bytes with {display_name(tensor.alias_of, 200)}.", Tone.CAUTION
    if chart.checked.scaled:
        yield "Shards hold the values times a factor: their average or sum makes the tensor.", Tone.CAUTION
    if tensor.replicas:
        copies = plural(len(tensor.replicas), "further copy", "further copies")
        yield (
            f"{copies} of shards in other files: they must hold the same bytes, which only reading them proves.",
            Tone.PLAIN,
        )
    if tensor.stored_shape is not None:
        shape = " x ".join(f"{n:,}" for n in tensor.stored_shape)
        yield (
            f"Stored as {shape}: the writer padded it, and the padding is no part of the tensor.",
            Tone.CAUTION,
        )
    if tensor.apart:
        yield "State that is kept apart from the model's: the name is made here.", Tone.PLAIN
    if tensor.note is not None:
        yield f"{tensor.note[:1].upper()}{tensor.note[1:]}.", Tone.PLAIN
    for sentence in chart.says:
        yield sentence, Tone.OK if sentence.startswith("Every") else Tone.PLAIN


def elsewhere(subject: "Subject") -> "Sequence[Blocker]":
    """Return what inspection found wrong in so many words about this tensor: replicas that differ, for instance."""
    name = display_name(subject.tensor.name)
    return [
        one
        for one in subject.inspection.descriptor.blockers
        if name in [word.strip(".,:;()") for word in one.message.split()]
    ]


def short(subject: "Subject", chart: "Chart") -> Part:
    """Return the state in a clause, for one line."""
    checked = chart.checked
    if chart.blockers:
        code = chart.blockers[0].code
        if code == "map.uncovered":
            return f"! {counted(checked.uncovered or 0, 'element')} held by nobody", Tone.STOP
        return f"! {chart.blockers[0].message}", Tone.STOP
    told = elsewhere(subject)
    if told:
        return f"! {told[0].message}", Tone.STOP
    if not subject.is_decoded:
        return "not decoded: one header's view", Tone.CAUTION
    if subject.tensor.part_of is not None:
        return f"what rank {subject.tensor.part_of} holds; the whole is not known", Tone.CAUTION
    if subject.tensor.alias_of is not None:
        return f"tied to {display_name(subject.tensor.alias_of, 60)}", Tone.CAUTION
    if checked.scaled:
        return "values times a factor", Tone.CAUTION
    return "every element held", Tone.OK
