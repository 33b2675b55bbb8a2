"""Words for what is different between two checkpoints, the same ones in the explorer and on the command line.

Names of a checkpoint are neutralised here, and secrets in them are not shown.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from shardscope.engine.model.difference import (
    By,
    DiffDocument,
    DiffSide,
    ElementPlace,
    Figures,
    FirstDifference,
    Fold,
    Merge,
    Merged,
    TensorDifference,
    TensorFacts,
)
from shardscope.engine.model.modules import folded_name, pattern_of
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.text import display_name
from shardscope.widgets.figures import plural, size

NAME: Final = 300
"""Characters of a name that are shown."""
_BY: Final[dict[By, str]] = {
    "name": "",
    "rules": "by your rules",
    "manifest": "by the manifest of the conversion",
    "ending": "suggested: the same end of the name, the same shape",
    "position": "suggested: the same shape, type and position",
    "adapter": "the module that it changes",
}

_MERGED: Final[dict[Merged, str]] = {
    "merged": "as it should be",
    "lost": "smaller than rounding everywhere",
    "unmerged": "not in B, which is A",
}


def kind(facts: TensorFacts) -> str:
    """Return type and shape: `BF16 [32, 64]`."""
    return f"{display_name(facts.dtype, 24)} {extents(facts.shape)}"


def extents(shape: Sequence[int]) -> str:
    """Return a shape: `[4,096, 1,024]`."""
    return f"[{', '.join(f'{extent:,}' for extent in shape)}]"


def change(item: TensorDifference) -> str:
    """Return type and shape, and what becomes of them where they change."""
    if item.a is None or item.b is None:
        alone = item.a or item.b
        return "" if alone is None else kind(alone)
    if item.by == "adapter":
        return f"{kind(item.a)} for {kind(item.b)}"
    parts = [
        one if one == other else f"{one} → {other}"
        for one, other in (
            (display_name(item.a.dtype, 24), display_name(item.b.dtype, 24)),
            (extents(item.a.shape), extents(item.b.shape)),
        )
    ]
    return " ".join(parts)


def other_name(items: Sequence[TensorDifference]) -> str:
    """Return what tensors that differ alike are called in B, and how that is known; nothing where they have one name."""
    found = other_names(items)
    return f"{found} ({by(items[0])})" if found else ""


def other_names(items: Sequence[TensorDifference]) -> str:
    """Return what tensors that differ alike are called in B; nothing where they have one name."""
    patterns = [pattern_of(item.name_b) for item in items if item.name_b is not None]
    if not patterns:
        return ""
    return shown(folded_name(patterns[0].parts, [pattern.numbers for pattern in patterns]), NAME)


def by(item: TensorDifference) -> str:
    """Return by what two tensors of two names were put side by side."""
    return _BY[item.by]


def name(text: str) -> str:
    """Return a name as it may be shown."""
    return shown(text, NAME)


def figures(found: Iterable[Figures]) -> str:
    """Return the values of one tensor, or of several that differ alike: sums and the worst of each."""
    several = list(found)
    differing = sum(each.differing for each in several)
    elements = sum(each.elements for each in several)
    if all(each.verdict == "bits" for each in several):
        return "every bit the same"
    if all(each.verdict != "differs" for each in several):
        bits = sum(each.bits_only for each in several)
        other = f", {plural(bits, 'element')} in other bits" if bits else ""
        return f"every number the same{other}"
    parts = [f"{differing:,} of {plural(elements, 'element')} {'differs' if differing == 1 else 'differ'}"]
    not_finite = sum(each.not_finite for each in several)
    if not_finite:
        parts.append(f"{not_finite:,} NaN or infinite on one side")
    worst = [
        ("max abs", most(each.max_abs for each in several)),
        ("max rel", most(each.max_rel for each in several)),
        ("cosine", _least(each.cosine for each in several)),
    ]
    parts += [f"{label} {decimal(value)}" for label, value in worst if value is not None]
    return ", ".join(parts)


def merged(items: Sequence[TensorDifference]) -> str:
    """Return what became of the update of one tensor, or of several that differ alike; nothing where there is none."""
    found = [item.merge for item in items if item.merge is not None]
    if not found:
        return ""
    first = found[0]
    ranks = " and ".join(f"{rank:,}" for rank in first.ranks)
    scales = " and ".join(f"{scale:g}" for scale in first.scales)
    update = f"update of rank {ranks}, scale {scales}" if first.ranks else _without(first)
    if first.verdict is None:
        return update
    if first.verdict != "differs":
        return f"{update}: {_MERGED[first.verdict]}"
    beyond, elements = (
        sum(each or 0 for each in every)
        for every in (
            [each.beyond for each in found],
            [item.values.elements if item.values is not None else 0 for item in items],
        )
    )
    parts = [f"{update}: {beyond:,} of {plural(elements, 'element')} further off than rounding"]
    shares = [each.share for each in found if each.share is not None]
    if shares:
        low, high = decimal(min(shares)), decimal(max(shares))
        parts.append(f"the change is {low if low == high else f'{low} to {high}'} times the update")
    return ", ".join(parts)


def _without(merge: Merge) -> str:
    return "taken from the adapter whole" if merge.whole else "A in another type"


def room(item: TensorDifference) -> str | None:
    """Return how large an update is, and how near to it B is; null where that is not known."""
    merge, values = item.merge, item.values
    if merge is None or values is None or merge.strain is None or not merge.ranks:
        return None
    seen = (
        f", larger than rounding in {merge.visible:,} of {values.elements:,}"
        if merge.visible is not None
        else ""
    )
    size_ = f"up to {decimal(merge.update)}" if merge.update is not None else "not finite"
    return f"{size_}{seen}; largest error {decimal(merge.strain)} of what rounding may do"


def most(values: Iterable[float | None]) -> float | None:
    """Return the largest of figures, of those that are known."""
    return max((value for value in values if value is not None), default=None)


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def decimal(value: float) -> str:
    """Return a figure with four digits, and more where it is almost 1."""
    return f"{value:.4g}" if not 0.999 < abs(value) < 1 else f"{value:.7f}"


def first_words(first: FirstDifference, merge: Merge | None = None) -> str:
    """Return the first element that is not the same: `first at [3, 17]: 0.5 in A, 0.75 in B`; with a `merge`, as it should be in B."""
    a = (
        "A"
        if merge is None
        else "A with the update"
        if merge.ranks
        else "the adapter"
        if merge.whole
        else "A"
    )
    return f"first at {extents(first.index)}: {first.a} in {a}, {first.b} in B"


def place_words(place: ElementPlace | None) -> str:
    """Return where an element is stored."""
    if place is None:
        return "no fragment holds it"
    rank = "" if place.rank is None else f"{place.rank}, "
    at = "" if place.offset is None else f", byte {place.offset:,}"
    return f"{rank}{shown(place.file, NAME)}{at}"


def side_words(side: DiffSide) -> str:
    """Return one side: its family, its tensors, and what may be missing from them."""
    parts = [side.title, plural(side.tensors, "tensor"), size(side.bytes)]
    if side.opaque_files:
        parts.append(f"{plural(side.opaque_files, 'opaque file')} not looked into")
    if side.blockers:
        parts.append(f"{plural(side.blockers, 'error')} found by inspection")
    return ", ".join(parts)


def totals(document: DiffDocument) -> str:
    """Return how many tensors are in each state; states without one are left out."""
    counts, adapter, merge = document.counts, document.kind == "adapter", document.kind == "merge"
    rows = (
        (counts.changed, "do not fit" if adapter else "not as they should be" if merge else "changed"),
        (counts.missing, "missing"),
        (counts.extra, "extra"),
        (counts.renamed, "renamed, as it seems"),
        (counts.same, "fit" if adapter else "as they should be" if merge else "the same"),
        (counts.targets, "for the adapter to change") if merge else (counts.untouched, "left alone"),
    )
    return ", ".join(f"{count:,} {word}" for count, word in rows if count) or "nothing to compare"


def unlisted(document: DiffDocument) -> str | None:
    """Return where tensors that a side seems to lack may be after all: in what was not read of it. Null where there is no doubt."""
    counts = document.counts
    doubtful = [
        letter
        for letter, lacking, side in (("A", counts.extra, document.a), ("B", counts.missing, document.b))
        if lacking and (side.blockers or side.opaque_files)
    ]
    if not doubtful:
        return None
    says = " and ".join(doubtful)
    return f"What {says} {'lacks' if len(doubtful) == 1 else 'lack'} may be in what was not read there: `shardscope inspect` says why."


def answer(document: DiffDocument) -> str:
    """Return the answer with its numbers, in a line."""
    return f"{verdict(document)}: {sums(document)}"


def sums(document: DiffDocument) -> str:
    """Return the totals, and how much was read for them."""
    said = totals(document)
    return f"{said}; {size(document.compared_bytes)} of values compared" if document.values else said


def verdict(document: DiffDocument) -> str:
    """Return the answer in one clause."""
    if document.kind == "adapter":
        return "The adapter fits its base" if document.same else "The adapter does not fit its base"
    if document.kind == "merge" and (not document.same or (document.values and not document.uncompared)):
        adapter = "the adapter" if len(document.adapters) == 1 else "the adapters"
        if document.same or not _is_cast(document):
            return f"B is {'' if document.same else 'not '}A with {adapter} merged"
        return f"B is A with {adapter} merged, in other types"
    if not document.same:
        return "Different"
    left = document.uncompared
    if not document.values or left == len(document.tensors):
        return "The same in structure; values were not compared"
    if left:
        return f"The same, but for the values of {plural(left, 'tensor')} that were not compared"
    return "The same, every bit"


def _is_cast(document: DiffDocument) -> bool:
    """Tell whether all that is different is the type of tensors that are as they should be otherwise."""
    different = [item for item in document.tensors if item.state != "same"]
    return all(item.merge is not None and item.merge.verdict in ("merged", "lost") for item in different)


def fold_words(fold: Fold, tensors: Sequence[TensorDifference]) -> str:
    """Return what a row of differences says beside its name."""
    first = tensors[fold.members[0]]
    count = "" if len(fold.members) == 1 else f"{len(fold.members):,} tensors"
    if fold.module:
        total = sum((facts.bytes or 0) for number in fold.members if (facts := _alone(tensors[number])))
        return f"{count or '1 tensor'}, {size(total)}"
    return "  ".join(part for part in (count and f"x{len(fold.members):,}", change(first)) if part)


def _alone(item: TensorDifference) -> TensorFacts | None:
    return item.a or item.b
