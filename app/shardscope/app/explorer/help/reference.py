"""The screens of what holds for every checkpoint: the support matrix, the glossary and the codes, each searchable."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.screen import Screen

from shardscope.app.explorer.checkpoint.search import Places, SearchBar
from shardscope.app.explorer.help.hints import Hints
from shardscope.widgets.paragraphs import Paragraphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.status_lines import Breadcrumbs


class Reference(Screen[None]):
    """One page to read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", id="reference.search", tooltip="Search in this page"),
        Binding(
            "y",
            "copy",
            "Copy command",
            show=False,
            id="reference.copy",
            tooltip="Copy the command that prints the same",
        ),
        Binding("n", "match(1)", "Next match", id="reference.next", tooltip="Go to the next match"),
        Binding(
            "N",
            "match(-1)",
            "Match before",
            show=False,
            id="reference.before",
            tooltip="Go to the match before",
        ),
        Binding(
            "escape,q", "back", "Back", id="reference.back", tooltip="Out of the search, then of this page"
        ),
    ]

    def __init__(self, title: str, page: Paragraphs, at: str | None = None, command: str = "") -> None:
        """`at` is the key of a paragraph to begin at; `command` prints the same."""
        super().__init__()
        self.name_of_page = title
        self.page = page
        self.command = command
        self._at = at

    def compose(self) -> ComposeResult:
        """Draw the page under its title."""
        with Horizontal(id="top"):
            yield Breadcrumbs(
                "shardscope", *self.name_of_page.split(" ", 1) if self.is_code else (self.name_of_page,)
            )
        yield Container(self.page, id="main")
        yield SearchBar()
        yield Hints()

    @property
    def is_code(self) -> bool:
        """Whether it explains one code."""
        return self.name_of_page.startswith("explain ")

    def on_mount(self) -> None:
        """Give the keys to the page."""
        self.page.focus()
        if self._at is not None:
            self.call_after_refresh(self._begin, self._at)

    def _begin(self, key: str) -> None:
        line = self.page.line_of(key)
        if line is not None:
            self.page.move_to(line)
            self.page.scroll_to(y=line, animate=False, force=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now: matches are gone through while there is a search."""
        if action == "copy":
            return bool(self.command)
        return action != "match" or (self.is_mounted and self.query_one(SearchBar).is_open)

    def action_search(self) -> None:
        """Search in the page."""
        self.query_one(SearchBar).open(Places(self.page.text_lines, self.page.show_line))
        self.refresh_bindings()

    def action_match(self, by: int) -> None:
        """Go to the next match, or to one before."""
        self.query_one(SearchBar).step(by)

    def action_copy(self) -> None:
        """Copy the command that prints the same."""
        from shardscope.app.explorer.copying import Copy, copy

        copy(self.app, (Copy("y", "command", self.command),))

    @on(VirtualRows.RowSelected)
    async def _selected(self, event: VirtualRows.RowSelected) -> None:
        """Explain the code that was chosen from the list of them."""
        event.stop()
        from shardscope.widgets.codes_panel import CodesPanel

        if isinstance(self.page, CodesPanel) and self.page.chosen is not None:
            await self.app.run_action(f"read('explain', {self.page.chosen!r})")

    @on(SearchBar.Left)
    def _searched(self) -> None:
        self.page.focus()

    def action_back(self) -> None:
        """Close the search, or else the page."""
        bar = self.query_one(SearchBar)
        if not bar.is_open:
            self.dismiss(None)
            return
        bar.close()
        self.page.show_line(None)
        self.page.focus()
        self.refresh_bindings()
