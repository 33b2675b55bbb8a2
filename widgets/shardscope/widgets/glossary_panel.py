"""The glossary: eight things that are all called sharding, and what shardscope does with each."""

from collections.abc import Iterable

from shardscope.engine.model.glossary import Glossary, Reading
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs
from shardscope.widgets.safe import Tone


class GlossaryPanel(Paragraphs):
    """The terms.

    `GlossaryPanel(glossary, *, glyphs=None, id=None, classes=None)`. Terms can be chosen with the cursor.
    """

    BINDING_GROUP_TITLE = "Glossary"

    def __init__(
        self,
        glossary: Glossary,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        super().__init__(glyphs=glyphs, id=id, classes=classes)
        self._glossary = glossary

    def paragraphs(self, width: int) -> Iterable[Paragraph]:  # noqa: ARG002 - the same at any width
        """Return each term with its meaning and its use here."""
        yield Paragraph((("Eight things that are called sharding, placement or distribution.", Tone.MUTED),))
        for term in self._glossary.terms:
            yield Paragraph()
            yield Paragraph(((term.term, Tone.STRONG),), key=term.id)
            reading = "our reading, " if term.reading is Reading.OURS else ""
            cited = (f" [{reading}{', '.join(term.sources)}]", Tone.MUTED)
            yield Paragraph((term.meaning, cited), indent=2, hang=2, key=term.id)
            yield Paragraph((("here  ", Tone.MUTED), term.relevance), indent=2, hang=8, key=term.id)
