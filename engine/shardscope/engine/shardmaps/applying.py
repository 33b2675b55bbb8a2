"""Maps applied to files: shards to the full tensor, the full tensor to shards, shards to other shards.

Everything is a transfer plan that runs over bounded buffers, whatever the size of the tensor: the full tensor is the one
shard of a layout of one rank.
"""

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Required, TypedDict, Unpack

from msgspec import Struct

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.execution.stream import compare_replicas, transfer
from shardscope.engine.geometry.transfer.compose import compose, whole
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.shardmaps.arrays import (
    ArrayFile,
    Kind,
    Path,
    Staging,
    Target,
    opened,
    refuse_existing,
    suffix_of,
)

UNCOVERED = "map.uncovered"


class Written(Struct, frozen=True):
    """One file that was written."""

    path: str
    """Not neutralised."""
    rank: int | None
    """Whose shard it is; null for the full tensor."""
    bytes: int


class Applied(Struct, frozen=True):
    """What was written, and what its elements are."""

    dtype: str
    files: tuple[Written, ...]


class Applying(TypedDict, total=False):
    """What can be said of a tensor and of the work, whichever way it goes."""

    tensor: Required[str]
    """Its name in what is written."""
    key: str | None
    """Its name in safetensors files that are read; the same by default."""
    state: bool
    """Whether it is optimizer state, on which factors are refused."""
    workers: int
    limits: Limits | None
    cancel: threading.Event | None
    progress: OnProgress | None


def assemble_files(
    lowered: Lowered,
    shards: Mapping[int, Path],
    out: Path,
    **options: Unpack[Applying],
) -> Applied:
    """Write the full tensor that the shard files of all ranks make up to the file `out`.

    Files are `.npy` or safetensors by their names. Where ranks hold the same elements the lowest is read and the others are
    compared with it first.

    Raises `Fault`: what is wrong first in the map, `map.shard_unknown`, `map.array`, `map.replicas_disagree`, those of
    `opened`, of `transfer` and of `Staging`, and `Cancelled`.
    """
    return _move(
        lowered,
        whole(lowered.shape),
        shards,
        out,
        {0: ""},
        suffix_of(out),
        **options,
    )


def slice_file(
    lowered: Lowered,
    full: Path,
    out: Path,
    **options: Unpack[Applying],
) -> Applied:
    """Write the shard of every rank of the full tensor in the file `full` to a new folder `out`, in the format of `full`.

    Padding is zero. Faults as of `assemble_files`; a map need not hold every element.
    """
    return _move(
        whole(lowered.shape),
        lowered,
        {0: full},
        out,
        _names(lowered),
        suffix_of(full),
        **options,
    )


def reshard_files(
    source: Lowered,
    target: Lowered,
    shards: Mapping[int, Path],
    out: Path,
    **options: Unpack[Applying],
) -> Applied:
    """Write the shards of another layout to a new folder `out`, straight from the shard files of `source`.

    The full tensor is nowhere, neither in memory nor on disk. Faults as of `assemble_files`.
    """
    first = next(iter(shards.values()), None)
    suffix = ".npy" if first is None else suffix_of(first)
    return _move(
        source,
        target,
        shards,
        out,
        _names(target),
        suffix,
        **options,
    )


def _names(lowered: Lowered) -> dict[int, str]:
    """Return what the file of each rank is called, so that they sort by rank."""
    width = max((len(str(abs(shard.rank))) for shard in lowered.ranks), default=1)
    return {shard.rank: f"rank_{shard.rank:0{width + (shard.rank < 0)}d}" for shard in lowered.ranks}


def _move(
    source: Lowered,
    target: Lowered,
    shards: Mapping[int, Path],
    out: Path,
    names: Mapping[int, str],
    suffix: str,
    *,
    tensor: str,
    key: str | None = None,
    state: bool = False,
    workers: int = 1,
    limits: Limits | None = None,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Applied:
    refuse_existing(out)
    _refuse(source, besides=None if names == {0: ""} else UNCOVERED)
    _refuse(target, besides=UNCOVERED)
    for rank in sorted({shard.rank for shard in source.ranks} ^ shards.keys()):
        raise Fault("map.shard_unknown", rank=rank)
    plan = compose(target, source, factors=not state)
    ranks = sorted(shards)
    with ExitStack() as stack:
        with opened([shards[rank] for rank in ranks], key or tensor, limits or Limits()) as files:
            by_rank = dict(zip(ranks, files, strict=True))
            kind = _fitting(source, by_rank)

            def read(rank: int, offset: int, length: int) -> bytes:
                return by_rank[rank].read(offset, length)

            if any(len(piece.holders) > 1 for shard in source.ranks for piece in shard.held):
                compare_replicas(
                    compose(source, source),
                    source,
                    dtype=kind.dtype,
                    read=read,
                    workers=workers,
                    cancel=cancel,
                    progress=progress,
                )
            bits = DTYPES[kind.dtype].bits
            order = {shard.rank: number for number, shard in enumerate(target.ranks)}
            targets = [
                Target(names[shard.rank], shard.shape, shard.elements * bits // 8) for shard in target.ranks
            ]
            staging = stack.enter_context(Staging(out, targets, tensor, kind, suffix))
            transfer(
                plan,
                source,
                target,
                dtype=kind.dtype,
                read=read,
                write=lambda rank, offset, data: staging.write(order[rank], offset, data),
                scales=not state,
                workers=workers,
                cancel=cancel,
                progress=progress,
            )
        # Leaving the files has proven that none changed while it was read: only now may anything appear.
        written = staging.promote()
    single = names == {0: ""}
    return Applied(
        kind.dtype if kind.exact else kind.descr,
        tuple(
            Written(path, None if single else shard.rank, size)
            for shard, (path, size) in zip(target.ranks, written, strict=True)
        ),
    )


def _refuse(lowered: Lowered, besides: str | None) -> None:
    for finding in check(lowered).findings:
        if finding.code != besides:
            raise Fault(finding.code, **finding.params)


def _fitting(source: Lowered, files: Mapping[int, ArrayFile]) -> Kind:
    """Return what the elements are, having held every file against the map."""
    first: ArrayFile | None = None
    for shard in source.ranks:
        held = files[shard.rank]
        first = first or held
        if held.kind != first.kind:
            raise Fault(
                "array.dtypes_differ", file=held.file, found=held.kind.dtype, expected=first.kind.dtype
            )
        if held.shape != shard.shape:
            subject = "full tensor" if len(files) == 1 else f"shard of rank {shard.rank}"
            raise Fault(
                "map.array", subject=subject, found=str(list(held.shape)), expected=str(list(shard.shape))
            )
    if first is None:
        raise Fault("map.incomplete", found=0, expected=source.elements)
    return first.kind
