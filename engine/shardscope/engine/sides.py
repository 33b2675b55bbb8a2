"""Two checkpoints side by side: each inspected with its catalogue, and the files of both behind one opener."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.convert.copies.contents import Opener
from shardscope.engine.convert.copies.entries import opener_of
from shardscope.engine.decoding import Decoding
from shardscope.engine.inspection import Inspection, inspect
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Catalogue, Fragment, LogicalTensor
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.manifest import MANIFEST_NAME, Manifest
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.source import Entry
from shardscope.engine.source.read import OpenFile
from shardscope.engine.source.source import Source

Place = Callable[[LogicalTensor], LogicalTensor]
"""Returns a tensor whose records name their files as the opener of both sides knows them."""
_HERE, _THERE = "0/", "1/"
"""Before names of files, so that both sides can be read through one opener."""


class Side(Struct, frozen=True):
    """One of two checkpoints."""

    path: str | os.PathLike[str]
    found: Inspection
    catalogue: Catalogue


def side_of(
    path: str | os.PathLike[str],
    *,
    limits: Limits,
    hf_cache: bool = False,
    decoding: Decoding | None = None,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Side:
    """Inspect a checkpoint and list its tensors; what ranks hold is put together where a reshard left maps beside it.

    Raises `Fault`: those of `inspect`, and those of the maps; `Cancelled`.
    """
    found = inspect(
        path,
        limits=limits,
        digest="none",
        hf_cache=hf_cache,
        decoding=decoding,
        with_catalogue=True,
        cancel=cancel,
        progress=progress,
    )
    side = Side(path, found, found.catalogue or Catalogue(()))
    return replace(side, catalogue=_put_together(side, limits))


def manifest_in(side: Side, limits: Limits) -> Manifest | None:
    """Return the manifest beside an output; null where there is none. Raises `Fault` where it is damaged."""
    data = _beside(side, MANIFEST_NAME, limits)
    if data is None:
        return None
    from shardscope.engine.capabilities.reading import read_document  # it knows every document there is

    _, document = read_document(data, limits)
    return document if isinstance(document, Manifest) else None


def _put_together(side: Side, limits: Limits) -> Catalogue:
    """Return a catalogue with the parts of ranks put together by the maps that a reshard left beside them."""
    if all(tensor.part_of is None for tensor in side.catalogue.tensors):
        return side.catalogue
    from shardscope.engine.convert.plans.ranks import MAP_FILE, put_together
    from shardscope.engine.geometry.language.document import read_document as read_maps
    from shardscope.engine.parse.json import parse_json

    data = _beside(side, MAP_FILE, limits)
    if data is None:
        return side.catalogue
    return put_together(side.catalogue, read_maps(parse_json(data, limits).value, MAP_FILE))


def _beside(side: Side, name: str, limits: Limits) -> bytes | None:
    """Return a JSON file at the top of a checkpoint; null where there is none. Raises `Fault`."""
    entry = _entry(side, name)
    if entry is None:
        return None
    with (
        Source(side.path, limits=limits, hf_cache=side.found.hf_cache) as source,
        source.open(entry) as reader,
    ):
        if entry.size > limits.json_bytes:
            raise Fault("limit.json_bytes", limit=limits.json_bytes, found=entry.size)
        return reader.pread(0, reader.size)


def _entry(side: Side, name: str) -> Entry | None:
    return next((e for e in side.found.inventory.by_folder.get(b"", ()) if e.name == name), None)


def placed_here(tensor: LogicalTensor) -> LogicalTensor:
    """Return a tensor of the first side, for the opener of both."""
    return _placed(tensor, _HERE)


def placed_there(tensor: LogicalTensor) -> LogicalTensor:
    """Return a tensor of the second side, for the opener of both."""
    return _placed(tensor, _THERE)


@contextmanager
def opened(first: Side, second: Side) -> Iterator[Opener]:
    """Open both sides and hand out one opener for the files of tensors that went through `placed_here` and `placed_there`."""
    with (
        Source(first.path, limits=Limits(), hf_cache=first.found.hf_cache) as one,
        Source(second.path, limits=Limits(), hf_cache=second.found.hf_cache) as two,
    ):
        yield _both(opener_of(one, first.found.inventory), opener_of(two, second.found.inventory))


def _placed(tensor: LogicalTensor, side: str) -> LogicalTensor:
    def moved(items: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
        return tuple(
            replace(item, record=replace(item.record, file=side + item.record.file)) for item in items
        )

    return replace(tensor, fragments=moved(tensor.fragments), replicas=moved(tensor.replicas))


def _both(first: Opener, second: Opener) -> Opener:
    def open_(name: str) -> OpenFile:
        if name.startswith(_HERE):
            return first(name.removeprefix(_HERE))
        return second(name.removeprefix(_THERE))

    return open_
