"""Text that whoever shows it has put into paragraphs: for pages that are made of nouns of several kinds."""

from collections.abc import Callable, Iterable

from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs

Telling = Callable[[int, Glyphs], Iterable[Paragraph]]
"""From the width of a line, and the signs that can be drawn, to what there is to say."""


class Told(Paragraphs):
    """A page of paragraphs.

    `Told(telling=None, *, empty="...", glyphs=None, id=None, classes=None)`, then `show(telling)` as often as there is news.
    """

    BINDING_GROUP_TITLE = "Text"

    def __init__(
        self,
        telling: Telling | None = None,
        *,
        empty: str = "Nothing to show",
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`telling` is None while there is nothing to say."""
        self._telling = telling
        super().__init__(empty=empty, glyphs=glyphs, id=id, classes=classes)

    @property
    def lines(self) -> int:
        """Lines that it needs at its present width."""
        return self.row_count()

    def show(self, telling: Telling | None) -> None:
        """Say something else; what was scrolled to stays."""
        self._telling = telling
        self.rows_changed()

    def paragraphs(self, width: int) -> Iterable[Paragraph]:
        """Return what there is to say."""
        return () if self._telling is None else self._telling(width, self.glyphs)
