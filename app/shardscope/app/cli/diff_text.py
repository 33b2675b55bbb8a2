"""Two checkpoints held against each other, as text and as Markdown."""

from collections.abc import Iterator, Sequence
from typing import Final

from shardscope.app.cli.markdown import escaped
from shardscope.app.cli.paragraphs import wrapped
from shardscope.engine.model.difference import LETTERS, DiffDocument, Fold, TensorDifference
from shardscope.engine.model.secrets import shown
from shardscope.widgets import compare_words as words
from shardscope.widgets.figures import plural

ROWS: Final = 40
"""Rows that are shown before the rest is counted."""


def text_lines(
    document: DiffDocument, folds: Sequence[Fold], paths: Sequence[str], *, everything: bool
) -> Iterator[str]:
    """Yield the lines of a text: both sides, the answer, and the differences in rows. `paths` are those of the sides and adapters."""
    letters = "AB" + "+" * len(document.adapters)
    for letter, path, side in zip(letters, paths, (document.a, document.b, *document.adapters), strict=True):
        yield f"{letter}  {shown(path, words.NAME)}"
        yield f"   {words.side_words(side)}"
    yield ""
    yield from wrapped(words.answer(document))
    for said in document.decisions:
        yield from wrapped(said, 2)
    doubt = words.unlisted(document)
    if doubt is not None:
        yield from wrapped(doubt, 2, first="  ")
    if document.uncompared:
        yield "  Values that were not compared: --only same lists them, each with the reason."
    rows = folds if everything else folds[:ROWS]
    if rows:
        yield ""
    for fold in rows:
        yield from _row(fold, document.tensors)
    if len(rows) < len(folds):
        yield f"... and {plural(len(folds) - len(rows), 'more row')} (-v shows all, --json each tensor)"


def _row(fold: Fold, tensors: Sequence[TensorDifference]) -> Iterator[str]:
    first = tensors[fold.members[0]]
    name = f"{words.name(fold.name)}{'.*' if fold.module else ''}"
    line = f"{LETTERS[fold.state]} {name}  {words.fold_words(fold, tensors)}"
    if len(line) <= 80:
        yield line
    else:
        yield f"{LETTERS[fold.state]} {name}"
        yield f"    {words.fold_words(fold, tensors)}"
    if fold.module:
        return
    items = [tensors[number] for number in fold.members]
    if first.name_b is not None:
        yield from wrapped(words.other_name(items), 6, first="    >")
    if first.note is not None:
        yield from wrapped(first.note, 4)
    yield from _values(items)


def _values(items: Sequence[TensorDifference]) -> Iterator[str]:
    found = [item.values for item in items if item.values is not None]
    said = words.merged(items)
    if said:
        yield from wrapped(said, 4)
    if not found:
        return
    if not said or any(each.verdict == "differs" for each in found):
        yield from wrapped(words.figures(found), 4)
    first = next((item for item in items if item.values is not None and item.values.first is not None), None)
    if first is None or first.values is None or first.values.first is None:
        return
    said = words.first_words(first.values.first, first.merge)
    yield from wrapped(said if len(items) == 1 else f"{words.name(first.name)}, {said}", 4)
    places = (first.values.first.place_a, first.values.first.place_b)
    for letter, place in zip("AB", places, strict=True):
        yield from wrapped(words.place_words(place), 8, first=f"      {letter}")


def markdown_lines(document: DiffDocument, folds: Sequence[Fold], *, everything: bool) -> Iterator[str]:
    """Yield the lines of a Markdown text for an issue or a comment: no path of this machine is in it."""
    yield f"## {words.verdict(document)}"
    yield ""
    for letter, side in zip("AB", (document.a, document.b), strict=True):
        yield f"- **{letter}** {escaped(words.side_words(side))}"
    for side in document.adapters:
        yield f"- **adapter** {escaped(words.side_words(side))}"
    yield f"- {words.sums(document)}"
    doubt = words.unlisted(document)
    if doubt is not None:
        yield f"- {escaped(doubt)}"
    for said in document.decisions:
        yield f"- {escaped(said)}"
    rows = folds if everything else folds[:ROWS]
    if not rows:
        return
    yield ""
    yield "| | tensor | what | values |"
    yield "|---|---|---|---|"
    for fold in rows:
        items = [document.tensors[number] for number in fold.members]
        found = [item.values for item in items if item.values is not None]
        cells = (
            escaped(LETTERS[fold.state]),
            escaped(words.name(fold.name)),
            escaped(words.fold_words(fold, document.tensors)),
            escaped(words.merged(items) or (words.figures(found) if found else "")),
        )
        yield f"| {' | '.join(cells)} |"
    if len(rows) < len(folds):
        yield ""
        yield f"... and {plural(len(folds) - len(rows), 'more row')}."
