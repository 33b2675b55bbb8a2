"""One tensor of two checkpoints in full: what it is on both sides, what its values came to, and where they first differ."""

from collections.abc import Iterator, Sequence

from shardscope.engine.model.difference import LETTERS, TensorDifference
from shardscope.widgets import compare_words as words
from shardscope.widgets.compare_table import TONES
from shardscope.widgets.figures import size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, labelled
from shardscope.widgets.safe import Part, Tone


class CompareDetail(Paragraphs):
    """What is known of some tensors that differ alike."""

    BINDING_GROUP_TITLE = "Detail"

    def __init__(self, items: Sequence[TensorDifference], *, glyphs: Glyphs | None = None) -> None:
        self._items = tuple(items)
        super().__init__(glyphs=glyphs)

    def show(self, items: Sequence[TensorDifference]) -> None:
        """Show other tensors, or more about them."""
        self._items = tuple(items)
        self.rows_changed(0)

    def paragraphs(self, width: int) -> Iterator[Paragraph]:  # noqa: ARG002 - wrapped by the panel
        """Yield the sentences."""
        return detail(self._items)


def detail(items: Sequence[TensorDifference]) -> Iterator[Paragraph]:
    """Yield what is known of tensors: all of one, and the figures of several with the first of each."""
    for number, item in enumerate(items):
        if number:
            yield Paragraph()
        yield from _one(item)


def _one(item: TensorDifference) -> Iterator[Paragraph]:
    state: Part = (f"{LETTERS[item.state]} {item.state}", TONES[item.state])
    yield Paragraph(((words.name(item.name), Tone.STRONG),), side=state, hang=2)
    sides = (("A, B", item.a),) if item.a == item.b else (("A", item.a), ("B", item.b))
    for letter, facts in sides:
        said = (
            "not there" if facts is None else f"{words.kind(facts)}, {size(facts.bytes)}, {facts.component}"
        )
        yield labelled(letter, (said, Tone.MUTED if facts is None else Tone.PLAIN))
    if item.name_b is not None:
        yield labelled("in B", words.name(item.name_b))
        yield labelled("by", (words.by(item), Tone.CAUTION if item.suggested else Tone.PLAIN))
    if item.part_of is not None:
        yield labelled("part of", f"rank {item.part_of}")
    if item.note is not None:
        yield labelled("note", item.note)
    if item.merge is not None:
        yield labelled("adapter", words.merged([item]))
        if (room := words.room(item)) is not None:
            yield labelled("", (room, Tone.MUTED))
    yield from _values(item)


def _values(item: TensorDifference) -> Iterator[Paragraph]:
    found = item.values
    if found is None:
        if item.a is not None and item.b is not None:
            yield labelled("values", ("not compared", Tone.MUTED))
        return
    if item.merge is not None and found.verdict != "differs":
        return
    yield labelled(
        "values", (words.figures([found]), Tone.OK if found.verdict != "differs" else Tone.CAUTION)
    )
    first = found.first
    if first is None:
        return
    yield labelled("first", f"element {words.extents(first.index)}, number {first.element:,}")
    for letter, value, place in (("A", first.a, first.place_a), ("B", first.b, first.place_b)):
        yield labelled(f"  in {letter}", (value, Tone.STRONG), f"  {words.place_words(place)}")
