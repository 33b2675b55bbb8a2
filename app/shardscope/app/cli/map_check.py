"""`shardscope map check`: whether maps hold together, and who holds what."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.map import EXITS, choosing, chosen, opened, reading
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode, most_specific
from shardscope.engine.model.schemas import MAP_CHECK

if TYPE_CHECKING:
    from shardscope.engine.model.mapdocuments import CheckedTensor, MapCheckDocument
    from shardscope.engine.shardmaps.reading import ShardMaps


@command(
    "check",
    short_help="Say whether maps hold together.",
    examples=(
        ("shardscope map check map.json", "Every tensor."),
        (
            "shardscope map check map.json --json | jq '.tensors[] | select(.invertible | not).name'",
            "For a program.",
        ),
    ),
    notes="""Checked are: every element of the full tensor held by a rank; no address of a shard claimed twice, by address and
    not by count; no hole that is not declared padding; bounds; holders that agree; steps that can be proven. A layout that
    cannot be proven is unsupported (map.unproven), which is not the same as invalid; both exit with 8.""",
    exits=EXITS,
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@choosing
@reading
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def check(
    session: Session,
    files: tuple[str, ...],
    patterns: tuple[str, ...],
    limits: tuple[tuple[str, int], ...],
    as_json: bool,
) -> ExitCode:
    """Check maps: coverage, collisions, bounds, holders, padding, and whether the full tensor can be assembled."""
    from shardscope.engine.model.codes import CODES
    from shardscope.engine.model.mapdocuments import MapCheckDocument

    maps = opened(files, limits)
    names = set(chosen([name for each in maps for name in each.names], patterns))
    found = [checked(each, name) for each in maps for name in each.names if name in names]
    document = MapCheckDocument(MAP_CHECK, not any(one.blockers for one in found), tuple(found))
    if as_json:
        session.out.write_document(document)
    else:
        session.out.write_text("\n".join(lines(document, several=len(maps) > 1)) + "\n")
    codes = {CODES[blocker.code].exit or ExitCode.BLOCKED for one in found for blocker in one.blockers}
    return most_specific(codes)


def checked(maps: "ShardMaps", name: str) -> "CheckedTensor":
    """Return what the checks say of a map; one that cannot even be lowered is a finding like any other."""
    from shardscope.engine.model.blocker import Fault, blocker
    from shardscope.engine.model.mapdocuments import CheckedTensor

    try:
        lowered = maps.lowered(name)
        found = maps.check(name)
    except Fault as fault:
        return CheckedTensor(
            file=maps.shown,
            name=name,
            shape=maps.document.tensors[name].shape,
            invertible=False,
            elements=None,
            pieces=None,
            ranks=None,
            padding=(),
            uncovered=None,
            replicas=None,
            scaled=False,
            indexed_elements=0,
            blockers=(blocker(fault.finding, name),),
        )
    return CheckedTensor(
        file=maps.shown,
        name=name,
        shape=lowered.shape,
        invertible=found.invertible,
        elements=found.elements,
        pieces=found.pieces,
        ranks=len(lowered.ranks),
        padding=found.padding,
        uncovered=found.uncovered,
        replicas=found.replicas,
        scaled=found.scaled,
        indexed_elements=found.indexed_elements,
        blockers=tuple(blocker(finding, name) for finding in found.findings),
    )


def lines(document: "MapCheckDocument", *, several: bool) -> Iterator[str]:
    """Yield a line for each tensor, and below it what is wrong."""
    from shardscope.app.cli.map_text import blocked, titled
    from shardscope.engine.model.text import counted

    for one in document.tensors:
        verdict = "INVALID" if one.blockers else "valid"
        where = f"  ({one.file})" if several else ""
        yield f"{verdict:<9}{titled(one.name, one.shape)}: {facts(one)}{where}"
        yield from blocked(one.blockers)
    wrong = sum(bool(one.blockers) for one in document.tensors)
    total = counted(len(document.tensors), "tensor")
    yield f"{total}, all valid" if not wrong else f"{total}, {wrong:,} not valid"


def facts(one: "CheckedTensor") -> str:
    """Return in a clause what is known of a map."""
    from shardscope.engine.model.text import counted

    if one.ranks is None:
        return "no normal form"
    parts = [counted(one.ranks, "rank"), counted(one.pieces or 0, "piece")]
    if one.replicas is not None:
        shared = sum(same.elements for same in one.replicas if len(same.holders) > 1)
        if shared:
            parts.append("replicated" if shared == one.elements else f"{shared:,} elements replicated")
    if one.padding:
        parts.append(f"{sum(pad.elements for pad in one.padding):,} of padding")
    if one.scaled:
        parts.append("scaled")
    if one.indexed_elements:
        parts.append(f"{one.indexed_elements:,} elements by an index")
    return ", ".join(parts)
