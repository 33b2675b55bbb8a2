"""Shard maps on arrays in memory: shards to the full tensor, and the full tensor to a shard.

Arrays may be of any numpy dtype, or flat buffers of bytes with the name of their dtype: bfloat16, eight-bit floats and packed
elements are moved without being understood. Whatever a map says, nothing
is read or written beyond an array.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.execution.arrays import Array, Buffer, all_flat, element, flat, output, raw
from shardscope.engine.geometry.execution.cutting import split
from shardscope.engine.geometry.execution.move import Bytes
from shardscope.engine.geometry.execution.program import Copy, IndexedCopy, shard_program
from shardscope.engine.geometry.execution.scale import Element, carry, differing
from shardscope.engine.geometry.execution.work import SMALL, Meter, in_order
from shardscope.engine.geometry.pieces.factors import factor
from shardscope.engine.geometry.transfer.replicas import Holders, Selector, choices, lowest
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.mapcheck import Checked
from shardscope.engine.model.piece import ONE, IndexedPiece, Lowered, Piece, RankShard
from shardscope.engine.model.progress import OnProgress

Kind: TypeAlias = Literal["parameter", "state"]
"""What the tensor is: a parameter, or the state of an optimizer, whose values do not scale as the parameter's do."""

AT_ONCE = 32 << 20
"""Bytes moved between two looks at `cancel`: some 20 ms."""

CONTIGUOUS = 512 << 20
"""The same for a single run: the C library copies that much in one call a quarter faster than in parts."""

UNCOVERED = "map.uncovered"
"""A target layout need not hold every element."""

CALLS = 4096
"""Copies between two looks at `cancel`, however short they are."""


def assemble(
    lowered: Lowered,
    shards: Mapping[int, Array | Buffer],
    *,
    out: Array | None = None,
    dtype: str | None = None,
    kind: Kind = "parameter",
    checked: bool = False,
    choose: Selector = lowest,
    workers: int = 1,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Array:
    """Return the full tensor that the shards of all ranks make up.

    `shards` are arrays of the shapes that the map says, or flat bytes if `dtype` names their elements (as safetensors does).
    Where several ranks hold the same elements, that of `choose` is taken (the lowest, by default) and the others are
    compared with it, byte for byte. `out` receives the tensor; it is row-major, and worth nothing after a fault. `checked` says
    that the map has passed `check`, which is otherwise done here.

    Raises `Fault`: `map.shard_unknown`, `map.shard_size`, `map.array`, `map.dtype`, `map.incomplete`,
    `map.replicas_disagree`, `map.scaled`, and those of programs (`shard_program`) and of scaling (`carry`).
    """
    refuse_scaled_state(lowered, kind)
    if not checked:
        refuse_unsound(check(lowered))
    of = element(shards.values(), dtype)
    held = all_flat(lowered, shards, of)
    full = output(lowered.shape, out, of, shards.values())
    target = raw(full)
    chosen: list[_Job] = []
    others: list[_Job] = []
    covered = 0
    readers = _readers(lowered, choose)
    for shard in lowered.ranks:
        taken: dict[int, list[Piece | IndexedPiece]] = {}
        for piece in shard.held:
            taken.setdefault(readers[piece.holders], []).append(piece)
        for rank, pieces in taken.items():
            program = shard_program(shard, lowered.elements, of.bits, pieces, inward=True)
            covered += program.size if rank == shard.rank else 0
            jobs = chosen if rank == shard.rank else others
            jobs += [_Job(copy, held[shard.rank], shard.rank, rank) for copy in program.all]
    if covered != len(target):
        raise Fault("map.incomplete", found=covered, expected=len(target))
    meter = Meter("assemble", sum(job.copy.size for job in (*chosen, *others)), progress)
    run = partial(_run, target=target, of=of, workers=workers, cancel=cancel, meter=meter)
    run(chosen, _copy)
    run(others, _compare)
    return full


def slice_(
    lowered: Lowered,
    full: Array | Buffer,
    rank: int,
    *,
    out: Array | None = None,
    dtype: str | None = None,
    kind: Kind = "parameter",
    checked: bool = False,
    workers: int = 1,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Array:
    """Return the shard that a rank holds of the full tensor. Padding is zero.

    Arguments as of `assemble`. Raises `Fault`: `map.shard_unknown`, `map.array`, `map.dtype`, `map.incomplete`, `map.scaled`, and
    those of programs and of scaling.
    """
    refuse_scaled_state(lowered, kind)
    if not checked:
        refuse_unsound(check(lowered), besides=UNCOVERED)
    shard = shard_of(lowered, rank)
    of = element((full,), dtype)
    source = flat(full, lowered.shape, of, None)
    held = output(shard.shape, out, of, (full,))
    target = raw(held)
    if shard.padding:
        target[:] = 0
    program = shard_program(shard, lowered.elements, of.bits, shard.held, inward=False)
    written = program.size + of.bytes_of(shard.padding)
    if written != len(target):
        raise Fault("map.incomplete", found=written, expected=len(target))
    jobs = [_Job(copy, source, rank, rank) for copy in program.all]
    meter = Meter("slice", program.size, progress)
    _run(jobs, _copy, target=target, of=of, workers=workers, cancel=cancel, meter=meter)
    return held


def refuse_unsound(checked: Checked, besides: str | None = None) -> None:
    """Refuse a map that did not pass its checks, with the first thing that is wrong; one code may be let pass.

    Raises `Fault`.
    """
    for finding in checked.findings:
        if finding.code != besides:
            raise Fault(finding.code, **finding.params)


def shard_of(lowered: Lowered, rank: int) -> RankShard:
    """Return what a rank holds.

    Raises `Fault` `map.shard_unknown` for a label that the map does not have.
    """
    for shard in lowered.ranks:
        if shard.rank == rank:
            return shard
    raise Fault("map.shard_unknown", rank=rank)


def refuse_scaled_state(lowered: Lowered, kind: Kind) -> None:
    """Refuse factors on optimizer state: moments scale by other powers, and step sizes live in the shard's coordinates.

    Raises `Fault` `map.scaled`.
    """
    if kind == "state":
        for shard in lowered.ranks:
            for piece in shard.held:
                if piece.scale != ONE:
                    raise Fault("map.scaled", rank=shard.rank, factor=factor(piece.scale))


def _readers(lowered: Lowered, choose: Selector) -> dict[Holders, int]:
    """Return which rank each set of holders is read from, for the full tensor (target rank 0)."""
    held = {piece.holders for shard in lowered.ranks for piece in shard.held}
    ((choice, _),) = choices(held, (0,), choose).items()
    return dict(choice)


class _Job(NamedTuple):
    copy: Copy | IndexedCopy
    source: Bytes
    rank: int
    """Whose shard is read or written."""
    taken: int
    """Whose elements are in the full tensor."""


_Work: TypeAlias = Callable[[_Job, Bytes, Element], None]


def _run(
    jobs: Sequence[_Job],
    work: _Work,
    *,
    target: Bytes,
    of: Element,
    workers: int,
    cancel: threading.Event | None,
    meter: Meter,
) -> None:
    def batch(some: Sequence[_Job]) -> int:
        for job in some:
            work(job, target, of)
        return sum(job.copy.size for job in some)

    total = sum(job.copy.size for job in jobs)
    if total < SMALL:
        workers = 1
    share = -(-total // workers) if workers > 1 else CONTIGUOUS
    most = min(CONTIGUOUS, max(AT_ONCE, share))
    tasks = (partial(batch, some) for some in _batches(jobs, most))
    for done in in_order(tasks, workers, cancel):
        meter.add(done)


def _parts(copy: Copy | IndexedCopy, contiguous: int) -> Iterable[Copy | IndexedCopy]:
    if isinstance(copy, IndexedCopy):
        return (copy,)
    return split(copy, AT_ONCE if copy.counts or copy.scale != ONE else contiguous)


def _batches(jobs: Sequence[_Job], most: int) -> Iterator[list[_Job]]:
    """Yield jobs in batches of about `AT_ONCE` bytes, large ones cut, single runs at `most`."""
    batch: list[_Job] = []
    size = 0
    for job in jobs:
        for part in _parts(job.copy, most):
            batch.append(job._replace(copy=part))
            size += part.size
            if size >= AT_ONCE or len(batch) >= CALLS:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _copy(job: _Job, target: Bytes, of: Element) -> None:
    carry(job.copy, job.source, target, of)


def _compare(job: _Job, target: Bytes, of: Element) -> None:
    """Compare what a rank holds with what was taken from another, both as they are in the full tensor."""
    at = differing(job.copy, job.source, target, of)
    if at is not None:
        offset = at * 8 // of.bits
        raise Fault(
            "map.replicas_disagree", rank=job.taken, other=job.rank, place="full tensor", offset=offset
        )
