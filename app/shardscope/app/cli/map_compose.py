"""`shardscope map compose`: what moves where between two layouts of the same tensors."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.map import EXITS, choosing, chosen, opened, reading
from shardscope.app.cli.session import Session
from shardscope.engine.model.schemas import TRANSFER

if TYPE_CHECKING:
    from shardscope.engine.model.transfer import TransferPlan

SEGMENTS = 32
"""Segments that are printed, unless all are asked for."""
RANKS = 16
"""Ranks of a matrix; more are listed pair by pair."""


_NO_CHECKPOINT = '"dtypes":{},"stored":{},"pairs":[],'
"""Members of a transfer document that only tensors of a checkpoint have."""


@command(
    "compose",
    short_help="Plan a transfer from one layout to another.",
    examples=(
        ("shardscope map compose tp8.json tp4.json", "Every tensor that both have."),
        ("shardscope map compose tp2.json tp4.json --tensor w -v", "Every copy of one."),
    ),
    notes="""The plan is the target's map after the inverse of the source's: copies from shard to shard, without the full tensor.
    Numbers are elements. Ranks of the two sides are two namespaces. Nothing is said of how long a transfer takes.""",
    exits=EXITS,
)
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
@choosing
@reading
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def compose(
    session: Session,
    source: str,
    target: str,
    patterns: tuple[str, ...],
    limits: tuple[tuple[str, int], ...],
    as_json: bool,
) -> None:
    """Plan the copies that make the shards of TARGET from those of SOURCE, rank to rank."""
    from shardscope.app.cli.map_text import by_tensor

    one, other = opened((source, target), limits)
    both = [name for name in one.names if name in other.document.tensors]
    names = chosen(both, patterns)
    missing = len({*one.names, *other.names}) - len(both)
    if not names:
        raise click.UsageError("The two files have no tensor in common.", click.get_current_context())
    plans = {name: one.plan(name, other) for name in names}
    if as_json:
        session.out.write(b"".join(by_tensor(TRANSFER, plans.items(), _NO_CHECKPOINT)))
    else:
        session.out.write_text("\n".join(lines(plans, everything=session.verbose > 0)) + "\n")
    if missing and not patterns:
        from shardscope.engine.model.text import counted

        session.narrate(f"{counted(missing, 'tensor')} in one of the files only, left out")


def lines(plans: "Mapping[str, TransferPlan]", *, everything: bool) -> Iterator[str]:
    """Yield plans as text: one tensor with its segments, or many in a line each with the sum."""
    from shardscope.app.cli.map_text import titled
    from shardscope.engine.model.text import counted

    for name, plan in plans.items():
        found = plan.statistics
        scaled = ", values change" if plan.scaled else ""
        indexed = f", {found.indexed_elements:,} one by one" if found.indexed_elements else ""
        yield (
            f"{titled(name, plan.shape)}: {counted(found.segments, 'segment')}, "
            f"{counted(plan.elements, 'element')} moved{indexed}{scaled}"
        )
        if len(plans) == 1 or everything:
            yield from segment_lines(plan, everything=everything)
    traffic: dict[tuple[int, int], int] = {}
    for plan in plans.values():
        for pair in plan.traffic:
            key = (pair.source_rank, pair.target_rank)
            traffic[key] = traffic.get(key, 0) + pair.elements
    yield ""
    yield from matrix(traffic, everything=everything)
    yield ""
    yield from statistics(list(plans.values()))


def segment_lines(plan: "TransferPlan", *, everything: bool) -> Iterator[str]:
    """Yield the copies of a plan."""
    from shardscope.app.cli.map_text import extents, more, table

    shown = plan.segments if everything else plan.segments[:SEGMENTS]
    rows = [("from", "to", "extents", "source shard", "target shard", "")] if shown else []
    rows += [
        (
            str(one.source_rank),
            str(one.target_rank),
            extents(one.shape),
            f"{one.source.offset:,} + {extents(one.source.strides)}",
            f"{one.target.offset:,} + {extents(one.target.strides)}",
            "" if one.scale == (1, 1) else f"x {one.scale[0]}/{one.scale[1]}",
        )
        for one in shown
    ]
    yield from table(rows, 2, right=(0, 1))
    if len(plan.segments) > len(shown):
        yield more(len(plan.segments) - len(shown), "segment")


def matrix(traffic: Mapping[tuple[int, int], int], *, everything: bool) -> Iterator[str]:
    """Yield who gives how many elements to whom: a matrix where it fits, pairs otherwise."""
    from shardscope.app.cli.map_text import more, table

    sources, targets = (sorted({pair[side] for pair in traffic}) for side in (0, 1))
    if not traffic:
        yield "nothing moves"
        return
    if len(sources) <= RANKS and len(targets) <= RANKS:
        yield "elements from each source rank (rows) to each target rank (columns)"
        rows = [["", *map(str, targets), "sum"]]
        for source in sources:
            given = [traffic.get((source, target), 0) for target in targets]
            rows.append([str(source), *(f"{n:,}" if n else "-" for n in given), f"{sum(given):,}"])
        taken = [sum(traffic.get((source, target), 0) for source in sources) for target in targets]
        rows.append(["sum", *(f"{n:,}" for n in taken), f"{sum(taken):,}"])
        yield from table(rows, 2, right=range(len(rows[0])))
        return
    yield "elements by source and target rank"
    pairs = sorted(traffic.items())
    shown = pairs if everything else pairs[:SEGMENTS]
    yield from table([(str(a), "→", str(b), f"{n:,}") for (a, b), n in shown], 2, right=(0, 2, 3))
    if len(pairs) > len(shown):
        yield more(len(pairs) - len(shown), "pair")


def statistics(plans: "Sequence[TransferPlan]") -> Iterator[str]:
    """Yield what planning looked at."""
    from shardscope.app.cli.map_text import table

    found = [plan.statistics for plan in plans]
    rows = [
        ("source pieces", sum(one.source_pieces for one in found)),
        ("target pieces", sum(one.target_pieces for one in found)),
        ("pairs compared", sum(one.pair_checks for one in found)),
        ("segments before merging", sum(one.segments_before_merge for one in found)),
        ("segments", sum(one.segments for one in found)),
        ("bytes of the plan", sum(one.plan_bytes for one in found)),
    ]
    yield from table([(what, f"{count:,}") for what, count in rows], 0, right=(1,))
