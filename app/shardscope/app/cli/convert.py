"""`shardscope convert`: plan, admission, confirmation, staging, verification, promotion."""

import sys
from typing import TYPE_CHECKING, Any

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import reading
from shardscope.app.cli.output import is_terminal, wants_color
from shardscope.app.cli.plan import EXITS
from shardscope.app.cli.planning import bounds_of, choosing, decoding_of, options_of, watching
from shardscope.app.cli.scheduling import cluster_of, scheduling
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.model.plan import Plan

WORD = "convert"
"""What a person types to start."""


@command(
    "convert",
    short_help="Convert a checkpoint to Hugging Face safetensors.",
    examples=(
        ("shardscope convert ./ckpt ./out --decode", "Plan, show the admission, ask, convert."),
        (
            "shardscope convert ./ckpt ./out --decode --yes",
            "In a script: confirmed, never past the admission.",
        ),
        (
            "shardscope convert ./ckpt ./out --decode --dtype bf16 --max-shard-size 2GB",
            "Another type, smaller files.",
        ),
        (
            "shardscope convert ./ckpt ./out --plan plan.json --decode",
            "A plan that was printed, looked at and perhaps edited.",
        ),
        (
            "shardscope convert ./ckpt ./out --decode --replace",
            "Exchange an existing output for the new one, in one step.",
        ),
        (
            "shardscope convert ./ckpt ./out --decode --scheduler tls://node0:8786",
            "Let the machines of a Dask cluster copy.",
        ),
    ),
    notes="""The output is staged beside OUT, read back and compared with the source, and appears by one rename: whole or not at all. The
    source is never changed. Besides the weights it has an index where there are several files, configuration and tokenizer
    files that stood beside the source, shardscope-manifest.json, which is equal for equal runs, and shardscope-run.json.

    A run that was killed, or lost its terminal, leaves finished files in a hidden folder beside OUT. The same command with
    --resume reads them again, holds them against their digests and makes the rest; `shardscope clean` removes them. Ctrl-C and
    SIGTERM leave nothing behind, and neither does a failure, unless --keep-staging or --resume was given.

    --yes confirms; it does not override a denied or unknown admission. Without a terminal and without --yes nothing starts.""",
    exits=(*EXITS[:-2], ExitCode.OUTPUT, *EXITS[-2:]),
)
@reading
@choosing
@click.argument("target", metavar="OUT", type=click.Path())
@click.option(
    "--plan",
    "plan_file",
    metavar="FILE",
    type=click.Path(),
    help="Carry out this plan; the options of choice are then its own.",
)
@click.option("--yes", is_flag=True, help="Confirm. A denied or unknown admission still starts nothing.")
@click.option("--replace", is_flag=True, help="Exchange an existing OUT for the new one.")
@click.option("--discard-old", is_flag=True, help="With --replace: remove the old output afterwards.")
@click.option(
    "--allow-gap",
    is_flag=True,
    help="With --replace: where folders cannot be exchanged in one step, take two.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with what an earlier run with the same options left beside OUT, after verifying it.",
)
@click.option(
    "--keep-staging",
    is_flag=True,
    help="Keep finished files for --resume, however this run ends; by default only the loss of the terminal (SIGHUP) keeps them.",
)
@scheduling
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as one JSON document.")
@click.pass_obj
def convert(
    session: Session,
    /,
    path: str,
    target: str,
    plan_file: str | None,
    yes: bool,
    replace: bool,
    discard_old: bool,
    allow_gap: bool,
    resume: bool,
    keep_staging: bool,
    decode: bool,
    config: str | None,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    progress: bool | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Convert the checkpoint at PATH to canonical Hugging Face safetensors in the new folder OUT.

    Nothing of it is executed, and no framework is needed. Buffers stay within --memory whatever the size of a tensor.
    """
    from shardscope.engine import materialize, prepare, read_plan
    from shardscope.engine.model.blocker import Severity
    from shardscope.engine.model.course import Course

    if (allow_gap or discard_old) and not replace:
        raise click.UsageError("--allow-gap and --discard-old need --replace.", click.get_current_context())
    cluster = cluster_of(given)
    bounds = bounds_of(limits)
    plan = None if plan_file is None else read_plan(plan_file)
    options = options_of(given) if plan is None else plan.options
    with session.interrupt.cooperative() as cancel, cluster as executor:
        with watching(session, progress, machine=as_json, long=True) as report:
            prepared = prepare(
                path,
                options,
                decoding=decoding_of("convert", limits, decode=decode),
                plan=plan,
                config=config,
                limits=bounds,
                hf_cache=hf_cache,
                cancel=cancel,
                progress=report,
            )
        confirmed = _Confirmation(session, yes=yes, machine=as_json)
        session.course = Course()
        with watching(session, progress, machine=as_json, long=True) as report:
            done = materialize(
                path,
                target,
                prepared,
                confirm=confirmed,
                replace=replace,
                allow_gap=allow_gap,
                discard=discard_old,
                limits=bounds,
                hf_cache=hf_cache,
                cancel=cancel,
                progress=report,
                course=session.course,
                executor=executor,
                resume=resume,
                keep=lambda _: keep_staging or session.interrupt.hung_up,
            )
    for note in session.course.notes:
        if note.severity is Severity.INFO:
            session.narrate(note.message)
        else:
            session.out.narrate(f"{note.message} {note.remedy} [{note.code}]")
    if as_json:
        from shardscope.engine.model.descriptor import to_json

        session.out.write(to_json(done.manifest).encode())
    else:
        from shardscope.app.cli.convert_text import render
        from shardscope.app.cli.layout import columns
        from shardscope.app.explorer.target import Target

        text = render(
            done,
            Target(path, bounds, hf_cache),
            target,
            decoded=decode,
            width=columns(sys.stdout),
            color=wants_color(session.color, sys.stdout),
        )
        session.out.write_text(text)
    return ExitCode.OK


class _Confirmation:
    """Asks a person once, with every figure on the screen."""

    def __init__(self, session: Session, *, yes: bool, machine: bool) -> None:
        self._session = session
        self._yes = yes
        self._machine = machine

    def __call__(self, plan: "Plan") -> bool:
        if not self._machine and not self._session.quiet:
            self._session.narrate(_plan(self._session, plan).rstrip("\n"))
        course = self._session.course
        if course is not None and course.earlier is not None:
            self._session.narrate(f"\n{course.earlier.message} {course.earlier.remedy}")
        if self._yes:
            return True
        if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            return False
        click.echo(f"\nType {WORD} to start (anything else writes nothing): ", err=True, nl=False)
        with self._session.interrupt.abrupt():
            return sys.stdin.readline().strip() == WORD


def _plan(session: Session, plan: "Plan") -> str:
    from shardscope.app.cli.layout import columns
    from shardscope.app.cli.plan_text import render

    color = wants_color(session.color, sys.stderr)
    return render(plan, width=columns(sys.stderr), color=color, everything=bool(session.verbose))
