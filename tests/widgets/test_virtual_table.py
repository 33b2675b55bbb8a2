"""The table: cursor, order, widths, scrolling, empty; and that its size does not matter."""

from array import array

from textual.app import App, ComposeResult

from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.virtual_table import Column, VirtualTable

COLUMNS = (Column("name", 12, grow=1), Column("bytes", 8, right=True), Column("file", 10))


class Numbers:
    """`count` rows that remember which of them were asked for."""

    def __init__(self, count: int) -> None:
        self.row_count = count
        self.asked: set[int] = set()

    def cell(self, row: int, column: int) -> Part:
        self.asked.add(row)
        return (f"row {row}", Tone.PLAIN) if column == 0 else str(row * 10)


class TableApp(App[None]):
    def __init__(self, count: int, columns: tuple[Column, ...] = COLUMNS) -> None:
        super().__init__()
        self.source = Numbers(count)
        self.table = VirtualTable(columns, self.source, empty="Nothing here")
        self.messages: list[object] = []

    def compose(self) -> ComposeResult:
        yield self.table

    def on_mount(self) -> None:
        self.table.focus()

    def on_virtual_rows_row_highlighted(self, message: VirtualTable.RowHighlighted) -> None:
        self.messages.append(("highlighted", message.row))

    def on_virtual_rows_row_selected(self, message: VirtualTable.RowSelected) -> None:
        self.messages.append(("selected", message.row))

    def on_virtual_table_sort_requested(self, message: VirtualTable.SortRequested) -> None:
        self.messages.append(("sort", message.column, message.descending))
        self.table.show_sorted(self.table.order, message.column, descending=message.descending)

    def drawn(self) -> list[str]:
        return [self.table.render_line(y).text for y in range(self.table.size.height)]


async def test_only_rows_on_the_screen_are_asked_for() -> None:
    app = TableApp(1_000_000)
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        assert app.source.asked == set(range(11))  # one line is the titles
        await pilot.press("end")
        assert app.table.cursor == 999_999
        assert app.drawn()[-1].startswith("row 999999")
        assert len(app.source.asked) <= 22


async def test_the_keys_of_terminals_move_the_cursor() -> None:
    app = TableApp(100)
    async with app.run_test(size=(60, 11)) as pilot:
        places = []
        for key in ("down", "j", "k", "pagedown", "pageup", "G", "up", "g", "end", "home", "up"):
            await pilot.press(key)
            places.append(app.table.cursor)
        assert places == [1, 2, 1, 11, 1, 99, 98, 0, 99, 0, 0]


async def test_the_titles_stay_when_rows_scroll() -> None:
    app = TableApp(100)
    async with app.run_test(size=(60, 11)) as pilot:
        await pilot.press("G")
        lines = app.drawn()
        assert lines[0].split() == ["name", "bytes", "file"]
        assert [line.split()[1] for line in lines[1:]] == [str(row) for row in range(90, 100)]


async def test_order_is_taken_as_given_and_the_cursor_stays_on_its_row() -> None:
    app = TableApp(100)
    async with app.run_test(size=(60, 11)) as pilot:
        app.table.move_to_row(42)
        app.table.show_rows(array("L", [7, 42, 3]))
        await pilot.pause()
        assert (app.table.cursor, app.table.row) == (1, 42)
        assert [line.split()[1] for line in app.drawn()[1:4]] == ["7", "42", "3"]
        app.table.show_rows(array("L", [5, 6]))
        assert (app.table.cursor, app.table.row) == (0, 5)


async def test_messages_name_the_row_of_the_source() -> None:
    app = TableApp(100)
    async with app.run_test(size=(60, 11)) as pilot:
        app.table.show_rows(array("L", [9, 8, 7]))
        await pilot.press("down", "enter")
        assert app.messages[-2:] == [("highlighted", 8), ("selected", 8)]


async def test_sorting_is_asked_for_by_key_and_by_click_and_shown_in_the_title() -> None:
    app = TableApp(100)
    async with app.run_test(size=(60, 11)) as pilot:
        await pilot.press("s")
        assert "name ▲" in app.drawn()[0]
        await pilot.press("S")
        assert "name ▼" in app.drawn()[0]
        await pilot.press("s", "s", "s")
        assert [m for m in app.messages if isinstance(m, tuple) and m[0] == "sort"] == [
            ("sort", 0, False),
            ("sort", 0, True),
            ("sort", 1, False),
            ("sort", 2, False),
            ("sort", None, False),
        ]
        app.messages.clear()
        await pilot.click(VirtualTable, offset=(1, 0))
        await pilot.click(VirtualTable, offset=(1, 0))
        assert app.messages == [("sort", 0, False), ("sort", 0, True)]


async def test_a_click_moves_and_a_second_one_chooses() -> None:
    app = TableApp(100)
    async with app.run_test(size=(60, 11)) as pilot:
        await pilot.click(VirtualTable, offset=(3, 4))
        assert app.table.cursor == 3
        await pilot.click(VirtualTable, offset=(3, 4))
        assert ("selected", 3) in app.messages


async def test_growing_columns_share_the_room_and_follow_a_resize() -> None:
    app = TableApp(3)
    async with app.run_test(size=(60, 11)) as pilot:
        await pilot.pause()
        assert {len(line) for line in app.drawn()} == {60}
        assert app.drawn()[0].endswith("file      ")
        await pilot.resize_terminal(90, 11)
        await pilot.pause()
        assert {len(line) for line in app.drawn()} == {90}
        assert app.drawn()[0].endswith("file      ")


async def test_a_narrow_terminal_scrolls_sideways() -> None:
    app = TableApp(3, (Column("first", 40), Column("second", 40)))
    async with app.run_test(size=(50, 11)) as pilot:
        await pilot.pause()
        assert "second" in app.drawn()[0]
        await pilot.press("l", "l")
        assert app.table.scroll_offset.x == 16
        assert app.drawn()[0].startswith(" " * 26 + "second")
        await pilot.press("h", "left")
        assert app.table.scroll_offset.x == 0


async def test_no_rows_say_so() -> None:
    app = TableApp(0)
    async with app.run_test(size=(60, 11)) as pilot:
        await pilot.press("down", "enter", "G", "pageup")
        assert app.drawn()[1].startswith("Nothing here")
        assert app.table.row is None
        assert app.messages == []
