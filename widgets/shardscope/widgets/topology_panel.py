"""Which ranks wrote the checkpoint: each axis with where its size comes from, and which ranks are there."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Final

from rich.cells import cell_len

from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.topology import Axis, Mesh, Topology
from shardscope.widgets.figures import number, plural
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, heading
from shardscope.widgets.safe import Part, Tone

CELLS: Final = 4_096
"""Ranks that are drawn one by one; of more, only those that are missing or there twice are listed."""
LISTED: Final = 64
"""Ranks that are named in a list."""
NO_COORDINATE: Final = ("world", "zero_stage")
"""Axes that a rank has no coordinate on."""
_BASIS_TONES: Final = {Basis.INFERRED: Tone.CAUTION, Basis.UNKNOWN: Tone.CAUTION}

Coordinate = tuple[int, ...]


def coordinate_axes(mesh: Mesh) -> tuple[Axis, ...]:
    """Return the axes that the coordinates of a mesh run along."""
    return tuple(axis for axis in mesh.axes if axis.size is not None and axis.name not in NO_COORDINATE)


class TopologyPanel(Paragraphs):
    """The topology.

    `TopologyPanel(topology=None, *, glyphs=None, id=None, classes=None)`, then `show(topology)`.
    """

    BINDING_GROUP_TITLE = "Topology"

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`topology` is None while nothing was examined."""
        super().__init__(empty="Not examined yet", glyphs=glyphs, id=id, classes=classes)
        self._topology = topology

    def show(self, topology: Topology) -> None:
        """Show another topology."""
        self._topology = topology
        self.rows_changed(0)

    def paragraphs(self, width: int) -> Iterable[Paragraph]:
        """Return the axes and the ranks of each mesh."""
        return () if self._topology is None else self._said(self._topology, width)

    def _said(self, topology: Topology, width: int) -> Iterator[Paragraph]:
        if not topology.meshes:
            yield Paragraph((("No rank is named anywhere that was examined.", Tone.STRONG),))
        if topology.note:
            yield Paragraph(((topology.note, Tone.MUTED),))
        for index, mesh in enumerate(topology.meshes):
            if index:
                yield Paragraph()
            yield Paragraph(((f"{mesh.name} mesh", Tone.STRONG),))
            for axis in mesh.axes:
                yield _axis(axis)
            yield from self._ranks(mesh, width)

    def _ranks(self, mesh: Mesh, width: int) -> Iterator[Paragraph]:
        found = _states(mesh)
        if not found:
            return
        counts = f"{plural(len(mesh.ranks_seen), 'rank')} present"
        for ranks, word in ((mesh.ranks_missing, "missing"), (mesh.ranks_duplicate, "there twice")):
            if ranks:
                counts += f", {len(ranks):,} {word}"
        yield from heading("Ranks", counts)
        sizes = [axis.size or 0 for axis in coordinate_axes(mesh)]
        if (
            not sizes
            or len(found) > CELLS
            or prod(sizes) > CELLS
            or any(len(each) != len(sizes) for each in found)
        ):
            yield Paragraph((("Too many to draw one by one, or of uneven coordinates.", Tone.MUTED),))
        else:
            yield from _grid(mesh, found, width)
            yield Paragraph(
                (
                    ("p", Tone.OK),
                    (" present   ", Tone.MUTED),
                    ("M", Tone.STOP),
                    (" missing   ", Tone.MUTED),
                    ("D", Tone.CAUTION),
                    (" there twice   . not named", Tone.MUTED),
                )
            )
        for ranks, word, tone in (
            (mesh.ranks_missing, "missing", Tone.STOP),
            (mesh.ranks_duplicate, "twice", Tone.CAUTION),
        ):
            if ranks:
                yield _list(mesh, ranks, word, tone)


def _axis(axis: Axis) -> Paragraph:
    tone = _BASIS_TONES.get(axis.basis, Tone.MUTED)
    size: Part = ("unknown", Tone.CAUTION) if axis.size is None else number(axis.size)
    parts: list[Part] = [(f"{axis.name.replace('_', ' '):<12}", Tone.MUTED), size]
    if axis.size is not None or axis.basis is not Basis.UNKNOWN:
        parts.append((f"  {axis.basis.value}", tone))
    if axis.evidence:
        parts.append((f"  {axis.evidence}", Tone.MUTED))
    return Paragraph(tuple(parts), indent=2, hang=14)


def _states(mesh: Mesh) -> dict[Coordinate, tuple[str, Tone]]:
    found: dict[Coordinate, tuple[str, Tone]] = dict.fromkeys(mesh.ranks_seen, ("p", Tone.OK))
    found |= dict.fromkeys(mesh.ranks_duplicate, ("D", Tone.CAUTION))
    return found | dict.fromkeys(mesh.ranks_missing, ("M", Tone.STOP))


def _grid(mesh: Mesh, found: dict[Coordinate, tuple[str, Tone]], width: int) -> Iterator[Paragraph]:
    """Draw the ranks: the last axis runs to the right, in rows of tens where it is long, the others downwards."""
    axes = coordinate_axes(mesh)
    *outer, inner = axes
    labels = [
        " ".join(f"{axis.name} {place}" for axis, place in zip(outer, places, strict=True))
        for places in product(*(range(axis.size or 0) for axis in outer))
    ]
    columns = inner.size or 0
    margin = max(map(cell_len, labels), default=0) + len(f"{inner.name} {columns}") + 3
    fitting = max(1, (width - margin - 2) // 2)
    per_line = columns if columns <= fitting else max(1, fitting // 10 * 10 or fitting)
    for label, places in zip(labels, product(*(range(axis.size or 0) for axis in outer)), strict=True):
        for begin in range(0, columns, per_line):
            name = f"{label} {inner.name} {begin}" if label else f"{inner.name} {begin}"
            cells: list[Part] = [(f"{name:<{margin}}", Tone.MUTED)]
            for place in range(begin, min(columns, begin + per_line)):
                letter, tone = found.get((*places, place), (".", Tone.MUTED))
                cells += [(letter, tone), " "]
            yield Paragraph(tuple(cells), indent=2, hang=2)


def _list(mesh: Mesh, ranks: Sequence[Coordinate], word: str, tone: Tone) -> Paragraph:
    axes = coordinate_axes(mesh)
    names = [
        " ".join(f"{axis.name} {place}" for axis, place in zip(axes, rank, strict=False)) or "unnamed"
        for rank in ranks[:LISTED]
    ]
    more = f" and {len(ranks) - LISTED:,} more" if len(ranks) > LISTED else ""
    return Paragraph(((f"{word:<10}", tone), ", ".join(names) + more), hang=10)
