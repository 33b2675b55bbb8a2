"""From a plan to an output, for every command that writes one: admission, confirmation, staging, verification, promotion."""

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from shardscope.app.cli.output import is_terminal, wants_color
from shardscope.app.cli.plan_shown import Show, plan_text
from shardscope.app.cli.scheduling import cluster_of, scheduling
from shardscope.app.cli.session import Session
from shardscope.app.cli.watching import watching
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.model.limits import Limits
    from shardscope.engine.model.plan import Plan
    from shardscope.engine.model.progress import OnProgress

F = TypeVar("F", bound=Callable[..., object])


class Job(Struct, frozen=True):
    """What is written, from where to where."""

    path: str
    target: str
    word: str
    """What a person types to start."""
    limits: "Limits"
    hf_cache: bool
    decode: bool
    progress: bool | None
    as_json: bool


def carrying_out(command: F) -> F:
    """Add the options that say how an output appears."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return scheduling(command)


_OPTIONS = (
    click.option("--yes", is_flag=True, help="Confirm. A denied or unknown admission still starts nothing."),
    click.option("--replace", is_flag=True, help="Exchange an existing OUT for the new one."),
    click.option("--discard-old", is_flag=True, help="With --replace: remove the old output afterwards."),
    click.option(
        "--allow-gap",
        is_flag=True,
        help="With --replace: where folders cannot be exchanged in one step, take two.",
    ),
    click.option(
        "--resume",
        is_flag=True,
        help="Go on with what an earlier run with the same options left beside OUT, after verifying it.",
    ),
    click.option(
        "--keep-staging",
        is_flag=True,
        help="Keep finished files for --resume, however this run ends; by default only the loss of the terminal (SIGHUP) keeps them.",
    ),
)


def carry_out(
    session: Session,
    job: Job,
    given: dict[str, Any],
    plan: "Callable[[threading.Event, OnProgress | None], Prepared]",
    show: Show | None = None,
) -> int:
    """Make a plan and carry it out; take what is its own out of `given`. Say what appeared, or print the manifest.

    `show` renders the plan where it is confirmed; without it that is `plan_text.render`.
    """
    from shardscope.engine import materialize
    from shardscope.engine.model.blocker import Severity
    from shardscope.engine.model.course import Course

    yes, replace, resume, keeps = (given.pop(name) for name in ("yes", "replace", "resume", "keep_staging"))
    allow_gap, discard_old = given.pop("allow_gap"), given.pop("discard_old")
    if (allow_gap or discard_old) and not replace:
        raise click.UsageError("--allow-gap and --discard-old need --replace.", click.get_current_context())
    cluster = cluster_of(given)
    with cluster as executor, session.interrupt.cooperative() as cancel:
        with watching(session, job.progress, machine=job.as_json, long=True) as report:
            prepared = plan(cancel, report)
        confirmed = _Confirmation(session, job.word, show, yes=yes, machine=job.as_json)
        session.course = Course()
        with watching(session, job.progress, machine=job.as_json, long=True) as report:
            done = materialize(
                job.path,
                job.target,
                prepared,
                confirm=confirmed,
                replace=replace,
                allow_gap=allow_gap,
                discard=discard_old,
                limits=job.limits,
                hf_cache=job.hf_cache,
                cancel=cancel,
                progress=report,
                course=session.course,
                executor=executor,
                resume=resume,
                keep=lambda _: keeps or session.interrupt.hung_up,
            )
    for note in session.course.notes:
        if note.severity is Severity.INFO:
            session.narrate(note.message)
        else:
            session.out.narrate(f"{note.message} {note.remedy} [{note.code}]")
    if job.as_json:
        session.out.write_document(done.manifest)
    else:
        from shardscope.app.cli.convert_text import render
        from shardscope.app.cli.layout import columns
        from shardscope.app.explorer.target import Target

        text = render(
            done,
            Target(job.path, job.limits, job.hf_cache),
            job.target,
            decoded=job.decode,
            width=columns(sys.stdout),
            color=wants_color(session.color, sys.stdout),
        )
        session.out.write_text(text)
    return ExitCode.OK


class _Confirmation:
    """Asks a person once, with every figure on the screen."""

    def __init__(self, session: Session, word: str, show: Show | None, *, yes: bool, machine: bool) -> None:
        self._session = session
        self._word = word
        self._show = show
        self._yes = yes
        self._machine = machine

    def __call__(self, plan: "Plan") -> bool:
        if not self._machine and not self._session.quiet:
            self._session.narrate(plan_text(self._session, plan, self._show, sys.stderr).rstrip("\n"))
        course = self._session.course
        if course is not None and course.earlier is not None:
            self._session.narrate(f"\n{course.earlier.message} {course.earlier.remedy}")
        if self._yes:
            return True
        if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            return False
        click.echo(f"\nType {self._word} to start (anything else writes nothing): ", err=True, nl=False)
        answer = ""
        try:
            with self._session.interrupt.abrupt():
                answer = sys.stdin.readline()
        finally:
            if not answer.endswith("\n"):  # the cursor still stands behind the question
                self._session.out.narrate("")
        return answer.strip() == self._word
