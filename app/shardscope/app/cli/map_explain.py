"""`shardscope map explain`: maps in words, with a small picture."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.map import EXITS, choosing, chosen, opened, reading
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode, most_specific
from shardscope.engine.model.schemas import MAP_EXPLANATION

if TYPE_CHECKING:
    from shardscope.engine.model.explanation import Explanation, PieceInWords, ShardInWords
    from shardscope.engine.model.picture import Picture

SHARDS = 8
"""Shards of a tensor that are printed, unless all are asked for."""
PIECES = 12


@command(
    "explain",
    short_help="Say in words which rank holds what, with a picture.",
    examples=(
        ("shardscope map explain map.json", "Every tensor."),
        (
            "shardscope map explain map.json --tensor h.0.attn.qkv.weight --rank 3",
            "One, with a picture of a shard.",
        ),
        ("shardscope map explain map.json --width 100 --height 32", "A larger picture."),
    ),
    notes="""Positions in the full tensor stand in the order in which the shard has them. In a picture a letter is who holds an
    element: * every rank, ! nobody. In that of a shard (--rank) letters are bands of the full tensor, so that their order is
    the order of the shard, and . is padding. Bytes are those of the full tensor and of the shard, each by itself, and known
    where the map names a dtype.""",
    exits=EXITS,
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@choosing
@click.option("--rank", type=int, help="Draw the shard of this rank, too.")
@click.option(
    "--width",
    type=click.IntRange(8, 400),
    default=64,
    show_default=True,
    help="Cells of a line of the picture.",
)
@click.option(
    "--height", type=click.IntRange(1, 200), default=16, show_default=True, help="Lines of the picture."
)
@reading
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def explain(
    session: Session,
    files: tuple[str, ...],
    patterns: tuple[str, ...],
    rank: int | None,
    width: int,
    height: int,
    limits: tuple[tuple[str, int], ...],
    as_json: bool,
) -> ExitCode:
    """Say in words which rank holds which rows, columns and bytes, how the map is built, and whether it holds together."""
    from shardscope.engine.model.codes import CODES
    from shardscope.engine.model.mapdocuments import MapExplanationDocument

    maps = opened(files, limits)
    names = set(chosen([name for each in maps for name in each.names], patterns))
    if rank is not None and not any(
        shard.rank == rank
        for each in maps
        for name in each.names
        if name in names
        for shard in each.lowered(name).ranks
    ):
        raise click.BadParameter(f"no map has a rank {rank}.", param_hint="--rank")
    found = [
        each.explain(name, rank=rank, width=width, height=height)
        for each in maps
        for name in each.names
        if name in names
    ]
    if as_json:
        session.out.write_document(MapExplanationDocument(MAP_EXPLANATION, tuple(found)))
    else:
        texts = ["\n".join(lines(one, rank, everything=session.verbose > 0)) for one in found]
        session.out.write_text("\n\n\n".join(texts) + "\n")
    codes = {CODES[blocker.code].exit or ExitCode.BLOCKED for one in found for blocker in one.blockers}
    return most_specific(codes)


def lines(one: "Explanation", rank: int | None = None, *, everything: bool = False) -> Iterator[str]:
    """Yield a map in words."""
    from shardscope.app.cli.map_text import blocked, more, titled
    from shardscope.app.cli.paragraphs import wrapped
    from shardscope.engine.model.text import display_name

    yield titled(one.name, one.shape, one.dtype)
    if one.mesh is not None:
        yield f"on {display_name(one.mesh, 200)}"
    if one.tree:
        yield ""
        yield "map"
        yield from (f"  {display_name(text, 400)}" for text in one.tree)
    yield ""
    yield "shards"
    shown = one.shards if everything else one.shards[:SHARDS]
    for shard in shown:
        yield from shard_lines(shard, everything=everything)
    rest = one.shards[len(shown) :]
    if rest:
        yield more(len(rest), "shard")
    for shard in rest:
        if rank in shard.ranks:
            yield from shard_lines(shard, everything=everything)
    yield ""
    yield "checks"
    for sentence in one.says:
        yield from wrapped(sentence, 2, first="")
    yield from blocked(one.blockers)
    for drawn in (one.picture, one.shard_picture):
        if drawn is not None and drawn.lines:
            yield ""
            yield from picture_lines(drawn)


def shard_lines(shard: "ShardInWords", *, everything: bool) -> Iterator[str]:
    """Yield what ranks with equal shards hold."""
    from shardscope.app.cli.map_text import extents, more, table
    from shardscope.app.cli.words import size
    from shardscope.engine.geometry.pieces.wellformed import named
    from shardscope.engine.model.text import counted

    facts = [f"shard {extents(shard.shape)}"]
    if shard.bytes is not None:
        facts.append(size(shard.bytes))
    if shard.padding:
        facts.append(f"{counted(shard.padding, 'element')} of padding")
    if not shard.pieces:
        facts.append("no element of the tensor")
    yield f"  {named(shard.ranks)}: {', '.join(facts)}"
    shown = shard.pieces if everything else shard.pieces[:PIECES]
    yield from table([piece_row(piece) for piece in shown], 4)
    if len(shard.pieces) > len(shown):
        yield more(len(shard.pieces) - len(shown), "piece", 4)


def piece_row(piece: "PieceInWords") -> tuple[str, ...]:
    """Return one piece as cells."""
    span = ""
    if piece.full_bytes is not None and piece.shard_bytes is not None:
        span = f"bytes {_span(piece.full_bytes)} → {_span(piece.shard_bytes)}"
    scale = "" if piece.scale is None else f"x {piece.scale}"
    return (piece.full, f"→ {piece.shard}", piece.holders, span, scale)


def _span(limits: tuple[int, int]) -> str:
    return f"{limits[0]:,}-{limits[1] - 1:,}"


def picture_lines(drawn: "Picture") -> Iterator[str]:
    """Yield a picture with its legend."""
    scale = ""
    if drawn.sampled and drawn.lines:
        (high, more), (wide, rest) = (
            divmod(extent, cells)
            for extent, cells in ((drawn.rows, len(drawn.lines)), (drawn.columns, len(drawn.starts)))
        )
        about = "about " if more or rest else ""
        scale = f", a cell is {about}{high:,} x {wide:,} elements, drawn as its first"
    note = f"; {drawn.note}" if drawn.note else ""
    yield f"{drawn.title}{scale}{note}"
    gutter = max((len(f"{line.first:,}") for line in drawn.lines), default=0)
    for line in drawn.lines:
        yield f"  {line.first:>{gutter},} {line.cells}".rstrip()
    width = max((len(mark.letter) for mark in drawn.legend), default=1)
    for mark in drawn.legend:
        yield f"  {'':{gutter}} {mark.letter:<{width}}  {mark.means}"
