"""Which ranks wrote the checkpoint, as far as its names, headers and JSON tell."""

from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.model.evidence import Basis

AXES: Final = {
    "world": "processes in all",
    "rank": "writers; their place on other axes is not told",
    "tp": "tensor parallel",
    "pp": "pipeline parallel",
    "pp_or_ep": "pipeline parallel, or expert parallel where there is one stage",
    "mp": "pp and tp in one number",
    "dp": "data parallel",
    "cp": "context parallel",
    "ep": "expert parallel",
    "etp": "tensor parallel inside an expert",
    "edp": "data parallel among holders of the same experts",
    "experts": "experts; which rank holds which is not told",
    "zero_stage": "what ZeRO partitions",
    "nodes": "machines",
}
"""The axis names in use and what each means, in the order of display. A value of null with basis unknown was not examined.

`mp` is how DeepSpeed names its files; `pp_or_ep` is a number of Megatron-LM's folder names.
"""


class Axis(Struct, frozen=True):
    """One axis of the mesh. `size` is the degree of parallelism (for `zero_stage`, the stage)."""

    name: str
    size: int | None
    basis: Basis
    evidence: str | None = None
    """One clause: which field or which names say so."""


PLACELESS: Final = ("world", "zero_stage")
"""Axes that a rank has no place on."""


class Mesh(Struct, frozen=True):
    """One partitioning of the ranks. Two can coexist: dense layers over tp x dp, experts over ep x etp x edp."""

    name: str
    """`dense`, `expert`, ..."""
    axes: tuple[Axis, ...]
    ranks_seen: tuple[tuple[int, ...], ...] = ()
    """Coordinates along `axes` (those with a size, without `world` and `zero_stage`), sorted."""
    ranks_missing: tuple[tuple[int, ...], ...] = ()
    """The first of those that are missing; `missing_count` says how many there are."""
    ranks_duplicate: tuple[tuple[int, ...], ...] = ()

    @property
    def coordinate_axes(self) -> tuple[Axis, ...]:
        """The axes that coordinates run along."""
        return tuple(axis for axis in self.axes if axis.size is not None and axis.name not in PLACELESS)

    @property
    def extents(self) -> tuple[int, ...]:
        """Sizes of the rectangle that coordinates lie in."""
        return tuple(axis.size or 0 for axis in self.coordinate_axes)

    @property
    def missing_count(self) -> int:
        """How many ranks are missing: all of the rectangle that was not seen, once any is known to be missing."""
        if not self.ranks_missing:
            return 0
        return max(len(self.ranks_missing), prod(self.extents) - len(self.ranks_seen))

    def rank_name(self, coordinate: tuple[int, ...]) -> str:
        """Return the place of a rank on each axis, `tp 0 dp 5`; the bare numbers where axes do not fit them."""
        axes = self.coordinate_axes
        if len(axes) != len(coordinate):
            return "/".join(map(str, coordinate))
        return " ".join(
            f"{axis.name.replace('_', ' ')} {place}" for axis, place in zip(axes, coordinate, strict=True)
        )


class RankFiles(Struct, frozen=True):
    """The files that one rank wrote."""

    mesh: str
    coordinate: tuple[int, ...]
    files: tuple[str, ...]


class Topology(Struct, frozen=True):
    """The whole picture. Not distributed: one mesh without axes is not needed, `meshes` is empty."""

    meshes: tuple[Mesh, ...] = ()
    rank_files: tuple[RankFiles, ...] = ()
    note: str | None = None
