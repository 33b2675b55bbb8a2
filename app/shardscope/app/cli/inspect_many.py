"""`shardscope inspect` on several paths: one document, log or text, in the order of the paths. A bad path costs its own entry alone.

Each descriptor is printed before the next path is looked at, so that memory holds one of them.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct

from shardscope.app.cli.output import OutputFailed, PipeClosed, wants_color
from shardscope.app.cli.session import Session
from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.engine.model.documents import AskedPath, ErrorBody
from shardscope.engine.model.exits import ExitCode, most_specific
from shardscope.engine.model.schemas import DESCRIPTORS
from shardscope.engine.model.text import display_name, json_escape

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.model.descriptor import Descriptor

LONGEST = 4096
"""Characters of a path in what is printed."""


class Outcome(Struct, frozen=True):
    """What came of one path: a descriptor, or why there is none."""

    path: str
    """As it was given."""
    exit: ExitCode
    descriptor: "Descriptor | None" = None
    failure: Blocker | None = None

    @property
    def shown(self) -> str:
        """The path, neutralised."""
        return display_name(self.path, LONGEST)

    @property
    def asked(self) -> AskedPath:
        """The entry beside the descriptors."""
        said = self.failure
        if said is None:
            return AskedPath(self.shown, int(self.exit), None)
        body = ErrorBody(said.code, said.message, said.remedy, said.subject, said.params, stage=said.stage)
        return AskedPath(self.shown, int(self.exit), body)


def outcomes(
    session: Session,
    paths: Sequence[str],
    look: "Callable[[str], Inspection]",
    fail_on: Severity | None,
) -> Iterator[Outcome]:
    """Yield what comes of each path. After Ctrl-C or SIGTERM the rest is not looked at, and says so."""
    from shardscope.app.cli.failure import describe, page_of
    from shardscope.engine.model.codes import CODES

    stopped: Blocker | None = None
    for path in paths:
        if stopped is not None:
            yield Outcome(path, ExitCode.CANCELLED, failure=stopped)
            continue
        try:
            found = look(path)
        except (click.ClickException, PipeClosed, OutputFailed):
            raise
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the other paths get their answer
            failure = describe(error, session)
            code = CODES[failure.code].exit or ExitCode.BLOCKED
            if code is ExitCode.CANCELLED:
                stopped = failure
            elif code is ExitCode.INTERNAL:
                session.out.narrate(page_of(error, session).rstrip("\n"))
            yield Outcome(path, code, failure=failure)
        else:
            yield Outcome(path, found.exit_code(fail_on), found.descriptor)


def inspect_many(session: Session, found: Iterator[Outcome], form: str) -> ExitCode:
    """Print the outcomes in one of the forms and return the worst of their exit codes, by the order of all exit codes."""
    match form:
        case "json":
            return _document(session, found)
        case "sarif":
            return _log(session, found)
        case "markdown":
            return _pages(session, found)
    return _blocks(session, found)


def _document(session: Session, found: Iterator[Outcome]) -> ExitCode:
    from shardscope.engine.model.descriptor import to_json

    asked: list[AskedPath] = []
    session.out.write(f'{{\n  "schema": "{DESCRIPTORS}",\n  "descriptors": ['.encode())
    for item in found:
        text = "null" if item.descriptor is None else to_json(item.descriptor).rstrip("\n")
        comma = "," if asked else ""
        asked.append(item.asked)
        session.out.write(f"{comma}\n    {text.replace(chr(10), chr(10) + '    ')}".encode())
    rest = msgspec.json.format(msgspec.json.encode(asked), indent=2).decode()
    rest = json_escape(rest).replace("\n", "\n  ")
    session.out.write(f'\n  ],\n  "asked": {rest}\n}}\n'.encode())
    return _worst(item.exit for item in asked)


def _log(session: Session, found: Iterator[Outcome]) -> ExitCode:
    from shardscope.app.cli.sarif import failed_run, log, run

    runs: list[dict[str, Any]] = []
    codes = []
    for number, item in enumerate(found, 1):
        codes.append(item.exit)
        category = f"shardscope/{number}/{item.shown}/"
        if item.descriptor is not None:
            runs.append(run(item.descriptor, category))
        elif item.failure is not None:
            runs.append(failed_run(item.failure, int(item.exit), category))
    session.out.write(log(runs).encode())
    return _worst(codes)


def _pages(session: Session, found: Iterator[Outcome]) -> ExitCode:
    from shardscope.app.cli.markdown import escaped, markdown

    codes: list[int] = []
    for item in found:
        before = "\n" if codes else ""
        codes.append(item.exit)
        session.out.write(f"{before}# {escaped(item.shown)}\n\n".encode())
        if item.descriptor is not None:
            session.out.write(markdown(item.descriptor, everything=bool(session.verbose)).encode())
        elif item.failure is not None:
            lines = (
                f"- **not examined** `{item.failure.code}`",
                f"  - {escaped(item.failure.message)}",
                f"  - → {escaped(item.failure.remedy)}",
            )
            session.out.write("".join(f"{line}\n" for line in lines).encode())
    return _worst(codes)


def _blocks(session: Session, found: Iterator[Outcome]) -> ExitCode:
    from shardscope.app.cli.inspect_blocks import block, total
    from shardscope.app.cli.layout import columns, laid_out
    from shardscope.app.cli.report import render

    width, color = columns(sys.stdout), wants_color(session.color, sys.stdout)
    told: list[tuple[bool, int]] = []
    for item in found:
        if told:
            session.out.write_text("\n")
        told.append((item.descriptor is not None, item.exit))
        if session.verbose and item.descriptor is not None:
            text = render(item.descriptor, item.path, None, width=width, color=color, everything=True)
        else:
            text = laid_out(block(item.shown, item.descriptor, item.failure, width), width=width, color=color)
        session.out.write_text(text)
    session.out.write_text(laid_out(total(told), width=width, color=color))
    return _worst(code for _, code in told)


def _worst(codes: Iterator[int] | Sequence[int]) -> ExitCode:
    return most_specific(ExitCode(code) for code in codes)
