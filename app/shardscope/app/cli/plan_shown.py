"""Plans as text: for a person who is asked to confirm one, and where nothing is to follow."""

import sys
from typing import TYPE_CHECKING, Protocol, TextIO

from shardscope.app.cli.output import wants_color
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from msgspec import Struct

    from shardscope.engine.model.plan import Plan


class Show(Protocol):
    """Renders a plan."""

    def __call__(self, plan: "Plan", *, width: int, color: bool, everything: bool) -> str:
        """Return the text."""
        ...


def plan_text(session: Session, plan: "Plan", show: Show | None, stream: TextIO | None) -> str:
    """Return a plan as `stream` shows it: by `show`, or as a conversion's."""
    from shardscope.app.cli.layout import columns
    from shardscope.app.cli.plan_text import render

    color = wants_color(session.color, stream)
    return (show or render)(plan, width=columns(stream), color=color, everything=bool(session.verbose))


def print_plan(
    session: Session, plan: "Plan", document: "Struct | None" = None, *, show: Show | None = None
) -> int:
    """Print an admitted plan that is not carried out, or the document that says the same; return how the process ends."""
    from shardscope.engine.model.codes import CODES

    if document is not None:
        session.out.write_document(document)
    else:
        session.out.write_text(plan_text(session, plan, show, sys.stdout))
    if plan.blockers:
        return CODES[plan.blockers[0].code].exit or ExitCode.BLOCKED
    admitted = plan.admission is not None and plan.admission.verdict == "admitted"
    return ExitCode.OK if admitted else ExitCode.DENIED
