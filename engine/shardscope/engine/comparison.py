"""An output held against its manifest, and any checkpoint held against another, tensor by tensor in bounded memory."""

import os
import threading
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.capabilities.reading import read_document
from shardscope.engine.convert.comparing import compare, compare_copies
from shardscope.engine.convert.contents import Opener
from shardscope.engine.convert.ranks import MAP_FILE, put_together
from shardscope.engine.convert.selection import CASTABLE
from shardscope.engine.decoding import Decoding, bytes_of
from shardscope.engine.geometry.document import read_document as read_maps
from shardscope.engine.inspection import Inspection, inspect, with_digests
from shardscope.engine.materializing import opener_of
from shardscope.engine.model.blocker import Blocks, Fault, Severity
from shardscope.engine.model.catalogue import Catalogue, Fragment, LogicalTensor
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.manifest import (
    MANIFEST_NAME,
    Difference,
    Manifest,
    OutputTensor,
    Validation,
    VerificationDocument,
)
from shardscope.engine.model.progress import OnProgress, Progress, check
from shardscope.engine.model.schemas import VERIFICATION
from shardscope.engine.model.text import counted
from shardscope.engine.naming import named
from shardscope.engine.parse.json import parse_json
from shardscope.engine.source.read import OpenFile
from shardscope.engine.source.source import Source

BUDGET: Final = 64 << 20
"""Bytes of buffers."""
_COPIES: Final = frozenset({"convert.copies_differ", "map.replicas_disagree"})
_HERE, _THERE = "0/", "1/"
"""Before names of files, so that both sides can be read through one opener."""


class _Side(Struct, frozen=True):
    """One of two checkpoints."""

    path: str | os.PathLike[str]
    found: Inspection
    catalogue: Catalogue


def verify(
    path: str | os.PathLike[str],
    against: str | os.PathLike[str] | None = None,
    *,
    decoding: Decoding | None = None,
    decoding_against: Decoding | None = None,
    limits: Limits | None = None,
    hf_cache: bool = False,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> VerificationDocument:
    """Return what holds of the output at `path`: its structure, its files against the digests of its manifest, and every byte of
    its tensors against the checkpoint `against`.

    Tensors are matched by the manifest, and by name where there is none. One that the conversion cast is compared after the
    same cast. Each decoding allows the pickles of its side to be read as data, for this call. Raises `Fault`: those of `inspect`, `verify.nothing`; `Cancelled`.
    """
    bounds = limits or Limits()
    found = inspect(
        path,
        limits=bounds,
        digest="none",
        decoding=decoding,
        with_catalogue=True,
        cancel=cancel,
        progress=progress,
    )
    here = _Side(path, found, found.catalogue or Catalogue(()))
    here = replace(here, catalogue=_put_together(here, bounds))
    if not here.catalogue.tensors:
        raise Fault("verify.nothing")
    manifest = manifest_in(here, bounds)
    validation = [_structure(found), *_digests(found, manifest, cancel, progress)]
    differences: list[Difference] = []
    compared = total = 0
    if against is not None:
        other = inspect(
            against,
            limits=bounds,
            digest="none",
            hf_cache=hf_cache,
            decoding=decoding_against,
            with_catalogue=True,
            cancel=cancel,
            progress=progress,
        )
        catalogue = other.catalogue or Catalogue(())
        if manifest is not None:
            catalogue = named(catalogue, other, manifest.options).catalogue
        there = _Side(against, other, catalogue)
        for tensor, difference in _compared(here, there, manifest, hf_cache, cancel, progress):
            total += bytes_of(tensor) or 0
            if difference is None:
                compared += bytes_of(tensor) or 0
            else:
                differences.append(difference)
        validation.append(_values(len(here.catalogue.tensors), differences))
    held = all(item.result != "differs" for item in validation)
    return VerificationDocument(
        VERIFICATION,
        held,
        len(here.catalogue.tensors),
        compared,
        total,
        tuple(validation),
        tuple(differences),
    )


def manifest_in(side: _Side, limits: Limits) -> Manifest | None:
    """Return the manifest beside an output; null where there is none. Raises `Fault` where it is damaged."""
    entry = next((e for e in side.found.inventory.by_folder.get(b"", ()) if e.name == MANIFEST_NAME), None)
    if entry is None:
        return None
    with Source(side.path, limits=limits) as source, source.open(entry) as reader:
        if entry.size > limits.json_bytes:
            raise Fault("limit.json_bytes", limit=limits.json_bytes, found=entry.size)
        _, document = read_document(reader.pread(0, reader.size), limits)
    return document if isinstance(document, Manifest) else None


def _put_together(side: _Side, limits: Limits) -> Catalogue:
    """Return a catalogue with the parts of ranks put together by the maps that a reshard left beside them."""
    entry = next((e for e in side.found.inventory.by_folder.get(b"", ()) if e.name == MAP_FILE), None)
    if entry is None or all(tensor.part_of is None for tensor in side.catalogue.tensors):
        return side.catalogue
    with Source(side.path, limits=limits) as source, source.open(entry) as reader:
        if entry.size > limits.json_bytes:
            raise Fault("limit.json_bytes", limit=limits.json_bytes, found=entry.size)
        value = parse_json(reader.pread(0, reader.size), limits).value
    return put_together(side.catalogue, read_maps(value, entry.text))


def _structure(found: Inspection) -> Validation:
    errors = [
        item
        for item in found.descriptor.blockers
        if item.severity is Severity.ERROR and {Blocks.INSPECT, Blocks.LOAD} & set(item.blocks)
    ]
    if errors:
        return Validation("structure", "differs", f"{errors[0].code}: {errors[0].message}")
    return Validation("structure", "held", "headers, shards and index agree")


def _digests(
    found: Inspection,
    manifest: Manifest | None,
    cancel: threading.Event | None,
    progress: OnProgress | None,
) -> Iterator[Validation]:
    """Hash the files that a manifest has digests of."""
    if manifest is None:
        yield Validation("digests", "not recorded", "there is no manifest")
        return
    recorded = {file.name: file.sha256 for file in manifest.outputs if file.sha256 is not None}
    if not recorded:
        yield Validation("digests", "not recorded", "the manifest has none")
        return
    hashed = with_digests(found, "all", cancel=cancel, progress=progress).descriptor.source.entries
    now = {entry.path: entry.digest.sha256 for entry in hashed}
    wrong = [name for name, digest in recorded.items() if now.get(name) != digest]
    if wrong:
        yield Validation(
            "digests", "differs", f"{counted(len(wrong), 'file')} changed or missing, first {wrong[0]}"
        )
    else:
        yield Validation("digests", "held", f"{counted(len(recorded), 'file')} as the manifest has them")


def _values(count: int, differences: list[Difference]) -> Validation:
    if differences:
        return Validation("values", "differs", f"{counted(len(differences), 'tensor')} not the same")
    return Validation(
        "values", "held", f"every byte of {counted(count, 'tensor')} is that of the other checkpoint"
    )


def _compared(
    here: _Side,
    there: _Side,
    manifest: Manifest | None,
    hf_cache: bool,
    cancel: threading.Event | None,
    progress: OnProgress | None,
) -> Iterator[tuple[LogicalTensor, Difference | None]]:
    """Yield each tensor of this side with what is different on the other."""
    others: dict[str, LogicalTensor] = {}
    for tensor in there.catalogue.tensors:
        others.setdefault(tensor.name, tensor)
    made = _made(manifest)
    with (
        Source(here.path, limits=Limits()) as one,
        Source(there.path, limits=Limits(), hf_cache=hf_cache) as two,
    ):
        opener = _both(opener_of(one, here.found.inventory), opener_of(two, there.found.inventory))
        tensors = here.catalogue.tensors
        for number, tensor in enumerate(tensors):
            check(cancel)
            if progress is not None:
                progress(Progress("compare", number, len(tensors), "tensors", tensor.name))
            record = made.get(tensor.name)
            other = others.get(record.source if record is not None else tensor.name)
            if other is None:
                yield tensor, Difference(tensor.name, "the other checkpoint has no such tensor")
            else:
                yield tensor, _difference(tensor, other, record, opener, cancel)
    if manifest is None:
        names = {tensor.name for tensor in tensors}
        for tensor in there.catalogue.of("model"):
            if tensor.name not in names and tensor.alias_of not in names:
                yield tensor, Difference(tensor.name, "only the other checkpoint has it")


def _made(manifest: Manifest | None) -> Mapping[str, OutputTensor]:
    if manifest is None:
        return {}
    return {tensor.name: tensor for file in manifest.outputs for tensor in file.tensors}


def _difference(
    tensor: LogicalTensor,
    other: LogicalTensor,
    record: OutputTensor | None,
    opener: Opener,
    cancel: threading.Event | None,
) -> Difference | None:
    trimmed = (
        record is not None and tensor.shape[1:] == other.shape[1:] and tensor.shape[:1] <= other.shape[:1]
    )
    if tensor.shape != other.shape and not trimmed:
        return Difference(tensor.name, f"shape {tensor.shape} here, {other.shape} there")
    cast = record is not None and tensor.dtype in CASTABLE and other.dtype in CASTABLE
    if tensor.dtype != other.dtype and not cast:
        return Difference(tensor.name, f"type {tensor.dtype} here, {other.dtype} there")
    at = compare(
        _placed(other, _THERE),
        _placed(tensor, _HERE),
        dtype=tensor.dtype,
        rows=True,
        opener=opener,
        budget_bytes=BUDGET,
        cancel=cancel,
    )
    if at is not None:
        return Difference(tensor.name, "values differ", at)
    try:
        compare_copies(_placed(tensor, _HERE), opener=opener, budget_bytes=BUDGET, cancel=cancel)
    except Fault as fault:
        if fault.finding.code not in _COPIES:
            raise
        return Difference(tensor.name, "copies of it differ here")
    return None


def _placed(tensor: LogicalTensor, side: str) -> LogicalTensor:
    def there(items: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
        return tuple(
            replace(item, record=replace(item.record, file=side + item.record.file)) for item in items
        )

    return replace(tensor, fragments=there(tensor.fragments), replicas=there(tensor.replicas))


def _both(here: Opener, there: Opener) -> Opener:
    def open_(name: str) -> OpenFile:
        return here(name.removeprefix(_HERE)) if name.startswith(_HERE) else there(name.removeprefix(_THERE))

    return open_
