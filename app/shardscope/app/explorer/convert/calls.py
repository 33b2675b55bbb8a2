"""The engine calls of a guided conversion, in one place: the same that `shardscope convert` and `reshard` make.

They are a value, so that a test hands in others. The engine is imported by the first worker that calls one.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardscope.app.explorer.convert.draft import Draft
from shardscope.app.explorer.output.calls import Conduct, admit, look_at, make, memory
from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import OnProgress

if TYPE_CHECKING:
    from shardscope.engine.convert.admitting.target import TargetLook
    from shardscope.engine.convert.stage.resuming import Resumable
    from shardscope.engine.converting.materializing import Converted
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.model.plan import Plan, RenameRule


@dataclass(frozen=True)
class Conversions:
    """The calls. Each of them blocks, so that only workers make them."""

    look: "Callable[[Target, Decoding | None, threading.Event, OnProgress], Inspection]"
    """Everything that plans are made of. Raises `Fault` and `Cancelled`."""
    plan: "Callable[[Target, Draft, Inspection, threading.Event, OnProgress], Prepared]"
    """Raises `Fault` and `Cancelled`."""
    admit: "Callable[[Prepared, Draft], tuple[Plan, Resumable | None]]"
    """The plan with its admission here and now, and what an earlier run of the same plan has left."""
    target: "Callable[[Target, Draft], TargetLook]"
    """A look at where the output is to appear."""
    renames: "Callable[[str], tuple[RenameRule, ...]]"
    """The rules of a file. Raises `Fault`."""
    convert: "Callable[[Target, Draft, Prepared, Conduct], Converted]"
    """Raises `Fault` and `Cancelled`: then nothing was promoted."""
    memory: Callable[[], int | None]
    """The most that this process had resident so far."""


def _look(
    target: Target, decoding: "Decoding | None", cancel: threading.Event, progress: OnProgress
) -> "Inspection":
    from shardscope.engine.converting.preparing import look_for_plan

    return look_for_plan(
        target.path,
        decoding=decoding,
        limits=target.limits,
        hf_cache=target.hf_cache,
        cancel=cancel,
        progress=progress,
    )


def _plan(
    target: Target, draft: Draft, found: "Inspection", cancel: threading.Event, progress: OnProgress
) -> "Prepared":
    from shardscope.engine.converting.preparing import prepare
    from shardscope.engine.converting.resharding import Aim, prepare_reshard

    options = draft.options
    if draft.kind == "convert":
        return prepare(
            target.path,
            options,
            config=draft.config,
            limits=target.limits,
            hf_cache=target.hf_cache,
            cancel=cancel,
            progress=progress,
            found=found,
        )
    return prepare_reshard(
        target.path,
        options,
        Aim(draft.layout, None, draft.numbers, draft.cuts),
        config=draft.config,
        limits=target.limits,
        hf_cache=target.hf_cache,
        cancel=cancel,
        progress=progress,
        found=found,
    )


def _renames(path: str) -> "tuple[RenameRule, ...]":
    from shardscope.engine.converting.preparing import read_renames

    return read_renames(path)


def _convert(target: Target, draft: Draft, prepared: "Prepared", conduct: Conduct) -> "Converted":
    from msgspec.structs import replace

    from shardscope.engine.inspecting.inspection import with_digests

    if draft.options.digest_source:
        found = with_digests(prepared.inspection, "all", cancel=conduct.cancel, progress=conduct.progress)
        prepared = replace(prepared, inspection=found)
    return make(target, draft, prepared, conduct)


CONVERSIONS = Conversions(_look, _plan, admit, look_at, _renames, _convert, memory)
"""Those of this installation."""
