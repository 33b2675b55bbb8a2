"""From an admitted plan to an output that has appeared: what comes when, and what is left where it ends early."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor

from msgspec import Struct

from shardscope.engine.convert.admitting.admission import admitted
from shardscope.engine.convert.disk.place import Place
from shardscope.engine.convert.executors.dispatch import Elsewhere, Executors
from shardscope.engine.convert.executors.threads import what_was_taken
from shardscope.engine.convert.plans.planning import refuse
from shardscope.engine.convert.stage.promotion import Promoted, discard_old, promote
from shardscope.engine.convert.stage.resuming import available, leaves_good, peek, plan_digest
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.converting.making import Work
from shardscope.engine.converting.preparing import Prepared, admitted_here
from shardscope.engine.host import peak_rss
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.course import Course
from shardscope.engine.model.descriptor import to_json
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.manifest import MANIFEST_NAME, RUN_NAME, Manifest, Run
from shardscope.engine.model.plan import Plan
from shardscope.engine.model.progress import OnProgress, Progress
from shardscope.engine.model.schemas import RUN
from shardscope.engine.source.source import Source


class Converted(Struct, frozen=True):
    """An output that has appeared."""

    plan: Plan
    manifest: Manifest
    run: Run
    promoted: Promoted


def materialize(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    prepared: Prepared,
    *,
    confirm: Callable[[Plan], bool],
    replace: bool = False,
    allow_gap: bool = False,
    discard: bool = False,
    limits: Limits | None = None,
    hf_cache: bool = False,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
    course: Course | None = None,
    executor: Executor | Executors | None = None,
    resume: bool = False,
    keep: Callable[[BaseException], bool] | None = None,
) -> Converted:
    """Carry out the plan for the checkpoint at `path` and return what appeared at `target`.

    `confirm` is asked once, with the plan and its admission on this machine, before anything is made. `replace` exchanges an
    existing target, `discard` then removes the old one; `allow_gap` lets file systems that cannot exchange two folders do it in
    two steps. `course` tells afterwards, whatever the outcome, which stage was the last and what became of the staging folder.

    `executor` carries out the copying of files, in processes that see source and target under the same paths, each file with the
    plan's threads and memory; without one that happens in threads of this process, which share them. A plain executor that breaks
    ends the conversion; `convert.executors.dispatch.Made` makes another one.

    `resume` goes on with what an earlier run of the same plan left beside `target`, and begins anew where nothing is left. What is
    staged is removed on the way out, unless files are finished and the error leaves them good: then it stays where `resume` was
    wanted, or where `keep`, asked with the error, says so.

    Raises `Fault`: the first blocker of the plan, `resume.*`, `admission.denied`, `admission.unknown`, `admission.declined`,
    `convert.unsound`, `convert.copies_differ`, `verify.*`, those of staging, copying and promotion, `source.changed`, `cluster.*`;
    `Cancelled`. Then nothing was promoted.
    """
    began = time.monotonic()
    course = course or Course()
    digest = plan_digest(prepared.plan)
    earlier = peek(target, digest)
    plan = admitted_here(prepared.plan, os.fspath(target), earlier.held if resume and earlier else None)
    refuse(plan)
    Place(target, [path]).close()  # figures of a folder that is not there would only be unknown
    admission = admitted(plan)
    if earlier is not None and not resume:
        course.earlier = available(earlier)
    if not confirm(plan):
        raise Fault("admission.declined")
    course.begin("target")
    staging = Staging(
        target,
        allowed=plan.estimates.temporary_bytes.bytes or 0,
        sources=[path],
        replace=replace,
        allow_gap=allow_gap,
        plan=digest,
        resume=resume,
        keeps=lambda error: leaves_good(error) and (resume or (keep is not None and keep(error))),
    )
    try:
        with Source(path, limits=limits or Limits(), hf_cache=hf_cache) as source, staging:
            work = Work(plan, prepared, source, staging, cancel, progress, course, hf_cache=hf_cache)
            if executor is not None:
                work.elsewhere = Elsewhere(executor, staging, work.task_source())
            course.begin("prove")
            work.prove()
            course.begin("copy")
            outputs = work.write()
            if resume:
                staging.notes.append(what_was_taken(staging))
            course.begin("verify")
            work.verify()
            manifest = work.manifest(outputs)
            staging.write_small(MANIFEST_NAME, to_json(manifest).encode())
            changes = source.recheck(prepared.inspection.inventory, cancel=cancel)
            if changes:
                raise Fault(changes[0].code, **changes[0].params)
            course.begin("promote")
            work.report(Progress("promote", 0, 1, "step", "to the disk, then into place"))
            staged = sum(record.size for record in staging.records)
            seconds = round(time.monotonic() - began, 3)
            peak_elsewhere = None if work.elsewhere is None else work.elsewhere.peak_rss
            taken = sum(record.size for record in staging.taken)
            run = Run(
                RUN, admission, staged, peak_rss(), seconds, dict(course.seconds), peak_elsewhere, taken
            )
            staging.write_small(RUN_NAME, to_json(run).encode())
            promoted = promote(staging)
            if discard:
                discard_old(staging)
    finally:
        course.note(staging.notes)
    return Converted(plan, manifest, run, promoted)
