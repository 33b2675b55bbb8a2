"""What `shardscope peek` shows of one tensor (`shardscope.peek/1`): some of its numbers, and what all of them come to."""

from msgspec import Struct

Number = int | float


class Grid(Struct, frozen=True, forbid_unknown_fields=True):
    """Some elements of the last two dimensions of what was selected: its edges, where it is larger."""

    leading: tuple[int, ...]
    """The index in every dimension of the tensor before those of the grid."""
    rows: tuple[int, ...]
    """Indices in the tensor's own dimension; one 0 where only one dimension, or none, is left."""
    columns: tuple[int, ...]
    rows_elided: int
    """Rows of the selection that are not among them; they would stand in the middle."""
    columns_elided: int
    values: tuple[tuple[str, ...], ...]
    """In decimal, with the digits that tell each from its neighbours."""


class Bin(Struct, frozen=True, forbid_unknown_fields=True):
    """Finite numbers of one sign and one binary exponent."""

    negative: bool
    exponent: int
    """Magnitudes from 2^exponent to less than 2^(exponent + 1)."""
    count: int


class Statistics(Struct, frozen=True, forbid_unknown_fields=True):
    """What the numbers of a selection come to. A complex element is two numbers.

    NaN and infinite numbers are counted, and have no part in anything else. Sums are worked out in 64 bits, block by block, and
    blocks are added with compensation (Neumaier); the deviation is put together from those of blocks (Chan, Golub, LeVeque).
    """

    numbers: int
    """More than elements, where these are complex or were taken apart."""
    zeros: int
    """Of either sign."""
    nans: int
    positive_infinite: int
    negative_infinite: int
    min: Number | None
    """Null where no number is finite."""
    max: Number | None
    mean: float | None
    """Null, too, where sums are beyond the range of 64 bits."""
    std: float | None
    """Of the whole population."""
    l2: float | None
    """The root of the sum of squares."""
    sign_exponents: int
    """Different pairs of sign and binary exponent among numbers that are neither zero nor infinite."""
    exponent_min: int | None
    exponent_max: int | None
    distinct: int | None
    """Different bit patterns, of types of at most eight bits; null for others."""
    histogram: tuple[Bin, ...] | None = None
    """By rising numbers. Null where it was not asked for."""


class Heat(Struct, frozen=True, forbid_unknown_fields=True):
    """Root mean squares of a selection in boxes: its last dimension across, all others down."""

    row_edges: tuple[int, ...]
    """Rows of the selection, its dimensions before the last counted as one: each box goes from one edge to the next."""
    column_edges: tuple[int, ...]
    rms: tuple[tuple[float | None, ...], ...]
    """Over finite numbers; null where a box has none, or is beyond the range of 64 bits."""


class Profile(Struct, frozen=True, forbid_unknown_fields=True):
    """Root mean squares by index of one dimension, all other dimensions of a selection taken together."""

    dimension: int
    """Of the tensor."""
    edges: tuple[int, ...]
    """Places in the selection along it: each box goes from one edge to the next. Boxes hold one index, unless there are very many."""
    rms: tuple[float | None, ...]
    """Over finite numbers; null where a box has none, or is beyond the range of 64 bits."""


class Landmarks(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the elements are, by their indices in the tensor, at which something was met first. Null: it was not met."""

    min: tuple[int, ...] | None = None
    max: tuple[int, ...] | None = None
    nan: tuple[int, ...] | None = None
    positive_infinite: tuple[int, ...] | None = None
    negative_infinite: tuple[int, ...] | None = None


class PackedWeight(Struct, frozen=True, forbid_unknown_fields=True):
    """A packed weight, where the numbers that are shown are those that it stands for."""

    scheme: str
    formula: str
    """How a number is worked out: q is what is stored, z a zero point, e an exponent."""
    tensor: str
    """The packed tensor, exact."""
    dtype: str
    """As it is stored."""
    shape: tuple[int, ...]
    """As it is stored; of blocks of ggml that of the numbers."""
    companions: tuple[str, ...]
    """Tensors that were read beside it, exact: scales, zero points and their like."""


class PeekDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """One tensor looked at. Nothing in it says where the checkpoint is."""

    schema: str
    format: str
    name: str
    """Exact."""
    dtype: str
    shape: tuple[int, ...]
    part_of: int | None
    """The rank whose part it is, where nothing tells how parts make a whole."""
    slice: str | None
    """As it was asked for."""
    bits: int | None
    """Of the numbers that integers were taken apart into, from the lowest bit on; null where elements are the numbers."""
    selected: tuple[int, ...]
    """The shape of what was selected."""
    elements: int
    fragments: int
    files: tuple[str, ...]
    """Those that hold the tensor, relative and neutralised."""
    grid: Grid
    statistics: Statistics | None = None
    landmarks: Landmarks | None = None
    """With statistics."""
    heat: Heat | None = None
    packing: PackedWeight | None = None
    """Null where the numbers are those that are stored."""
    profiles: tuple[Profile, ...] | None = None
    """One for each dimension of the selection. Null where it was not asked for."""
