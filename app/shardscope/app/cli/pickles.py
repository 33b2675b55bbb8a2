"""`shardscope pickles`: what the pickles of a checkpoint say, as trees."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import decoding, examine, reading
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.model.decoded import Listed, Reference
    from shardscope.engine.model.outline import Outline

DEPTH = 3
"""Levels that are printed unless more are asked for."""


@command(
    "pickles",
    short_help="Show what pickles say, as trees of their records.",
    examples=(
        ("shardscope pickles ./ckpt --decode", "Foreign names, then each stream, three levels deep."),
        ("shardscope pickles ./ckpt --decode --depth 8", "Deeper."),
        ("shardscope pickles ./ckpt --decode --json", "For a program."),
    ),
    notes="""Names that a loader would have imported are told and not resolved. A stream shows at most 5,000 nodes, those of the
    upper levels first; what is left out is counted.""",
    exits=[code for code in ExitCode if code not in (ExitCode.DENIED, ExitCode.NEEDS_DECODING)],
)
@reading
@decoding
@click.option(
    "--depth",
    type=click.IntRange(1, 64),
    default=DEPTH,
    show_default=True,
    help="Levels of each tree that the text shows.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def pickles(
    session: Session,
    path: str,
    depth: int,
    as_json: bool,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    decode: bool,
    component: "Listed | None",
    progress: bool | None,
) -> int:
    """Show what the pickles of a checkpoint say: names first, then the records of each stream as a tree.

    It needs --decode, as nothing of a pickle is read without it. PATH is a file or folder.
    """
    if not decode:
        raise click.UsageError("Pickles are read only with --decode.", click.get_current_context())
    from shardscope.engine.model.outline import PicklesDocument

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
        outlines=True,
    )
    plane = found.descriptor.decoded
    streams = len(plane.streams) if plane else 0
    if as_json:
        session.out.write_document(PicklesDocument(found.outlines, streams))
    else:
        for text in text_parts(found.outlines, plane.references if plane else (), depth):
            session.out.write_text(text)
        left = streams - len(found.outlines)
        if left > 0:
            session.narrate(f"{left:,} further streams are not shown.")
    return found.exit_code(None)


def text_parts(outlines: "Sequence[Outline]", references: "Sequence[Reference]", depth: int) -> Iterator[str]:
    """Yield the foreign names, then each stream with its tree down to `depth` levels."""
    foreign = [item for item in references if not item.known]
    if foreign:
        yield f"! {len(foreign):,} foreign {'name' if len(foreign) == 1 else 'names'}, which a loader would have imported:\n"
    for item in foreign:
        yield f"    {item.module}.{item.name}  {item.use}, {item.count:,} times, first in {item.first}\n"
    for outline in outlines:
        begin = f" at byte {outline.begin:,}" if outline.begin else ""
        yield f"\n{outline.file}{begin}\n"
        yield "".join(_lines(outline, depth))


def _lines(outline: "Outline", depth: int) -> Iterator[str]:
    below: dict[int, list[int]] = {}
    for place, node in enumerate(outline.nodes):
        below.setdefault(node.parent, []).append(place)
    stack = [(place, 0) for place in reversed(below.get(-1, []))]
    while stack:
        place, level = stack.pop()
        node = outline.nodes[place]
        mark = "! foreign: " if node.foreign else ""
        held = below.get(place, [])
        hidden = node.left_out + (len(held) if level + 1 >= depth else 0)
        more = f"  ({hidden:,} not shown)" if hidden else ""
        yield f"{'  ' * (level + 1)}{node.key}: {mark}{node.words}{more}\n"
        if level + 1 < depth:
            stack += [(child, level + 1) for child in reversed(held)]
