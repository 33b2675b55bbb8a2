"""What the worker says, checked before it is used: every number refers to something that is there, every column is as long as it says.

A worker that hostile bytes have taken over can still lie about names and shapes. It cannot make a reader step outside what was
sent, and extents are held against the files afterwards by who reads them.
"""

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, Final, NoReturn

from shardscope.engine.isolation.process import Broken
from shardscope.engine.model.blocker import Finding, blocker
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.pickled import (
    DcpChunks,
    Items,
    Long,
    Named,
    Pairs,
    Pickled,
    PickledStorage,
    PickledTensor,
    Record,
)

_FOREIGN_AREAS: Final = ("internal.", "command.", "source.", "isolation.unavailable", "isolation.bad_reply")
"""What only this side may say."""
_HEXADECIMAL: Final = frozenset("0123456789abcdef")


def validated(pickled: Pickled, pickles: int, length: int) -> Pickled:
    """Return the facts of `pickles` pickles within `length` bytes, as they are. Raises `Broken` where they do not hold together."""
    _whole(pickled, pickles, length)
    nodes = len(pickled.nodes)
    storages = len(pickled.storages)
    for node in pickled.nodes:
        check = _CHECKS.get(type(node))
        if check is not None:
            check(node, nodes, storages)
    for storage in pickled.storages:
        _storage(storage)
    for finding in pickled.findings:
        accepted(finding)
    return pickled


def accepted(finding: Finding) -> Finding:
    """Return a finding of the worker, as it is. Raises `Broken` where it is none that a decoder has."""
    if finding.code not in CODES or finding.code.startswith(_FOREIGN_AREAS):
        _broken("its finding has no code of a decoder")
    try:
        blocker(finding, "")
    except (KeyError, ValueError, TypeError, OverflowError):
        _broken("its finding has other parameters than its code")
    return finding


def _broken(problem: str) -> NoReturn:
    raise Broken(problem)


def _whole(pickled: Pickled, pickles: int, length: int) -> None:
    if len(pickled.roots) != pickles or len(pickled.ends) != pickles:
        _broken("it is about another number of pickles")
    _within(pickled.roots, len(pickled.nodes))
    before = 0
    for end in pickled.ends:
        if not before < end <= length:
            _broken("pickles end outside the bytes")
        before = end
    if not 0 <= pickled.opcodes <= length:
        _broken("it counts more opcodes than bytes")
    if any(use.count < 1 for use in pickled.references):
        _broken("a reference is counted less than once")


def _within(numbers: Sequence[int], count: int) -> None:
    """Refuse numbers that are not places among `count`."""
    if numbers and (min(numbers) < 0 or max(numbers) >= count):
        _broken("a number refers to nothing")


def _maybe_within(numbers: Iterable[int | None], count: int) -> None:
    _within([number for number in numbers if number is not None], count)


def _as_long(*columns: Sized) -> None:
    """Refuse columns of different lengths."""
    if len({len(column) for column in columns}) > 1:
        _broken("columns differ in length")


def _natural(numbers: Sequence[int]) -> None:
    if numbers and min(numbers) < 0:
        _broken("an extent is negative")


def _items(node: Items, nodes: int, _: int) -> None:
    _within(node.items, nodes)


def _pairs(node: Pairs, nodes: int, _: int) -> None:
    _as_long(node.keys, node.values)
    _within(node.keys, nodes)
    _within(node.values, nodes)


def _record(node: Record, nodes: int, _: int) -> None:
    _as_long(node.names, node.values)
    _within(node.values, nodes)


def _named(node: Named, nodes: int, _: int) -> None:
    _maybe_within((node.state, node.items, node.others), nodes)


def _long(node: Long, _: int, __: int) -> None:
    digits = node.digits.removeprefix("-").removeprefix("0x")
    if not digits or not _HEXADECIMAL.issuperset(digits):
        _broken("a long integer is none")


def _tensor(node: PickledTensor, nodes: int, storages: int) -> None:
    _maybe_within((node.storage,), storages)
    _maybe_within((node.state, *node.parts.values()), nodes)


def _storage(storage: PickledStorage) -> None:
    if storage.elements < 0:
        _broken("a storage has less than no elements")


def _chunks(node: DcpChunks, nodes: int, _: int) -> None:
    _as_long(node.names, node.dtypes, node.shapes, node.counts, node.properties)
    _as_long(node.offsets, node.sizes, node.file, node.begin, node.length, node.transforms)
    _natural(node.counts)
    if sum(node.counts) != len(node.offsets):
        _broken("tensors have another number of chunks than there are")
    if node.file and (min(node.file) < -1 or max(node.file) >= len(node.files)):
        _broken("a chunk lies in a file that is not named")
    _within(node.transforms, len(node.transform_lists))
    if node.writer:
        _as_long(node.writer, node.offsets)
        if min(node.writer) < -1 or max(node.writer) >= (node.writers or 0):
            _broken("a chunk was written by a rank that is not counted")
    _maybe_within(node.properties, nodes)
    _maybe_within((node.planner, node.storage_meta, *node.extra.values()), nodes)


_CHECKS: Final[dict[type, Callable[[Any, int, int], None]]] = {
    Items: _items,
    Pairs: _pairs,
    Record: _record,
    Named: _named,
    Long: _long,
    PickledTensor: _tensor,
    DcpChunks: _chunks,
}
"""By kind of node; a `Plain` refers to nothing."""
