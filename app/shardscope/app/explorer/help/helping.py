"""The help: what every key does on the screen below, and, as soon as something is searched for, terms, subjects and codes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from shardscope.app.explorer.dialogs import Dialog
from shardscope.app.explorer.help.keys import KeyRow
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, heading
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.search_line import SearchLine

MOST: Final = 40
"""Results of one kind that are listed."""


@dataclass(frozen=True)
class Page:
    """Something to read that a search can find."""

    kind: str
    """`glossary`, `matrix` or `explain`."""
    id: str
    name: str
    says: str

    def matches(self, words: list[str]) -> bool:
        """Tell whether every word occurs in it."""
        text = f"{self.kind} {self.name} {self.says}".lower()
        return all(word in text for word in words)


TITLES: Final = {"glossary": "Glossary", "matrix": "Support matrix", "explain": "Codes"}


def pages() -> list[Page]:
    """Return everything there is to read: the terms of the glossary, the subjects of the matrix, the codes."""
    from shardscope.engine import glossary, support_matrix
    from shardscope.engine.model.codes import CODES

    return [
        *(Page("glossary", term.id, term.term, term.meaning) for term in glossary().terms),
        *(
            Page("matrix", row.id, row.title, "what this release does with it")
            for row in support_matrix().rows
        ),
        *(Page("explain", row.code, row.code, row.meaning) for row in CODES.values()),
    ]


class HelpList(Paragraphs):
    """Keys by group, then what else a search found."""

    BINDING_GROUP_TITLE = "Help"

    def __init__(self, rows: list[KeyRow]) -> None:
        super().__init__(empty="Nothing of that name: no key, no term, no code.", id="keys")
        self._rows = rows
        self._pages: list[Page] | None = None
        self._query = ""

    def search(self, query: str) -> None:
        """List what has every word of `query` in it."""
        self._query = query
        if query and self._pages is None:
            self._pages = pages()
        self.rows_changed(0)
        self.scroll_to(y=0, animate=False)

    def paragraphs(self, width: int) -> Iterable[Paragraph]:
        """Return the keys that match, and the pages."""
        rows = [(at, row) for at, row in enumerate(self._rows) if row.matches(self._query)]
        if not self._query:
            words = "The same as plain text, for a screen reader or a pipe: "
            yield Paragraph(((words, Tone.MUTED), "shardscope inspect PATH"))
            yield Paragraph()
        yield from self._key_rows(rows)
        if self._query:
            yield from self._found(self._query.lower().split(), width, is_first=not rows)

    def _key_rows(self, rows: list[tuple[int, KeyRow]]) -> Iterator[Paragraph]:
        width = max((len(row.shown_keys) for _, row in rows), default=0)
        names = max((len(row.description) for _, row in rows), default=0)
        groups = list(dict.fromkeys(row.group for _, row in rows))
        for group in groups:
            if group != groups[0]:
                yield Paragraph()
            yield Paragraph(((group, Tone.HERE),))
            for at, row in rows:
                if row.group == group:
                    tone = Tone.STRONG if row.enabled else Tone.MUTED
                    parts: tuple[Part, ...] = (
                        (f"{row.shown_keys:<{width}}", tone),
                        f"  {row.description:<{names}}  ",
                        (row.tooltip, Tone.MUTED),
                    )
                    yield Paragraph(parts, indent=2, hang=2 + width + 2 + names + 2, key=f"key:{at}")

    def _found(self, words: list[str], width: int, *, is_first: bool) -> Iterator[Paragraph]:
        for kind, title in TITLES.items():
            found = [page for page in self._pages or () if page.kind == kind and page.matches(words)]
            found.sort(key=lambda page: not all(word in page.name.lower() for word in words))
            if found:
                title_lines = heading(title, "enter opens" if kind == "glossary" else "")
                yield from islice(title_lines, 1 if is_first else 0, None)  # no gap at the top
                is_first = False
            for page in found[:MOST]:
                room = max(0, width - 6 - len(page.name))
                says = (
                    page.says
                    if len(page.says) <= room
                    else f"{page.says[: max(0, room - 1)]}{self.glyphs.ellipsis}"
                )
                yield Paragraph(
                    (page.name, (f"  {says}", Tone.MUTED)), indent=2, hang=4, key=f"{kind}:{page.id}"
                )
            if len(found) > MOST:
                yield Paragraph(((f"and {len(found) - MOST:,} more", Tone.MUTED),), indent=2)


class Help(Dialog):
    """The help, over the screen that it is about."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "close", "Close", show=False, id="help.close", tooltip="Close this dialog"),
        Binding("down", "move('cursor', 1)", "Down", show=False, id="help.down", tooltip="Next in the list"),
        Binding("up", "move('cursor', -1)", "Up", show=False, id="help.up", tooltip="Previous in the list"),
        Binding(
            "pagedown", "move('page', 1)", "Page down", show=False, id="help.page_down", tooltip="A page on"
        ),
        Binding(
            "pageup", "move('page', -1)", "Page up", show=False, id="help.page_up", tooltip="A page back"
        ),
    ]

    def __init__(self, rows: list[KeyRow]) -> None:
        super().__init__()
        self.rows = rows
        self.list = HelpList(rows)
        self.list.can_focus = False

    def compose(self) -> ComposeResult:
        """Draw the search field over the list."""
        with Vertical(classes="dialog -help") as box:
            box.border_title = "Keys and words"
            box.border_subtitle = "enter does it, esc closes"
            yield SearchLine(
                placeholder="search the keys, the glossary, the codes", select_on_focus=False, compact=True
            )
            yield self.list

    def on_mount(self) -> None:
        """Give the keys to the field."""
        self.query_one(SearchLine).focus()

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        event.stop()
        self.list.search(event.value)

    def action_move(self, how: str, by: int) -> None:
        """Move in the list while the search field keeps the keys."""
        if how == "cursor":
            self.list.action_cursor(by)
        else:
            self.list.action_page(by)

    @on(Input.Submitted)
    @on(VirtualRows.RowSelected)
    def _chosen(self, event: Input.Submitted | VirtualRows.RowSelected) -> None:
        """Do what the key does, or open the page."""
        event.stop()
        chosen = self.list.chosen
        if chosen is None:
            return
        kind, _, name = chosen.partition(":")
        app = self.app
        self.dismiss(None)
        if kind == "key":
            app.call_later(self.rows[int(name)].run)
        else:
            app.call_later(app.run_action, f"read({kind!r}, {name!r})")
