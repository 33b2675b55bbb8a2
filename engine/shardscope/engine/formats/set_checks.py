"""Checks on numbered files and on sets that stand side by side, the same for safetensors and for pickle-backed files."""

from collections.abc import Sequence

from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.weight_sets import Layout
from shardscope.engine.model.text import display_name


def check_group(probe: Probe, layout: Layout) -> bool:
    """Report gaps, mixed totals and odd numbers among numbered files; tell whether none was found."""
    before = len(probe.blockers)
    by_key: dict[str, list[int]] = {}
    for group in layout.groups:
        by_key.setdefault(group.key, []).append(group.total)
        suffix = group.shards[0].entry.name.rpartition(".")[2]
        pattern = f"{group.key}-*-of-{group.total}.{suffix}"
        width = max(shard.width for shard in group.shards)
        odd = [s for s in group.shards if not s.plain or s.width != width or not 1 <= s.number <= s.total]
        for shard in odd[:8]:
            probe.report("layout.shard_number", shard.entry, number=shard.number, total=shard.total)
        missing, shown = group.missing
        in_range = all(1 <= shard.number <= shard.total for shard in group.shards)
        if missing > 0 and in_range and not probe.inventory.root_is_file:
            probe.report(
                "layout.shard_gap",
                pattern,
                missing=missing,
                total=group.total,
                pattern=pattern,
                first=shown[0],
            )
    for key, totals in by_key.items():
        if len(totals) > 1:
            words = ", ".join(f"{total:,}" for total in totals[:8])
            probe.report("layout.totals_mixed", key, pattern=f"{key}-*", totals=words)
    return len(probe.blockers) == before


def report_sets(probe: Probe, folder: bytes, keys: Sequence[str]) -> None:
    """Say that several weight sets stand side by side, where they do."""
    if len(keys) > 1:
        names = ", ".join(keys[:6]) + (f" and {len(keys) - 6:,} more" if len(keys) > 6 else "")
        subject = display_name(folder.decode("utf-8", "surrogateescape")) or "."
        probe.report("layout.weight_sets", subject, count=len(keys), sets=names)
