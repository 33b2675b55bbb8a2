"""What went wrong, as one blocker and one exit code, in words or as the document `shardscope.error/1`."""

import shlex
import sys
from collections.abc import Iterator, Sequence

import click

from shardscope.app.cli.output import OutputFailed, PipeClosed, is_terminal
from shardscope.app.cli.paragraphs import wrapped
from shardscope.app.cli.session import Session
from shardscope.engine.model.blocker import Blocker, Fault, Finding, Param, Severity, blocker
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.documents import ErrorBody, ErrorDocument
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.model.schemas import ERROR
from shardscope.engine.model.text import display_name

LONGEST_COMMAND = 4096
LONGEST = 400
"""Characters of a usage message: it can quote an argument, which can be anything."""


def describe(error: BaseException, session: Session) -> Blocker:
    """Return `error` as a blocker. What the table of codes has no words for is named by its kind and place alone."""
    match error:
        case Fault():
            return blocker(error.finding, _subject(error.finding))
        case click.Abort() | Cancelled() | KeyboardInterrupt():
            course = session.course
            if course is not None and course.stage is not None:
                stopped: dict[str, Param] = {"signal": session.interrupt.name, "doing": course.doing}
                return blocker(Finding("convert.cancelled", stopped))
            return blocker(Finding("command.cancelled", {"signal": session.interrupt.name}))
        case click.ClickException():
            return blocker(Finding("usage.invalid", {"problem": _problem(error), "help": _help(error)}))
        case OutputFailed():
            return blocker(Finding("output.failed", {"reason": str(error)}))
    from shardscope.engine.report.mishaps import frames, kind  # what most failures do not wait for

    doing = f"running {frames(error)[-1]}"
    return blocker(Finding("internal.error", {"doing": doing, "kind": kind(error)}))


def page_of(error: BaseException, session: Session) -> str:
    """Return what can be sent about an error of our own; empty where it would tell of this machine."""
    from shardscope.app.cli.root import COMMANDS
    from shardscope.engine.reporting import own_error_page

    named = next((word for word in session.arguments if not word.startswith("-")), "")
    doing = _begun(session) or f"shardscope {named if named in COMMANDS else 'explore'}"
    try:
        return own_error_page(error, doing)
    except Fault:
        return ""


def tell(failure: Blocker, session: Session, *, document: bool, page: str = "") -> ExitCode:
    """Say `failure`, with the `page` about an error of our own, and return its exit code.

    In `--json` mode it is the one document on standard output, unless a part of another stands there already; the
    sentence then goes to standard error only where a person watches that and the document goes elsewhere.
    """
    code = CODES[failure.code].exit or ExitCode.BLOCKED
    out = session.out
    if document and not out.wrote:
        body = ErrorBody(
            failure.code,
            failure.message,
            failure.remedy,
            failure.subject,
            failure.params,
            stage=_stage(failure, session),
            notes=(*(note.message for note in _notes(session)), *_goes_on(session), *page.splitlines()),
        )
        try:
            out.write_document(ErrorDocument(ERROR, body, int(code)))
        except (PipeClosed, OutputFailed):
            return code
        if is_terminal(sys.stdout) or not is_terminal(sys.stderr):
            return code
    about = failure.subject if failure.params.get("file") != failure.subject else None
    named = "" if about is None or about in failure.message else f"{about}: "
    _say(f"shardscope: {named}{failure.message}", session)
    if code is not ExitCode.CANCELLED:
        _say(f"{failure.remedy} [{failure.code}]", session)
        if _begun(session):
            out.narrate(f"It failed while {_begun(session)}.")
    for note in _notes(session):
        _say(note.message, session)
        if note.severity is not Severity.INFO:
            _say(f"{note.remedy} [{note.code}]", session)
    for line in _goes_on(session):
        out.narrate(line)
    for line in page.splitlines():
        out.narrate(f"  {line}")
    return code


def _say(text: str, session: Session) -> None:
    """Say a sentence: on a terminal in lines that end between words, in a log in one."""
    for line in (wrapped(text) if is_terminal(sys.stderr) else ()) or (text,):
        session.out.narrate(line)


def _goes_on(session: Session) -> Iterator[str]:
    """Yield how to go on, where something was kept: the very command, to be pasted where this one was started."""
    if any(note.code == "stage.kept" for note in _notes(session)):
        words = session.arguments
        end = words.index("--") if "--" in words else len(words)
        more = [] if "--resume" in words[:end] else ["--resume"]
        command = shlex.join(["shardscope", *words[:end], *more, *words[end:]])
        yield f"To go on: {display_name(command, LONGEST_COMMAND)}"


def _begun(session: Session) -> str | None:
    """Return what a conversion did that had begun to stage; null where nothing had been written."""
    course = session.course
    staged = course is not None and (course.stage not in (None, "target") or course.notes)
    return course.doing if course is not None and staged else None


def _stage(failure: Blocker, session: Session) -> str:
    course = session.course
    return failure.stage if course is None or course.stage is None else course.stage


def _notes(session: Session) -> Sequence[Blocker]:
    return () if session.course is None else session.course.notes


def _subject(finding: Finding) -> str | None:
    named = next((value for name in ("tensor", "file", "path") if (value := finding.params.get(name))), None)
    return None if named is None else str(named)


def _problem(error: click.ClickException) -> str:
    message = display_name(" ".join(error.format_message().split()), LONGEST)
    return message if message.endswith((".", "?")) else f"{message}."


def _help(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{'shardscope' if context is None else context.command_path} --help"
