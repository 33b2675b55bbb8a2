"""The page about a model: what it is, what is wrong with it, what it is made of. Lines about tensors can be chosen."""

from collections.abc import Iterator

from textual.message import Message

from shardscope.engine.model.anatomy import ModelDocument
from shardscope.widgets import model_answer, model_parts
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone


class ModelPage(Paragraphs):
    """What a model is made of.

    `ModelPage()`, then `show(document, title)`, or `say(...)` while there is none. Message: `PlaceWanted` with the key of what was
    chosen, as the functions of `model_answer` and `model_parts` give them.
    """

    BINDING_GROUP_TITLE = "Model"

    class PlaceWanted(Message):
        """The person wants to see the tensors that a line is about."""

        def __init__(self, page: "ModelPage", key: str) -> None:
            super().__init__()
            self.page = page
            self.key = key

        @property
        def control(self) -> "ModelPage":
            """The page it happened in."""
            return self.page

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None) -> None:  # noqa: A002 - the word of Textual
        super().__init__(glyphs=glyphs, id=id)
        self.document: ModelDocument | None = None
        self._title = ""
        self._said: tuple[Part, ...] = ()

    def show(self, document: ModelDocument, title: str) -> None:
        """Show a model. `title` is that of its format."""
        self.document, self._title = document, title
        self.rows_changed()

    def say(self, *parts: Part) -> None:
        """Say something in the place of a model."""
        self.document, self._said = None, parts
        self.rows_changed(0)

    def paragraphs(self, width: int) -> Iterator[Paragraph]:
        """Yield the page."""
        found, glyphs = self.document, self.glyphs
        if found is None:
            for part in self._said:
                yield Paragraph((part,))
            return
        yield from model_answer.answer(found, self._title, glyphs)
        yield from model_answer.findings(found.findings, glyphs)
        yield from model_answer.parameters(found, glyphs)
        yield from model_answer.types(found.dtypes, width)
        yield from model_parts.adapter(found.adapter, glyphs)
        yield from model_parts.families(found.families, odd_kinds(found), glyphs)
        yield from model_parts.facts(found, width, glyphs)
        yield from model_parts.packing(found, glyphs)
        yield Paragraph()
        yield Paragraph((("Names, types and shapes; no number of a tensor was read.", Tone.MUTED),))

    def on_virtual_rows_row_selected(self, message: VirtualRows.RowSelected) -> None:
        """Say what was chosen."""
        message.stop()
        if self.chosen is not None:
            self.post_message(self.PlaceWanted(self, self.chosen))


def odd_kinds(document: ModelDocument) -> set[tuple[str, str]]:
    """Return family and layers of the kinds that a finding is about."""
    return {
        (str(item.params["family"]), str(item.params["layer"]))
        for item in document.findings
        if {"family", "layer"} <= item.params.keys()
    }
