"""`shardscope map apply`: tensors moved by their maps, from file to file."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.map import EXITS, opened, reading
from shardscope.app.cli.session import Session
from shardscope.app.cli.text import TEXT
from shardscope.app.cli.watching import watching
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import MAP_APPLIED

if TYPE_CHECKING:
    from shardscope.engine import Applied, ShardMaps
    from shardscope.engine.model.piece import Lowered
    from shardscope.engine.shardmaps.applying import Applying

_BY_RANK = re.compile(r"(-?[0-9]{1,18})=(.+)", re.DOTALL)


@command(
    "apply",
    short_help="Assemble, slice or reshard a tensor in files.",
    examples=(
        (
            "shardscope map apply tp2.json --tensor w rank0.npy rank1.npy --assemble -o full.npy",
            "Shards, in the order of their ranks, to the full tensor.",
        ),
        (
            "shardscope map apply tp2.json --tensor w full.safetensors --slice -o shards",
            "The full tensor to a new folder with a file for each rank.",
        ),
        (
            "shardscope map apply tp2.json --to tp4.json --tensor w 0=a.npy 1=b.npy -o shards",
            "Shards to the shards of another layout, without the full tensor.",
        ),
    ),
    notes="""Files are .npy (plain arrays, row-major) or .safetensors. They are read by position, and elements are moved as bytes, so
    the size of a tensor does not matter. Where several ranks hold the same elements the lowest is read, and the others are
    compared with it before anything is written. Output appears whole or not at all, and nothing is overwritten.""",
    exits=(*EXITS[:1], ExitCode.BLOCKED, *EXITS[1:], ExitCode.CHANGED, ExitCode.OUTPUT, ExitCode.CANCELLED),
)
@click.argument("map_file", metavar="MAP", type=click.Path())
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--assemble",
    "way",
    flag_value="assemble",
    help="FILE... are the shards, in the order of the ranks or as RANK=FILE.",
)
@click.option("--slice", "way", flag_value="slice", help="FILE is the full tensor.")
@click.option(
    "--to", "target", metavar="MAP", type=click.Path(), help="FILE... are shards; write those of this map."
)
@click.option(
    "--tensor", "name", metavar="NAME", type=TEXT, help="The tensor; needed where the map has several."
)
@click.option(
    "--key", metavar="NAME", type=TEXT, help="What safetensors files call the tensor, if not the same."
)
@click.option(
    "-o", "--output", "out", required=True, type=click.Path(), help="A new file; for shards a new folder."
)
@click.option("--state", is_flag=True, help="The tensor is optimizer state: refuse factors.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Threads that read."
)
@click.option(
    "--progress/--no-progress",
    default=None,
    help="Progress on standard error. By default on a terminal, but not with --json.",
)
@reading
@click.option("--json", "as_json", is_flag=True, help="Print what was written as one JSON document.")
@click.pass_obj
def apply(
    session: Session,
    map_file: str,
    files: tuple[str, ...],
    way: str | None,
    target: str | None,
    name: str | None,
    key: str | None,
    out: str,
    state: bool,
    workers: int,
    progress: bool | None,
    limits: tuple[tuple[str, int], ...],
    as_json: bool,
) -> None:
    """Move a tensor by its map: shards to the full tensor, the full tensor to shards, or shards to other shards."""
    from shardscope.engine import assemble_files, reshard_files, slice_file
    from shardscope.engine.model.limits import Limits, with_overrides
    from shardscope.engine.shardmaps.reading import about

    context = click.get_current_context()
    if (way is None) == (target is None):
        raise click.UsageError("Choose one of --assemble, --slice and --to.", context)
    if way == "slice" and len(files) != 1:
        raise click.UsageError("--slice takes one file, the full tensor.", context)
    maps, *others = opened((map_file,) if target is None else (map_file, target), limits)
    tensor = only(maps, name)
    lowered = maps.sound(tensor)
    bounds = with_overrides(Limits(), dict(limits))
    with (
        about(tensor),
        session.interrupt.cooperative() as cancel,
        watching(session, progress, machine=as_json) as report,
    ):
        common: Applying = {
            "tensor": tensor,
            "key": key,
            "state": state,
            "workers": workers,
            "limits": bounds,
            "cancel": cancel,
            "progress": report,
        }
        if way == "slice":
            done = slice_file(lowered, files[0], out, **common)
        elif way == "assemble":
            done = assemble_files(lowered, by_rank(lowered, files), out, **common)
        else:
            wanted_map = others[0].sound(only(others[0], tensor))
            done = reshard_files(lowered, wanted_map, by_rank(lowered, files), out, **common)
    tell(session, tensor, done, as_json=as_json)


def only(maps: "ShardMaps", name: str | None) -> str:
    """Return the tensor that is meant. Raises `click.UsageError` where that is open, or where there is none of the name."""
    from shardscope.app.cli.map import chosen

    if name is not None:
        return chosen(maps.names, (name,))[0]
    if len(maps.names) != 1:
        raise click.UsageError(
            f"The map has {len(maps.names):,} tensors: say which one with --tensor.",
            click.get_current_context(),
        )
    return maps.names[0]


def by_rank(lowered: "Lowered", files: Sequence[str]) -> dict[int, str]:
    """Return shard files by rank: as `RANK=FILE` says, or in the order of the labels.

    Raises `click.UsageError` where they are not one for each rank.
    """
    labels = [shard.rank for shard in lowered.ranks]
    named = [_BY_RANK.fullmatch(file) for file in files]
    context = click.get_current_context()
    if len(files) != len(labels):
        raise click.UsageError(
            f"The map has {len(labels):,} ranks, and {len(files):,} files are given.", context
        )
    if not any(named):
        return dict(zip(labels, files, strict=True))
    found = {int(match[1]): match[2] for match in named if match is not None}
    if found.keys() != set(labels):
        raise click.UsageError("Give one RANK=FILE for each rank of the map.", context)
    return found


def tell(session: Session, tensor: str, done: "Applied", *, as_json: bool) -> None:
    """Say what was written."""
    from shardscope.app.cli.words import size
    from shardscope.engine.model.text import display_name

    if as_json:
        from shardscope.engine.model.mapdocuments import MapAppliedDocument, WrittenFile

        files = tuple(WrittenFile(display_name(one.path), one.rank, one.bytes) for one in done.files)
        document = MapAppliedDocument(MAP_APPLIED, tensor, done.dtype, files)
        session.out.write_document(document)
        return
    for one in done.files:
        rank = "" if one.rank is None else f"  rank {one.rank}"
        session.out.write_text(f"{size(one.bytes):>10}  {display_name(one.path)}{rank}\n")
