"""What is different between two checkpoints (`shardscope.diff/1`): tensor by tensor, in structure and in values."""

from typing import Final, Literal

from msgspec import Struct

from shardscope.engine.model.decoded import Component, Listed

State = Literal["same", "changed", "missing", "extra", "renamed"]
"""Of a tensor: `missing` is in A alone, `extra` in B alone, `renamed` under another name in B as far as one can guess."""

LETTERS: Final[dict[State, str]] = {"same": "=", "changed": "~", "missing": "-", "extra": "+", "renamed": ">"}
"""One letter for each state, so that colour is never needed."""
DIFFERENT: Final[tuple[State, ...]] = ("changed", "missing", "extra", "renamed")
"""The states that make two checkpoints different."""

By = Literal["name", "rules", "manifest", "ending", "position", "adapter"]
"""By what two tensors were put side by side. `ending` and `position` are suggestions: nothing in the files says so."""
SUGGESTED: Final[frozenset[By]] = frozenset({"ending", "position"})

Verdict = Literal["bits", "numbers", "differs"]
"""Of values. `bits`: every bit is the same. `numbers`: every number is, where 0.0 and -0.0 are one number and all NaNs are one."""


class TensorFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor of one side."""

    dtype: str
    shape: tuple[int, ...]
    bytes: int | None
    """Of the whole tensor; null for a type of unknown size."""
    component: Component


class ElementPlace(Struct, frozen=True, forbid_unknown_fields=True):
    """Where one element of a tensor is stored."""

    rank: str | None
    """Whose file it is, as the names of files tell: `tp 1 dp 0`. Null where files are of no rank."""
    file: str
    """Relative path, neutralised."""
    offset: int | None
    """Of its first byte in the file. Null where the record is coded, or an element has less than a byte."""


class FirstDifference(Struct, frozen=True, forbid_unknown_fields=True):
    """The first element, row by row, that is not the same."""

    element: int
    """Counted row by row."""
    index: tuple[int, ...]
    a: str
    """The number, in decimal."""
    b: str
    place_a: ElementPlace | None
    """Null where no fragment holds it."""
    place_b: ElementPlace | None


class Figures(Struct, frozen=True, forbid_unknown_fields=True):
    """The values of two tensors, held against each other.

    Errors are taken over pairs of which both are finite; `not_finite` counts those of which one is not, and the other is not the
    same. Relative errors are `|a - b| / max(|a|, |b|)`, so that neither side is preferred: at most 2.
    """

    verdict: Verdict
    elements: int
    """Compared: fewer than the tensor has where one side has fewer rows."""
    differing: int
    """Elements that are not the same number."""
    bits_only: int
    """Elements that are the same number in other bits, of tensors of one type."""
    not_finite: int
    max_abs: float | None
    """Null where no pair is finite on both sides, or where it is beyond the range of 64 bits."""
    max_rel: float | None
    cosine: float | None
    """Of both tensors as vectors, over finite pairs; 1 where every bit is the same. Null where one of them is all zeros, or beyond
    the range of 64 bits."""
    first: FirstDifference | None = None
    """Null where every bit is the same."""


Merged = Literal["merged", "lost", "unmerged", "differs"]
"""Of a tensor that an adapter changes. `merged`: it is the base plus the update, as near as rounding allows. `lost`: so it is, but the
update is smaller than rounding everywhere, so that the base is, too. `unmerged`: it is the base. `differs`: it is something else."""


class Merge(Struct, frozen=True, forbid_unknown_fields=True):
    """The update that an adapter has for a tensor, and what was found of it: what stands in `values` beside it is B against A plus the
    update. A tensor of another type that no adapter changes has one, too, without an update: it is A rounded to the type of B, or not.
    """

    ranks: tuple[int, ...]
    """Of each update: several where tensors are tied, or several adapters were merged."""
    scales: tuple[float, ...]
    verdict: Merged | None = None
    """Null where values were not compared."""
    update: float | None = None
    """The largest element of the update, without its sign."""
    visible: int | None = None
    """Elements whose update is larger than rounding."""
    beyond: int | None = None
    """Elements of B that are further from A plus the update than rounding explains."""
    strain: float | None = None
    """The largest error as a multiple of what rounding may do there: at most 1 where B is merged."""
    whole: bool = False
    """The adapter has a tensor in its place, which updates are added to."""
    share: float | None = None
    """How many times the update is in the change from A to B, as the best fit has it: 1 where it was merged, 0.5 where with half the
    scale. Null where the update is zero."""


class TensorDifference(Struct, frozen=True, forbid_unknown_fields=True):
    """One tensor of either side, or two that belong together."""

    state: State
    name: str
    """Exact. In A; in B where A has none."""
    a: TensorFacts | None
    b: TensorFacts | None
    name_b: str | None = None
    """Where it is another one."""
    by: By = "name"
    part_of: int | None = None
    """The rank whose part it is, where nothing tells how parts make a whole."""
    values: Figures | None = None
    """Null where values were not compared: they were not asked for, or `note` says why."""
    note: str | None = None
    """One clause for a person."""
    merge: Merge | None = None
    """Where an adapter was said to be merged into B, of the tensors that it changes."""

    @property
    def suggested(self) -> bool:
        """Whether it is a guess that the two belong together."""
        return self.by in SUGGESTED


class Fold(Struct, frozen=True):
    """Tensors that differ alike, in one row."""

    state: State
    name: str
    """Exact, with `{0-31}` where numbers differ. Of a module where that is missing or extra as a whole."""
    members: tuple[int, ...]
    """The tensors, by their number in what was folded."""
    module: bool = False
    """It is a module that is missing or extra as a whole."""
    complete: bool = True
    """Every combination of the numbers in the name is there."""


class DiffSide(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the two checkpoints, without its path."""

    format: str
    title: str
    """The family, for a person."""
    tensors: int
    """Of the component that was compared."""
    bytes: int | None
    opaque_files: int
    """Whose tensors, if they hold any, were not listed: they need decoding."""
    blockers: int
    """Errors that inspection found: what is listed may not be all."""


class DiffCounts(Struct, frozen=True, forbid_unknown_fields=True):
    """How many tensors are in each state."""

    same: int = 0
    changed: int = 0
    missing: int = 0
    extra: int = 0
    renamed: int = 0
    untouched: int = 0
    """Of a base model, which an adapter leaves alone."""
    targets: int = 0
    """Of the others, those that an adapter that was said to be merged changes."""


class DiffDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """Two checkpoints held against each other. Nothing in it says where they are."""

    schema: str
    same: bool
    """Whether nothing is different in what was compared."""
    kind: Literal["checkpoints", "adapter", "merge"]
    """`adapter`: one side is a LoRA adapter and the other its base, and `same` tells whether it fits. `merge`: whether B is A with
    adapters merged into it."""
    component: Listed
    values: bool
    """Whether values were asked for."""
    a: DiffSide
    b: DiffSide
    counts: DiffCounts
    uncompared: int
    """Tensors that both have, whose values were asked for and not compared: `note` says why."""
    compared_bytes: int
    """Of A's tensors of which values were compared."""
    decisions: tuple[str, ...]
    """How names were put side by side, where they are not the same."""
    tensors: tuple[TensorDifference, ...]
    """In the order of A, what only B has at the end. With `--only`, those states alone."""
    adapters: tuple[DiffSide, ...] = ()
    """Those that were said to be merged into B."""
