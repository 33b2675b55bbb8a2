"""What pictures of cells have in common: styles by name that are looked up once, and word of another size."""

from typing import ClassVar

from rich.style import Style
from textual.message import Message
from textual.widget import Widget

from shardscope.widgets.glyphs import Glyphs, terminal_glyphs


class CellPicture(Widget):
    """A picture that is drawn line by line; a subclass has the lines, and a `Resized` and a `Pointed` of its own."""

    ALLOW_SELECT = False
    STYLES: ClassVar[str]
    """What the names of its component classes begin with."""

    class Resized(Message):
        """There is another number of cells."""

        def can_replace(self, message: Message) -> bool:
            """Only the newest size matters."""
            return isinstance(message, type(self))

    class Pointed(Message):
        """A cell was clicked."""

        def __init__(self, line: int, cell: int) -> None:
            super().__init__()
            self.line = line
            self.cell = cell

    def __init__(
        self,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.glyphs = glyphs or terminal_glyphs()
        self._known: dict[str, Style] = {}

    def notify_style_update(self) -> None:
        """Forget what was drawn in other styles."""
        super().notify_style_update()
        self._known.clear()

    def style_of(self, name: str) -> Style:
        """Return the style of that name; without one that of the widget."""
        if not name:
            return self.rich_style
        style = self._known.get(name)
        if style is None:
            style = self._known[name] = self.get_component_rich_style(f"{self.STYLES}--{name}")
        return style

    def on_resize(self) -> None:
        """Tell that there is another number of cells."""
        self.post_message(self.Resized())
