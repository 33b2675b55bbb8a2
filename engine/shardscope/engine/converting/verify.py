"""An output held against its manifest, and any checkpoint held against another, tensor by tensor in bounded memory."""

import os
import threading
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from shardscope.engine.convert.copies.contents import Opener
from shardscope.engine.convert.plans.selection import CASTABLE
from shardscope.engine.convert.proofs.comparing import compare, compare_copies
from shardscope.engine.converting.naming import named
from shardscope.engine.inspecting.decoding import Decoding, bytes_of
from shardscope.engine.inspecting.inspection import Inspection, with_digests
from shardscope.engine.inspecting.sides import Side, manifest_in, opened, placed, side_of
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.manifest import (
    Difference,
    Manifest,
    OutputTensor,
    Validation,
    VerificationDocument,
)
from shardscope.engine.model.progress import OnProgress, Progress, check
from shardscope.engine.model.schemas import VERIFICATION
from shardscope.engine.model.text import counted

BUDGET: Final = 64 << 20
"""Bytes of buffers."""
_COPIES: Final = frozenset({"convert.copies_differ", "map.replicas_disagree"})


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
    here = side_of(path, limits=bounds, decoding=decoding, cancel=cancel, progress=progress)
    found = here.found
    if not here.catalogue.tensors:
        raise Fault("verify.nothing")
    manifest = manifest_in(here, bounds)
    validation = [_structure(found), *_digests(found, manifest, cancel, progress)]
    differences: list[Difference] = []
    compared = total = 0
    if against is not None:
        there = side_of(
            against,
            limits=bounds,
            hf_cache=hf_cache,
            decoding=decoding_against,
            cancel=cancel,
            progress=progress,
        )
        if manifest is not None:
            there = replace(there, catalogue=named(there.catalogue, there.found, manifest.options).catalogue)
        for tensor, difference in _compared(here, there, manifest, cancel, progress):
            total += bytes_of(tensor) or 0
            if difference is None:
                compared += bytes_of(tensor) or 0
            else:
                differences.append(difference)
        cast = _was_cast(here, there, manifest)
        validation.append(_values(len(here.catalogue.tensors), differences, cast=cast))
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


def _structure(found: Inspection) -> Validation:
    errors = [item for item in found.descriptor.blockers if item.in_the_way]
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


def _was_cast(here: Side, there: Side, manifest: Manifest | None) -> bool:
    """Tell whether an output has a tensor in another type than its source."""
    made = _made(manifest)
    types = {tensor.name: tensor.dtype for tensor in there.catalogue.tensors}
    return any(
        types.get(made[tensor.name].source, tensor.dtype) != tensor.dtype
        for tensor in here.catalogue.tensors
        if tensor.name in made
    )


def _values(count: int, differences: list[Difference], *, cast: bool) -> Validation:
    if differences:
        return Validation("values", "differs", f"{counted(len(differences), 'tensor')} not the same")
    after = " after the same cast" if cast else ""
    return Validation(
        "values", "held", f"every byte of {counted(count, 'tensor')} is that of the other checkpoint{after}"
    )


def _compared(
    here: Side,
    there: Side,
    manifest: Manifest | None,
    cancel: threading.Event | None,
    progress: OnProgress | None,
) -> Iterator[tuple[LogicalTensor, Difference | None]]:
    """Yield each tensor of this side with what is different on the other."""
    others: dict[str, LogicalTensor] = {}
    for tensor in there.catalogue.tensors:
        others.setdefault(tensor.name, tensor)
    made = _made(manifest)
    with opened((here, there)) as opener:
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
        placed(other, 1),
        placed(tensor, 0),
        dtype=tensor.dtype,
        rows=True,
        opener=opener,
        budget_bytes=BUDGET,
        cancel=cancel,
    )
    if at is not None:
        return Difference(tensor.name, "values differ", at)
    try:
        compare_copies(placed(tensor, 0), opener=opener, budget_bytes=BUDGET, cancel=cancel)
    except Fault as fault:
        if fault.finding.code not in _COPIES:
            raise
        return Difference(tensor.name, "copies of it differ here")
    return None
