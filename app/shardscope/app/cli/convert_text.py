"""The end of a conversion as a person reads it: what appeared, what was proven of it, what it does not have, what comes next."""

import os
from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from shardscope.app.cli.fix_text import lost_parts
from shardscope.app.cli.layout import WIDTH, Line, heading, laid_out, rows
from shardscope.app.cli.plan_text import left_out
from shardscope.app.explorer.target import Target, quoted, verify_command
from shardscope.engine.converting.materializing import Converted
from shardscope.engine.model.manifest import MANIFEST_NAME, Validation
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.text import display_name
from shardscope.widgets.figures import plural, size
from shardscope.widgets.plan_words import memory_of, took

OVERFLOWED: Final = 8
"""Tensors with numbers that became infinite, before the rest of them is counted."""
RESULT_STYLE: Final = {"held": "green", "differs": "bold red"}


def render(
    done: Converted, source: Target, target: str, *, decoded: bool, width: int = WIDTH, color: bool = False
) -> str:
    """Return the summary of a conversion of `source` to the folder `target`."""
    return laid_out(parts(done, source, target, decoded=decoded), width=width, color=color)


def parts(done: Converted, source: Target, target: str, *, decoded: bool) -> Iterator[RenderableType]:
    """Yield the parts of the summary. Paths and commands are never broken into lines."""
    written = [item.name for file in done.plan.files for item in file.tensors]
    word = "Fixed" if done.plan.fix is not None else "Converted" if done.plan.target is None else "Resharded"
    yield Text(word, "bold green").append(
        f"  {plural(len(set(written)), 'tensor')} in {plural(len(done.plan.files), 'file')}, {size(done.run.staged_bytes)}",
        "not bold default",
    )
    yield Text()
    folder = display_name(target)
    yield _path("output", folder)
    yield _path("manifest", os.path.join(folder, MANIFEST_NAME))
    if done.promoted.previous is not None:
        beside = os.path.join(os.path.dirname(target.rstrip("/")), done.promoted.previous)
        yield _path("old output", display_name(beside))
    yield _path("took", f"{took(done.run)}, {memory_of(done.plan, done.run)}")
    yield heading("Verified", f"then promoted by {done.promoted.how}")
    yield rows((item.what, _validation(item)) for item in done.manifest.validation)
    yield from _overflows(done)
    if done.plan.fix is not None:
        yield from lost_parts(done.plan.fix.lost)
    yield from left_out(done.manifest.left_out)
    yield heading("Next")
    yield Line("  ").append(_next(done, source, target, decoded=decoded))


def _next(done: Converted, source: Target, target: str, *, decoded: bool) -> str:
    """Return the command that verifies an output: against its source, unless that cannot be read as it stands."""
    fix = done.plan.fix
    if fix is not None and {"salvage", "index", "header"} & set(fix.what):
        here = f"./{target}" if target.startswith("-") else target
        return f"shardscope verify {quoted(here)}"
    return verify_command(source, target, decoded=decoded)


def _path(label: str, text: str) -> Line:
    line = Line(f"  {label:<12}", "dim")
    line.append(text, "not dim")
    return line


def _validation(item: Validation) -> Text:
    return Text(item.result, RESULT_STYLE.get(item.result, "yellow")).append(
        f": {shown(item.says)}", "not bold default"
    )


def _overflows(done: Converted) -> Iterator[RenderableType]:
    found = [tensor for file in done.manifest.outputs for tensor in file.tensors if tensor.overflowed]
    if not found:
        return
    yield heading("Became infinite", "numbers that the new type does not reach", "yellow")
    yield rows(
        (shown(item.name, 60), Text(f"{plural(item.overflowed, 'number')} in {item.dtype}"))
        for item in found[:OVERFLOWED]
    )
    if len(found) > OVERFLOWED:
        yield Text(f"  ... and {len(found) - OVERFLOWED:,} more, see the manifest", "dim")
