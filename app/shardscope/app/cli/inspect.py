"""`shardscope inspect`: what checkpoints are, as a report or as one document."""

import sys
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import decoding, examine, reading_options, split_limits, wish
from shardscope.app.cli.output import wants_color
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import DigestMode, Inspection
    from shardscope.engine.model.decoded import Listed
    from shardscope.engine.model.descriptor import Descriptor


@command(
    "inspect",
    short_help="Say what a checkpoint is and what stands in its way.",
    examples=(
        ("shardscope inspect ./ckpt", "The report."),
        ("shardscope inspect ./ckpt --json > ckpt.json", "The descriptor, one JSON document."),
        ("shardscope inspect ./ckpt --format sarif > ckpt.sarif", "Findings for a code-scanning service."),
        ("shardscope inspect ./ckpt --format markdown", "For an issue or a comment."),
        ("shardscope inspect ./ckpt --fail-on warning --quiet", "In a pipeline: exit 1 on any warning."),
        ("shardscope inspect ./ckpt --digest none", "Headers only, no hashing."),
        (
            "shardscope inspect ./ckpt --decode",
            "Read pickles too: as data, in a contained worker, this once.",
        ),
        ("shardscope inspect ./ckpt --limit json_bytes=256MiB", "Raise a bound for this run."),
        ("shardscope inspect ./ckpt --capability dcp.json", "Would this adapter fit, and what does it need?"),
        ("shardscope inspect ./ckpt ./zero --json", "Several at once: a document of descriptors."),
    ),
    exits=[code for code in ExitCode if code not in (ExitCode.DENIED, ExitCode.NEEDS_DECODING)],
)
@click.argument("paths", metavar="PATH...", type=click.Path(), nargs=-1, required=True)
@reading_options
@decoding
@click.option("--json", "as_json", is_flag=True, help="Print the descriptor as one JSON document.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif", "markdown"]),
    help="How to print it: text (the default), json (the same as --json), sarif for code scanning, markdown for an issue.",
)
@click.option(
    "--digest",
    type=click.Choice(["auto", "all", "none"]),
    default="auto",
    show_default=True,
    help="SHA-256 of the files: auto up to the limit digest_bytes, all of them, or none (headers only).",
)
@click.option(
    "--checksums",
    is_flag=True,
    help="With --decode: read the tensors once and compare the checksums that torch archives record.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info"]),
    help="Exit with 1 when a blocker of this severity or above was found.",
)
@click.option(
    "--capability",
    "capability_files",
    metavar="FILE",
    type=click.Path(),
    multiple=True,
    help="Hold a capability against the checkpoint, for this run; may be repeated. See `shardscope schema capability`.",
)
@click.pass_obj
def inspect(
    session: Session,
    paths: tuple[str, ...],
    as_json: bool,
    form: str | None,
    digest: "DigestMode",
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    fail_on: str | None,
    capability_files: tuple[str, ...],
    decode: bool,
    component: "Listed | None",
    checksums: bool,
    progress: bool | None,
) -> int:
    """Say what a checkpoint is, how sure that is, whether it is whole and what blocks its use.

    PATH is a file or folder; of several each gets its block, or its place in one document, and the worst exit code wins.
    Nothing in them is executed, followed or changed. The answer is structural evidence, no
    promise that the checkpoint loads or converts. With --decode pickles are read as data by a contained worker; without it
    not a byte of them is interpreted. A capability that is named is looked up, never loaded: nothing is
    installed, trusted or read by it.
    """
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} exclude each other.", click.get_current_context())
    wish(decode, component, limits, checksums=checksums)  # raises before anything is read or printed
    form = "json" if as_json else form or "text"
    from shardscope import engine
    from shardscope.engine.model.blocker import Severity

    bounds_in_force, _ = split_limits(limits)
    capabilities = [engine.read_capability(file, bounds_in_force) for file in capability_files]
    least = None if fail_on is None else Severity(fail_on)

    def look(path: str) -> "Inspection":
        return examine(
            session,
            path,
            limits=limits,
            hf_cache=hf_cache,
            digest=digest,
            progress=progress,
            machine=form != "text",
            capabilities=capabilities,
            decode=decode,
            component=component,
            checksums=checksums,
        )

    if len(paths) > 1:
        from shardscope.app.cli.inspect_many import inspect_many, outcomes

        return inspect_many(session, outcomes(session, paths, look, least), form)
    found = look(paths[0])
    code = found.exit_code(least)
    _print(session, found.descriptor, paths[0], form)
    return code


def _print(session: Session, descriptor: "Descriptor", path: str, form: str) -> None:
    match form:
        case "json":
            session.out.write_document(descriptor)
        case "sarif":
            from shardscope.app.cli.sarif import sarif

            session.out.write(sarif(descriptor).encode())
        case "markdown":
            from shardscope.app.cli.markdown import markdown

            session.out.write(markdown(descriptor, everything=bool(session.verbose)).encode())
        case _:
            from shardscope.app.cli.layout import columns
            from shardscope.app.cli.report import render
            from shardscope.engine.host import probe

            text = render(
                descriptor,
                path,
                probe(path),
                width=columns(sys.stdout),
                color=wants_color(session.color, sys.stdout),
                everything=bool(session.verbose),
            )
            session.out.write_text(text)
