"""Which ranks wrote the checkpoint, as far as its names, headers and JSON tell."""

from msgspec import Struct

from shardscope.engine.model.evidence import Basis

AXES = (
    "world", "rank", "tp", "pp", "pp_or_ep", "mp", "dp", "cp", "ep", "etp", "edp", "experts", "zero_stage", "nodes",
)  # fmt: skip
"""The axis names in use, in the order of display. A value of null with basis unknown was not examined.

`rank` numbers writers whose place on other axes is not told; `mp` is pp x tp in one number, as DeepSpeed names its files;
`pp_or_ep` is a number of Megatron-LM's folder names that can be either; `experts` numbers experts where the names do not
tell which rank holds which.
"""


class Axis(Struct, frozen=True):
    """One axis of the mesh. `size` is the degree of parallelism (for `zero_stage`, the stage)."""

    name: str
    size: int | None
    basis: Basis
    evidence: str | None = None
    """One clause: which field or which names say so."""


class Mesh(Struct, frozen=True):
    """One partitioning of the ranks. Two can coexist: dense layers over tp x dp, experts over ep x etp x edp."""

    name: str
    """`dense`, `expert`, ..."""
    axes: tuple[Axis, ...]
    ranks_seen: tuple[tuple[int, ...], ...] = ()
    """Coordinates along `axes` (those with a size, without `world` and `zero_stage`), sorted."""
    ranks_missing: tuple[tuple[int, ...], ...] = ()
    ranks_duplicate: tuple[tuple[int, ...], ...] = ()


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
