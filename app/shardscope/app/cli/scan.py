"""`shardscope scan`: what stands out in the numbers of a checkpoint."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import reading
from shardscope.app.cli.paragraphs import wrapped
from shardscope.app.cli.planning import Size, bounds_of, decoding_of
from shardscope.app.cli.session import Session
from shardscope.app.cli.watching import watching
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.model.decoded import Listed
    from shardscope.engine.model.scan import ScanDocument

ROWS: Final = 40
"""Findings that are shown before the rest is counted."""


@command(
    "scan",
    short_help="Find what stands out in the numbers of a checkpoint.",
    examples=(
        ("shardscope scan ./ckpt", "Every number of it, read once."),
        ("shardscope scan ./ckpt --fail-on error --quiet", "In a pipeline: exit 1 on any NaN."),
        ("shardscope scan ./zero --decode --component all", "With optimizer states."),
        ("shardscope scan ./ckpt --json | jq '.findings[].code'", "For a program."),
    ),
    notes="""Found are NaN and infinite numbers (error), holes and files that end in zeros, tensors of zeros alone, stretches of 64 KiB of zeros and
    more, and experts that are all equal (warning), tensors of one number alone, dead channels, copies of other tensors, layers that are
    copies or nearly so, numbers that F16 cannot hold or that are subnormal, and what could not be read (info). What tensors have in
    common whose names differ in numbers alone is one finding. Tied tensors that are stored once are no copies. What may be a copy is read a
    second time. Errors of inspection stand before them, and end it as they end `inspect`.""",
    exits=[code for code in ExitCode if code not in (ExitCode.DENIED, ExitCode.OUTPUT)],
)
@reading
@click.option("--decode", is_flag=True, help="Read pickles as data in a contained worker, for this run.")
@click.option(
    "--component",
    type=click.Choice(["model", "optimizer", "other", "all"]),
    default="model",
    show_default=True,
    help="Which tensors are read.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info"]),
    help="Exit with 1 when something of this severity or above was found.",
)
@click.option("--memory", type=Size(), default="64MiB", show_default=True, help="Bytes of buffers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def scan(
    session: Session,
    path: str,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    progress: bool | None,
    decode: bool,
    component: "Listed",
    fail_on: str | None,
    memory: int,
    as_json: bool,
) -> int:
    """Read every number of the checkpoint at PATH once and say what stands out.

    Tensors are read through their shard maps, tile by tile, within --memory bytes of buffers.
    """
    from shardscope import engine
    from shardscope.engine.inspecting.inspection import exit_code
    from shardscope.engine.model.blocker import Severity

    with (
        session.interrupt.cooperative() as cancel,
        watching(session, progress, machine=as_json) as report,
    ):
        found = engine.scan(
            path,
            component=component,
            memory_bytes=memory,
            decoding=decoding_of("verify", limits, decode=decode),
            limits=bounds_of(limits),
            hf_cache=hf_cache,
            cancel=cancel,
            progress=report,
        )
    if as_json:
        session.out.write_document(found)
    elif not session.quiet:
        lines = text_lines(found, everything=session.verbose > 0, decoded=decode)
        session.out.write_text("".join(f"{line}\n" for line in lines))
    least = None if fail_on is None else Severity(fail_on)
    return exit_code(found.findings, least)


def text_lines(found: "ScanDocument", *, everything: bool, decoded: bool = False) -> Iterator[str]:
    """Yield what was read, and what stands out in it."""
    from shardscope.widgets.figures import plural, size

    yield f"{plural(found.tensors, 'tensor')} read, {size(found.bytes)}: {plural(len(found.findings), 'finding')}"
    if found.opaque_files:
        yield f"{plural(found.opaque_files, 'file')} not read: {_why_opaque(found.format, decoded=decoded)}"
    if found.unexamined_files:
        yield f"{plural(found.unexamined_files, 'file')} not examined for holes: the file system does not tell"
    rows = found.findings if everything else found.findings[:ROWS]
    for item in rows:
        yield from wrapped(item.message, 10, first=item.severity.value)
    if len(rows) < len(found.findings):
        yield f"... and {plural(len(found.findings) - len(rows), 'more finding')} (-v and --json have all)"


def _why_opaque(format_name: str, *, decoded: bool) -> str:
    from shardscope.engine.model.format_names import DECODED, FORMAT_TITLES, NOT_CONVERTED

    if format_name in NOT_CONVERTED - DECODED:
        return f"nothing here decodes such files of {FORMAT_TITLES[format_name]}"
    return "decoding listed no tensor of them" if decoded else "decoding was not asked for (--decode)"
