"""A map in normal form, ready to be looked at: any window of it in letters, and who holds any element of it.

What is asked once of a map is done once: equal shards, letters, borders, boxes. A window then costs what lies in it: of every
stretch without a border one element is asked for.
"""

from collections.abc import Sequence
from functools import cached_property
from string import ascii_lowercase, digits

from msgspec import Struct

from shardscope.engine.geometry.describing.picture import HOLDERS
from shardscope.engine.geometry.drawing.borders import Borders, borders
from shardscope.engine.geometry.drawing.index import Index
from shardscope.engine.geometry.drawing.lines import Cells, matrix
from shardscope.engine.geometry.drawing.rectangles import rectangles
from shardscope.engine.geometry.pieces.blocks import Block
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.explicit import runs_of
from shardscope.engine.geometry.pieces.wellformed import named
from shardscope.engine.model.picture import CLASH, EVERYWHERE, GAP, PADDING, Mark
from shardscope.engine.model.piece import IndexedPiece, Lowered, Piece, RankShard, Side
from shardscope.engine.model.shardview import Drawing, Window

PIECES = digits[1:] + ascii_lowercase
"""Letters of the pieces of a shard, by their number."""
MOST_PIECES = 8_192
"""Rectangles of all shards; with more, pieces that jump stay whole."""
_NOWHERE = Side(0, ())


class Held(Struct, frozen=True):
    """One element in one shard."""

    group: int
    """Of ranks with equal shards."""
    piece: int
    address: int
    """On the other side."""


class Group(Struct, frozen=True):
    """Ranks with equal shards."""

    shard: RankShard
    ranks: tuple[int, ...]
    pieces: tuple[Piece | IndexedPiece, ...]
    """Of the shard, as a person sees them."""


class Atlas:
    """One map. It has passed `check`, holes and collisions aside. Drawing raises `Fault`: `map.unproven`, `map.budget`."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        self.full = matrix(lowered.shape)
        alike: dict[object, list[RankShard]] = {}
        for shard in lowered.ranks:
            alike.setdefault((shard.shape, shard.padding, shard.pieces, shard.indexed), []).append(shard)
        cut = [rectangles(some[0], self.full.columns) for some in alike.values()]
        if sum(map(len, cut)) > MOST_PIECES:
            cut = [some[0].pieces for some in alike.values()]
        self.groups = tuple(
            Group(some[0], tuple(shard.rank for shard in some), (*pieces, *some[0].indexed))
            for some, pieces in zip(alike.values(), cut, strict=True)
        )
        self._every = tuple(sorted(shard.rank for shard in lowered.ranks))
        self._letters: dict[tuple[int, ...], str] = {}
        self._lettered = 0
        for holders in sorted({one.holders for group in self.groups for one in group.pieces}):
            self.letter(holders)
        self._tags: list[tuple[int, int]] = []
        self._shards: dict[int, tuple[Index, Borders]] = {}

    def prepare(self) -> None:
        """Do now what every window needs: it costs what there are pieces. Raises `Fault`: `map.unproven`, `map.budget`."""
        _ = self._index, self.borders

    def letter(self, holders: tuple[int, ...]) -> str:
        """Return the letter of a set of ranks: the next one, for a new set."""
        if not holders:
            return GAP
        found = self._letters.get(holders)
        if found is None:
            if holders == self._every and len(holders) > 1:
                found = EVERYWHERE
            else:
                found = HOLDERS[self._lettered % len(HOLDERS)]
                self._lettered += 1
            self._letters[holders] = found
        return found

    @property
    def _repeats(self) -> int:
        """After how many letters of holders they begin again; zero where they do not."""
        return len(HOLDERS) if self._lettered > len(HOLDERS) else 0

    def group_of(self, rank: int) -> int:
        """Return the group of a rank. Raises `KeyError` for a rank that the map does not have."""
        return self._group_of[rank]

    @cached_property
    def _group_of(self) -> dict[int, int]:
        return {rank: number for number, group in enumerate(self.groups) for rank in group.ranks}

    @cached_property
    def pieces(self) -> int:
        """Pieces of all ranks, as a person sees them."""
        return sum(len(group.pieces) * len(group.ranks) for group in self.groups)

    # Who holds what.

    @cached_property
    def _index(self) -> Index:
        blocks = []
        for number, group in enumerate(self.groups):
            for at, piece in enumerate(group.pieces):
                blocks += _blocks(piece, len(self._tags))
                self._tags.append((number, at))
        total = self.lowered.elements
        return Index(blocks, total, Budget(), side="a", walk=self.lowered.explicit)

    def held(self, addresses: Sequence[int]) -> list[list[Held]]:
        """Return for each address of the full tensor the shards that have it, in the order of their first ranks."""
        index = self._index  # fills the tags
        met = index.met(addresses)
        return [
            sorted(
                [Held(*self._tags[tag], address) for tag, address in found],
                key=lambda one: (one.group, one.piece),
            )
            for found in met
        ]

    def holders(self, held: Sequence[Held]) -> tuple[int, ...]:
        """Return the ranks of some shards, sorted."""
        return tuple(sorted({rank for one in held for rank in self.groups[one.group].ranks}))

    def sources(self, group: int, addresses: Sequence[int]) -> list[list[Held]]:
        """Return for each address of a shard the pieces that have it, with the address in the full tensor."""
        index, _ = self._shard(group)
        return [[Held(group, tag, address) for tag, address in found] for found in index.met(addresses)]

    def _shard(self, group: int) -> tuple[Index, Borders]:
        found = self._shards.get(group)
        if found is None:
            shard = self.groups[group].shard
            blocks = [
                block for n, piece in enumerate(self.groups[group].pieces) for block in _blocks(piece, n)
            ]
            index = Index(blocks, shard.elements, Budget(), side="b", walk=self.lowered.explicit)
            plane = matrix(shard.shape)
            edges = borders(
                plane.rows,
                plane.columns,
                [
                    (
                        piece,
                        *(
                            (_NOWHERE, _NOWHERE)
                            if isinstance(piece, IndexedPiece)
                            else (piece.dest, piece.source)
                        ),
                    )
                    for piece in self.groups[group].pieces
                ],
            )
            found = self._shards[group] = (index, edges)
        return found

    def shard_borders(self, group: int) -> Borders:
        """Return where pieces begin and end in a shard."""
        return self._shard(group)[1]

    # Pictures.

    @cached_property
    def borders(self) -> Borders:
        """Where pieces begin and end in the full tensor."""
        return borders(
            self.full.rows,
            self.full.columns,
            [
                (
                    piece,
                    *(
                        (_NOWHERE, _NOWHERE)
                        if isinstance(piece, IndexedPiece)
                        else (piece.source, piece.dest)
                    ),
                )
                for group in self.groups
                for piece in group.pieces
            ],
        )

    def logical(self, window: Window, width: int, height: int, parts: Sequence[int] = ()) -> Drawing:
        """Return a window of the full tensor, lettered by the ranks that hold it. At rows `parts` lines begin, if there is room."""
        cells = Cells(self.full, window, width, height, self.borders, parts)
        seen: dict[str, tuple[int, ...]] = {}
        letters = []
        for held in self.held(cells.samples):
            holders = self.holders(held)
            letter = self.letter(holders)
            seen.setdefault(letter, holders)
            letters.append(letter)
        marks = [
            Mark(letter, self.who(holders), holders)
            for letter, holders in sorted(seen.items(), key=lambda item: _order(item[0]))
        ]
        return cells.drawn("logical", letters, marks, self._repeats)

    def shard(self, group: int, window: Window, width: int, height: int) -> Drawing:
        """Return a window of the shard of a group of ranks, lettered by its pieces."""
        shard = self.groups[group].shard
        cells = Cells(matrix(shard.shape), window, width, height, self._shard(group)[1])
        empty = PADDING if shard.padding else GAP
        letters = [
            CLASH if len(found) > 1 else piece_letter(found[0].piece) if found else empty
            for found in self.sources(group, cells.samples)
        ]
        said = {PADDING: "padding", GAP: "in no piece", CLASH: "in several pieces"}
        marks = [
            Mark(letter, said.get(letter, f"piece {letter}")) for letter in sorted(set(letters), key=_order)
        ]
        return cells.drawn(
            "shard", letters, marks, len(PIECES) if len(self.groups[group].pieces) > len(PIECES) else 0
        )

    def who(self, holders: tuple[int, ...]) -> str:
        """Return ranks in words: `rank 3`, `all 8 ranks`, `no rank`."""
        if not holders:
            return "no rank"
        if holders == self._every and len(holders) > 1:
            return f"all {len(holders):,} ranks"
        return named(holders)


def piece_letter(number: int) -> str:
    """Return the letter of a piece of a shard."""
    return PIECES[number % len(PIECES)]


def _order(letter: str) -> tuple[bool, str]:
    """Put letters before signs."""
    return not letter.isalnum(), letter


def _blocks(piece: Piece | IndexedPiece, tag: int) -> list[Block]:
    if isinstance(piece, IndexedPiece):
        return runs_of(piece, tag)
    return [Block(piece.shape, piece.source, piece.dest, tag)]
