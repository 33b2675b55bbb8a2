"""`shardscope report diff`: two bundles side by side."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.limit import Limit
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.model.reports import ReportDifference

LISTED: Final = 40
"""Places that are shown before the rest is counted."""


@command(
    "diff",
    short_help="Show two bundles side by side.",
    examples=(
        ("shardscope report diff before.zip after.zip", "Every place where they differ."),
        ("shardscope report diff before.zip after.zip --quiet", "The exit code alone: 1 when they differ."),
    ),
    notes="""Tokens count from 1 in each report, so that the same structure has the same tokens. Where a file was added, those that
    come after it can have others.""",
    exits=(ExitCode.OK, ExitCode.BLOCKED, ExitCode.USAGE, ExitCode.UNREADABLE, ExitCode.LIMIT),
)
@click.argument("one", type=click.Path())
@click.argument("other", type=click.Path())
@click.option(
    "--limit", "limits", type=Limit(), multiple=True, help="Set a bound on reading; may be repeated."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def diff(
    session: Session, one: str, other: str, limits: tuple[tuple[str, int], ...], as_json: bool
) -> ExitCode:
    """Compare two report bundles and list every place where they say different things."""
    from shardscope import engine
    from shardscope.engine.model.limits import Limits, with_overrides

    bounds = with_overrides(Limits(), dict(limits))
    found = engine.compare_reports(engine.read_report(one, bounds), engine.read_report(other, bounds))
    if as_json:
        session.out.write_document(found)
    elif not session.quiet:
        session.out.write_text("\n".join(_lines(found, everything=bool(session.verbose))) + "\n")
    return ExitCode.OK if found.same else ExitCode.BLOCKED


def _lines(found: "ReportDifference", *, everything: bool) -> Iterator[str]:
    from shardscope.engine.model.text import counted, display_name

    shown = found.changes if everything else found.changes[:LISTED]
    for change in shown:
        yield display_name(change.place, 160)
        for mark, value in (("-", change.one), ("+", change.other)):
            if value is not None:
                yield f"  {mark} {display_name(value, 160)}"
    if len(found.changes) > len(shown):
        yield f"… and {len(found.changes) - len(shown):,} more (-v)"
    yield "the same" if found.same else counted(len(found.changes), "difference")
