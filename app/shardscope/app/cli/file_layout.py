"""`shardscope layout`: what stands where in one file of a checkpoint."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import decoding, examine, reading
from shardscope.app.cli.limit import nearest
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.model.decoded import Listed
    from shardscope.engine.model.file_layout import FileLayout
    from shardscope.engine.model.source import Entry

BAR = 72
"""Letters of the bar: a line that fits anywhere."""
CHUNK = 2_000
"""Rows written at once."""


@command(
    "layout",
    short_help="Show what stands where in one file.",
    examples=(
        (
            "shardscope layout model.safetensors",
            "Header, tensors, gaps, padding and holes, with their bytes.",
        ),
        ("shardscope layout ./ckpt model-00002-of-00010.safetensors", "One file of a folder."),
        ("shardscope layout pytorch_model.bin --decode", "With the tensors that each record holds."),
        ("shardscope layout ./ckpt --json | jq '.ranges[] | select(.kind == \"gap\")'", "For a program."),
    ),
    notes="""Ranges are half-open, in bytes of the file. The bar gives each letter an equal share of them; headers, pickles,
    directories, gaps and what lies behind the end get a letter however small they are.""",
    exits=[code for code in ExitCode if code not in (ExitCode.DENIED, ExitCode.NEEDS_DECODING)],
)
@reading
@click.argument("file", required=False, type=click.Path())
@decoding
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def layout(
    session: Session,
    path: str,
    file: str | None,
    as_json: bool,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    decode: bool,
    component: "Listed | None",
    progress: bool | None,
) -> int:
    """Show what stands where in one file: header, tensors or records, what is between them, and holes.

    PATH is a file or folder, FILE one of its files (by default the first that has tensors). Only headers and directories are
    read; a file whose tensors do not tile its data is laid out all the same.
    """
    found = examine(
        session,
        path,
        limits=limits,
        hf_cache=hf_cache,
        digest="none",
        progress=progress,
        machine=as_json,
        decode=decode,
        component=component,
    )
    entry = _chosen(found, file)
    if entry is None:
        names = tuple(each.text for each in found.inventory.files)
        near = nearest(file or "", names)
        raise click.UsageError(f"The checkpoint has no such file.{near}", click.get_current_context())
    from shardscope.engine.previewing import layout as laid_out

    shown = laid_out(found, entry.path)
    if as_json:
        session.out.write_document(shown)
    else:
        for text in text_parts(shown):
            session.out.write_text(text)
    return found.exit_code(None)


def _chosen(found: "Inspection", file: str | None) -> "Entry | None":
    """Return the file that was asked for, by its path in the checkpoint as it is or as it is shown."""
    from shardscope.app.explorer.checkpoint.bytes_of import default_file, file_called

    if file is None:
        return default_file(found)
    entry = found.inventory.by_path.get(os.fsencode(file.removeprefix("./")))
    return entry or file_called(found, file)


def text_parts(layout: "FileLayout") -> Iterator[str]:
    """Yield the figures, the bar with its legend, and a row for each stretch."""
    from shardscope.engine.model.text import display_name
    from shardscope.widgets.figures import plural, size
    from shardscope.widgets.layout_map import LayoutMap

    drawn = LayoutMap(layout)
    yield f"{layout.file}  {layout.container}, {size(layout.size)} ({layout.size:,} bytes)\n"
    for words in layout.says:
        yield f"! {words}\n"
    if layout.holes:
        holes = sum(end - begin for begin, end in layout.holes)
        yield f"{plural(len(layout.holes), 'hole')} of {size(holes)} in all: bytes that were never stored and read as zeros\n"
    if not layout.size:
        return
    yield "\n" + "".join(cell.letter for cell in drawn.cells(BAR)) + "\n"
    yield "   ".join(f"{letter} {word}" for letter, _, word in drawn.legend()) + "\n\n"
    at = max(len("begin"), len(f"{max(each.end for each in layout.ranges):,}"))
    kinds = max(len(each.kind) for each in layout.ranges)
    yield f"{'begin':>{at}}  {'end':>{at}}  {'size':>10}  {'what':<{kinds}}  name\n"
    lines = []
    for each in layout.ranges:
        hole = f"  ({size(each.hole)} of it a hole)" if each.hole else ""
        words = "  ".join(part for part in (display_name(each.name), display_name(each.note)) if part)
        line = f"{each.begin:>{at},}  {each.end:>{at},}  {size(each.end - each.begin):>10}  {each.kind:<{kinds}}  {words}{hole}"
        lines.append(line.rstrip() + "\n")
        if len(lines) == CHUNK:
            yield "".join(lines)
            lines.clear()
    yield "".join(lines)
