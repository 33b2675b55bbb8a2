"""`shardscope tensors`: the tensors that headers describe, as a table, JSON or CSV, row by row."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from itertools import islice
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import decoding, examine, reading
from shardscope.app.cli.session import Session
from shardscope.app.cli.text import TEXT
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import TENSORS

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.model.decoded import Listed
    from shardscope.engine.model.tensors import TensorTable

CHUNK = 2_000
"""Rows written at once: large enough to be quick, small enough that a million tensors cost no memory here."""
NAME_WIDTH = 56
"""Cells of the name column; a longer name pushes its own line and no other."""
COLUMNS = ("name", "dtype", "shape", "bytes", "file", "begin", "end")


@command(
    "tensors",
    short_help="List the tensors of a checkpoint.",
    examples=(
        ("shardscope tensors ./ckpt", "Every tensor, in the order of the files."),
        (
            "shardscope tensors ./ckpt --filter '*.q_proj.*' --filter '*.k_proj.*'",
            "Those that match a pattern.",
        ),
        ("shardscope tensors ./ckpt --sort bytes | head", "The largest."),
        ("shardscope tensors ./ckpt --json | jq '.tensors[].name'", "For a program."),
        (
            "shardscope tensors ./ckpt --decode --component all",
            "Those behind pickles too, optimizer state included.",
        ),
        (
            "shardscope tensors ./ckpt --decode --map model.layers.0.self_attn.q_proj.weight",
            "Which rank holds which part of one, with a picture.",
        ),
    ),
    notes="""--json gives exact names and half-open byte ranges in the file. The text and CSV outputs are made to be looked at:
    characters that could act on a terminal are shown as visible escapes, and a CSV cell that a spreadsheet would take for
    a formula gets a leading apostrophe.""",
    exits=[code for code in ExitCode if code is not ExitCode.DENIED],
)
@reading
@decoding
@click.option(
    "--fragments",
    is_flag=True,
    help="With --decode --json: the fragments of each tensor and its shard map in normal form, too.",
)
@click.option(
    "--filter",
    "patterns",
    metavar="GLOB",
    type=TEXT,
    multiple=True,
    help="Only names that match; may be repeated, then any of them may match. *, ? and [abc] as in a shell.",
)
@click.option(
    "--map",
    "mapped",
    metavar="NAME",
    help="In place of the list: say in words which rank holds what of this tensor, with a picture.",
)
@click.option("--rank", type=int, help="With --map: draw the shard of this rank, too.")
@click.option("--sort", type=click.Choice(["name", "bytes"]), help="Order: by name, or largest first.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV with a header line.")
@click.pass_obj
def tensors(
    session: Session,
    path: str,
    patterns: tuple[str, ...],
    sort: str | None,
    as_json: bool,
    as_csv: bool,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    decode: bool,
    component: "Listed | None",
    fragments: bool,
    mapped: str | None,
    rank: int | None,
    progress: bool | None,
) -> int:
    """List the tensors of a checkpoint: name, dtype, shape, bytes and file.

    Only headers are read, and with --decode pickles, as data. PATH is a file or folder.
    """
    if fragments and not (decode and as_json):
        raise click.UsageError("--fragments needs --decode and --json.", click.get_current_context())
    _check(
        as_json=as_json,
        as_csv=as_csv,
        listing=bool(patterns or sort or as_csv or fragments),
        mapped=mapped is not None,
        rank=rank is not None,
    )
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
    opaque = found.descriptor.tensors.files_opaque
    table = found.tensors
    refuse_unlisted(found, path, decode=decode)
    if mapped is not None:
        from shardscope.app.cli.tensor_map import show_map

        return show_map(session, found, mapped, rank, as_json=as_json)
    rows = chosen(table, patterns, sort)
    if as_json and found.catalogue is not None:
        from shardscope.app.cli.catalogue import json_parts as catalogue_parts

        names = {table.names[row] for row in rows} if patterns else None
        for part in catalogue_parts(
            found.catalogue, opaque, component or "model", names, fragments=fragments, order=sort
        ):
            session.out.write(part)
    elif as_json:
        for part in json_parts(table, rows, opaque):
            session.out.write(part)
    elif as_csv:
        for text in csv_parts(table, rows):
            session.out.write(text.encode())
    else:
        for text in text_parts(table, rows):
            session.out.write_text(text)
    if not as_json:
        from shardscope.widgets.figures import plural, size

        total = sum(table[row].bytes for row in rows)
        note = f", and {plural(opaque, 'opaque file')} not listed" if opaque else ""
        among = f"{len(rows):,} of " if patterns else ""
        session.narrate(
            f"{among}{plural(len(table) if patterns else len(rows), 'tensor')}, {size(total)}{note}"
        )
    code = found.exit_code(None)
    if code and not as_json:
        session.narrate(
            f"The list may be incomplete: run `shardscope inspect` for what stands in the way (exit {int(code)})."
        )
    return code


def _check(*, as_json: bool, as_csv: bool, listing: bool, mapped: bool, rank: bool) -> None:
    """Raise `click.UsageError` where options contradict each other; `listing` are those that shape a list."""
    ctx = click.get_current_context()
    if as_json and as_csv:
        raise click.UsageError("Choose one of --json and --csv.", ctx)
    if rank and not mapped:
        raise click.UsageError("--rank needs --map.", ctx)
    if mapped and listing:
        raise click.UsageError("--map stands alone, or with --rank and --json.", ctx)


def refuse_unlisted(found: "Inspection", path: str, *, decode: bool) -> None:
    """Raise `Fault` `tensors.opaque` or `tensors.unread` where files hold tensors and none of them is listed."""
    opaque = found.descriptor.tensors.files_opaque
    if not opaque or len(found.tensors):
        return
    from shardscope.app.explorer.target import Target, inspect_command
    from shardscope.engine.model.blocker import Fault
    from shardscope.engine.model.format_names import DECODED, FORMAT_TITLES, NOT_CONVERTED

    name = found.descriptor.classification.format
    command = inspect_command(Target(path))
    if name in NOT_CONVERTED - DECODED:
        raise Fault("tensors.unread", format=FORMAT_TITLES[name], files=opaque, command=command)
    if not decode:
        raise Fault("tensors.opaque", files=opaque, command=command)


def chosen(table: "TensorTable", patterns: Sequence[str], sort: str | None) -> Sequence[int]:
    """Return the rows of `table` whose name matches any pattern (all, without patterns), in the order asked for."""
    rows: Sequence[int] = range(len(table))
    if patterns:
        # One expression for all of them: fnmatchcase for each name takes nine times as long.
        matches = re.compile("|".join(map(translate, patterns))).match
        rows = [row for row, name in enumerate(table.names) if matches(name)]
    if sort == "name":
        rows = sorted(rows, key=table.names.__getitem__)
    elif sort == "bytes":
        begin, end = table.column("begin"), table.column("end")
        rows = sorted(rows, key=lambda row: (begin[row] - end[row], table.names[row]))
    return rows


def json_parts(table: "TensorTable", rows: Sequence[int], opaque: int) -> Iterator[bytes]:
    """Yield the document `shardscope.tensors/1` piece by piece, one tensor a line."""
    import msgspec

    from shardscope.engine.model.text import json_escape

    yield f'{{"schema":"{TENSORS}","count":{len(rows)},"opaque_files":{opaque},"tensors":['.encode()
    encode = msgspec.json.Encoder().encode
    first = True
    for part in _chunks(rows):
        lines = b",\n".join(encode(table[row]) for row in part)
        yield (b"\n" if first else b",\n") + json_escape(lines.decode()).encode()
        first = False
    yield b"]}\n" if first else b"\n]}\n"


def csv_parts(table: "TensorTable", rows: Sequence[int]) -> Iterator[str]:
    """Yield CSV (RFC 4180 but for plain line feeds) piece by piece, every cell harmless to terminals and spreadsheets."""
    yield ",".join(COLUMNS) + "\n"
    dtypes = [_cell(dtype) for dtype in table.dtypes]
    shapes = ["x".join(map(str, shape)) for shape in table.shapes]
    files = [_cell(file) for file in table.files]
    names, begins, ends = table.names, table.column("begin"), table.column("end")
    dtype_of, shape_of, file_of = table.column("dtype"), table.column("shape"), table.column("file")
    for part in _chunks(rows):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(
            (
                _cell(names[row]),
                dtypes[dtype_of[row]],
                shapes[shape_of[row]],
                ends[row] - begins[row],
                files[file_of[row]],
                begins[row],
                ends[row],
            )
            for row in part
        )
        yield text.getvalue()


def text_parts(table: "TensorTable", rows: Sequence[int]) -> Iterator[str]:
    """Yield an aligned table piece by piece. The file column stands only where there is more than one file."""
    from shardscope.app.cli.words import size
    from shardscope.engine.model.text import display_name

    if not rows:
        return
    shapes = [_shape(shape) for shape in table.shapes]
    shape_width = max(len("shape"), *(len(shapes[number]) for number in set(table.column("shape"))))
    dtypes = [display_name(dtype, 24) for dtype in table.dtypes]
    dtype_width = max(len("dtype"), *map(_cells, dtypes))
    several = len(table.files) > 1
    longest = max(len("name"), *(_cells(table.names[row]) for row in rows)) if several else 0
    name_width = min(NAME_WIDTH, longest)
    heading = f"{'size':>10}  {'dtype':<{dtype_width}}  {'shape':<{shape_width}}  {'name':<{name_width}}"
    yield (f"{heading}  file" if several else heading.rstrip()) + "\n"
    dtypes = [_padded(dtype, dtype_width) for dtype in dtypes]
    shapes = [f"{shape:<{shape_width}}" for shape in shapes]
    names, files, begins, ends = table.names, table.files, table.column("begin"), table.column("end")
    dtype_of, shape_of, file_of = table.column("dtype"), table.column("shape"), table.column("file")
    for part in _chunks(rows):
        lines = []
        for row in part:
            name = display_name(names[row])
            last = f"{_padded(name, name_width)}  {files[file_of[row]]}" if several else name
            lines.append(
                f"{size(ends[row] - begins[row]):>10}  {dtypes[dtype_of[row]]}  {shapes[shape_of[row]]}  {last}\n"
            )
        yield "".join(lines)


def _chunks(rows: Iterable[int]) -> Iterator[list[int]]:
    source = iter(rows)
    while part := list(islice(source, CHUNK)):
        yield part


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _cells(text: str) -> int:
    """Return how many cells of a terminal `text` takes; ASCII, nearly every name, is counted without Rich."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _cells(text))


def _cell(text: str) -> str:
    """Return `text` for a CSV cell, neutralised; spreadsheets run what starts with one of four signs."""
    from shardscope.engine.model.text import display_name

    shown = display_name(text)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown
