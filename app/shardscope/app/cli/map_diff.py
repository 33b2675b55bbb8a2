"""`shardscope map diff`: whether two files describe the same layouts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.map import EXITS, choosing, chosen, opened, reading
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import MAP_DIFFERENCE

if TYPE_CHECKING:
    from shardscope.engine.model.mapcheck import Difference
    from shardscope.engine.model.mapdocuments import MapDifferenceDocument


@command(
    "diff",
    short_help="Say where two files of maps differ.",
    examples=(
        ("shardscope map diff written.json derived.json", "Where they differ first, tensor by tensor."),
        ("shardscope map diff written.json derived.json --quiet", "The exit code alone: 1 when they differ."),
    ),
    notes="""Maps are compared by what they say, not by how: two trees, or two lists of pieces, that put the same elements at the
    same addresses of the same ranks are the same.""",
    exits=(*EXITS[:1], ExitCode.BLOCKED, *EXITS[1:]),
)
@click.argument("one", type=click.Path())
@click.argument("other", type=click.Path())
@choosing
@reading
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def diff(
    session: Session,
    one: str,
    other: str,
    patterns: tuple[str, ...],
    limits: tuple[tuple[str, int], ...],
    as_json: bool,
) -> ExitCode:
    """Compare the maps of two files and say for each tensor where they differ first."""
    from shardscope.engine.model.mapdocuments import MapDifferenceDocument, TensorDifference

    mine, theirs = opened((one, other), limits)
    names = chosen(list(dict.fromkeys((*mine.names, *theirs.names))), patterns)
    both = [name for name in names if name in mine.document.tensors and name in theirs.document.tensors]
    differ = [
        TensorDifference(name, found) for name in both if (found := mine.difference(name, theirs)) is not None
    ]
    only_one = tuple(name for name in names if name not in theirs.document.tensors)
    only_other = tuple(name for name in names if name not in mine.document.tensors)
    same = not (differ or only_one or only_other)
    document = MapDifferenceDocument(MAP_DIFFERENCE, same, len(both), tuple(differ), only_one, only_other)
    if as_json:
        session.out.write_document(document)
    elif not session.quiet:
        session.out.write_text("\n".join(lines(document, mine.shown, theirs.shown)) + "\n")
    return ExitCode.OK if same else ExitCode.BLOCKED


def lines(document: "MapDifferenceDocument", one: str, other: str) -> Iterator[str]:
    """Yield the differences as text."""
    from shardscope.app.cli.map_text import NAME
    from shardscope.engine.model.text import counted, display_name

    for found in document.differ:
        yield f"differs  {display_name(found.name, NAME)}: {words(found.difference)}"
    for where, names in ((one, document.only_one), (other, document.only_other)):
        for name in names:
            yield f"missing  {display_name(name, NAME)}: only in {where}"
    apart = len(document.differ) + len(document.only_one) + len(document.only_other)
    yield f"{counted(document.compared, 'tensor')} compared, " + (
        "all the same" if document.same else f"{counted(apart, 'difference')}"
    )


def words(found: "Difference") -> str:
    """Return one difference as a clause."""
    what = {
        "shape": "the full tensor has another shape",
        "ranks": "one side lacks a rank",
        "shard_shape": "the shard has another shape",
        "padding": "the shard has other padding",
        "mapped": "one side maps an element that the other does not",
        "address": "the shard has other elements",
        "scale": "the values have another factor",
        "holders": "other ranks hold it, too",
    }[found.what]
    where = "" if found.rank is None else f" on rank {found.rank}"
    at = "" if found.element is None else f" at element {found.element:,} of its shard"
    return f"{what}{where}{at}: {found.one} in the first file, {found.other} in the second"
