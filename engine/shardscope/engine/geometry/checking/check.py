"""Whether a map holds together: every element somewhere, no address of a shard twice, holders that agree. In O(pieces).

The first pass looks at each piece alone (`wellformed`); what passes is a box in digits, and boxes are counted, never their
elements. Only where boxes overlap are they cut into cells. An indexed piece is walked, within its own budget.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from shardscope.engine.geometry.pieces import wellformed
from shardscope.engine.geometry.pieces.blocks import Block
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.cells import cells, first_gap
from shardscope.engine.geometry.pieces.digits import DigitBox, address_of, digit_ranges
from shardscope.engine.geometry.pieces.explicit import boxed, runs_of
from shardscope.engine.geometry.pieces.sweep import sharing
from shardscope.engine.geometry.pieces.wellformed import named
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.mapcheck import Checked, Padding, ReplicaSet
from shardscope.engine.model.piece import IndexedPiece, Lowered, Piece, RankShard


def check(lowered: Lowered, budget: Budget | None = None) -> Checked:
    """Return everything that is wrong with a map, and who holds what.

    The map may come from anywhere: nothing about its numbers is taken for granted. Raises `Fault` `map.budget` where the
    work is more than what may be spent; nothing is said of the map then.
    """
    budget = budget or Budget()
    budget.bound("ranks", len(lowered.ranks))
    budget.bound("pieces", lowered.pieces)
    budget.bound("axes", len(lowered.shape))
    findings = wellformed.labels(lowered)
    sizes = [wellformed.size(lowered.shape, "full tensor")]
    sizes += [wellformed.size(shard.shape, f"shard of rank {shard.rank}") for shard in lowered.ranks]
    findings += [finding for finding in sizes if finding is not None]
    facts = _Facts()
    if not findings:
        groups, findings = _sound(lowered, budget)
        whole = not findings
        findings += _shards(groups, budget, walk=lowered.explicit)
        facts = _logical(lowered, groups, budget, whole=whole)
    return Checked(
        findings=(*findings, *facts.findings),
        elements=0 if findings and any(sizes) else lowered.elements,
        pieces=lowered.pieces,
        padding=tuple(Padding(shard.rank, shard.padding) for shard in lowered.ranks if shard.padding),
        uncovered=facts.uncovered,
        replicas=facts.replicas,
        scaled=any(shard.scaled for shard in lowered.ranks),
        indexed_elements=lowered.indexed_elements,
    )


def check_shards(lowered: Lowered, shapes: Mapping[int, tuple[int, ...]]) -> list[Finding]:
    """Return how shards that are really there, by rank, differ from what a map says: missing, unknown, of another size."""
    expected = {shard.rank: shard.elements for shard in lowered.ranks}
    found = [Finding("map.shard_unknown", {"rank": rank}) for rank in sorted(expected.keys() ^ shapes.keys())]
    for rank in sorted(expected.keys() & shapes.keys()):
        elements = 1
        for extent in shapes[rank]:
            elements *= extent
        if elements != expected[rank]:
            params = {"rank": rank, "found": elements, "expected": expected[rank]}
            found.append(Finding("map.shard_size", {**params}))
    return found


class _Group(Struct, frozen=True):
    """Ranks with equal shards, sorted."""

    ranks: tuple[int, ...]
    shard: RankShard
    blocks: tuple[Block, ...]
    """From logical (a) to shard (b) addresses; the tag is the position in `holders`."""
    holders: tuple[tuple[int, ...], ...]
    """As each piece names them."""


class _Facts(Struct, frozen=True):
    findings: tuple[Finding, ...] = ()
    uncovered: int | None = None
    replicas: tuple[ReplicaSet, ...] | None = None


def _sound(lowered: Lowered, budget: Budget) -> tuple[list[_Group], list[Finding]]:
    """Return the shards with the pieces that are sound in themselves, equal ones together, and what was wrong."""
    ranks = frozenset(shard.rank for shard in lowered.ranks)
    alike: dict[object, list[RankShard]] = {}
    for shard in lowered.ranks:
        key = (shard.shape, shard.padding, shard.pieces, shard.indexed)
        alike.setdefault(key, []).append(shard)
    groups: list[_Group] = []
    findings: list[Finding] = []
    for shards in alike.values():
        first = shards[0]
        held: list[tuple[tuple[int, ...], list[Block]]] = []
        for number, piece in enumerate(first.pieces):
            wrong = wellformed.piece(number, piece, first, lowered.elements, ranks)
            if wrong is not None:
                findings.append(wrong)
            elif 0 not in piece.shape:
                held.append((piece.holders, [Block(piece.shape, piece.source, piece.dest, len(held))]))
        for number, index in enumerate(first.indexed, len(first.pieces)):
            budget.walk(index.elements)
            wrong = wellformed.indexed(number, index, first, lowered.elements, ranks)
            if wrong is not None:
                findings.append(wrong)
            else:
                held.append((index.holders, runs_of(index, len(held))))
        for shard in shards[1:]:
            findings += _unnamed(shard)
        groups.append(
            _Group(
                tuple(sorted(shard.rank for shard in shards)),
                first,
                tuple(block for _, blocks in held for block in blocks),
                tuple(holders for holders, _ in held),
            )
        )
    return groups, findings


def _unnamed(shard: RankShard) -> list[Finding]:
    """Return the pieces that do not name their own rank."""
    pieces: tuple[Piece | IndexedPiece, ...] = (*shard.pieces, *shard.indexed)
    return [
        Finding("map.holders_self", {"piece": number, "rank": shard.rank, "holders": named(piece.holders)})
        for number, piece in enumerate(pieces)
        if shard.rank not in piece.holders
    ]


def _shards(groups: Sequence[_Group], budget: Budget, *, walk: bool) -> list[Finding]:
    """Return where pieces collide in a shard, and where they leave it open."""
    known: dict[object, list[Finding]] = {}
    findings = []
    for group in groups:
        shard = group.shard
        key = (shard.elements, shard.padding, tuple([(block.shape, block.b) for block in group.blocks]))
        if key not in known:
            try:
                known[key] = _tiling(group, budget, walk=walk)
            except Fault as fault:
                if fault.finding.code != "map.unproven":
                    raise
                known[key] = [fault.finding]
        for found in known[key]:
            findings += [Finding(found.code, {**found.params, "rank": rank}) for rank in group.ranks]
    return findings


def _tiling(group: _Group, budget: Budget, *, walk: bool) -> list[Finding]:
    elements, padding = group.shard.elements, group.shard.padding
    places, found = boxed(group.blocks, elements, budget, side="b", walk=walk)
    alone, together = _apart(found, budget)
    covered = sum(box.volume for box in alone)
    twice, first = 0, 0
    for low, high, active in cells(together, budget):
        volume = _volume(low, high)
        covered += volume
        if len(active) > 1:
            first = first if twice else address_of(low, places)
            twice += volume
    findings = []
    if twice:
        findings.append(Finding("map.destination_collision", {"found": twice, "address": first}))
    if elements - covered != padding:
        gap = first_gap(found, digit_ranges(places, elements), budget) if covered < elements else None
        address = None if gap is None else address_of(gap, places)
        params = {"found": elements - covered, "declared": padding, "address": address}
        findings.append(Finding("map.shard_hole", {**params}))
    return findings


def _apart(found: Sequence[DigitBox], budget: Budget) -> tuple[list[DigitBox], list[DigitBox]]:
    """Return the boxes that share addresses with no other, and those that do."""
    shared = {id(box) for pair in sharing(found, budget) for box in pair}
    if not shared:
        return list(found), []
    return [box for box in found if id(box) not in shared], [box for box in found if id(box) in shared]


def _volume(low: Sequence[int], high: Sequence[int]) -> int:
    count = 1
    for begin, end in zip(low, high, strict=True):
        count *= end - begin
    return count


def _logical(lowered: Lowered, groups: Sequence[_Group], budget: Budget, *, whole: bool) -> _Facts:
    """Return who holds what of the full tensor, what nobody holds, and where the stated holders are wrong.

    `whole` says that no piece had to be left out, so that a gap is one.
    """
    tags: list[tuple[_Group, tuple[int, ...]]] = []
    blocks: list[Block] = []
    for group in groups:
        blocks += [Block(one.shape, one.a, one.b, len(tags) + one.tag) for one in group.blocks]
        tags += [(group, holders) for holders in group.holders]
    try:
        places, found = boxed(blocks, lowered.elements, budget, side="a", walk=lowered.explicit)
    except Fault as fault:
        if fault.finding.code != "map.unproven":
            raise
        return _Facts((fault.finding,))
    claims = _Claims(places)
    alone, together = _apart(found, budget)
    for box in alone:
        group, holders = tags[box.tag]
        claims.add(box.low, box.volume, {holders}, group.ranks)
    for low, high, active in cells(together, budget):
        owners = [tags[together[n].tag] for n in active]
        actual = owners[0][0].ranks
        if any(group.ranks is not actual for group, _ in owners):
            actual = tuple(sorted({rank for group, _ in owners for rank in group.ranks}))
        claims.add(low, _volume(low, high), {holders for _, holders in owners}, actual)
    uncovered = lowered.elements - sum(claims.held.values())
    if not whole:
        return _Facts(claims.findings(whole=False))
    findings = claims.findings(whole=True)
    if uncovered:
        gap = first_gap(found, digit_ranges(places, lowered.elements), budget)
        first = 0 if gap is None else address_of(gap, places)
        params = {"found": uncovered, "total": lowered.elements, "address": first}
        findings = (Finding("map.uncovered", {**params}), *findings)
    return _Facts(findings, uncovered, claims.replicas())


class _Claims:
    """What pieces say of the holders of elements, beside whose shards really have them."""

    def __init__(self, places: Sequence[int]) -> None:
        self.places = places
        self.held: dict[tuple[int, ...], int] = {}
        self.differ: list[tuple[int, int, tuple[int, ...], tuple[int, ...]]] = []
        self.wrong: list[tuple[int, int, tuple[int, ...], tuple[int, ...]]] = []

    def add(
        self, low: Sequence[int], volume: int, stated: set[tuple[int, ...]], actual: tuple[int, ...]
    ) -> None:
        """Count a region with one set of real holders and the sets that pieces state."""
        self.held[actual] = self.held.get(actual, 0) + volume
        if len(stated) > 1:
            one, other = sorted(stated)[:2]
            self.differ.append((address_of(low, self.places), volume, one, other))
        elif actual not in stated:
            self.wrong.append((address_of(low, self.places), volume, next(iter(stated)), actual))

    def findings(self, *, whole: bool) -> tuple[Finding, ...]:
        """Return what was found, the lowest address of each. Without the whole map, only contradictions between pieces."""
        kinds = [("map.holders_differ", self.differ)]
        if whole:
            kinds.append(("map.holders_wrong", self.wrong))
        return tuple(
            Finding(
                code,
                {
                    "found": sum(row[1] for row in rows),
                    "address": at,
                    "one": named(one),
                    "other": named(other),
                },
            )
            for code, rows in kinds
            if rows
            for at, _, one, other in [min(rows)]
        )

    def replicas(self) -> tuple[ReplicaSet, ...]:
        """Return the sets of holders, the one with most elements first."""
        found = [ReplicaSet(holders, elements) for holders, elements in self.held.items()]
        return tuple(sorted(found, key=lambda one: (-one.elements, one.holders)))
