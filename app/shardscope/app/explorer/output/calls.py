"""The engine calls that every output needs, as the commands make them. Each blocks, so that only workers make them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardscope.app.explorer.output.destination import Destination
from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import OnProgress

if TYPE_CHECKING:
    from shardscope.engine.convert.admitting.target import TargetLook
    from shardscope.engine.convert.stage.resuming import Resumable
    from shardscope.engine.converting.materializing import Converted
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.model.course import Course
    from shardscope.engine.model.plan import Plan


@dataclass(frozen=True)
class Conduct:
    """What a run is given beside its plan."""

    cancel: threading.Event
    progress: OnProgress
    course: "Course"
    keep: Callable[[BaseException], bool]
    """Asked with the error of a run that ends early: whether finished files stay."""


def admit(prepared: "Prepared", draft: Destination) -> "tuple[Plan, Resumable | None]":
    """Return the plan with its admission here and now, and what an earlier run of the same plan has left."""
    from shardscope.engine.convert.stage.resuming import peek, plan_digest
    from shardscope.engine.converting.preparing import admitted_here

    if not draft.out:
        return prepared.plan, None
    earlier = peek(draft.out, plan_digest(prepared.plan))
    held = earlier.held if draft.resume and earlier is not None else None
    return admitted_here(prepared.plan, draft.out, held), earlier


def look_at(target: Target, draft: Destination) -> "TargetLook":
    """Look at where the output is to appear."""
    from shardscope.engine.convert.admitting.target import look_at_target

    return look_at_target(draft.out, target.path, replace=draft.replace)


def make(target: Target, draft: Destination, prepared: "Prepared", conduct: Conduct) -> "Converted":
    """Carry a plan out. Raises `Fault` and `Cancelled`: then nothing was promoted."""
    from shardscope.engine.converting.materializing import materialize

    return materialize(
        target.path,
        draft.out,
        prepared,
        confirm=lambda _: True,  # the person has typed the word under these figures
        replace=draft.replace,
        allow_gap=draft.replace and draft.allow_gap,
        discard=draft.standing == "remove",
        limits=target.limits,
        hf_cache=target.hf_cache,
        cancel=conduct.cancel,
        progress=conduct.progress,
        course=conduct.course,
        resume=draft.resume,
        keep=conduct.keep,
    )


def memory() -> int | None:
    """Return the most that this process had resident so far."""
    from shardscope.engine.host import peak_rss

    return peak_rss()
