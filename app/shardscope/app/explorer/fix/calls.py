"""The engine calls of a fix, in one place: the same that `shardscope fix` makes. They are a value, so that a test hands in others."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardscope.app.explorer.fix.draft import Draft, options_of
from shardscope.app.explorer.output.calls import Conduct, admit, look_at, make, memory
from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import OnProgress

if TYPE_CHECKING:
    from shardscope.engine.convert.admitting.target import TargetLook
    from shardscope.engine.convert.stage.resuming import Resumable
    from shardscope.engine.converting.fixing import Fix, FixLook
    from shardscope.engine.converting.materializing import Converted
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.model.plan import Plan, RenameRule


@dataclass(frozen=True)
class Fixes:
    """The calls. Each of them blocks, so that only workers make them."""

    look: "Callable[[Target, Draft, Inspection, threading.Event, OnProgress], FixLook]"
    """What is wrong. Raises `Fault` and `Cancelled`."""
    plan: "Callable[[FixLook, Draft], Fix]"
    """Every change. Raises `Fault`."""
    admit: "Callable[[Prepared, Draft], tuple[Plan, Resumable | None]]"
    target: "Callable[[Target, Draft], TargetLook]"
    renames: "Callable[[str], tuple[RenameRule, ...]]"
    """The rules of a file. Raises `Fault`."""
    fix: "Callable[[Target, Draft, Prepared, Conduct], Converted]"
    """Raises `Fault` and `Cancelled`: then nothing was promoted."""
    memory: Callable[[], int | None]


def _look(
    target: Target, draft: Draft, found: "Inspection", cancel: threading.Event, progress: OnProgress
) -> "FixLook":
    from shardscope.engine.converting.fixing import look_for_fix

    return look_for_fix(
        target.path,
        draft.files,
        limits=target.limits,
        hf_cache=target.hf_cache,
        cancel=cancel,
        progress=progress,
        found=found,
    )


def _plan(look: "FixLook", draft: Draft) -> "Fix":
    from shardscope.engine.converting.fixing import plan_fix

    return plan_fix(look, options_of(draft))


def _renames(path: str) -> "tuple[RenameRule, ...]":
    from shardscope.engine.converting.preparing import read_renames

    return read_renames(path)


FIXES = Fixes(_look, _plan, admit, look_at, _renames, make, memory)
"""Those of this installation."""
