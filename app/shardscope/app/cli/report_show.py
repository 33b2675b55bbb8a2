"""`shardscope report show`: a bundle from somebody else, read-only and without the checkpoint."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.limit import Limit
from shardscope.app.cli.output import wants_color
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from rich.text import Text

    from shardscope.engine.model.reports import Report, ReportBundle, ReportEnvironment

EXITS = (ExitCode.OK, ExitCode.USAGE, ExitCode.UNREADABLE, ExitCode.LIMIT)


@command(
    "show",
    short_help="Draw a bundle that somebody sent.",
    examples=(
        ("shardscope report show report.zip", "What it says."),
        ("shardscope report show report.zip --json", "The same as one document."),
    ),
    notes="""A bundle is input from a stranger: only files with the names of a report are read, within the limits on JSON and zip
    files, strictly by their schemas; nothing is unpacked to disk, and every string is made harmless before it is drawn.""",
    exits=EXITS,
)
@click.argument("bundle", type=click.Path())
@click.option(
    "--limit", "limits", type=Limit(), multiple=True, help="Set a bound on reading; may be repeated."
)
@click.option("--json", "as_json", is_flag=True, help="Print the bundle as one JSON document.")
@click.pass_obj
def show(session: Session, bundle: str, limits: tuple[tuple[str, int], ...], as_json: bool) -> None:
    """Show what the report BUNDLE says, a zip or a folder. The checkpoint is not needed."""
    from shardscope import engine
    from shardscope.engine.model.limits import Limits, with_overrides

    found = engine.read_report(bundle, with_overrides(Limits(), dict(limits)))
    if as_json:
        session.out.write_document(found)
    else:
        session.out.write_text(drawn(session, bundle, found))


def drawn(session: Session, path: str, found: "ReportBundle") -> str:
    """Return a bundle as text: what the report says, then the descriptor as `inspect` draws it."""
    from shardscope.app.cli.layout import columns, heading, laid_out, rows
    from shardscope.app.cli.report import render

    width, color = columns(sys.stdout), wants_color(session.color, sys.stdout)
    head = laid_out(
        (
            heading("Report", "what was sent; nothing of it was checked against a checkpoint"),
            rows(_said(found.report)),
        ),
        width=width,
        color=color,
    )
    if found.descriptor is None:
        return head.lstrip("\n")
    body = render(
        found.descriptor, path, None, width=width, color=color, everything=bool(session.verbose), here=False
    )
    return f"{body}{head}"


def _said(report: "Report") -> "Iterator[tuple[str, Text]]":
    from rich.text import Text

    rows = (
        ("made by", f"{report.tool.name} {report.tool.version}" + (f" ({report.tool.commit})" if report.tool.commit else "")),
        ("command", " ".join(report.command)),
        ("wanted", report.desired or "not said"),
        ("model", f"{report.model.id or 'not said'}, revision {report.model.revision or 'not said'}"),
        *_installation(report.environment),
        ("topology", ", ".join(f"{name} {size}" for name in report.topology.__struct_fields__
                               if (size := getattr(report.topology, name)) is not None) or "not known"),
        ("first failure", report.first_failing_stage or "none was found"),
        ("descriptor", report.options.descriptor + (", by decoding" if report.options.decoded else "")),
        ("names", "common words kept" if report.options.names == "keep" else "all replaced"),
        ("left out", ", ".join(report.options.without) or "nothing that was offered"),
    )  # fmt: skip
    yield from ((label, Text(value, overflow="fold")) for label, value in rows)
    for offset in report.offsets:
        yield "offset", Text(f"{offset.field}: in {offset.unit}, {offset.meaning}", overflow="fold")
    if report.failure is not None:
        yield (
            "ended by",
            Text(
                f"{report.failure.code} ({report.failure.stage}): {report.failure.message}", overflow="fold"
            ),
        )


def _installation(place: "ReportEnvironment | None") -> tuple[tuple[str, str], ...]:
    if place is None:
        return (("system", "left out"),)
    packages = {name: getattr(place, name) for name in place.__struct_fields__[5:]}
    return (
        ("system", ", ".join(filter(None, (place.os, place.kernel, place.distribution, place.machine)))),
        ("Python", place.python),
        (
            "packages",
            ", ".join(
                f"{name.replace('_', '-')} {version or '(none)'}" for name, version in packages.items()
            ),
        ),
    )
