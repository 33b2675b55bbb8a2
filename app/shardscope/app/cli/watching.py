"""Whether progress is shown, decided in one place for every command that takes a while."""

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from shardscope.app.cli.output import is_terminal
from shardscope.app.cli.session import Session

if TYPE_CHECKING:
    from shardscope.engine.model.progress import OnProgress


def watching(
    session: Session, progress: bool | None, *, machine: bool, long: bool = False
) -> "AbstractContextManager[OnProgress | None]":
    """Return what shows progress on standard error, if anything should.

    `progress` is what a person asked for, null where nothing was said; `machine` tells that a document is asked for. `long` is
    work of minutes and hours: a log gets its lines, too, and the measured memory stands beside them.
    """
    person = is_terminal(sys.stderr)
    wanted = ((person or long) and not machine and not session.quiet) if progress is None else progress
    if not wanted:
        return nullcontext()
    from shardscope.app.cli.progress import watch

    return watch(session, person=person, memory=long)
