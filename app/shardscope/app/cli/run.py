"""One run of the command line, from its arguments to its exit code."""

import itertools
import os

from shardscope.app.cli.output import PipeClosed, abandon, settle
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode

NAME = "shardscope"
COMPLETE = "_SHARDSCOPE_COMPLETE"
"""The variable through which a shell asks for completions."""


def run(arguments: list[str]) -> ExitCode:
    """Run the command that `arguments` name and return its exit code. Nothing is raised."""
    session = Session()
    session.arguments = list(arguments)
    with session.interrupt.installed():
        try:
            return _dispatch(arguments, session)
        except (PipeClosed, BrokenPipeError):
            abandon()
            return ExitCode.OK
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - here every failure gets its sentence
            return _failed(error, arguments, session)
        finally:
            settle()


def _dispatch(arguments: list[str], session: Session) -> ExitCode:
    if arguments == ["--version"]:  # click takes as long to import as the interpreter to start
        from shardscope.app.cli import version

        version.show(session)
        return ExitCode.OK
    import click

    from shardscope.app.cli.root import shardscope

    if instruction := os.environ.get(COMPLETE):
        from click.shell_completion import shell_complete

        return ExitCode(shell_complete(shardscope, {}, NAME, COMPLETE, instruction))
    try:
        with shardscope.make_context(NAME, list(arguments), obj=session) as context:
            code = shardscope.invoke(context)
    except click.exceptions.Exit as end:  # help ends like this
        return ExitCode(end.exit_code)
    return ExitCode.OK if code is None else ExitCode(code)


def _failed(error: BaseException, arguments: list[str], session: Session) -> ExitCode:
    from shardscope.app.cli import failure

    described = failure.describe(error, session)
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    page = failure.page_of(error, session) if described.code == "internal.error" else ""
    return failure.tell(described, session, document=_wants_document(options), page=page)


def _wants_document(options: list[str]) -> bool:
    """Tell whether a program reads standard output, and expects JSON there."""
    spelt = itertools.pairwise(options)
    return "--json" in options or "--format=json" in options or ("--format", "json") in spelt
