"""`shardscope map lower`: the normal form of maps, piece by piece."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.map import EXITS, choosing, chosen, opened, reading
from shardscope.app.cli.session import Session
from shardscope.engine.model.schemas import LOWERED

if TYPE_CHECKING:
    from shardscope.engine.model.lowered import LoweredTensor, ShardGroup
    from shardscope.engine.shardmaps.reading import ShardMaps

SHARDS = 16
"""Shards of a tensor that are printed, and pieces of a shard, unless all are asked for."""


@command(
    "lower",
    short_help="Print the normal form: affine pieces.",
    examples=(
        ("shardscope map lower map.json", "Pieces of every shard."),
        ("shardscope map lower map.json --tensor '*.qkv.weight'", "Of some tensors."),
        (
            "shardscope map lower map.json --json > lowered.json",
            "As a document, which every map command reads.",
        ),
    ),
    notes="""A piece is a block of elements with an offset and strides on two sides: in the full tensor and in the shard, both
    row-major, in elements and never in bytes.""",
    exits=EXITS,
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@choosing
@reading
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def lower(
    session: Session,
    files: tuple[str, ...],
    patterns: tuple[str, ...],
    limits: tuple[tuple[str, int], ...],
    as_json: bool,
) -> None:
    """Print the normal form of maps: for each rank the affine pieces of its shard, merged as far as they go."""
    from shardscope.app.cli.map_text import by_tensor

    maps = opened(files, limits)
    names = chosen(list(dict.fromkeys(name for each in maps for name in each.names)), patterns)
    owners: dict[str, ShardMaps] = {}
    for each in maps:
        for name in each.names:
            if owners.setdefault(name, each) is not each:
                raise click.UsageError(f"The tensor {name!r} is in two files.", click.get_current_context())
    # Everything is lowered before anything is printed: a refusal leaves no half of a document behind.
    found = [(name, owners[name].written(name)) for name in names]
    if as_json:
        session.out.write(b"".join(by_tensor(LOWERED, found)))
        return
    for name, tensor in found:
        session.out.write_text("\n".join(lines(name, tensor, everything=session.verbose > 0)) + "\n\n")


def lines(name: str, tensor: "LoweredTensor", *, everything: bool) -> Iterator[str]:
    """Yield a normal form as text."""
    from shardscope.app.cli.map_text import more, titled

    yield titled(name, tensor.shape, tensor.dtype)
    shown = tensor.shards if everything else tensor.shards[:SHARDS]
    for group in shown:
        yield from shard_lines(group, everything=everything)
    if len(tensor.shards) > len(shown):
        yield more(len(tensor.shards) - len(shown), "shard")


def shard_lines(group: "ShardGroup", *, everything: bool) -> Iterator[str]:
    """Yield the pieces of one shard."""
    from shardscope.app.cli.map_text import extents, more, table
    from shardscope.engine.geometry.pieces.wellformed import named
    from shardscope.engine.model.text import counted

    padding = f", {group.padding:,} of padding" if group.padding else ""
    yield f"  {named(group.ranks)}: shard {extents(group.shape)}{padding}"
    shown = group.pieces if everything else group.pieces[:SHARDS]
    rows = [("extents", "full tensor", "shard", "held by", "")] if shown else []
    rows += [
        (
            extents(piece.shape),
            f"{piece.source.offset:,} + {extents(piece.source.strides)}",
            f"{piece.dest.offset:,} + {extents(piece.dest.strides)}",
            named(piece.holders),
            "" if piece.scale == (1, 1) else f"x {piece.scale[0]}/{piece.scale[1]}",
        )
        for piece in shown
    ]
    yield from table(rows, 4)
    if len(group.pieces) > len(shown):
        yield more(len(group.pieces) - len(shown), "piece", 4)
    for index in group.indexed:
        yield f"    {counted(len(index.dest), 'element')} by an index, {named(index.holders)}"
