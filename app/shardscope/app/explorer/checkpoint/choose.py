"""The dialog that offers the saves of a folder, or the parts of a composite checkpoint, to be looked at alone."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from shardscope.app.explorer.checkpoint.parts import PartOf, recommended
from shardscope.widgets.figures import plural, size
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, content
from shardscope.widgets.search_line import SearchLine
from shardscope.widgets.virtual_table import Column, VirtualTable

COLUMNS: Final = (
    Column("name", 20, grow=2),
    Column("format", 16, grow=1),
    Column("files", 9, right=True),
    Column("size", 9, right=True),
    Column("named by", 8),
)
TALLEST: Final = 14
"""Rows that the list has without scrolling."""


class PartRows:
    """The rows of the list."""

    def __init__(self, parts: Sequence[PartOf]) -> None:
        self._parts = parts

    @property
    def row_count(self) -> int:
        """How many saves or parts there are."""
        return len(self._parts)

    def cell(self, row: int, column: int) -> Part:
        """Return a column of a row."""
        part = self._parts[row]
        tone = Tone.PLAIN if part.path is not None else Tone.MUTED
        match column:
            case 0:
                told = part.is_save or part.name.startswith(part.kind)
                words = part.name if told else f"{part.kind} {part.name}"
                return words, tone
            case 1:
                return part.format, tone
            case 2:
                return part.files, tone
            case 3:
                return size(part.size), tone
        return part.named_by, Tone.HERE


class Choose(ModalScreen[bytes | None]):
    """Asks for one of them. Ends with its path, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Back", id="choose.close", tooltip="Close the list; nothing else happens"),
        Binding(
            "down", "move('cursor', 1)", "Down", show=False, id="choose.down", tooltip="Next in the list"
        ),
        Binding("up", "move('cursor', -1)", "Up", show=False, id="choose.up", tooltip="Previous in the list"),
        Binding(
            "pagedown",
            "move('page', 1)",
            "Page down",
            show=False,
            id="choose.page_down",
            tooltip="A page further",
        ),
        Binding(
            "pageup", "move('page', -1)", "Page up", show=False, id="choose.page_up", tooltip="A page back"
        ),
    ]

    def __init__(self, parts: tuple[PartOf, ...]) -> None:
        super().__init__()
        self.parts = parts
        columns = COLUMNS if any(each.named_by for each in parts) else COLUMNS[:-1]
        self.rows = VirtualTable(columns, PartRows(parts), empty="Nothing has such a name")
        self.rows.can_focus = False

    def compose(self) -> ComposeResult:
        """Draw the field over the list."""
        saves = self.parts[0].is_save
        with Vertical(classes="dialog -list") as box:
            box.border_title = "Saves side by side" if saves else "Parts of this checkpoint"
            box.border_subtitle = "enter opens, esc comes back"
            count = len(self.parts)
            words = (
                f"{plural(count, 'save')}; nothing tells which one is meant."
                if saves
                else f"{plural(count, 'part')}; those in a folder or a file of their own can be looked at alone."
            )
            yield Static(content((words, Tone.MUTED)), classes="why")
            yield SearchLine(placeholder="type a part of the name", compact=True, select_on_focus=False)
            self.rows.styles.height = min(count, TALLEST) + 1
            yield self.rows
            yield Static(id="said")

    def on_mount(self) -> None:
        """Give the keys to the field, and the cursor to what is most likely meant."""
        self.query_one(SearchLine).focus()
        self.rows.move_to(recommended(self.parts))

    def action_close(self) -> None:
        """Close the list."""
        self.dismiss(None)

    def action_move(self, how: str, by: int) -> None:
        """Move in the list while the field keeps the keys."""
        if how == "cursor":
            self.rows.action_cursor(by)
        else:
            self.rows.action_page(by)

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        event.stop()
        words = event.value.lower().split()
        self.rows.show_rows(
            [
                at
                for at, part in enumerate(self.parts)
                if all(
                    word in f"{part.kind} {part.name} {part.format} {part.named_by}".lower() for word in words
                )
            ]
        )

    @on(VirtualTable.SortRequested)
    def _keep_order(self, event: VirtualTable.SortRequested) -> None:
        event.stop()

    @on(Input.Submitted)
    @on(VirtualRows.RowSelected)
    def _choose(self, event: Input.Submitted | VirtualRows.RowSelected) -> None:
        event.stop()
        row = self.rows.row
        if row is None:
            return
        if (path := self.parts[row].path) is not None:
            self.dismiss(path)
        else:
            words = "It shares its folder with others: there is nothing to open for it alone."
            self.query_one("#said", Static).update(Content.styled(words, "$text-warning"))
