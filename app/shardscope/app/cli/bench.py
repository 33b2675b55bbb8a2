"""`shardscope bench`: what this machine does in a few seconds, beside the figures of the documents."""

from collections.abc import Iterator

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.paragraphs import wrapped
from shardscope.app.cli.planning import Size
from shardscope.app.cli.session import Session
from shardscope.engine.model.bench import BenchDocument, BenchRow
from shardscope.engine.model.exits import ExitCode


@command(
    "bench",
    short_help="Measure this machine for a few seconds, beside our figures.",
    examples=(
        ("shardscope bench", "In the system's folder for temporary files."),
        ("shardscope bench --size 16MiB --seconds 0.1 --json", "Less, as a document."),
        ("shardscope bench --folder /scratch --size 4GiB", "The disk that conversions go to."),
    ),
    exits=(ExitCode.OK, ExitCode.USAGE, ExitCode.OUTPUT, ExitCode.CANCELLED),
)
@click.option(
    "--folder", metavar="DIR", type=click.Path(), help="Where: a folder is made in it, and removed again."
)
@click.option(
    "--size",
    type=Size(),
    default="256MiB",
    show_default=True,
    help="Bytes to measure with, 4 MiB at least; four times as much has to be free.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.0, 60.0),
    default=1.0,
    show_default=True,
    metavar="S",
    help="For each measurement; one run is always made.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def bench(session: Session, folder: str | None, size: int, seconds: float, as_json: bool) -> None:
    """Read, hash, copy and inspect files of its own making: plainly, and as shardscope does with its checks.

    The ratio is what to hold beside figures from elsewhere. It is one moment of this machine, and no benchmark; the scripts that
    are named measure in pairs, side by side, and print the spread.
    """
    from shardscope import engine

    options = engine.BenchOptions(bytes=size, seconds=seconds, folder=folder)
    with session.interrupt.cooperative() as cancel:
        found = engine.bench(options, cancel=cancel)
    if as_json:
        session.out.write_document(found)
    else:
        session.out.write_text("\n".join(lines(found)) + "\n")


def lines(found: BenchDocument) -> Iterator[str]:
    """Yield the figures as a table, then what each is and what is claimed elsewhere."""
    from shardscope.widgets.figures import size

    yield f"{size(found.bytes)}, {found.seconds:g} s for each measurement"
    yield ""
    yield f"{'':<12}{'this machine':>16}{'shardscope':>16}{'ratio':>8}"
    for row in found.rows:
        ours = "" if row.ours is None else rate(row, row.ours)
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        yield f"{row.name:<12}{rate(row, row.plain):>16}{ours:>16}{ratio:>8}".rstrip()
    for row in found.rows:
        yield ""
        yield from wrapped(
            f"{row.plain_is}{f'; beside it {row.ours_is}' if row.ours_is else ''}.", 12, first=row.name
        )
        if row.elsewhere is not None:
            yield from wrapped(f"Elsewhere: {row.elsewhere} ({row.script}).", 12)
    yield ""
    for note in found.notes:
        yield from wrapped(note)


def rate(row: BenchRow, figure: float) -> str:
    """Return a figure with its unit."""
    from shardscope.widgets.figures import size

    return f"{size(int(figure))}/s" if row.unit == "bytes" else f"{figure:,.0f} files/s"
