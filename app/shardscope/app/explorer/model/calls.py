"""The engine calls of the Model screen, in one place: a value, so that a test hands in others."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Final

from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import OnProgress

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.modelling import Studied


@dataclass(frozen=True)
class Calls:
    """The calls. Each of them blocks, so that only workers make them."""

    study: "Callable[[Target, Inspection, str | None, Event, OnProgress], Studied]"
    """Looks at the model of an inspection, and holds an adapter against the base at a path. Raises `Fault` and `Cancelled`."""


def _study(
    target: Target, found: "Inspection", base: str | None, cancel: Event, progress: OnProgress
) -> "Studied":
    from shardscope.engine.inspecting.inspection import inspect
    from shardscope.engine.modelling import study_model, wants_catalogue

    def look(path: str) -> "Inspection":
        return inspect(
            path,
            limits=target.limits,
            digest="none",
            hf_cache=target.hf_cache,
            with_catalogue=True,
            cancel=cancel,
            progress=progress,
        )

    if wants_catalogue(found) or (base is not None and found.catalogue is None):
        found = look(target.path)
    return study_model(found, base=None if base is None else look(base), cancel=cancel)


CALLS: Final = Calls(_study)
"""Of this installation."""
