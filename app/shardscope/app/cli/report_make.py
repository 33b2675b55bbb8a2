"""`shardscope report make`: a sanitised bundle about a checkpoint."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.limit import Limit
from shardscope.app.cli.session import Session
from shardscope.app.cli.watching import watching
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.reports import DESIRED, MODEL_ID, PARTS, REVISION

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import DigestMode
    from shardscope.engine.model.reports import Desired, ReportPart
    from shardscope.engine.report.names import Mode
    from shardscope.engine.reporting import Prepared, Request


def _model_id(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is not None and re.fullmatch(MODEL_ID, value) is None:
        raise click.BadParameter("a model id is NAME or ORGANISATION/NAME.")
    return value


def _revision(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is not None and re.fullmatch(REVISION, value) is None:
        raise click.BadParameter("an immutable revision is a full commit: 40 hexadecimal digits, or 64.")
    return value


def _parts(_ctx: click.Context, _param: click.Parameter, value: str) -> "tuple[ReportPart, ...]":
    wanted = value.split(",") if value else []
    for each in wanted:
        if each not in PARTS:
            raise click.BadParameter(f"parts are {', '.join(PARTS)}.")
    return tuple(part for part in PARTS if part in wanted)


@command(
    "make",
    short_help="Make a report (the default).",
    examples=(
        ("shardscope report ./ckpt -o report.zip", "A bundle, as one zip."),
        ("shardscope report ./ckpt -o report", "The same as a folder."),
        ("shardscope report ./ckpt --preview", "Look at it first; nothing is written."),
        ("shardscope report ./ckpt -o report.zip --names hash", "No word of any file or tensor name."),
        (
            "shardscope report ./ckpt -o report.zip --desired convert --error error.json",
            "With why `convert --json` ended.",
        ),
        (
            "shardscope report ./ckpt -o report.zip --descriptor decoded.json",
            "With what `inspect --decode --json` found earlier.",
        ),
    ),
    notes="""Words that every copy of shardscope knows stay in names and sentences; any other word becomes a number in braces, the
    same one throughout the report. The finished report is searched for the names, paths and environment values of this
    machine, and nothing is written where one is found.""",
    exits=(
        ExitCode.OK,
        ExitCode.USAGE,
        ExitCode.UNREADABLE,
        ExitCode.LIMIT,
        ExitCode.CHANGED,
        ExitCode.OUTPUT,
        ExitCode.CANCELLED,
    ),
)
@click.argument("path", type=click.Path())
@click.option(
    "-o", "--output", metavar="PATH", type=click.Path(), help="Where to write: NAME.zip, or a folder."
)
@click.option(
    "--preview", is_flag=True, help="Print what would be written, and what was replaced; write nothing."
)
@click.option(
    "--names",
    type=click.Choice(["keep", "hash"]),
    default="keep",
    show_default=True,
    help="File and tensor names: keep their common words, or replace those as well.",
)
@click.option("--desired", type=click.Choice(DESIRED), help="What you wanted to come of the checkpoint.")
@click.option("--model-id", metavar="ID", callback=_model_id, help="The public model that it comes from.")
@click.option("--revision", metavar="COMMIT", callback=_revision, help="The full commit of that model.")
@click.option(
    "--descriptor",
    metavar="FILE",
    type=click.Path(),
    help="Use a descriptor that was made earlier, decoded or not, of the same files.",
)
@click.option(
    "--error",
    metavar="FILE",
    type=click.Path(),
    help="Include the document in which a command said why it ended.",
)
@click.option(
    "--digest",
    type=click.Choice(["auto", "all", "none"]),
    default="auto",
    show_default=True,
    help="SHA-256 of the files from 1 MiB on, as for inspect.",
)
@click.option(
    "--without",
    metavar="PARTS",
    default="",
    callback=_parts,
    help=f"Leave out {', '.join(PARTS)}: several with commas. Of blockers the codes stay.",
)
@click.option("--hf-cache", is_flag=True, help="Admit the links of a Hugging Face cache snapshot.")
@click.option(
    "--limit",
    "limits",
    type=Limit(),
    multiple=True,
    help="Set a bound on reading; may be repeated. See docs/limits.md.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the finished report as one JSON document.")
@click.option(
    "--progress/--no-progress",
    default=None,
    help="Progress on standard error. By default on a terminal, but not with --json.",
)
@click.pass_obj
def make(
    session: Session,
    path: str,
    output: str | None,
    preview: bool,
    names: "Mode",
    desired: "Desired | None",
    model_id: str | None,
    revision: str | None,
    descriptor: str | None,
    error: str | None,
    digest: "DigestMode",
    hf_cache: bool,
    without: "tuple[ReportPart, ...]",
    limits: tuple[tuple[str, int], ...],
    as_json: bool,
    progress: bool | None,
) -> None:
    """Make a report about the file or folder PATH that can be sent to a stranger.

    It holds the sanitised descriptor with the tree of files, versions of this installation, what was wanted and what
    stands in the way. Nothing is decoded, and opaque files are opened only to hash them.
    """
    if output is None and not preview:
        raise click.UsageError(
            "Say where to write with -o, or look first with --preview.", click.get_current_context()
        )
    if preview and as_json:
        raise click.UsageError("--preview and --json exclude each other.", click.get_current_context())
    from shardscope.engine.model.reports import ModelReference
    from shardscope.engine.reporting import Request, refuse_target, write_report

    if output is not None:
        refuse_target(output, path)
    request = Request(
        names=names,
        digest=digest,
        hf_cache=hf_cache,
        descriptor=descriptor,
        error=error,
        desired=desired,
        model=ModelReference(model_id, revision),
        without=without,
        limits=limits,
    )
    prepared = _prepare(session, path, request, output, limits, progress, quiet=as_json or preview)
    if output is not None and not preview:
        write_report(output, path, prepared)
    if as_json:
        from shardscope.engine.model.reports import ReportBundle
        from shardscope.engine.model.schemas import REPORT_BUNDLE

        built = prepared.built
        session.out.write_document(ReportBundle(REPORT_BUNDLE, built.report, built.descriptor))
    elif preview:
        session.out.write_text("\n".join(_previewed(prepared)) + "\n")
    elif output is not None:
        session.out.write_text("\n".join(_told(prepared, output)) + "\n")


def _prepare(
    session: Session,
    path: str,
    request: "Request",
    output: str | None,
    limits: Sequence[tuple[str, int]],
    progress: bool | None,
    *,
    quiet: bool,
) -> "Prepared":
    from shardscope.engine.model.limits import Limits, with_overrides
    from shardscope.engine.reporting import prepare_report

    bounds = with_overrides(Limits(), dict(limits))
    with session.interrupt.cooperative() as cancel, watching(session, progress, machine=quiet) as report:
        return prepare_report(path, request, limits=bounds, target=output, cancel=cancel, progress=report)


def _told(prepared: "Prepared", output: str) -> Iterator[str]:
    """Yield what was written, and what was done to it."""
    from shardscope.engine.model.text import counted, display_name

    members = prepared.built.members
    total = sum(map(len, members.values()))
    yield f"{display_name(output)}: {counted(len(members), 'file')}, {total:,} bytes, searched and found clean"
    for reason, count in prepared.built.report.replaced.items():
        yield f"  {count:>7,}  {_REASONS.get(reason, reason)}"
    yield "Read it before you send it: --preview shows every line, and what each number in braces stands for."


def _previewed(prepared: "Prepared") -> Iterator[str]:
    """Yield the files as they would be written, then the key to the tokens, which never leaves this machine."""
    from shardscope.engine.model.secrets import shown

    for name, data in prepared.built.members.items():
        yield f"── {name} ({len(data):,} bytes)"
        yield data.decode()
    yield "── replaced; this part is in no report"
    rows: list[tuple[Any, ...]] = [
        (each.token, each.reason, shown(each.original, 60)) for each in prepared.key
    ]
    width = max((len(row[0]) for row in rows), default=0)
    for token, reason, original in rows:
        yield f"{token:>{width}}  {original}  ({reason})"
    if not rows:
        yield "nothing"
    for reason, count in prepared.built.report.replaced.items():
        yield f"{count:>7,}  {_REASONS.get(reason, reason)}"
    yield "Nothing was written."


_REASONS: Final = {
    "name": "uncommon words replaced",
    "path": "absolute paths replaced",
    "this machine": "names of this machine or its user replaced",
    "free text": "free texts of the checkpoint left out",
    "digest of a small file": "digests of small files left out",
}
"""What a count is of, by its reason; a kind of secret stands for itself."""
