"""What there is to say of a place in a map: which ranks hold it, in which piece, in which bytes of which file."""

from collections.abc import Sequence
from functools import cached_property
from math import prod

from msgspec.structs import replace

from shardscope.engine.geometry.describing.regions import described
from shardscope.engine.geometry.drawing.atlas import Atlas, Held, piece_letter
from shardscope.engine.geometry.drawing.lines import matrix
from shardscope.engine.geometry.drawing.paths import Named, parts, path
from shardscope.engine.geometry.drawing.stored import ends, indexed, stored
from shardscope.engine.geometry.language.lower import coordinates
from shardscope.engine.geometry.pieces.factors import factor
from shardscope.engine.model.catalogue import Fragment, LogicalTensor
from shardscope.engine.model.picture import CLASH, GAP, PADDING
from shardscope.engine.model.piece import ONE, IndexedPiece, Piece
from shardscope.engine.model.shardmap import DeviceMesh, TensorMap
from shardscope.engine.model.shardview import Drawing, Holding, Label, PieceRow, Spot, Window
from shardscope.engine.model.tensors import DTYPES

UNITS = frozenset({"chunk", "file", "shard"})
"""Axes of meshes that number shards and name no rank."""


class Guide:
    """One map with everything that is known of it: its tree, its mesh, the fragments that lie in files."""

    def __init__(
        self,
        atlas: Atlas,
        dtype: str | None,
        tree: TensorMap | None = None,
        mesh: DeviceMesh | None = None,
        tensor: LogicalTensor | None = None,
    ) -> None:
        """`tensor` is what the map is of, where its shards lie in files; null for a target."""
        self.atlas = atlas
        self.dtype = dtype
        self.tree = tree
        self._mesh = mesh
        self._fragments: dict[int, Fragment] = {}
        self._copies: dict[int, list[str]] = {}
        """Files with further copies of a shard, by its label."""
        if tensor is not None:
            self._fragments = {fragment.label: fragment for fragment in tensor.fragments}
            for copy in tensor.replicas:
                self._copies.setdefault(copy.label, []).append(copy.record.file)

    @cached_property
    def parts(self) -> tuple[Named, ...]:
        """The parts of a fused tensor, by their rows."""
        return () if self.tree is None else parts(self.tree.map, self.tree.shape)

    @cached_property
    def _places(self) -> dict[int, dict[str, int]]:
        if self._mesh is None or len(self._mesh.axes) < 1:
            return {}
        return dict(coordinates(self._mesh))

    def place(self, ranks: Sequence[int]) -> str:
        """Return where ranks are on the mesh, as far as they share it: `tp 1`. Empty where there is nothing to say."""
        if self._mesh is None or not all(rank in self._places for rank in ranks):
            return ""
        words = []
        for axis in self._mesh.axes:
            found = {self._places[rank][axis.name] for rank in ranks}
            if len(found) == 1 and axis.size > 1:
                words.append(f"{axis.name} {found.pop()}")
        return " ".join(words)

    # Pictures.

    def logical(self, window: Window, width: int, height: int) -> Drawing:
        """Return a window of the full tensor, with the names of its parts."""
        drawing = self.atlas.logical(window, width, height, [part.row for part in self.parts])
        if not drawing.cells:
            return drawing
        seen: dict[int, str] = {}
        for part in self.parts:
            if part.row < window.row + window.rows and part.row + part.rows > window.row:
                seen.setdefault(drawing.rows.cell(max(part.row, window.row)), part.name)
        marks = tuple(replace(mark, means=self.who(mark.ranks)) for mark in drawing.marks)
        return replace(drawing, marks=marks, labels=tuple(Label(*item) for item in seen.items()))

    @property
    def unit(self) -> str:
        """What holds a shard: a rank, unless the checkpoint says of shards only how they are numbered."""
        axes = () if self._mesh is None else self._mesh.axes
        return axes[0].name if len(axes) == 1 and axes[0].name in UNITS else "rank"

    def who(self, ranks: tuple[int, ...]) -> str:
        """Return holders in words: `tp 1`, `tp 1 (8 ranks)`, `all 8 ranks`, `chunk 3`, `no rank`."""
        place = self.place(ranks)
        if place:
            return place if len(ranks) == 1 else f"{place} ({len(ranks):,} {self.unit}s)"
        words = self.atlas.who(ranks)
        return words if self.unit == "rank" else words.replace("rank", self.unit)

    # One place.

    def spot(self, row: int, column: int) -> Spot:
        """Return who holds an element of the full tensor."""
        plane = self.atlas.full
        address = row * plane.columns + column
        shape = self.atlas.lowered.shape
        if not 0 <= address < self.atlas.lowered.elements:
            return Spot(" ", None, says="outside the tensor")
        index = indexed(address, shape)
        held = self.atlas.held([address])[0]
        holdings = tuple(self._holding(one) for one in held)
        letter = self.atlas.letter(self.atlas.holders(held)) if held else GAP
        says = "" if held else "a gap: no rank holds it"
        return Spot(letter, index, holdings, self._path(index), says)

    def shard_spot(self, group: int, row: int, column: int) -> Spot:
        """Return where an element of a shard comes from."""
        shard = self.atlas.groups[group].shard
        address = row * matrix(shard.shape).columns + column
        if not 0 <= address < shard.elements:
            return Spot(" ", None, says="outside the shard")
        found = self.atlas.sources(group, [address])[0]
        if not found:
            if shard.padding:
                return Spot(PADDING, None, says="padding: it stands for no element of the tensor")
            return Spot(GAP, None, says="a gap: no piece of the shard claims it")
        index = indexed(found[0].address, self.atlas.lowered.shape)
        holdings = tuple(self._holding(Held(group, one.piece, address)) for one in found)
        says = "claimed by several pieces" if len(found) > 1 else ""
        letter = CLASH if len(found) > 1 else piece_letter(found[0].piece)
        return Spot(letter, index, holdings, self._path(index), says)

    def _path(self, index: tuple[int, ...]) -> tuple[str, ...]:
        return () if self.tree is None else path(self.tree.map, index)

    def _holding(self, held: Held) -> Holding:
        group = self.atlas.groups[held.group]
        piece = group.pieces[held.piece]
        fragment = self._fragment(group.ranks, group.shard.elements)
        full, shard, strides = self._words(held.group, piece)
        element = whole = None
        if fragment is not None and self.dtype is not None:
            element = stored(fragment, self.dtype, [held.address])
            if isinstance(piece, Piece):
                whole = stored(fragment, self.dtype, ends(piece.dest, piece.shape))
        return Holding(
            ranks=group.ranks,
            place=self.place(group.ranks),
            piece=held.piece,
            pieces=len(group.pieces),
            index=indexed(held.address, group.shard.shape),
            shape=group.shard.shape,
            full=full,
            shard=shard,
            extents=piece.shape if isinstance(piece, Piece) else (piece.elements,),
            strides=strides,
            scale=None if piece.scale == ONE else factor(piece.scale),
            element=element,
            stored=whole,
            copies=tuple(file for rank in group.ranks for file in self._copies.get(rank, ())),
        )

    def fragment(self, group: int) -> Fragment | None:
        """Return what the first ranks of a group have in a file, where that is known."""
        found = self.atlas.groups[group]
        return self._fragment(found.ranks, found.shard.elements)

    def letter_of(self, rank: int) -> str:
        """Return the letter of a rank's first piece."""
        group = self.atlas.groups[self.atlas.group_of(rank)]
        held = group.pieces
        return self.atlas.letter(held[0].holders if held else group.ranks)

    def _fragment(self, ranks: Sequence[int], elements: int) -> Fragment | None:
        """Return what the first of some ranks has in a file, as far as the file has what the map says."""
        for rank in ranks:
            fragment = self._fragments.get(rank)
            if fragment is not None and prod(fragment.shape) == elements:
                return fragment
        return None

    def _words(self, group: int, piece: Piece | IndexedPiece) -> tuple[str, str, tuple[int, ...]]:
        if isinstance(piece, IndexedPiece):
            return "elements by an index", "elements by an index", ()
        shape = self.atlas.groups[group].shard.shape
        full = described(self.atlas.lowered.shape, piece.source, piece.dest, piece.shape)
        return full, described(shape, piece.dest, piece.source, piece.shape, rising=True), piece.dest.strides

    # Piece by piece.

    def pieces(self, group: int, first: int, count: int) -> tuple[PieceRow, ...]:
        """Return some of the pieces of a shard, in its order."""
        known = DTYPES.get(self.dtype or "")
        held = self.atlas.groups[group].pieces[first : first + count]
        rows = []
        for number, piece in enumerate(held, first):
            full, shard, _ = self._words(group, piece)
            rows.append(
                PieceRow(
                    number=number,
                    shape=piece.shape if isinstance(piece, Piece) else (piece.elements,),
                    full=full,
                    shard=shard,
                    bytes=None if known is None else -(-piece.elements * known.bits // 8),
                    holders=piece.holders,
                    first=_first(piece),
                )
            )
        return tuple(rows)

    def first(self, group: int, piece: int) -> tuple[int, int]:
        """Return where a piece begins: its lowest address in the full tensor, and in the shard."""
        found = self.atlas.groups[group].pieces[piece]
        if isinstance(found, IndexedPiece):
            return _first(found), int.from_bytes(found.dest[:8], "little")
        return found.source.offset, found.dest.offset


def _first(piece: Piece | IndexedPiece) -> int:
    return (
        int.from_bytes(piece.source[:8], "little") if isinstance(piece, IndexedPiece) else piece.source.offset
    )
