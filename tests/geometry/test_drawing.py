"""Maps as a person goes through them: every letter of a window against the elements one by one, and what is said of a place."""

import time

import pytest

from shardscope.engine.geometry.drawing.atlas import Atlas
from shardscope.engine.geometry.drawing.axis import cut
from shardscope.engine.geometry.drawing.guide import Guide
from shardscope.engine.geometry.drawing.lanes import around, lanes, longest, ribbon
from shardscope.engine.geometry.drawing.lines import matrix
from shardscope.engine.geometry.drawing.window import closer, following, moved
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.picture import OUTSIDE
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side
from shardscope.engine.model.shardmap import (
    Contiguous,
    DeviceMesh,
    Explicit,
    FlatRange,
    Interleave,
    MeshAxis,
    Node,
    Part,
    Replicate,
    SubParamConcat,
    TensorMap,
    Trim,
)
from shardscope.engine.model.shardview import Drawing, Window

TP = DeviceMesh((MeshAxis("dp", 2), MeshAxis("tp", 4)))
QKV = SubParamConcat(
    0,
    (
        Part(8, Contiguous("tp", 0, (2,) * 4), "q"),
        Part(4, Contiguous("tp", 0, (1,) * 4), "k"),
        Part(4, Replicate(), "v"),
    ),
)
MAPS: dict[str, tuple[tuple[int, ...], Node]] = {
    "rows": ((16, 6), Contiguous("tp", 0, (4, 4, 4, 4))),
    "columns": ((16, 8), Contiguous("tp", 1, (2, 2, 2, 2))),
    "uneven": ((13, 5), Contiguous("tp", 0, (4, 4, 4, 1))),
    "everywhere": ((5, 7), Replicate()),
    "fused": ((16, 3), QKV),
    "flat": ((9, 5), FlatRange("tp", (0, 12, 24, 36), (12, 24, 36, 45))),
    "interleaved": ((24, 2), Interleave("tp", 0, 4, 1, 3)),
    "one dimension": ((40,), Contiguous("tp", 0, (10, 10, 10, 10))),
    "three dimensions": ((3, 8, 4), Contiguous("tp", 1, (2, 2, 2, 2))),
    "no dimension": ((), Replicate()),
    "padded": ((10, 4), Contiguous("tp", 0, (3, 3, 3, 3), Trim(0, 10, 12))),
    "listed": ((3, 5), Explicit("tp", ((0, 7, 3), (14, 2, 9, 1), (4, 5), (6, 8, 10, 11, 12, 13)))),
}


def guide(name: str) -> Guide:
    shape, node = MAPS[name]
    tensor = TensorMap(shape, node)
    return Guide(Atlas(lower(tensor, TP)), "F32", tensor, TP)


def holders(lowered: Lowered) -> dict[int, set[int]]:
    """Return who holds each element, one by one."""
    found: dict[int, set[int]] = {}
    for shard in lowered.ranks:
        for piece in shard.held:
            if isinstance(piece, Piece):
                addresses = [piece.source.offset]
                for extent, stride in zip(piece.shape, piece.source.strides, strict=True):
                    addresses = [at + n * stride for at in addresses for n in range(extent)]
            else:
                addresses = [
                    int.from_bytes(piece.source[n : n + 8], "little") for n in range(0, len(piece.source), 8)
                ]
            for address in addresses:
                found.setdefault(address, set()).add(shard.rank)
    return found


def cells(drawing: Drawing) -> list[tuple[Window, str]]:
    return [
        (drawing.span(line, cell), letter)
        for line, letters in enumerate(drawing.cells)
        for cell, letter in enumerate(letters)
        if letter != OUTSIDE
    ]


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize(("width", "height"), [(64, 20), (7, 5), (3, 2), (1, 1)])
def test_a_cell_has_the_letter_of_those_who_hold_its_first_element(
    name: str, width: int, height: int
) -> None:
    atlas = guide(name).atlas
    held = holders(atlas.lowered)
    drawing = atlas.logical(atlas.full.window, width, height)
    assert len(drawing.cells) <= height
    assert all(len(line) <= width for line in drawing.cells)
    spans = set()
    for span, letter in cells(drawing):
        address = span.row * atlas.full.columns + span.column
        assert letter == atlas.letter(tuple(sorted(held[address])))
        spans.add(span)
        if not drawing.note:
            inside = {
                tuple(sorted(held[row * atlas.full.columns + column]))
                for row in range(span.row, span.row + span.rows)
                for column in range(span.column, span.column + span.columns)
            }
            assert len(inside) == 1
    assert sum(span.rows * span.columns for span in spans) == atlas.lowered.elements


@pytest.mark.parametrize("name", [name for name in MAPS if name != "no dimension"])
def test_a_window_shows_what_the_whole_has_there(name: str) -> None:
    atlas = guide(name).atlas
    held = holders(atlas.lowered)
    rows, columns = atlas.full.rows, atlas.full.columns
    window = Window(rows // 3, max(1, rows // 2), columns // 3, max(1, columns // 2))
    for span, letter in cells(atlas.logical(window, 9, 6)):
        assert window.holds(span.row, span.column)
        assert letter == atlas.letter(tuple(sorted(held[span.row * columns + span.column])))


@pytest.mark.parametrize("name", MAPS)
def test_a_shard_says_of_each_element_where_it_comes_from(name: str) -> None:
    found = guide(name)
    for number, group in enumerate(found.atlas.groups):
        plane = matrix(group.shard.shape)
        drawing = found.atlas.shard(number, plane.window, 64, 20)
        letters = "".join(drawing.cells)
        assert ("." in letters) == bool(group.shard.padding)
        for row in range(plane.rows):
            for column in range(plane.columns):
                spot = found.shard_spot(number, row, column)
                line, cell = drawing.cell(row, column)
                assert spot.letter == drawing.cells[line][cell]
                if spot.index is None:
                    assert "padding" in spot.says
                    continue
                address = 0
                for at, extent in zip(spot.index, found.atlas.lowered.shape, strict=True):
                    address = address * extent + at
                back = found.atlas.held([address])[0]
                assert row * plane.columns + column in [one.address for one in back if one.group == number]


def test_parts_of_a_fused_tensor_have_lines_of_their_own_and_their_names() -> None:
    found = guide("fused")
    drawing = found.logical(found.atlas.full.window, 18, 6)
    named = {label.text: drawing.cells[label.line] for label in drawing.labels}
    assert list(named) == ["q", "k", "v"]
    assert set(named["v"]) == {"*"}
    assert named["k"] == "A" * 9 + "B" * 9
    spot = found.spot(9, 0)
    assert spot.path == ("part k of q, k, v along dimension 0", "contiguous over tp: dimension 0 into 4 x 1")
    assert [(one.ranks, one.place) for one in spot.holdings] == [((1, 5), "tp 1")]


def test_a_place_is_told_down_to_the_bytes_of_its_file() -> None:
    tensor = TensorMap((8, 4), Contiguous("tp", 0, (4, 4)))
    mesh = DeviceMesh((MeshAxis("tp", 2),))
    parts = tuple(
        Fragment(label, (4, 4), Record(f"rank_{label}.pt", 1_000, 200, 200), 64, strides)
        for label, strides in enumerate([None, (1, 4)])
    )
    whole = LogicalTensor("w", "F32", (8, 4), tensor, mesh, parts)
    found = Guide(Atlas(lower(tensor, mesh)), "F32", tensor, mesh, whole)
    first = found.spot(1, 2).holdings[0]
    assert first.element is not None
    assert (first.element.file, first.element.begin, first.element.end) == ("rank_0.pt", 1_088, 1_092)
    assert first.stored is not None
    assert (first.stored.begin, first.stored.end) == (1_064, 1_128)
    second = found.spot(5, 2).holdings[0]
    assert second.element is not None
    assert second.element.begin == 1_064 + 4 * (1 + 2 * 4)
    assert (second.index, second.full, second.strides) == ((1, 2), "rows 4-7", (1,))


def test_what_nobody_holds_is_a_gap_and_what_is_outside_is_said() -> None:
    piece = Piece((8,), Side(0, (1,)), Side(0, (1,)), (0,))
    found = Guide(Atlas(Lowered((4, 4), (RankShard(0, (2, 4), (piece,)),))), "F32")
    drawing = found.logical(found.atlas.full.window, 20, 4)
    assert [set(line) for line in drawing.cells] == [{"A"}, {"A"}, {"!"}, {"!"}]
    assert found.spot(3, 0).says == "a gap: no rank holds it"
    assert [mark.means for mark in drawing.marks] == ["rank 0", "no rank"]
    assert found.spot(9, 0).says == "outside the tensor"


def test_stretches_share_cells_in_proportion_and_none_goes_without() -> None:
    axis = cut(0, 1_000_003, 10, (1, 2, 1_000_000))
    assert axis.exact
    assert [axis.starts[n] for n in axis.edges] == [1, 2, 1_000_000]
    assert len(axis.starts) == 10
    assert cut(0, 100, 9, (25, 50, 75)).starts == (0, 12, 25, 37, 50, 62, 75, 87)
    assert not cut(0, 100, 3, (10, 20, 30)).exact
    assert cut(0, 4, 9, (1,)).starts == (0, 1, 2, 3)
    wide = cut(0, 4, 9, (1,), repeat=6)
    assert (wide.starts, wide.edges) == ((0, 0, 1, 1, 2, 2, 3, 3), (2,))
    assert [wide.span(n) for n in (0, 1, 7)] == [(0, 1), (0, 1), (3, 4)]
    assert wide.cell(3) == 6
    assert cut(5, 0, 9, ()).starts == ()


def test_a_window_costs_what_is_in_it() -> None:  # R190
    def cost(rows: int) -> float:
        atlas = Atlas(lower(TensorMap((rows, 4096), Contiguous("tp", 0, (rows // 4,) * 4)), TP))
        atlas.logical(atlas.full.window, 60, 16)
        times = []
        for _ in range(7):
            begin = time.thread_time()
            atlas.logical(atlas.full.window, 60, 16)
            times.append(time.thread_time() - begin)
        return min(times)

    assert cost(1_000_000_000) < 5 * cost(1_000)


# Moving about


def places(name: str, window: Window | None = None, size: tuple[int, int] = (9, 5)) -> tuple[Guide, Drawing]:
    found = guide(name)
    return found, found.atlas.logical(window or found.atlas.full.window, *size)


@pytest.mark.parametrize("name", MAPS)
def test_steps_lead_through_every_cell_and_back(name: str) -> None:
    _, drawing = places(name)
    seen = [(0, 0)]
    while (there := moved(drawing, seen[-1], 0, 1)) != seen[-1]:
        seen.append(there)
    while (there := moved(drawing, seen[-1], 1, 0)) != seen[-1]:
        seen.append(there)
    assert len(set(seen)) == len(seen)
    end = seen[-1]
    assert moved(drawing, end, 40, 0) == end
    assert moved(drawing, moved(drawing, end, -200, 0), 0, -200) == (0, 0)
    assert drawing.cell(*end)[0] == len(drawing.cells) - 1


def test_the_window_follows_the_cursor_and_stays_within_the_whole() -> None:
    window = Window(4, 4, 2, 2)
    assert following(window, (16, 8), (5, 3)) == window
    assert following(window, (16, 8), (8, 1)) == Window(5, 4, 1, 2)
    assert following(window, (16, 8), (15, 7)) == Window(12, 4, 6, 2)
    assert following(window, (16, 8), (0, 0)) == Window(0, 4, 0, 2)


def test_from_a_thousand_million_rows_down_to_one() -> None:
    node = Interleave("tp", 0, 1, 128, 1)
    atlas = Atlas(lower(TensorMap((1_000_000_000 // 512 * 512, 4096), node), TP))
    window, at = atlas.full.window, (123_456_789, 17)
    sizes = []
    while (nearer := closer(window, (atlas.full.rows, 4096), atlas.borders, at, (16, 60))) != window:
        window = nearer
        assert window.holds(*at)
        drawing = atlas.logical(window, 60, 16)
        assert len(drawing.cells) <= 16
        sizes.append((window.rows, window.columns))
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) < 16
    assert sizes[0][0] < 1_000_000_000 // 3
    assert (window.rows, window.columns) == (16, 60)


def test_boxes_are_found_outright_and_by_a_sweep_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MAPS:
        atlas = guide(name).atlas
        addresses = range(atlas.lowered.elements)
        direct = atlas.held(addresses)
        with monkeypatch.context() as patched:
            patched.setattr("shardscope.engine.geometry.drawing.index.DIRECT", -1)
            assert atlas.held(addresses) == direct


def test_a_ribbon_costs_what_is_in_sight_of_it() -> None:
    def cost(count: int) -> float:
        record = Record("flat.pt", 0, 400 * count, 400 * count)
        tensors = [
            LogicalTensor(
                f"t{n}",
                "F32",
                (100,),
                TensorMap((100,), Replicate()),
                TP,
                (Fragment(0, (100,), record, 400 * n),),
            )
            for n in range(count)
        ]
        found = lanes(tensors[count // 2], tensors)
        assert found[0].neighbours == (f"t{count // 2 - 1}", f"t{count // 2 + 1}")
        near, whole = around(found), Window(0, 1, 0, longest(found))
        drawn = ribbon(found, ["A"], ["dp 0"], near, 30, 4)
        assert drawn.cells[0] == "<" * 10 + "A" * 10 + ">" * 10
        assert not drawn.note
        assert ribbon(found, ["A"], ["dp 0"], whole, 30, 4).note == "a cell shows its first byte"
        times = []
        for _ in range(7):
            begin = time.thread_time()
            ribbon(found, ["A"], ["dp 0"], near, 30, 4)
            ribbon(found, ["A"], ["dp 0"], whole, 30, 4)
            times.append(time.thread_time() - begin)
        return min(times)

    assert cost(20_000) < 5 * cost(200)
