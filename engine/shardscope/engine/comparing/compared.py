"""Two checkpoints held against each other, as a value: what was found of both, what is different, and how they were put side by side."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.comparing.correspondence import AUTO
from shardscope.engine.diffing.structure import counts
from shardscope.engine.diffing.updates import Target
from shardscope.engine.inspecting.decoding import bytes_of
from shardscope.engine.inspecting.sides import Side
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.decoded import Listed
from shardscope.engine.model.difference import DIFFERENT, DiffDocument, DiffSide, State, TensorDifference
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.plan import RenameRule

MEMORY: Final = 64 << 20
"""Bytes of buffers, where a person asks for no other budget."""


class DiffOptions(Struct, frozen=True):
    """How two checkpoints are put side by side."""

    component: Listed = "model"
    renames: tuple[RenameRule, ...] = ()
    """Made of the names of A."""
    mapping: str | None = AUTO
    """A mapping table for the side whose producer it is for; `auto` takes one that fits, null none."""
    memory_bytes: int = MEMORY


class Compared(Struct, frozen=True):
    """Two checkpoints, and what is different. It holds what reading their values takes."""

    first: Side
    second: Side
    tensors: tuple[tuple[LogicalTensor | None, LogicalTensor | None], ...]
    """Beside each difference of the document, in its order."""
    apart: frozenset[int]
    """Differences of which both sides have a tensor, and not of the same numbers: a factor of an adapter and its module."""
    document: DiffDocument
    options: DiffOptions
    adapters: tuple[Side, ...] = ()
    """Those that were said to be merged into the second."""
    targets: Mapping[int, Target] = {}
    """What they do to differences, by the number of these."""

    @property
    def sides(self) -> tuple[Side, ...]:
        """All that is read, in the order of the numbers that `placed` takes."""
        return (self.first, self.second, *self.adapters)


def with_news(compared: Compared, news: Mapping[int, TensorDifference]) -> Compared:
    """Return what is different with some of the differences, by their numbers, as they are known by now."""
    items = tuple(news.get(number, item) for number, item in enumerate(compared.document.tensors))
    held = (number for number, item in enumerate(items) if item.values is not None)
    document = replace(
        compared.document,
        same=is_same(items),
        values=True,
        counts=counts(items, compared.document.counts.untouched, compared.document.counts.targets),
        uncompared=sum(item.values is None for item in items if item.a is not None and item.b is not None),
        compared_bytes=sum(size_of(compared.tensors[number][0]) for number in held),
        tensors=items,
    )
    return replace(compared, document=document)


def filtered(document: DiffDocument, states: Collection[State]) -> DiffDocument:
    """Return a document that lists the tensors in some states alone. Its counts stay."""
    return replace(document, tensors=tuple(item for item in document.tensors if item.state in states))


def is_same(items: Sequence[TensorDifference]) -> bool:
    """Tell whether nothing is different."""
    return not any(item.state in DIFFERENT for item in items)


def size_of(tensor: LogicalTensor | None) -> int:
    """Return the bytes of a tensor, as far as they are known."""
    return 0 if tensor is None else bytes_of(tensor) or 0


def summary(side: Side, tensors: Sequence[LogicalTensor]) -> DiffSide:
    """Return what is told of one side."""
    descriptor = side.found.descriptor
    sizes = [bytes_of(tensor) for tensor in tensors if tensor.alias_of is None]
    known = [size for size in sizes if size is not None]
    name = descriptor.classification.format
    return DiffSide(
        format=name,
        title=FORMAT_TITLES.get(name, name),
        tensors=len(tensors),
        bytes=sum(known) if len(known) == len(sizes) else None,
        opaque_files=descriptor.tensors.files_opaque,
        blockers=sum(item.in_the_way for item in descriptor.blockers),
    )
