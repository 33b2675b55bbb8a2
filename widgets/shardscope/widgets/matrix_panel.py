"""The support matrix: what this release does with each kind of checkpoint, in the words of the matrix alone."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Final

from shardscope.engine.model.matrix import COLUMNS, Cell, MatrixRow, SupportMatrix, Word
from shardscope.engine.model.sources import SourceEntry, SourceRegister
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, heading
from shardscope.widgets.safe import Part, Tone

_TONES: Final = {
    Word.SUPPORTED: Tone.OK,
    Word.CANONICAL: Tone.OK,
    Word.EXPERIMENTAL: Tone.CAUTION,
    Word.CONDITIONAL: Tone.CAUTION,
    Word.PREFLIGHT_ONLY: Tone.CAUTION,
    Word.DEFERRED: Tone.MUTED,
    Word.OUT_OF_SCOPE: Tone.MUTED,
    Word.NOT_APPLICABLE: Tone.MUTED,
    Word.NO: Tone.STOP,
}
_SUBJECT: Final = 37
_CAPABILITY: Final = 20
_WORD: Final = 16
_BRIEF: Final = 15
"""Cells of the columns."""


class MatrixPanel(Paragraphs):
    """The matrix, subject by subject.

    `MatrixPanel(matrix, register, format=None, *, glyphs=None, id=None, classes=None)`. The subject that speaks for
    `format`, the one of the checkpoint in hand, comes first and is marked. Subjects can be chosen with the cursor.
    """

    BINDING_GROUP_TITLE = "Support matrix"

    def __init__(
        self,
        matrix: SupportMatrix,
        register: SourceRegister,
        format: str | None = None,  # noqa: A002 - the word of the descriptor
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        super().__init__(glyphs=glyphs, id=id, classes=classes)
        self._matrix = matrix
        self._register = register
        self._format = format

    def paragraphs(self, width: int) -> Iterable[Paragraph]:
        """Return the subjects, what the words mean, and the sources that the cells cite."""
        matrix = self._matrix
        yield Paragraph(((matrix.note, Tone.MUTED),))
        rows = sorted(matrix.rows, key=lambda row: self._format not in row.formats)
        if width >= _SUBJECT + _BRIEF * len(COLUMNS) - 2:
            yield from self._overview(rows)
        for row in rows:
            yield from self._row(row)
        yield from heading("The words")
        used = {cell.word for row in matrix.rows for _, cell in row.each()}
        for each in matrix.vocabulary:
            if each.word in used:
                name = (f"{each.word.value:<{_WORD}}", _TONES[each.word])
                yield Paragraph((name, each.meaning), hang=_WORD)
        cited = {source for row in matrix.rows for _, cell in row.each() for source in cell.sources}
        yield from heading("The sources", "shardscope matrix --sources says what each is used for")
        for entry in self._register.entries:
            if entry.id in cited:
                yield _source(entry)

    def _overview(self, rows: Sequence[MatrixRow]) -> Iterator[Paragraph]:
        """Return a line for each subject, where a word for each capability has room."""
        yield Paragraph()
        titles = [wrap(column.title, _BRIEF - 1, break_on_hyphens=False) for column in self._matrix.columns]
        for line in zip_longest(*titles, fillvalue=""):
            words = "".join(f"{word:<{_BRIEF}}" for word in line)
            yield Paragraph(((" " * _SUBJECT + words.rstrip(), Tone.MUTED),))
        for row in rows:
            tone = Tone.HERE if self._format in row.formats else Tone.PLAIN
            cells = [(f"{cell.word.value:<{_BRIEF}}", _TONES[cell.word]) for _, cell in row.each()]
            last, its = cells.pop()
            yield Paragraph(((f"{row.title:<{_SUBJECT}}", tone), *cells, (last.rstrip(), its)))

    def _row(self, row: MatrixRow) -> Iterator[Paragraph]:
        titles = {str(column.id): column.title for column in self._matrix.columns}
        here = self._format in row.formats
        yield Paragraph()
        aside: Part = ("  the checkpoint in hand", Tone.HERE) if here else ""
        yield Paragraph(((row.title, Tone.HERE if here else Tone.STRONG), aside), key=row.id)
        for name, cell in row.each():
            yield _cell(titles[name], cell, row.id)


def _cell(title: str, cell: Cell, key: str) -> Paragraph:
    parts: list[Part] = [
        (f"{title:<{_CAPABILITY}}", Tone.MUTED),
        (f"{cell.word.value:<{_WORD}}", _TONES[cell.word]),
        cell.note,
    ]
    if cell.depends_on:
        parts.append((f" Depends on {', '.join(each.value for each in cell.depends_on)}.", Tone.MUTED))
    parts.append((f" [{', '.join(cell.sources)}]", Tone.MUTED))
    return Paragraph(tuple(parts), hang=_CAPABILITY + _WORD, key=key)


def _source(entry: SourceEntry) -> Paragraph:
    parts: list[Part] = [(f"{entry.id}  ", Tone.STRONG), entry.title]
    if entry.url is not None:
        parts.append((f"  {entry.url}", Tone.MUTED))
    return Paragraph(tuple(parts), hang=5)
