"""A bare app around one widget, with the style sheet of the widgets."""

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.message import Message
from textual.widget import Widget

from shardscope.styles import SHEETS


class Stage(App[None]):
    """Shows a widget, gives it the keys and keeps what it says."""

    CSS_PATH: ClassVar = [next(sheet for sheet in SHEETS if sheet.name == "widgets.tcss")]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, *widgets: Widget, theme: str = "textual-dark") -> None:
        super().__init__(ansi_color=theme.startswith("ansi"))  # or NO_COLOR would draw black on black
        self.widgets = widgets
        self.theme = theme
        self.said: list[Message] = []

    def compose(self) -> ComposeResult:
        yield from self.widgets

    def on_mount(self) -> None:
        for widget in self.widgets:
            if widget.focusable:
                widget.focus()
                return

    async def _dispatch_message(self, message: Message) -> None:
        self.said.append(message)
        await super()._dispatch_message(message)


def screen_text(app: App[None]) -> str:
    """Return what is drawn, line by line, without styles."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)
