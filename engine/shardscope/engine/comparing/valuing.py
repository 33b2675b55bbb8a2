"""The values of two checkpoints held against each other: of all tensors that both have, or of some."""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING

from msgspec.structs import replace

from shardscope.engine.comparing.compared import Compared, size_of, with_news
from shardscope.engine.diffing.updates import Target
from shardscope.engine.inspecting.sides import LOCAL, opened, placed
from shardscope.engine.model.blocker import Fault, Finding, blocker
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.difference import FirstDifference, State, TensorDifference
from shardscope.engine.model.progress import OnProgress, Pace, Progress, check
from shardscope.engine.model.text import counted, display_name

if TYPE_CHECKING:  # loaded where values are read
    from shardscope.engine.diffing.values import Comparing

OnDifference = Callable[[int, TensorDifference], None]
"""Hears each difference whose values were compared, by its number."""


def with_values(
    compared: Compared,
    only: Collection[int] | None = None,
    *,
    on_difference: OnDifference | None = None,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Compared:
    """Return what is different with the values of tensors compared, of all or of some by their numbers.

    A tensor that cannot be read has a note that says why.

    Raises `Fault`: those of reading that are about more than one tensor; `Cancelled`, and then `on_difference` has heard what was compared until then.
    """
    from shardscope.engine.diffing.values import Comparing

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
        opened(compared.sides) as opener,
        Comparing(opener, compared.options.memory_bytes) as comparing,
    ):
        for number in wanted:
            check(cancel)
            one, other = compared.tensors[number]
            if one is None or other is None:
                raise AssertionError("only pairs are wanted")
            item = compared.document.tensors[number]
            target = compared.targets.get(number)
            try:
                news[number] = (
                    work.compare(item, one, other, comparing)
                    if target is None
                    else work.merge(item, one, other, target, comparing)
                )
            except Fault as fault:
                if not fault.finding.code.startswith(LOCAL):
                    raise
                news[number] = _unread(item, fault.finding)
            if on_difference is not None:
                on_difference(number, news[number])
    work.finished()
    return with_news(compared, news)


def _unread(item: TensorDifference, finding: Finding) -> TensorDifference:
    """Return a difference whose numbers one side does not give, with the reason: a file that was cut short, say."""
    side, _, path = str(finding.params.get("file", "")).partition("/")
    if path:
        finding = Finding(finding.code, {**finding.params, "file": path})
    where = {"0": "in A, ", "1": "in B, "}.get(side, "")
    why = blocker(finding, item.name).message.removesuffix(".")
    return replace(item, note=f"values were not compared: {where}{why}")


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
        self._total = sum(size_of(compared.tensors[number][0]) for number in wanted)
        self._owners = [owners(side.found.descriptor.topology) for side in (compared.first, compared.second)]

    def compare(
        self, item: TensorDifference, one: LogicalTensor, other: LogicalTensor, comparing: "Comparing"
    ) -> TensorDifference:
        """Return a difference with its values; with a note where they cannot be compared."""
        from shardscope.engine.diffing.values import refusal

        refused = refusal(one, other)
        if refused is not None:
            return replace(item, note=f"values were not compared: {refused}")
        with self._reporting(item.name, one) as on_tile:
            found = comparing.compared(placed(one, 0), placed(other, 1), cancel=self._cancel, on_tile=on_tile)
        figures = replace(found.figures, first=self._first(found.element, found.a, found.b, one, other))
        rows = (
            f"the first {counted(min(one.shape[0], other.shape[0]), 'row')} compared"
            if one.shape != other.shape
            else item.note
        )
        state: State = item.state
        if state == "same" and figures.verdict != "bits" and item.by != "adapter":
            state = "changed"
        return replace(item, state=state, values=figures, note=rows)

    def merge(
        self,
        item: TensorDifference,
        one: LogicalTensor,
        other: LogicalTensor,
        target: Target,
        comparing: "Comparing",
    ) -> TensorDifference:
        """Return a difference with what became of the updates of adapters; with a note where nobody can say."""
        from shardscope.engine.diffing.merging import refusal

        number, base = (-2, one) if target.instead is None else target.instead
        refused = refusal(base, other, target, self._compared.options.memory_bytes)
        if refused is not None or item.merge is None:
            return replace(item, note=f"values were not compared: {refused}")
        with self._reporting(item.name, one) as on_tile:
            found = comparing.merged(
                placed(base, number + 2),
                placed(other, 1),
                _placed(target),
                cancel=self._cancel,
                on_tile=on_tile,
            )
        first = None if found.first is None else self._first(*found.first, base, other)
        state: State = "changed" if item.state == "same" and found.beyond else item.state
        figures = replace(found.figures(), first=first)
        return replace(item, state=state, values=figures, merge=found.merge(item.merge))

    @contextmanager
    def _reporting(self, name: str, tensor: LogicalTensor) -> Iterator[Callable[[int], None]]:
        """Hand out what hears how many elements of a tensor were compared."""
        size, before = size_of(tensor), self._done
        each = size / max(1, prod(tensor.shape))

        def on_tile(elements: int) -> None:
            if self._pace.due():
                self._done = max(self._done, before + int(elements * each))
                self._report(name)

        try:
            yield on_tile
        finally:
            self._done = before + size

    def _first(
        self, element: int | None, a: str, b: str, one: LogicalTensor, other: LogicalTensor
    ) -> FirstDifference | None:
        from shardscope.engine.diffing.placing import index_of, place

        if element is None:
            return None
        # Rows run along the last dimensions of both, which are of one size: an element has one number in either.
        here, there = (
            place(tensor, element, owner) for tensor, owner in zip((one, other), self._owners, strict=True)
        )
        return FirstDifference(element, index_of(element, one.shape), a, b, here, there)

    def finished(self) -> None:
        """Say that all is done."""
        self._report(None)

    def _report(self, name: str | None) -> None:
        subject = None if name is None else display_name(name, 120)
        self._pace.report(Progress("compare", self._done, self._total, "bytes", subject))


def _placed(target: Target) -> Target:
    """Return a target whose factors are those of the sides behind the first two."""
    updates = tuple(
        replace(
            update,
            outer=placed(update.outer, update.adapter + 2),
            inner=None if update.inner is None else placed(update.inner, update.adapter + 2),
        )
        for update in target.updates
    )
    return replace(target, updates=updates)
