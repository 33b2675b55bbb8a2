"""Two checkpoints held against each other: their structure first, and their values where a person asks for them.

The tensors of both are catalogues, so that any family can stand beside any other: a distributed checkpoint beside its export, two
steps of different world sizes, an adapter beside its base.
"""

import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.correspondence import AUTO, Names, correspondence
from shardscope.engine.decoding import Decoding, bytes_of
from shardscope.engine.diffing import adapter
from shardscope.engine.diffing.pairing import Pair, paired
from shardscope.engine.diffing.structure import counts, differences, of_adapter
from shardscope.engine.model.blocker import Blocks, Fault, Severity
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.decoded import Listed
from shardscope.engine.model.difference import (
    DIFFERENT,
    DiffDocument,
    DiffSide,
    FirstDifference,
    State,
    TensorDifference,
)
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.plan import RenameRule
from shardscope.engine.model.progress import OnProgress, Pace, Progress, check
from shardscope.engine.model.schemas import DIFF
from shardscope.engine.model.text import counted, display_name
from shardscope.engine.sides import Side, opened, placed_here, placed_there, side_of

if TYPE_CHECKING:  # loaded where values are read
    from shardscope.engine.diffing.values import Comparing, Values

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


OnDifference = Callable[[int, TensorDifference], None]
"""Hears each difference whose values were compared, by its number."""


def diff(
    first: str | os.PathLike[str],
    second: str | os.PathLike[str],
    options: DiffOptions | None = None,
    *,
    decoding: Callable[[], Decoding | None] = lambda: None,
    values: bool = False,
    limits: Limits | None = None,
    hf_cache: bool = False,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Compared:
    """Return what is different between the checkpoints at two paths, A and B.

    `decoding` makes the wish to read the pickles of one side as data: it is asked once for each. Raises `Fault`: those of
    `inspect`, `diff.opaque`, `diff.nothing`, and those of renaming and mapping; `Cancelled`.
    """
    bounds = limits or Limits()
    one, other = (
        side_of(path, limits=bounds, hf_cache=hf_cache, decoding=decoding(), cancel=cancel, progress=progress)
        for path in (first, second)
    )
    found = structure(one, other, options or DiffOptions(), limits=bounds, values=values)
    return with_values(found, cancel=cancel, progress=progress) if values else found


def structure(
    first: Side, second: Side, options: DiffOptions, *, limits: Limits, values: bool = False
) -> Compared:
    """Return what is different in the structure of two checkpoints that were inspected. Raises as `diff`."""
    names = correspondence(first, second, options.renames, options.mapping, options.component, limits)
    one, other = (
        _tensors(side, catalogue.of(options.component), letter)
        for side, catalogue, letter in ((first, names.first, "A"), (second, names.second, "B"))
    )
    adapters = [side.found.descriptor.classification.format == adapter.FORMAT for side in (first, second)]
    fits = adapters[0] != adapters[1] and {t.name for t in one}.isdisjoint(t.name for t in other)
    untouched, apart = 0, frozenset[int]()
    if fits:
        swapped = adapters[1]
        parts, base = (other, one) if swapped else (one, other)
        fitted = list(adapter.fits(parts, base))
        items = of_adapter(parts, base, fitted, swapped=swapped)
        matched = [Pair(fit.base, fit.tensor) if swapped else Pair(fit.tensor, fit.base) for fit in fitted]
        untouched = len(base) - len({fit.base for fit in fitted} - {None})
        apart = frozenset(number for number, fit in enumerate(fitted) if not fit.whole)
    else:
        matched = paired(one, other, names.renamed, names.by)
        items = differences(one, other, matched)
    tensors = tuple(_of(one, other, pair) for pair in matched)
    found = counts(items, untouched)
    document = DiffDocument(
        schema=DIFF,
        same=_same(items),
        kind="adapter" if fits else "checkpoints",
        component=options.component,
        values=values,
        a=_side(first, one),
        b=_side(second, other),
        counts=found,
        uncompared=0,
        compared_bytes=0,
        decisions=_decisions(names, fits=fits),
        tensors=tuple(items),
    )
    return Compared(first, second, tensors, apart, document, options)


def with_values(
    compared: Compared,
    only: Collection[int] | None = None,
    *,
    on_difference: OnDifference | None = None,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Compared:
    """Return what is different with the values of tensors compared, of all or of some by their numbers.

    Raises `Fault`: those of reading; `Cancelled`, and then `on_difference` has heard what was compared until then.
    """
    from shardscope.engine.diffing.values import Comparing, refusal

    wanted = [
        number
        for number, (one, other) in enumerate(compared.tensors)
        if one is not None
        and other is not None
        and number not in compared.apart
        and (only is None or number in only)
    ]
    news: dict[int, TensorDifference] = {}
    work = _Work(compared, wanted, cancel, progress)
    with (
        opened(compared.first, compared.second) as opener,
        Comparing(opener, compared.options.memory_bytes) as comparing,
    ):
        for number in wanted:
            check(cancel)
            one, other = compared.tensors[number]
            if one is None or other is None:
                raise AssertionError("only pairs are wanted")
            item = compared.document.tensors[number]
            refused = refusal(one, other)
            news[number] = (
                replace(item, note=f"values were not compared: {refused}")
                if refused is not None
                else work.compare(item, one, other, comparing)
            )
            if on_difference is not None:
                on_difference(number, news[number])
    work.finished()
    return with_news(compared, news)


def with_news(compared: Compared, news: Mapping[int, TensorDifference]) -> Compared:
    """Return what is different with some of the differences, by their numbers, as they are known by now."""
    items = tuple(news.get(number, item) for number, item in enumerate(compared.document.tensors))
    held = (number for number, item in enumerate(items) if item.values is not None)
    document = replace(
        compared.document,
        same=_same(items),
        values=True,
        counts=counts(items, compared.document.counts.untouched),
        uncompared=sum(item.values is None for item in items if item.a is not None and item.b is not None),
        compared_bytes=sum(_size(compared.tensors[number][0]) for number in held),
        tensors=items,
    )
    return replace(compared, document=document)


def filtered(document: DiffDocument, states: Collection[State]) -> DiffDocument:
    """Return a document that lists the tensors in some states alone. Its counts stay."""
    return replace(document, tensors=tuple(item for item in document.tensors if item.state in states))


class _Work:
    """Values being compared."""

    def __init__(
        self,
        compared: Compared,
        wanted: Sequence[int],
        cancel: threading.Event | None,
        progress: OnProgress | None,
    ) -> None:
        from shardscope.engine.diffing.placing import owners

        self._compared = compared
        self._cancel = cancel
        self._pace = Pace(progress)
        self._done = 0
        self._total = sum(_size(compared.tensors[number][0]) for number in wanted)
        self._owners = [owners(side.found.descriptor.topology) for side in (compared.first, compared.second)]

    def compare(
        self, item: TensorDifference, one: LogicalTensor, other: LogicalTensor, comparing: "Comparing"
    ) -> TensorDifference:
        """Return a difference with its values."""
        size, before = _size(one), self._done
        each = size / max(1, prod(one.shape))

        def on_tile(elements: int) -> None:
            if self._pace.due():
                self._done = max(self._done, before + int(elements * each))
                self._report(item.name)

        found = comparing.compared(
            placed_here(one), placed_there(other), cancel=self._cancel, on_tile=on_tile
        )
        self._done = before + size
        figures = replace(found.figures, first=self._first(found, one, other))
        rows = (
            f"the first {counted(min(one.shape[0], other.shape[0]), 'row')} compared"
            if one.shape != other.shape
            else item.note
        )
        state: State = item.state
        if state == "same" and figures.verdict != "bits" and item.by != "adapter":
            state = "changed"
        return replace(item, state=state, values=figures, note=rows)

    def _first(self, found: "Values", one: LogicalTensor, other: LogicalTensor) -> FirstDifference | None:
        from shardscope.engine.diffing.placing import index_of, place

        if found.element is None:
            return None
        # Rows run along the last dimensions of both, which are of one size: an element has one number in either.
        here, there = (
            place(tensor, found.element, owner)
            for tensor, owner in zip((one, other), self._owners, strict=True)
        )
        index = index_of(found.element, one.shape)
        return FirstDifference(found.element, index, found.a, found.b, here, there)

    def finished(self) -> None:
        """Say that all is done."""
        self._report(None)

    def _report(self, name: str | None) -> None:
        subject = None if name is None else display_name(name, 120)
        self._pace.report(Progress("compare", self._done, self._total, "bytes", subject))


def _size(tensor: LogicalTensor | None) -> int:
    return 0 if tensor is None else bytes_of(tensor) or 0


def _tensors(side: Side, tensors: tuple[LogicalTensor, ...], letter: str) -> tuple[LogicalTensor, ...]:
    if not tensors:
        opaque = side.found.descriptor.tensors.files_opaque
        if opaque:
            raise Fault("diff.opaque", side=letter, files=opaque)
        title = FORMAT_TITLES.get(side.found.descriptor.classification.format, "unknown")
        raise Fault("diff.nothing", side=letter, found=title)
    return tensors


def _of(
    first: Sequence[LogicalTensor], second: Sequence[LogicalTensor], pair: Pair
) -> tuple[LogicalTensor | None, LogicalTensor | None]:
    return (None if pair.a is None else first[pair.a], None if pair.b is None else second[pair.b])


def _same(items: Sequence[TensorDifference]) -> bool:
    return not any(item.state in DIFFERENT for item in items)


def _side(side: Side, tensors: Sequence[LogicalTensor]) -> DiffSide:
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
        blockers=sum(
            item.severity is Severity.ERROR and bool({Blocks.INSPECT, Blocks.LOAD} & set(item.blocks))
            for item in descriptor.blockers
        ),
    )


def _decisions(names: Names, *, fits: bool) -> tuple[str, ...]:
    if not fits:
        return names.decisions
    return (*names.decisions, "one side is an adapter: its tensors are held against the modules they change")
