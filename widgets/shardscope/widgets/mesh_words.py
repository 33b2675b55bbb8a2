"""What is said about a mesh beside its picture: counts, legend, the ranks that are missing or there twice, the axes."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final

from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.topology import AXES, Axis, Mesh
from shardscope.widgets.figures import number, plural
from shardscope.widgets.mesh_picture import (
    MISSING,
    PRESENT,
    TONES,
    TWICE,
    UNSEEN,
    WORDS,
    Coordinate,
    is_drawable,
)
from shardscope.widgets.paragraphs import Paragraph
from shardscope.widgets.safe import Part, Tone

LISTED: Final = 64
"""Ranks that are named in a list."""
_AXIS: Final = 12
_SIZE: Final = 9
_BASIS: Final = 10
"""Cells of the columns of the list of axes."""


def has_ranks(mesh: Mesh) -> bool:
    """Tell whether any rank of a mesh is named."""
    return bool(mesh.ranks_seen or mesh.ranks_missing or mesh.ranks_duplicate)


def counts(mesh: Mesh) -> str:
    """Return how many ranks there are of each state."""
    counts = [plural(len(mesh.ranks_seen), "rank") + " present"]
    if mesh.ranks_missing:
        counts.append(f"{mesh.missing_count:,} missing")
    if mesh.ranks_duplicate:
        counts.append(f"{len(mesh.ranks_duplicate):,} there twice")
    return ", ".join(counts)


def legend(meshes: Sequence[Mesh]) -> Paragraph:
    """Return what the letters mean that can occur."""
    letters = [PRESENT, MISSING]
    if any(mesh.ranks_duplicate for mesh in meshes):
        letters.append(TWICE)
    if any(_is_partial(mesh) for mesh in meshes):
        letters.append(UNSEEN)
    parts: list[Part] = []
    for letter in letters:
        parts += [(letter, TONES[letter]), (f"\u00a0{WORDS[letter].replace(' ', chr(0xA0))}   ", Tone.MUTED)]
    return Paragraph(tuple(parts))


def _is_partial(mesh: Mesh) -> bool:
    if not is_drawable(mesh) or mesh.ranks_missing:
        return False
    return prod(mesh.extents) > len({*mesh.ranks_seen, *mesh.ranks_duplicate})


def troubles(mesh: Mesh, *, named: bool) -> Iterator[Paragraph]:
    """Return the ranks that something is the matter with, by name."""
    for ranks, count, word, tone in (
        (mesh.ranks_missing, mesh.missing_count, "missing", Tone.STOP),
        (mesh.ranks_duplicate, len(mesh.ranks_duplicate), "twice", Tone.CAUTION),
    ):
        if ranks:
            names = ", ".join(_name(mesh, rank) for rank in ranks[:LISTED])
            more = f" and {count - LISTED:,} more" if count > LISTED else ""
            whose = f"{mesh.name}: " if named else ""
            yield Paragraph(((f"{word:<10}", tone), whose + names + more), hang=10)


def _name(mesh: Mesh, rank: Coordinate) -> str:
    return mesh.rank_name(rank).replace(" ", "\u00a0") or "unnamed"


def axis_line(axis: Axis) -> Paragraph:
    """Return an axis: its size, where that comes from, what the axis is, and what says so."""
    known = axis.size is not None
    weak = axis.basis in (Basis.INFERRED, Basis.UNKNOWN)
    if known:
        size: Part = f"{number(axis.size):<{_SIZE}}"
    else:
        word = "unknown" if axis.basis is Basis.UNKNOWN else "uncertain"
        size = (f"{word:<{_SIZE}}", Tone.CAUTION)
    basis = "" if not known and axis.basis is Basis.UNKNOWN else axis.basis.value
    parts: list[Part] = [
        (f"{axis.name.replace('_', ' '):<{_AXIS}}", Tone.STRONG),
        size,
        " ",
        (f"{basis:<{_BASIS}}", Tone.CAUTION if weak else Tone.MUTED),
        " ",
        AXES.get(axis.name, "an axis of its own"),
    ]
    if axis.evidence:
        parts.append((f" ({axis.evidence})", Tone.MUTED))
    return Paragraph(tuple(parts), hang=_AXIS + _SIZE + _BASIS + 2)
