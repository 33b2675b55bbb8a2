"""The picture of a shard map, its words and the transfer matrix, without a checkpoint."""

import pytest
from textual.app import App, ComposeResult

from shardscope.engine.geometry.drawing.atlas import Atlas
from shardscope.engine.geometry.drawing.guide import Guide
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.transfer.compose import compose
from shardscope.engine.model.picture import Mark
from shardscope.engine.model.shardmap import Contiguous, DeviceMesh, MeshAxis, TensorMap
from shardscope.engine.model.shardview import Window
from shardscope.styles import SHEETS
from shardscope.widgets.glyphs import ASCII
from shardscope.widgets.paragraphs import wrap
from shardscope.widgets.shard_map import HUES, ShardPicture, hue
from shardscope.widgets.shard_map_words import legend, piece_words, spot_words
from shardscope.widgets.transfer_matrix import WIDEST, TransferRows


def guide(ranks: int, shape: tuple[int, int] = (64, 32), dim: int = 0) -> Guide:
    """Return a tensor cut among ranks."""
    mesh = DeviceMesh((MeshAxis("tp", ranks),))
    tensor = TensorMap(shape, Contiguous("tp", dim, (shape[dim] // ranks,) * ranks))
    return Guide(Atlas(lower(tensor, mesh)), "F32", tensor, mesh)


class Shown(App[None]):
    """One picture."""

    CSS_PATH = [sheet for sheet in SHEETS if sheet.name == "shardmap.tcss"]  # noqa: RUF012 - Textual's own form

    def __init__(self, found: Guide) -> None:
        super().__init__()
        self.found = found
        self.picture = ShardPicture()
        self.pointed: list[tuple[int, int]] = []

    def compose(self) -> ComposeResult:
        yield self.picture

    def on_mount(self) -> None:
        self.call_after_refresh(self.draw, 0, 0)

    def draw(self, line: int, cell: int) -> None:
        plane = self.found.atlas.full
        room = self.picture.room(plane.rows)
        self.picture.show(self.found.logical(Window(0, plane.rows, 0, plane.columns), *room), line, cell)

    def on_shard_picture_pointed(self, event: ShardPicture.Pointed) -> None:
        self.pointed.append((event.line, event.cell))

    @property
    def lines(self) -> list[str]:
        return [strip.text.rstrip() for strip in self.screen._compositor.render_strips()]


async def test_a_picture_is_letters_beside_numbers_under_a_ruler() -> None:
    app = Shown(guide(4, dim=1))
    async with app.run_test(size=(38, 9)) as pilot:
        await pilot.pause()
        assert app.lines[0] == "     0       |8      |16     |24"
        assert app.lines[1] == "   0 " + "A" * 8 + "B" * 8 + "C" * 8 + "D" * 8
        assert app.lines[8].startswith("  56 A")
        await pilot.click(ShardPicture, offset=(14, 2))
        await pilot.click(ShardPicture, offset=(1, 0))
        await pilot.pause()
        assert app.pointed == [(1, 9)]


async def test_every_cell_of_a_small_place_is_that_of_the_cursor() -> None:
    app = Shown(guide(2, (4, 4)))
    async with app.run_test(size=(40, 20)) as pilot:
        await pilot.pause()
        app.draw(0, 0)
        await pilot.pause()
        here = app.picture.get_component_rich_style("shard--cursor")
        strip = app.picture.render_line(1)
        assert [(segment.text, segment.style == here) for segment in strip if "A" in segment.text] == [
            ("AAAAAA", True),
            ("A" * 18, False),
        ]
        assert app.picture.render_line(2).text == app.picture.render_line(1).text.replace("   0", "    ")
        assert app.picture.render_line(15).text.strip() == ""


def test_letters_have_hues_and_signs_their_own() -> None:
    hues = [hue(letter) for letter in "ABCDEFG"]
    assert len(set(hues)) == HUES
    assert hues[0] == hues[6] == hue("1")
    assert [hue(sign) for sign in "*.!#<"] == ["every", "padding", "gap", "gap", "neighbour"]


def test_a_legend_says_what_fits_and_counts_the_rest() -> None:
    marks = [Mark(letter, f"tp {number}") for number, letter in enumerate("ABCDEFGH")]
    assert legend(marks, 200, ASCII).plain.count("tp") == 8
    short = legend(marks, 40, ASCII).plain
    assert short == "A tp 0   B tp 1   C tp 2   ~ 5 more"
    assert short.isascii()


def words(found: Guide, row: int, column: int) -> str:
    said = [
        text
        for each in spot_words(found.spot(row, column), 0, found.who, found.unit)
        for line in wrap(each, 60)
        for text, _ in line
    ]
    return "".join(said)


def test_a_place_is_told_in_words() -> None:
    said = words(guide(4), 17, 3)
    assert "element [17, 3]" in said
    assert "B tp 1  rank 1" in said
    assert "in its shard [1, 3] of [16, 32]" in said
    assert "tree contiguous over tp: dimension 0 into 4 x 16" in said
    assert said.isascii()


def test_pieces_are_listed_around_the_one_of_the_cursor() -> None:
    found = guide(4)
    rows = found.pieces(1, 0, 8)
    said = [
        "".join(str(part[0] if isinstance(part, tuple) else part) for part in each.parts)
        for each in piece_words(rows, 9, 0, "pieces of tp 1", str)
    ]
    assert said == ["", "pieces of tp 1  9", "0 rows 16-31", "  8 more"]


@pytest.mark.parametrize(("ranks", "is_list"), [(8, False), (WIDEST * 2, True)])
def test_a_transfer_is_a_matrix_with_sums_or_a_list_of_pairs(ranks: int, is_list: bool) -> None:
    shape = (1_024, 4)
    plan = compose(guide(ranks, shape).atlas.lowered, guide(2, shape).atlas.lowered)
    rows = TransferRows(plan, 16)
    assert rows.is_list is is_list
    assert rows.total == "8.0 KiB"
    assert rows.pairs == ranks
    if is_list:
        assert rows.row_count == ranks
        assert [rows.cell(0, column) for column in range(3)] == ["0", "0", "16 B"]
        return
    assert [column.title for column in rows.columns()] == ["from", *(f"to {n}" for n in range(8)), "sum"]
    cells = [
        [cell[0] if isinstance(cell := rows.cell(row, column), tuple) else cell for column in range(10)]
        for row in range(3)
    ]
    assert cells[0] == ["0", *["1.0 KiB"] * 4, *["-"] * 4, "4.0 KiB"]
    assert cells[2] == ["sum", *["1.0 KiB"] * 8, "8.0 KiB"]
