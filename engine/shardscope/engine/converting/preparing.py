"""Conversion from one end to the other: inspect, plan, admit, stage, verify, promote.

Nothing starts that was not planned and admitted, and nothing half-done is ever visible: outputs are staged beside their target
and appear by one rename.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec import UNSET, Struct
from msgspec.structs import replace

from shardscope.engine.capabilities.reading import read_as
from shardscope.engine.convert.admitting.admission import admit
from shardscope.engine.convert.admitting.space import memory, space_beside, with_room
from shardscope.engine.convert.copies.contents import OPEN_FILES
from shardscope.engine.convert.plans.fitting import fitted
from shardscope.engine.convert.plans.planning import plan as make_plan
from shardscope.engine.convert.plans.ranks import Aimed
from shardscope.engine.convert.plans.selection import Chosen
from shardscope.engine.convert.stage.resuming import Held
from shardscope.engine.converting.carrying import Beside, beside, carried_files
from shardscope.engine.converting.naming import load_notes, named, true_rows
from shardscope.engine.inspecting.decoding import Decoding, bytes_of
from shardscope.engine.inspecting.inspection import Inspection, inspect
from shardscope.engine.model.blocker import Blocker, Blocks, Fault, Severity
from shardscope.engine.model.catalogue import Catalogue
from shardscope.engine.model.format_names import FORMAT_TITLES, HEADERS_ONLY
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.manifest import RenamesDocument
from shardscope.engine.model.plan import (
    LeftOut,
    Plan,
    PlanOptions,
    PlanSource,
    RenameRule,
)
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.source import Inventory
from shardscope.engine.model.state import Presence
from shardscope.engine.model.text import counted
from shardscope.engine.version import __version__

TOOL: Final = f"shardscope {__version__}"
OPEN_BESIDE: Final = 64
"""Descriptors that a conversion has open beside those of its workers: outputs that are not yet durable, staging, the library."""


AimAt = Callable[[Inspection, Catalogue, Sequence[Chosen]], Aimed]
"""From a source and the tensors that are written to the files of a target topology."""


class Prepared(Struct, frozen=True):
    """A plan with what it was made from."""

    inspection: Inspection
    catalogue: Catalogue
    plan: Plan
    beside: Beside | None = None
    """The folder that a person named for configuration."""


def prepare(
    path: str | os.PathLike[str],
    options: PlanOptions,
    *,
    decoding: Decoding | None = None,
    plan: Plan | None = None,
    config: str | None = None,
    limits: Limits | None = None,
    hf_cache: bool = False,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
    aim: AimAt | None = None,
    found: Inspection | None = None,
) -> Prepared:
    """Return the plan for the checkpoint at `path`. Nothing is written.

    `decoding` allows pickles to be read as data, for this call. `plan` is one that was made before: it is held against the source
    and carried out as it stands. `config` names a folder with configuration and tokenizer to carry
    along instead of those beside the source. `aim` gives the target topology whose ranks' shards are written instead of whole
    tensors. `found` is what `look_for_plan` found before: then nothing is looked at again, and plans can be made one after
    the other.

    Raises `Fault`: those of `inspect` and of `convert.planning.plan`, `convert.headers_only`, `convert.opaque`; `Cancelled`.
    """
    if found is None:
        found = look_for_plan(
            path,
            digests=options.digest_source,
            decoding=decoding,
            limits=limits,
            hf_cache=hf_cache,
            cancel=cancel,
            progress=progress,
        )
    if (name := found.descriptor.classification.format) in HEADERS_ONLY:
        raise Fault("convert.headers_only", format=FORMAT_TITLES[name])
    catalogue = found.catalogue or Catalogue(())
    decoded = found.descriptor.decoded is not UNSET
    opaque = found.descriptor.trust.opaque_files
    if not catalogue.tensors and opaque and not decoded:
        raise Fault("convert.opaque", count=len(opaque), first=opaque[0])
    folder = None if config is None else beside(config, limits)
    source = source_of(found, decoded=decoded)
    names = named(catalogue, found, options)
    catalogue = names.catalogue
    if plan is not None:
        return Prepared(
            found,
            catalogue,
            fitted(plan, source, catalogue, lambda chosen: buffer_bytes(chosen, plan.options)),
            folder,
        )
    try:
        made = make_plan(
            tool=TOOL,
            source=source,
            catalogue=catalogue,
            options=options,
            carried=carried_files((folder or found).inventory) if options.carry else (),
            absent=(*names.left_out, *absent_state(found)),
            decisions=names.decisions,
            blockers=load_notes(found.descriptor.blockers, found, catalogue, options),
            size_of=bytes_of,
            buffers=lambda chosen: buffer_bytes(chosen, options),
            rows=true_rows(path, found, catalogue, options, hf_cache=hf_cache),
            aim=None if aim is None else partial(aim, found, catalogue),
        )
    except Fault as fault:
        raise explained(fault, found.descriptor.blockers) from None
    return Prepared(found, catalogue, made, folder)


def look_for_plan(
    path: str | os.PathLike[str],
    *,
    digests: bool = False,
    decoding: Decoding | None = None,
    limits: Limits | None = None,
    hf_cache: bool = False,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Inspection:
    """Return everything that plans for the checkpoint at `path` are made of. `decoding` allows pickles to be read, for this call.

    Raises `Fault`: those of `inspect`; `Cancelled`.
    """
    return inspect(
        path,
        limits=limits,
        digest="all" if digests else "none",
        hf_cache=hf_cache,
        decoding=decoding,
        with_catalogue=True,
        cancel=cancel,
        progress=progress,
    )


def explained(fault: Fault, blockers: Sequence[Blocker]) -> Fault:
    """Return what stood in the way before a plan could not be made, where inspection found it; otherwise the fault itself.

    Ranks whose tensors cannot be put together have the same names: that is what has to be told.
    """
    if fault.finding.code != "convert.name_repeated":
        return fault
    for item in blockers:
        noted = item.severity is Severity.INFO or item.code.startswith("trust.")
        if Blocks.CONVERT in item.blocks and not noted:
            return Fault(item.code, **item.params)
    return fault


def buffer_bytes(chosen: Sequence[Chosen], options: PlanOptions) -> int:
    """Return the bytes of the copies' own buffers."""
    from shardscope.engine.convert.copies.work import Written
    from shardscope.engine.convert.copies.work import memory as buffers

    items = [Written(item.tensor, item.dtype, 0) for item in chosen]
    digest = options.digest == "sha256"
    return buffers(
        items, options.memory_bytes, options.workers, digest=digest, checks=options.check_crc
    ).bytes


def read_renames(path: str | os.PathLike[str]) -> tuple[RenameRule, ...]:
    """Return the ordered rules of a file (`shardscope.renames/1`). Raises `Fault`: those of `capabilities.reading.read_as`."""
    return read_as(path, RenamesDocument).rules


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Return the plan of a file (`shardscope.plan/1`). Raises `Fault`: those of `capabilities.reading.read_as`."""
    return read_as(path, Plan)


def source_of(found: Inspection, *, decoded: bool) -> PlanSource:
    """Return what a plan is bound to."""
    files = found.inventory.files
    return PlanSource(
        format=found.descriptor.classification.format,
        identity=identity_of(found.inventory),
        files=len(files),
        bytes=sum(entry.size for entry in files),
        decoded=decoded,
    )


def identity_of(inventory: Inventory) -> str:
    """Return the SHA-256 over path, size, inode and times of every file: it changes with any of them."""
    digest = hashlib.sha256()
    for entry in inventory.files:
        same = entry.identity
        fields = (same.size, same.inode, same.mtime_ns, same.ctime_ns)
        digest.update(entry.path + b"\0" + " ".join(map(str, fields)).encode() + b"\n")
    return digest.hexdigest()


def absent_state(found: Inspection) -> tuple[LeftOut, ...]:
    """Return the parts of a training state that the source has in files of their own: none of them is in an output."""
    scope = found.descriptor.state_scope
    listed = (
        {tensor.component for tensor in found.catalogue.tensors} if found.catalogue is not None else set()
    )
    left = []
    for name in ("optimizer", "scheduler", "rng", "scaler", "progress", "data_position"):
        part = getattr(scope, name)
        if name not in listed and part.presence in (Presence.PRESENT, Presence.OPAQUE):
            files = counted(len(part.files), "file") if part.files else "part of the save"
            left.append(LeftOut(name.replace("_", " "), 0, None, f"{files}: no weights, and no exact resume"))
    return tuple(left)


def admitted_here(plan: Plan, target: str | os.PathLike[str] | None, held: Held | None = None) -> Plan:
    """Return a plan with its admission on this machine; without a target the current folder's file system counts.

    `held` is what an earlier run has staged, where that is gone on with: its room is used again.
    """
    beside = target if target is not None else os.path.join(os.curdir, "out")
    open_files = plan.options.workers * OPEN_FILES + OPEN_BESIDE
    space = space_beside(beside)
    if held is not None:
        space = with_room(space, held.allocated_bytes, held.entries, "the earlier run")
    return replace(plan, admission=admit(plan, space, memory(), open_files=open_files))
