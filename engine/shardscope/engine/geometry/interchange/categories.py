"""What each of DeepSpeed's categories says of the shards of a parameter: along which dimension, and how wide."""

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.geometry.constructors.cuts import fused
from shardscope.engine.geometry.interchange.universal_info import WIDTHS_SINCE, SubParams, UniversalInfo
from shardscope.engine.geometry.pieces.budget import Budgets
from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.shardmap import Contiguous, Node, Replicate

AXIS: Final = "tp"

Shape = tuple[int, ...]


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an error
    """There is no map, for a reason that is told."""

    def __init__(self, category: str, finding: Finding) -> None:
        super().__init__(finding.code)
        self.category = category
        self.finding = finding


class Case(Struct, frozen=True):
    """A parameter to be translated."""

    info: UniversalInfo
    name: str
    shards: tuple[Shape, ...]
    budgets: Budgets

    def refuse(self, category: str, code: str, /, **params: str | int | None) -> Refused:
        """Return a refusal that names the parameter."""
        return Refused(category, Finding(code, {"tensor": self.name, **params}))

    def misfit(self, category: str, reason: str) -> Refused:
        """Return the refusal of shards that do not fit their category."""
        return self.refuse(category, "universal.shapes", category=category, reason=reason)

    def one(self, category: str) -> str | None:
        """Return the pattern of a category that matches, if any."""
        found = self.info.matching(category, self.name)
        if len(found) > 1:
            raise self.ambiguous(found)
        return found[0] if found else None

    def ambiguous(self, patterns: Sequence[str]) -> Refused:
        """Return the refusal of several patterns for one parameter."""
        return self.refuse("ambiguous", "universal.ambiguous", patterns=", ".join(patterns))


class Cut(Struct, frozen=True):
    """A cut that still lacks what comes before it: the dimension and the widths of each part on each rank.

    No widths at all: nothing is cut, every rank holds the whole.
    """

    dim: int = 0
    widths: tuple[tuple[int, ...], ...] = ()

    def after(self, of: Node | None) -> Node:
        """Return the node that cuts what `of` makes."""
        if not self.widths:
            return of or Replicate()
        if len(self.widths) == 1:
            return Contiguous(AXIS, self.dim, self.widths[0], of)
        return fused(AXIS, self.dim, self.widths, of)


def joined(case: Case, category: str, dim: int) -> tuple[Shape, Cut]:
    """Return the shape that shards come to end to end along a dimension."""
    first = case.shards[0]
    if len(first) <= dim:
        raise case.misfit(category, f"a shard of {len(first)} dimensions has no dimension {dim}")
    rest = {(len(shard), shard[:dim], shard[dim + 1 :]) for shard in case.shards}
    if len(rest) > 1:
        raise case.misfit(category, f"they differ in another dimension than {dim}")
    widths = tuple([shard[dim] for shard in case.shards])
    return (*first[:dim], sum(widths), *first[dim + 1 :]), Cut(dim, (widths,))


def halves(case: Case) -> tuple[Shape, Cut]:
    """Return two sub-parameters of one size along dimension 0, of which each shard has its part."""
    shape, cut = joined(case, "two_sub_params", 0)
    if any(width % 2 for width in cut.widths[0]):
        raise case.misfit("two_sub_params", "a shard does not consist of two halves")
    half = tuple([width // 2 for width in cut.widths[0]])
    return shape, Cut(0, (half, half))


def sub_params(case: Case, said: SubParams) -> tuple[Shape, Cut]:
    """Return sub-parameters with their recorded widths; before version 0.4, even ones."""
    dim = said.dim
    widths = _widths(case, said)
    shape = _resolved(case, said, sum(sum(row) for row in widths))
    for rank, shard in enumerate(case.shards):
        own = (*shape[:dim], sum(row[rank] for row in widths), *shape[dim + 1 :])
        held = math.prod(own)
        # A shard may be stored as another view of the same elements, never with other elements.
        if held != math.prod(shard) or (held and len(own) == len(shard) and own != shard):
            raise case.misfit("sub_params", f"the widths of rank {rank} make another shard than it holds")
    return shape, Cut(dim, widths)


def _widths(case: Case, said: SubParams) -> tuple[Shape, ...]:
    category, ranks, dim = "sub_params", len(case.shards), said.dim
    sizes = said.sizes
    if case.info.version >= WIDTHS_SINCE:
        if said.widths is None:
            raise case.refuse(category, "universal.widths_missing")
        if not sizes:
            raise case.misfit(category, "the number of sub-parameters stands where their sizes belong")
        widths = said.widths
    else:
        if not sizes:
            if any(len(shard) <= dim for shard in case.shards):
                raise case.misfit(category, f"a shard has no dimension {dim}")
            total = sum(shard[dim] for shard in case.shards)
            if total % said.count:
                raise case.misfit(category, f"{total:,} slices are not {said.count} equal sub-parameters")
            sizes = (total // said.count,) * said.count
        if any(size % ranks for size in sizes):
            shown = ", ".join(f"{size:,}" for size in sizes)
            raise case.refuse(category, "universal.indivisible", sizes=shown, ranks=ranks)
        widths = tuple([(size // ranks,) * ranks for size in sizes])
    if len(widths) != len(sizes) or any(len(row) != ranks for row in widths):
        raise case.misfit(category, f"widths are recorded for other sub-parameters or ranks than {ranks}")
    if any(sum(row) != size for row, size in zip(widths, sizes, strict=True)):
        raise case.misfit(category, "the widths of a sub-parameter do not sum up to its size")
    return widths


def _resolved(case: Case, said: SubParams, extent: int) -> Shape:
    """Return the full shape, an open extent taken from the number of elements."""
    shape = [*said.shape]
    shape[said.dim] = extent
    if -1 in shape:
        open_ = shape.index(-1)
        known = math.prod(shape[:open_]) * math.prod(shape[open_ + 1 :])
        total = sum(math.prod(shard) for shard in case.shards)
        if known == 0 or total % known:
            raise case.misfit("sub_params", f"{total:,} elements do not fill the recorded shape")
        shape[open_] = total // known
    return tuple(shape)
