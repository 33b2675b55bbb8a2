"""Two checkpoints held against each other: their structure first, and their values where a person asks for them.

The tensors of both are catalogues, so that any family can stand beside any other: a distributed checkpoint beside its export, two
steps of different world sizes, an adapter beside its base.
"""

import os
import threading
from collections.abc import Callable, Sequence

from shardscope.engine.comparing.compared import Compared, DiffOptions, is_same, summary
from shardscope.engine.comparing.correspondence import Names, correspondence
from shardscope.engine.diffing import adapter
from shardscope.engine.diffing.pairing import Pair, paired
from shardscope.engine.diffing.structure import counts, differences, of_adapter
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.sides import Side, has_own_head, side_of
from shardscope.engine.model.blocker import Blocker, Fault
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.difference import DiffDocument
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.schemas import DIFF
from shardscope.engine.model.text import path_text


def diff(
    first: str | os.PathLike[str],
    second: str | os.PathLike[str],
    options: DiffOptions | None = None,
    *,
    adapters: Sequence[str | os.PathLike[str]] = (),
    decoding: Callable[[], Decoding | None] = lambda: None,
    values: bool = False,
    limits: Limits | None = None,
    hf_cache: bool = False,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Compared:
    """Return what is different between the checkpoints at two paths, A and B; with `adapters`, between B and A with these merged in.

    `decoding` makes the wish to read the pickles of one side as data: it is asked once for each. Raises `Fault`: those of
    `inspect`, `diff.opaque`, `diff.nothing`, those of adapters (`diff.adapter_...`), and those of renaming and mapping; of a side
    without tensors the first error of its inspection; `Cancelled`.
    """
    bounds = limits or Limits()
    one, other, *merged = (
        side_of(path, limits=bounds, hf_cache=hf_cache, decoding=decoding(), cancel=cancel, progress=progress)
        for path in (first, second, *adapters)
    )
    found = structure(one, other, options or DiffOptions(), limits=bounds, values=values)
    if merged:
        from shardscope.engine.comparing.merges import with_adapters

        found = with_adapters(found, merged, bounds)
    if not values:
        return found
    from shardscope.engine.comparing.valuing import with_values

    return with_values(found, cancel=cancel, progress=progress)


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
        tied = not has_own_head(first if swapped else second, limits)
        fitted = list(adapter.fits(parts, base, tied=tied))
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
        same=is_same(items),
        kind="adapter" if fits else "checkpoints",
        component=options.component,
        values=values,
        a=summary(first, one),
        b=summary(second, other),
        counts=found,
        uncompared=0,
        compared_bytes=0,
        decisions=_decisions(names, fits=fits),
        tensors=tuple(items),
    )
    return Compared(first, second, tensors, apart, document, options)


def _tensors(side: Side, tensors: tuple[LogicalTensor, ...], letter: str) -> tuple[LogicalTensor, ...]:
    if not tensors:
        for item in side.found.descriptor.blockers:
            if item.in_the_way:
                raise Fault(item.code, **{**item.params, "file": _file(side, item)})
        opaque = side.found.descriptor.tensors.files_opaque
        if opaque:
            raise Fault("diff.opaque", side=letter, files=opaque)
        title = FORMAT_TITLES.get(side.found.descriptor.classification.format, "unknown")
        raise Fault("diff.nothing", side=letter, found=title)
    return tensors


def _file(side: Side, item: Blocker) -> str:
    """Return the file that an error is about with the name of its checkpoint, since two of them may have a file of this name."""
    name = path_text(os.path.basename(os.fsencode(side.path).rstrip(b"/")))
    return name if item.subject in (None, ".", name) else f"{name}/{item.subject}".removeprefix("/")


def _of(
    first: Sequence[LogicalTensor], second: Sequence[LogicalTensor], pair: Pair
) -> tuple[LogicalTensor | None, LogicalTensor | None]:
    return (None if pair.a is None else first[pair.a], None if pair.b is None else second[pair.b])


def _decisions(names: Names, *, fits: bool) -> tuple[str, ...]:
    if not fits:
        return names.decisions
    return (*names.decisions, "one side is an adapter: its tensors are held against the modules they change")
