"""The map of ranks: every rank a letter, its place on the edges, its files at the foot, and a cursor among them."""

from collections.abc import Iterable
from itertools import product

import pytest
from tests.conftest import settle
from tests.widgets import samples
from tests.widgets.stage import Stage, screen_text

from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology
from shardscope.widgets.mesh_picture import DRAWN, beside, is_drawable, picture
from shardscope.widgets.rank_map import RankMap
from shardscope.widgets.topology_panel import TopologyPanel

Coordinate = tuple[int, ...]


def mesh(
    name: str = "dense", missing: Iterable[Coordinate] = (), twice: Iterable[Coordinate] = (), **sizes: int
) -> Mesh:
    """Return a mesh whose ranks are all there but for `missing`."""
    axes = tuple(Axis(axis, size, Basis.INFERRED) for axis, size in sizes.items())
    gone = tuple(missing)
    seen = tuple(at for at in product(*map(range, sizes.values())) if at not in gone)
    return Mesh(name, axes, seen, gone, tuple(twice))


def drawn(found: Mesh, width: int = 76) -> list[str]:
    """Return the picture of a mesh, and see to it that its places are where its letters are."""
    lines = picture(found, 0, width)
    texts = ["".join(text for text, _ in line.pieces) for line in lines]
    for text, line in zip(texts, lines, strict=True):
        assert line.width <= width
        assert [text[place.x] for place in line.places] == [place.letter for place in line.places]
    places = [place.coordinate for line in lines for place in line.places]
    assert sorted(places) == sorted(product(*map(range, found.extents)))
    return [text.rstrip() for text in texts]


async def said(topology: Topology, width: int = 80) -> str:
    """Return everything that the map says, joined to one line, single spaces."""
    panel = RankMap(topology)
    async with Stage(panel).run_test(size=(width, 40)) as pilot:
        await pilot.pause()
        return " ".join(" ".join(panel.text_lines).split())


# The picture


def test_the_last_axis_runs_to_the_right_and_coordinates_stand_on_the_edges() -> None:
    assert drawn(mesh(tp=2, dp=8, missing=[(0, 5)], twice=[(1, 3)])) == [
        "dp    0 1 2 3 4 5 6 7",
        "tp 0  p p p p p M p p",
        "tp 1  p p p D p p p p",
    ]


def test_an_axis_of_one_rank_takes_no_room() -> None:
    assert drawn(mesh(tp=1, pp=1, dp=4)) == ["dp  0 1 2 3", "    p p p p"]
    assert drawn(mesh(tp=1, pp=1)) == ["pp  0", "    p"]


def test_ranks_that_nothing_names_are_neither_there_nor_missing() -> None:
    some = Mesh("dense", (Axis("dp", 4, Basis.DECLARED),), ((0,), (3,)))
    assert drawn(some)[1] == "    p . . p"


def test_beyond_the_list_of_missing_ranks_those_not_seen_are_missing_too() -> None:
    some = Mesh("dense", (Axis("dp", 6, Basis.DECLARED),), ((0,),), ((1,), (2,)))
    assert drawn(some)[1] == "    p M M M M M"


def test_1024_ranks_of_one_axis_are_folded_into_twenty_lines() -> None:
    lines = drawn(mesh(dp=1024, missing=[(700,)]))
    assert len(lines) == 20
    assert lines[0].split() == ["0", "8", "16", "24", "32", "40", "48"]
    (row,) = [line for line in lines if "M" in line]
    assert row.startswith("dp 672 ")
    assert row.replace("dp 672", "").replace(" ", "").index("M") == 700 - 672


def test_1024_ranks_of_three_axes_stand_in_columns() -> None:
    lines = drawn(mesh(tp=8, pp=8, dp=16))
    assert len(lines) == 33
    assert lines[1].split() == [
        "tp",
        "0",
        "pp",
        "0",
        "p" * 8,
        "p" * 8,
        "tp",
        "4",
        "pp",
        "0",
        "p" * 8,
        "p" * 8,
    ]


@pytest.mark.parametrize("width", [40, 76, 116])
@pytest.mark.parametrize(
    "found",
    [mesh(dp=1), mesh(rank=100), mesh(tp=8, dp=128), mesh(pp=64, tp=2), mesh(tp=4, pp=4, dp=64)],
    ids=["1", "100", "8x128", "64x2", "4x4x64"],
)
def test_every_rank_is_drawn_once_within_the_width(found: Mesh, width: int) -> None:
    assert drawn(found, width)


def test_what_is_no_rectangle_or_too_large_is_not_drawn() -> None:
    assert is_drawable(mesh(tp=2, dp=2))
    assert not is_drawable(mesh(tp=2, dp=2, twice=[(0,)]))
    assert not is_drawable(mesh(tp=2, dp=2, twice=[(2, 0)]))
    assert not is_drawable(Mesh("dense", (Axis("dp", DRAWN + 1, Basis.DECLARED),), ((0,),)))
    assert not is_drawable(Mesh("dense", (Axis("tp", None, Basis.UNKNOWN),), ((0,), (1,))))


def test_two_pictures_stand_side_by_side_whatever_their_heights() -> None:
    dense, expert = picture(mesh(tp=2, dp=2), 0, 40), picture(mesh("expert", ep=4), 1, 40)
    lines = ["".join(text for text, _ in line.pieces).rstrip() for line in beside(dense, expert)]
    assert lines == ["dp    0 1    ep  0 1 2 3", "tp 0  p p        p p p p", "tp 1  p p"]


# What is said under it


async def test_axes_carry_value_basis_meaning_and_evidence() -> None:
    text = await said(samples.TOPOLOGY, 120)
    assert "dense mesh 15 ranks present, 1 missing, 1 there twice" in text
    assert "tp 2 inferred tensor parallel (mp_rank_00 to mp_rank_01)" in text
    assert "pp unknown pipeline parallel" in text
    assert "missing tp 0 dp 5" in text
    assert "twice tp 1 dp 3" in text
    assert "p present M missing D there twice" in text


async def test_what_is_not_certain_is_said_in_words() -> None:
    axes = (
        Axis("pp_or_ep", 2, Basis.INFERRED, "the second number"),
        Axis("zero_stage", None, Basis.INFERRED, "1 or 2: both write the same names"),
    )
    text = await said(
        Topology((Mesh("dense", axes, ((0,), (1,))),), note="Which it is, the files tell."), 120
    )
    assert "pp or ep 2 inferred pipeline parallel, or expert parallel where there is one stage" in text
    assert "zero stage uncertain inferred what ZeRO partitions (1 or 2: both write the same names)" in text
    assert "Which it is, the files tell." in text


async def test_a_mesh_without_ranks_has_axes_and_no_picture() -> None:
    text = await said(Topology((Mesh("dense", (Axis("tp", 2, Basis.INFERRED),)),)))
    assert text == "Axes of the dense mesh no rank of it is named tp 2 inferred tensor parallel"


async def test_huge_meshes_list_only_what_is_wrong() -> None:
    axes = (Axis("dp", 100_000, Basis.DECLARED),)
    missing = tuple((rank,) for rank in range(100, 200))
    text = await said(Topology((Mesh("dense", axes, tuple((rank,) for rank in range(100)), missing),)))
    assert "100 ranks present, 99,900 missing" in text
    assert "Too many ranks to draw" in text
    assert "dp 163 and 99,836 more" in text


async def test_no_topology_says_what_was_looked_at() -> None:
    text = await said(Topology(note="one file, no rank in its name"))
    assert text == "No rank is named anywhere that was examined. one file, no rank in its name"


# The cursor and the foot

TWO = Topology(
    (mesh(tp=2, dp=4), mesh("expert", ep=2, edp=2, missing=[(1, 1)])),
    (
        RankFiles("dense", (0, 0), ("a/mp_rank_00_model_states.pt", "a/zero_pp_rank_0.pt", "c", "d")),
        RankFiles("expert", (0, 1), ("layer_0_expert_1.pt",)),
    ),
)


async def test_the_foot_names_the_rank_of_the_cursor_and_its_files() -> None:
    panel = TopologyPanel(TWO)
    app = Stage(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        foot = screen_text(app).split("\n")[-3:]
        assert foot[0] == " ep 1 edp 1  missing  what it wrote is not here"  # it starts on what is the matter
        panel.ranks.focus()
        await pilot.press("g")
        await settle(pilot)
        foot = screen_text(app).split("\n")[-3:]
        assert foot == [
            " tp 0 dp 0  present  4 files, enter shows the first",
            " a/mp_rank_00_model_states.pt",
            " a/zero_pp_rank_0.pt  and 2 more",
        ]
        await pilot.press("l")
        await settle(pilot)
        assert screen_text(app).split("\n")[-3] == " tp 0 dp 1  present  no file is its own"


async def test_keys_move_among_the_ranks_of_both_meshes() -> None:
    ranks = RankMap(TWO)
    async with Stage(ranks).run_test(size=(80, 24)) as pilot:
        await pilot.press("g")
        seen = []
        for key in ("l", "down", "right", "right", "right", "up", "left", "m", "G", "h"):
            await pilot.press(key)
            assert ranks.place is not None
            seen.append((key, ranks.place.mesh, ranks.place.coordinate))
        assert seen == [
            ("l", 0, (0, 1)),
            ("down", 0, (1, 1)),
            ("right", 0, (1, 2)),
            ("right", 0, (1, 3)),
            ("right", 1, (1, 0)),
            ("up", 1, (0, 0)),
            ("left", 0, (0, 3)),
            ("m", 1, (1, 1)),
            ("G", 1, (1, 1)),
            ("h", 1, (1, 0)),
        ]


async def test_the_cursor_stays_on_its_rank_when_the_width_changes() -> None:
    ranks = RankMap(Topology((mesh(dp=200),)))
    async with Stage(ranks).run_test(size=(80, 24)) as pilot:
        await pilot.press("down", "l", "l")
        before = ranks.place
        assert before is not None
        await pilot.resize_terminal(50, 24)
        await pilot.pause()
        after = ranks.place
        assert after is not None
        assert after.coordinate == before.coordinate


async def test_below_the_ranks_the_keys_read_on_and_come_back() -> None:
    ranks = RankMap(Topology((mesh(tp=2, dp=4),), note="Some words. " * 60))
    async with Stage(ranks).run_test(size=(60, 10)) as pilot:
        await pilot.press("down")
        place = ranks.place
        await pilot.press("down", "down", "pagedown")
        assert ranks.scroll_offset.y > 2
        assert ranks.place == place
        await pilot.press(*["up"] * 20)
        assert ranks.scroll_offset.y == 0
        assert ranks.place is not None
        assert ranks.place.coordinate[0] == 0


async def test_m_goes_round_what_is_missing_or_twice_and_is_no_key_where_nothing_is() -> None:
    ranks = RankMap(Topology((mesh(dp=8, missing=[(2,), (6,)], twice=[(4,)]),)))
    async with Stage(ranks).run_test(size=(80, 24)) as pilot:
        places = []
        for key in ("m", "m", "m", "M"):
            await pilot.press(key)
            assert ranks.place is not None
            places.append(ranks.place.coordinate[0])
        assert places == [4, 6, 2, 6]
        ranks.show(Topology((mesh(dp=8),)))
        assert not ranks.check_action("trouble", (1,))


async def test_a_rank_is_chosen_by_enter_and_by_the_mouse() -> None:
    panel = TopologyPanel(TWO)
    app = Stage(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        panel.ranks.focus()
        await pilot.press("g", "enter", "l", "enter")
        line = next(line for line in panel.ranks.text_lines if "tp 0" in line)
        x = 1 + line.rindex("p")
        await pilot.click(RankMap, offset=(x, panel.ranks.text_lines.index(line)))
        await pilot.click(RankMap, offset=(x, panel.ranks.text_lines.index(line)))
        await pilot.click(RankMap, offset=(x, 12))
        await settle(pilot)
        chosen = [each.held.files[0] for each in app.said if isinstance(each, TopologyPanel.FilesChosen)]
        assert chosen == ["a/mp_rank_00_model_states.pt", "layer_0_expert_1.pt"]
