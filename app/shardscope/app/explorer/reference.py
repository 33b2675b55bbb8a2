"""The screens of what holds for every checkpoint: the support matrix and the glossary, each searchable."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.screen import Screen

from shardscope.app.explorer.hints import Hints
from shardscope.app.explorer.search import Places, SearchBar
from shardscope.widgets.paragraphs import Paragraphs
from shardscope.widgets.status_lines import Breadcrumbs


class Reference(Screen[None]):
    """One page to read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", id="reference.search", tooltip="Search in this page"),
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
            "escape", "back", "Back", id="reference.back", tooltip="Out of the search, then of this page"
        ),
    ]

    def __init__(self, title: str, page: Paragraphs) -> None:
        super().__init__()
        self.name_of_page = title
        self.page = page

    def compose(self) -> ComposeResult:
        """Draw the page under its title."""
        with Horizontal(id="top"):
            yield Breadcrumbs("shardscope", self.name_of_page)
        yield Container(self.page, id="main")
        yield SearchBar()
        yield Hints()

    def on_mount(self) -> None:
        """Give the keys to the page."""
        self.page.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now: matches are gone through while there is a search."""
        return action != "match" or (self.is_mounted and self.query_one(SearchBar).is_open)

    def action_search(self) -> None:
        """Search in the page."""
        self.query_one(SearchBar).open(Places(self.page.text_lines, self.page.show_line))
        self.refresh_bindings()

    def action_match(self, by: int) -> None:
        """Go to the next match, or to one before."""
        self.query_one(SearchBar).step(by)

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
