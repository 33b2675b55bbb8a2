"""Pictures against brute force, and their cost."""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from shardscope.engine.geometry.describing.picture import BANDS, picture, shard_picture
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.model.picture import GAP, Picture
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import Contiguous, DeviceMesh, FlatRange, Replicate, TensorMap, Trim
from tests.geometry.layouts import LAYOUTS
from tests.geometry.trees import PADDING, holders_of, maps, mesh_of, shown


def cells(drawn: Picture, elements: int, *, flat: bool) -> Iterator[tuple[int, str]]:
    """Yield the address that each cell shows, and its letter."""
    for line in drawn.lines:
        row = line.first if flat else line.first * drawn.columns
        for start, letter in zip(drawn.starts, line.cells, strict=True):
            if row + start < elements:
                yield row + start, letter


@settings(max_examples=200, deadline=None)
@given(maps())
def test_every_cell_has_the_letter_of_those_who_hold_it(drawn: tuple[TensorMap, DeviceMesh]) -> None:
    tensor, mesh = drawn
    lowered = lower(tensor, mesh)
    held = holders_of({rank: one.elements.reshape(-1) for rank, one in shown(tensor, mesh).items()})
    small = picture(lowered, 7, 5)
    means = {mark.letter: mark.ranks for mark in small.legend}

    for address, letter in cells(small, lowered.elements, flat=len(tensor.shape) == 1):
        assert (letter == GAP) == (address not in held)
        if letter != GAP:
            assert means[letter] == held[address]


@settings(max_examples=200, deadline=None)
@given(maps())
def test_the_letters_of_a_shard_are_in_the_order_of_the_tensor(drawn: tuple[TensorMap, DeviceMesh]) -> None:
    tensor, mesh = drawn
    lowered = lower(tensor, mesh)
    for rank, one in shown(tensor, mesh).items():
        small = shard_picture(lowered, rank, 12, 12)
        sources = one.elements.reshape(-1)
        seen: dict[str, list[int]] = {}
        for address, letter in cells(small, sources.size, flat=one.elements.ndim == 1):
            assert (letter == ".") == (sources[address] == PADDING)
            if letter != ".":
                seen.setdefault(letter, []).append(int(sources[address]))
        columns = tensor.shape[-1] if tensor.shape else 1
        by_row = {letter: {at // columns for at in found} for letter, found in seen.items()}
        by_column = {letter: {at % columns for at in found} for letter, found in seen.items()}
        assert rising(by_row) or rising(by_column)


def rising(found: dict[str, set[int]]) -> bool:
    """Tell whether the bands of letters follow one another."""
    order = [found[letter] for letter in BANDS if letter in found]
    return all(max(one) < min(other) for one, other in pairwise(order))


def test_replicas_padding_and_gaps_have_signs_of_their_own() -> None:
    vocabulary = lower(
        TensorMap((10, 3), Contiguous("tp", 0, (6, 6), of=Trim(0, 10, 12))), mesh_of(dp=2, tp=2)
    )
    everywhere = lower(TensorMap((4, 4), Replicate()), mesh_of(tp=3))
    partial = lower(TensorMap((6,), FlatRange("tp", (0, 4), (2, 6))), mesh_of(tp=2))

    cut = [line.cells for line in shard_picture(vocabulary, 1).lines]
    assert cut == ["ggg", "hhh", "iii", "jjj", "...", "..."]
    assert {line.cells for line in picture(everywhere).lines} == {"****"}
    assert [line.cells for line in picture(partial).lines] == ["AA!!BB"]
    assert picture(partial).legend[-1].means == "held by no rank"


# R190
def test_a_tensor_of_a_billion_rows_is_drawn_at_once() -> None:
    huge = lower(TensorMap((10**9, 4096), Contiguous("tp", 0, (125_000_000,) * 8)), mesh_of(tp=8))
    budget = Budget()
    drawn = picture(huge, 64, 16, budget)

    assert [line.cells[0] for line in drawn.lines] == list("AABBCCDDEEFFGGHH")
    assert drawn.lines[1].first == 62_500_000
    assert sum(budget.spent.values()) < 64 * 16 * 8 * 4


# R182 R190
def test_the_cost_of_a_picture_is_that_of_its_cells_and_pieces() -> None:
    def cost(ranks: int, scale: int) -> int:
        each = 4096 * 4 * scale
        ranges = tuple(rank * each for rank in range(ranks + 1))
        lowered = lower(
            TensorMap((4 * ranks * scale, 4096), FlatRange("dp", ranges[:-1], ranges[1:])), mesh_of(dp=ranks)
        )
        budget = Budget()
        picture(lowered, 64, 16, budget)
        return budget.spent["pair_checks"]

    assert cost(1024, 32) == cost(1024, 1)
    assert cost(1024, 1) < 1024 * 1024 // 4


# R191
def test_a_picture_does_not_depend_on_the_order_of_ranks() -> None:
    lowered = LAYOUTS["columns of rows"]
    turned = Lowered(lowered.shape, lowered.ranks[::-1], lowered.explicit)

    assert picture(turned) == picture(lowered)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_drawn_within_its_frame(name: str) -> None:
    lowered = LAYOUTS[name]
    drawn = [picture(lowered, 9, 4), *(shard_picture(lowered, shard.rank, 9, 4) for shard in lowered.ranks)]

    for one in drawn:
        assert len(one.lines) <= 4
        assert all(len(line.cells) == len(one.starts) <= 9 for line in one.lines)
        assert {cell for line in one.lines for cell in line.cells} <= set(BANDS) | set("*.! ")


def test_many_holders_share_letters_and_the_picture_says_so() -> None:
    lowered = lower(
        TensorMap((400,), FlatRange("dp", tuple(range(0, 400, 4)), tuple(range(4, 404, 4)))), mesh_of(dp=100)
    )
    drawn = picture(lowered, 100, 4)

    assert drawn.note == "letters repeat every 52"
    assert drawn.legend[-1].means == "and 77 more"
    assert np.unique([line.cells[0] for line in drawn.lines]).size == 4
    assert math.prod((drawn.rows, drawn.columns)) == 400


def test_a_rank_that_is_not_there_has_no_picture() -> None:
    with pytest.raises(KeyError):
        shard_picture(LAYOUTS["rows"], 99)
