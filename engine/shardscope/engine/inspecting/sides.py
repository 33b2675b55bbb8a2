"""Checkpoints side by side: each inspected with its catalogue, and the files of all behind one opener."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.convert.copies.contents import Opener
from shardscope.engine.convert.copies.entries import opener_of
from shardscope.engine.formats.peft_adapter import CONFIG as ADAPTER_CONFIG
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.inspection import Inspection, inspect
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Catalogue, Fragment, LogicalTensor
from shardscope.engine.model.config import AdapterFacts
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.manifest import MANIFEST_NAME, Manifest
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.source import Entry
from shardscope.engine.source.read import OpenFile
from shardscope.engine.source.source import Source

LOCAL: Final = ("convert.", "map.", "source.read_failed")
"""How codes begin that are about one tensor: others are read all the same."""
MODEL_CONFIG: Final = "config.json"


class Side(Struct, frozen=True):
    """One of several checkpoints."""

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
    return side_from(found, limits)


def side_from(found: Inspection, limits: Limits) -> Side:
    """Return a checkpoint that was inspected with its catalogue, as `side_of` does. Raises `Fault`: those of the maps."""
    side = Side(found.path, found, found.catalogue or Catalogue(()))
    return replace(side, catalogue=_put_together(side, limits))


def manifest_in(side: Side, limits: Limits) -> Manifest | None:
    """Return the manifest beside an output; null where there is none. Raises `Fault` where it is damaged."""
    data = _beside(side, MANIFEST_NAME, limits)
    if data is None:
        return None
    from shardscope.engine.capabilities.reading import read_document  # it knows every document there is

    _, document = read_document(data, limits)
    return document if isinstance(document, Manifest) else None


def adapter_facts(side: Side, limits: Limits) -> AdapterFacts | None:
    """Return what the configuration of a PEFT adapter declares; null where none is there. Raises `Fault`: those of JSON."""
    value = _object(side, ADAPTER_CONFIG, limits)
    if value is None:
        return None
    from shardscope.engine.parse.config import check_adapter_config

    return check_adapter_config(value)


def has_own_head(side: Side, limits: Limits) -> bool:
    """Tell whether the configuration of a model says that its head is not its embedding. Raises `Fault`: those of JSON."""
    value = _object(side, MODEL_CONFIG, limits)
    return value is not None and value.get("tie_word_embeddings") is False


def _object(side: Side, name: str, limits: Limits) -> dict[str, Any] | None:
    """Return what a JSON file at the top of a checkpoint holds; null where it is not there, or is no object."""
    data = _beside(side, name, limits)
    if data is None:
        return None
    from shardscope.engine.parse.json import parse_json

    value = parse_json(data, limits).value
    return value if isinstance(value, dict) else None


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


def placed(tensor: LogicalTensor, side: int) -> LogicalTensor:
    """Return a tensor of one of several sides, by its number, for the opener of them all."""

    def moved(items: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
        return tuple(
            replace(item, record=replace(item.record, file=f"{side}/{item.record.file}")) for item in items
        )

    return replace(tensor, fragments=moved(tensor.fragments), replicas=moved(tensor.replicas))


@contextmanager
def opened(sides: Sequence[Side]) -> Iterator[Opener]:
    """Open several sides and hand out one opener for the files of tensors that were `placed`."""
    with ExitStack() as stack:
        openers = [
            opener_of(
                stack.enter_context(Source(side.path, limits=Limits(), hf_cache=side.found.hf_cache)),
                side.found.inventory,
            )
            for side in sides
        ]

        def open_(name: str) -> OpenFile:
            number, _, file = name.partition("/")
            return openers[int(number)](file)

        yield open_
