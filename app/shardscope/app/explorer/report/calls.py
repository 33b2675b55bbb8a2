"""The engine calls of the Report screen, in one place: a value, so that a test hands in others."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Final

from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import OnProgress

if TYPE_CHECKING:
    from shardscope.engine.model.descriptor import Descriptor
    from shardscope.engine.report.sides import ReportPreview
    from shardscope.engine.reporting import Prepared, Request


@dataclass(frozen=True)
class Made:
    """A report that was made and not written, with every line of it."""

    prepared: "Prepared"
    preview: "ReportPreview"


@dataclass(frozen=True)
class Calls:
    """The calls. Each of them blocks, so that only workers make them."""

    make: "Callable[[Target, Request, Descriptor | None, Event, OnProgress], Made]"
    """Raises `Fault` and `Cancelled`."""
    write: "Callable[[str, Target, Prepared], None]"
    """Writes what was made to a path. Raises `Fault`."""
    page: Callable[[BaseException, str], str]
    """What can be sent about an error of ours. Raises `Fault`."""
    write_page: Callable[[str, str], None]
    """Writes such a page to a path. Raises `Fault`."""


def _make(
    target: Target, request: "Request", known: "Descriptor | None", cancel: Event, progress: OnProgress
) -> Made:
    from shardscope.engine.reporting import prepare_report, preview_report

    prepared = prepare_report(
        target.path, request, known=known, limits=target.limits, cancel=cancel, progress=progress
    )
    return Made(prepared, preview_report(prepared))


def _write(path: str, target: Target, prepared: "Prepared") -> None:
    from shardscope.engine.reporting import write_report

    write_report(path, target.path, prepared)


def _page(error: BaseException, doing: str) -> str:
    from shardscope.engine.reporting import own_error_page

    return own_error_page(error, doing)


def _write_page(path: str, page: str) -> None:
    from shardscope.engine.reporting import write_own_error

    write_own_error(path, page)


CALLS: Final = Calls(_make, _write, _page, _write_page)
"""Of this installation."""
