"""An error of shardscope itself, as it can be sent to a stranger: its kind, our own lines, versions, and what was being done.

No message of an exception, no local variable and no path: what an error says of itself can quote a checkpoint.
"""

import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Final

from shardscope.engine.model.reports import ReportEnvironment, ReportTool
from shardscope.engine.report.checking import check
from shardscope.engine.report.identity import identities

OWN: Final = "shardscope"
LIBRARIES: Final = ("msgspec", "numpy", "click", "rich", "textual")
"""What runs in our process, and may be at fault."""
LONGEST: Final = 12
"""Frames of one error that are listed: the innermost."""
CAUSES: Final = 4
"""Errors that led to one another."""
MEMBER: Final = "error.txt"
_NAME: Final = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)


def frames(error: BaseException) -> list[str]:
    """Return where an error came from, outermost first: our own modules and lines, no paths and no values."""
    ours = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(f"{OWN}."):
            ours.append(f"{module} line {line}")
    return ours or ["the interpreter"]


def kind(error: BaseException) -> str:
    """Return the name of the class of an error, where it is one of Python's, of ours or of what we are made of."""
    found = type(error)
    package = found.__module__.partition(".")[0]
    known = package in sys.stdlib_module_names or package in (OWN, *LIBRARIES)
    return found.__name__ if known and _NAME.fullmatch(found.__name__) else "an error of another package"


def page(
    error: BaseException,
    doing: str,
    environment: ReportEnvironment,
    packages: Mapping[str, str],
    tool: ReportTool,
) -> str:
    """Return the page as text with line ends. `doing` is in words of ours, `packages` are versions by the names of distributions.

    Raises `Fault` `report.identity` where it holds anything of this machine or session all the same.
    """
    found = "\n".join((*_lines(error, doing, environment, packages, tool), ""))
    system = [text for name in environment.__struct_fields__ if (text := getattr(environment, name))]
    ours = [frame for each in _chain(error) for frame in frames(each)]  # every copy of shardscope has these
    public = (*system, *ours, tool.version, *packages, *packages.values())
    check({MEMBER: found.encode()}, identities([os.curdir]), public)
    return found


def _lines(
    error: BaseException,
    doing: str,
    environment: ReportEnvironment,
    packages: Mapping[str, str],
    tool: ReportTool,
) -> Iterator[str]:
    commit = "" if tool.commit is None else f" ({tool.commit})"
    yield f"An error of shardscope {tool.version}{commit}"
    yield f"while    {doing}"
    for number, each in enumerate(_chain(error)):
        yield f"{'kind' if number == 0 else 'after':<8} {kind(each)}"
        ours = frames(each)
        for frame in ours[-LONGEST:]:
            yield f"         {frame}"
        if len(ours) > LONGEST:
            yield f"         and {len(ours) - LONGEST} lines of ours around them"
    place = (environment.os, environment.kernel, environment.distribution, environment.machine)
    yield f"system   {', '.join(filter(None, place))}"
    yield f"Python   {environment.python}"
    there = [f"{name} {packages[name]}" for name in LIBRARIES if name in packages]
    yield f"with     {', '.join(there) or 'no package that is known'}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came of."""
    each: BaseException | None = error
    for _ in range(CAUSES):
        if each is None:
            return
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
