"""The tree: lazy branches, splicing, guides, movement; and that its size does not matter."""

from collections.abc import Sequence

import pytest
from textual.app import App, ComposeResult

from shardscope.widgets.glyphs import ASCII, UNICODE, Glyphs
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.virtual_tree import VirtualTree

CHILDREN: dict[int | None, list[int]] = {None: [0, 5], 0: [1, 4], 1: [2, 3], 5: [6]}


class Small:
    """a0 { b1 { c2 c3 } c4 } a5 { c6 }"""

    def __init__(self) -> None:
        self.asked: list[int | None] = []

    def children(self, node: int | None) -> Sequence[int]:
        self.asked.append(node)
        return CHILDREN[node]

    def parent(self, node: int) -> int | None:
        return next(parent for parent, children in CHILDREN.items() if node in children)

    def is_branch(self, node: int) -> bool:
        return node in CHILDREN

    def label(self, node: int) -> Part:
        return f"node {node}"

    def detail(self, node: int) -> Part:
        return f"{node} B", Tone.MUTED

    def marks(self, node: int) -> Sequence[tuple[str, Tone]]:
        return [("E", Tone.STOP)] if node == 3 else []


class Flat(Small):
    """One branch with a hundred thousand leaves, and a branch after it."""

    def children(self, node: int | None) -> Sequence[int]:
        return [0, 100_001] if node is None else range(1, 100_001)

    def parent(self, node: int) -> int | None:
        return None if node in (0, 100_001) else 0

    def is_branch(self, node: int) -> bool:
        return node in (0, 100_001)


class TreeApp(App[None]):
    def __init__(self, source: Small, glyphs: Glyphs = UNICODE) -> None:
        super().__init__()
        self.view = VirtualTree(source, detail_width=6, mark_width=2, glyphs=glyphs)
        self.said: list[tuple[str, int]] = []

    def compose(self) -> ComposeResult:
        yield self.view

    def on_mount(self) -> None:
        self.view.focus()

    def on_virtual_tree_branch_toggled(self, message: VirtualTree.BranchToggled) -> None:
        self.said.append(("open" if message.is_open else "closed", message.node))

    def on_virtual_rows_row_selected(self, message: VirtualTree.RowSelected) -> None:
        self.said.append(("selected", message.row))

    def lines(self) -> list[str]:
        drawn = (self.view.render_line(y).text.rstrip() for y in range(self.view.size.height))
        return [line for line in drawn if line]


async def test_a_branch_is_read_when_it_opens() -> None:
    source = Small()
    app = TreeApp(source)
    async with app.run_test(size=(40, 12)) as pilot:
        assert source.asked == [None]
        await pilot.press("enter")
        assert source.asked == [None, 0]
        assert app.said == [("open", 0)]


@pytest.mark.parametrize(
    ("glyphs", "guides"),
    [
        (
            UNICODE,
            [
                "▾ node 0",
                "├ ▾ node 1",
                "│ ├   node 2",
                "│ └   node 3",
                "└   node 4",
                "▾ node 5",
                "└   node 6",
            ],
        ),
        (
            ASCII,
            [
                "- node 0",
                "|-- node 1",
                "| |-  node 2",
                "| `-  node 3",
                "`-  node 4",
                "- node 5",
                "`-  node 6",
            ],
        ),
    ],
    ids=["unicode", "ascii"],
)
async def test_guides_show_who_hangs_below_whom(glyphs: Glyphs, guides: list[str]) -> None:
    app = TreeApp(Small(), glyphs)
    async with app.run_test(size=(40, 12)):
        for node in (2, 6):
            app.view.reveal(node)
        app.view.open_line(5)
        assert [line[:24].rstrip() for line in app.lines()] == guides


async def test_details_stand_at_the_right_and_marks_after_them() -> None:
    app = TreeApp(Small())
    async with app.run_test(size=(40, 12)):
        app.view.reveal(3)
        row = app.view.render_line(3).text
        assert row == f"{'│ └   node 3':<30}{'3 B':>7} E "


async def test_closing_hides_and_opening_again_shows_what_was_open() -> None:
    app = TreeApp(Small())
    async with app.run_test(size=(40, 12)) as pilot:
        app.view.reveal(2)
        before = app.lines()
        await pilot.press("g", "enter")
        assert [line[:10].rstrip() for line in app.lines()] == ["▸ node 0", "▸ node 5"]
        await pilot.press("enter")
        assert app.lines() == before


async def test_left_and_right_walk_the_levels() -> None:
    app = TreeApp(Small())
    async with app.run_test(size=(40, 12)) as pilot:
        places = []
        for key in ("right", "l", "l", "l", "h", "h", "left", "h"):
            await pilot.press(key)
            places.append(app.view.node)
        # open 0, step to 1, open 1, step to 2, back to 1, close 1, back to 0, close 0
        assert places == [0, 1, 1, 2, 1, 1, 0, 0]
        assert app.view.row_count() == 2


async def test_enter_chooses_a_leaf() -> None:
    app = TreeApp(Small())
    async with app.run_test(size=(40, 12)) as pilot:
        app.view.reveal(4)
        await pilot.press("enter")
        assert app.said[-1] == ("selected", 4)


async def test_a_click_opens_a_branch_and_moves_to_a_leaf() -> None:
    app = TreeApp(Small())
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.click(VirtualTree, offset=(4, 1))
        assert app.said == [("open", 5)]
        await pilot.click(VirtualTree, offset=(4, 2))
        assert app.view.node == 6


async def test_a_hundred_thousand_children_open_and_close() -> None:
    app = TreeApp(Flat())
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.press("enter", "end")
        assert app.view.row_count() == 100_002
        assert app.view.node == 100_001
        await pilot.press("up", "h")
        assert app.view.node == 0
        await pilot.press("h")
        assert app.view.row_count() == 2
