"""The tabs and the panels behind them, each made when it is first shown."""

from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Tab, Tabs

from shardscope.app.explorer.checkpoint.panels import Found, Panel, panels_of
from shardscope.widgets.glyphs import terminal_glyphs
from shardscope.widgets.safe import Tone, content

WIDE_GAP: Final = 2
"""Cells between two tabs where there is room."""


def short(count: int) -> str:
    """Return a count in at most five characters: `288`, `12.3k`, `1.0M`. The panel itself has the exact one."""
    for unit, size in (("", 1), ("k", 1e3), ("M", 1e6)):
        if count < 1000 * size or unit == "M":
            break
    shown = count / size
    return f"{shown:.0f}{unit}" if not unit or shown >= 100 else f"{shown:.1f}{unit}"


class Panels(Container):
    """The tabs and the panel of the active one."""

    class Switched(Message):
        """Another panel is in front."""

        def __init__(self, panel: str) -> None:
            super().__init__()
            self.panel = panel

    def __init__(self, found: Found) -> None:
        super().__init__()
        self._found = found
        self.all = panels_of(found)
        self._drawn: dict[str, object] = {}
        """What each panel was filled with."""
        self.active = self.all[0].id
        self._short = False
        """Whether titles are cut short, for want of room."""

    def compose(self) -> ComposeResult:
        """Draw the tabs; the first panel follows when it is switched to."""
        tabs = Tabs(*(Tab(self._label(panel), id=panel.id) for panel in self.all))
        tabs.can_focus = False
        yield tabs
        yield self._made(self.all[0])

    def _label(self, panel: Panel) -> Content:
        title = panel.short if self._short and panel.short else panel.title
        if panel.count is None or (count := panel.count(self._found)) is None:
            return Content(title)
        tone, glyphs = panel.tone(self._found), terminal_glyphs()
        sign = {Tone.CAUTION: glyphs.caution, Tone.STOP: glyphs.stop}.get(tone, "")  # never by colour alone
        return content(f"{title} ", (f"{sign}{short(count)}", tone))

    def on_resize(self) -> None:
        """Make the tabs fit."""
        self._label_tabs()

    def _label_tabs(self) -> None:
        """Label the tabs so that all of them are in sight: with less between them, or with short titles, for want of room."""
        room = self.content_size.width
        self._short = False
        cells = sum(self._label(panel).cell_length for panel in self.all)
        tight = cells + WIDE_GAP * len(self.all) > room
        self._short = tight and cells + len(self.all) - 1 > room
        self.set_class(tight, "-tight")
        for panel in self.all:
            self.query_one(f"#{panel.id}", Tab).label = self._label(panel)

    def _made(self, panel: Panel) -> Widget:
        widget = panel.make()
        widget.id = f"panel-{panel.id}"
        return widget

    def panel(self, name: str) -> Widget | None:
        """Return the widget of a panel, or None while it was never shown."""
        return next(iter(self.query_children(f"#panel-{name}")), None)

    @property
    def _active_panel(self) -> Panel:
        return next(panel for panel in self.all if panel.id == self.active)

    @property
    def front(self) -> Widget | None:
        """The widget of the active panel."""
        return self.panel(self.active)

    @property
    def front_keys(self) -> Widget | None:
        """The widget in the active panel that takes the keys."""
        front, keys = self.front, self._active_panel.keys
        return front if front is None or keys is None else front.query_one(keys)

    async def switch(self, name: str) -> None:
        """Bring a panel to the front and give it the keys.

        It is done when this returns and not when the tabs have answered: the next key may already be on its way.
        """
        tabs = self.query_one(Tabs)
        if tabs.active != name:
            with tabs.prevent(Tabs.TabActivated):
                tabs.active = name
        self.active = name
        if self.front is None:
            await self.mount(self._made(self._active_panel))
        for widget in self.query_children("*").exclude("Tabs"):
            widget.display = widget.id == f"panel-{name}"
        self._freshen()
        self.focus_front()
        self.post_message(self.Switched(name))

    async def step(self, by: int) -> None:
        """Go to the panel `by` tabs to the right, around the ends."""
        names = [panel.id for panel in self.all]
        await self.switch(names[(names.index(self.active) + by) % len(names)])

    def show(self, found: Found) -> None:
        """Draw newer facts: at once in the active panel, in the others when they come to the front."""
        self._found = found
        self._label_tabs()
        self._freshen()

    def _freshen(self) -> None:
        panel, widget = self._active_panel, self.front
        if widget is None:
            return
        facts = panel.facts(self._found)
        if panel.id not in self._drawn or self._drawn[panel.id] != facts:
            self._drawn[panel.id] = facts
            panel.fill(widget, self._found)

    @on(Tabs.TabActivated)
    async def _tab_clicked(self, event: Tabs.TabActivated) -> None:
        event.stop()
        if event.tab.id is not None:
            await self.switch(event.tab.id)

    def focus_front(self) -> None:
        """Give the keys to the active panel."""
        if self.front_keys is not None:
            self.screen.set_focus(self.front_keys)
