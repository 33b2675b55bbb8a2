"""DeepSpeed's categories of parameters, translated to geometry; its affine maps preferred where there are any.

| category | map |
|---|---|
| replicated | `Replicate` |
| row | `Contiguous` on dimension 1, with the widths of the shards |
| sub_params | `SubParamConcat` of `Contiguous`, with the recorded widths; even ones before version 0.4 |
| two_sub_params | the same, two halves on dimension 0 |
| vocabulary | `Contiguous` on dimension 0 of the padded height, with `Trim` for what is padding |
| average | none: it cannot be undone |
| unsupported, experts, unmatched | none, unless a map is given or the shapes leave one way only |

DeepSpeed's converter (`deepspeed/checkpoint/ds_to_universal.py`) joins what matches nothing along dimension 0. Here that is
said by a person (`unmatched_dim`), or it is not done.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from shardscope.engine.geometry.checking.check import check, check_shards
from shardscope.engine.geometry.checking.compare import first_difference
from shardscope.engine.geometry.interchange.categories import (
    AXIS,
    Case,
    Cut,
    Refused,
    Shape,
    halves,
    joined,
    sub_params,
)
from shardscope.engine.geometry.interchange.universal_info import LISTS, STRICT, UniversalInfo
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.pieces.budget import Budget, Budgets
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import (
    DeviceMesh,
    MeshAxis,
    Replicate,
    TensorMap,
    Trim,
)
from shardscope.engine.model.translation import Translation, Translations

_CUTS: Final = ("replicated", "average", "two_sub_params", "sub_params", "row")
"""Categories that say how a parameter is cut, in the order in which the producer's converter asks them."""


def translate(
    info: UniversalInfo,
    name: str,
    shards: Sequence[Shape],
    *,
    given: TensorMap | Lowered | None = None,
    unmatched_dim: int | None = None,
    budgets: Budgets | None = None,
) -> Translation:
    """Return the map of one parameter whose shards have these shapes, by tensor-parallel rank.

    `given` is a map for a parameter that the metadata leaves open (`constructors.attention.from_heads` makes one of head
    counts, `expert_layers` one of a placement), `unmatched_dim` the dimension along which a person says that unmatched parameters are cut. Refusals are in the
    result. Raises `Fault` `universal.pattern` and `map.budget`.
    """
    case = Case(info, name, tuple(shards), budgets or Budgets())
    try:
        found = _translated(case, given, unmatched_dim)
    except Refused as refused:
        found = Translation(name, refused.category, refusal=refused.finding)
    tied = bool(info.matching("pipeline_replicated", name))
    return replace(found, pipeline_replicated=tied)


def translate_all(
    info: UniversalInfo,
    shards: Mapping[str, Sequence[Shape]],
    *,
    strict: bool = True,
    given: Mapping[str, TensorMap | Lowered] | None = None,
    unmatched_dim: int | None = None,
    budgets: Budgets | None = None,
) -> Translations:
    """Return the maps of all parameters; where `strict`, a pattern that matches none of them is a finding.

    Raises `Fault` `universal.pattern` and `map.budget`.
    """
    parameters = {
        name: translate(
            info,
            name,
            shapes,
            given=(given or {}).get(name),
            unmatched_dim=unmatched_dim,
            budgets=budgets,
        )
        for name, shapes in shards.items()
    }
    return Translations(parameters, unused(info, shards) if strict else ())


def unused(info: UniversalInfo, names: Iterable[str]) -> tuple[Finding, ...]:
    """Return the patterns of categories that match none of the names. Raises `Fault` `universal.pattern`."""
    open_ = {(category, text) for category in STRICT for text in info.patterns[category].texts}
    for name in names:
        for category in STRICT:
            open_.difference_update((category, text) for text in info.matching(category, name))
    return tuple(
        Finding(
            "universal.pattern_unused",
            {"pattern": text, "category": LISTS.get(category, "parameter_with_sub_params")},
        )
        for category, text in sorted(open_)
    )


def _translated(case: Case, given: TensorMap | Lowered | None, unmatched_dim: int | None) -> Translation:
    listed = case.info.matching("unsupported", case.name)
    affine = case.info.affine.get(case.name)
    if affine is not None:
        return _by_map(case, affine, listed)
    if not case.shards:
        raise case.misfit("unmatched", "there are no shards")
    if listed or case.one("experts"):
        category = "unsupported" if listed else "experts"
        if given is not None:
            return _given(case, category, given)
        if not listed:
            raise case.refuse("experts", "universal.experts")
        raise case.refuse("unsupported", "universal.unsupported", reason=case.info.unsupported[listed[0]])
    found = _by_category(case)
    if found is not None:
        return found
    if given is not None:
        return _given(case, "unmatched", given)
    return _unmatched(case, unmatched_dim)


def _by_map(case: Case, affine: Lowered, listed: Sequence[str]) -> Translation:
    if listed:
        reason = case.info.unsupported[listed[0]]
        raise case.refuse("affine_map", "universal.contradiction", reason=reason)
    _prove(case, "affine_map", affine)
    warnings: tuple[Finding, ...] = ()
    try:
        other = _by_category(case)
    except Refused as refused:
        if refused.finding.code == "universal.ambiguous":
            raise
        other = None  # what the categories cannot express is why there are maps
    if other is not None and other.lowered is not None:
        apart = _apart(affine, other.lowered, Budget(case.budgets))
        if apart:
            params = {"tensor": case.name, "reason": apart}
            warnings = (Finding("universal.categories_differ", {**params}),)
    return Translation(case.name, "affine_map", affine, warnings=warnings)


def _apart(affine: Lowered, other: Lowered, budget: Budget) -> str:
    try:
        found = first_difference(affine, other, budget)
    except Fault as fault:
        if fault.finding.code != "map.unproven":
            raise
        return "the two cannot be compared"
    if found is None:
        return ""
    where = "" if found.rank is None else f" on rank {found.rank}"
    return f"the map says {found.one}{where}, the categories say {found.other}"


def _given(case: Case, category: str, given: TensorMap | Lowered) -> Translation:
    decided = "a map was given for it"
    if isinstance(given, TensorMap):
        return _mapped(case, category, given, decided=decided)
    _prove(case, category, given)
    return Translation(case.name, category, given, decided=decided)


def _by_category(case: Case) -> Translation | None:
    """Return what the categories say, null where they say nothing."""
    matched = {category: text for category in _CUTS if (text := case.one(category)) is not None}
    vocabulary = case.one("vocabulary") is not None
    if "sub_params" in matched and case.info.sub_params[matched["sub_params"]].dim == 1:
        matched.pop("row", None)  # the same cut, said once more
    if len(matched) > 1:
        raise case.ambiguous(tuple(matched.values()))
    category = next(iter(matched), "vocabulary" if vocabulary else "")
    match category:
        case "":
            return None
        case "average":
            raise case.refuse("average", "universal.average")
        case "replicated":
            if len(set(case.shards)) > 1:
                raise case.misfit(category, "the copies have different shapes")
            shape, node = case.shards[0], Cut()
        case "row":
            shape, node = joined(case, category, 1)
        case "vocabulary":
            shape, node = joined(case, category, 0)
        case "two_sub_params":
            shape, node = halves(case)
        case _:
            shape, node = sub_params(case, case.info.sub_params[matched[category]])
    return _trimmed(case, category, shape, node, vocabulary=vocabulary)


def _trimmed(case: Case, category: str, padded: Shape, cut: Cut, *, vocabulary: bool) -> Translation:
    """Return the map of a cut of the padded tensor, without the padding of a vocabulary."""
    if not vocabulary:
        return _mapped(case, category, TensorMap(padded, cut.after(None)))
    rows = case.info.vocabulary
    if rows is None or not padded:
        found = "unknown" if rows is None else str(rows)
        raise case.refuse(category, "universal.vocabulary_size", found=found, rows=padded[0] if padded else 0)
    if rows >= padded[0]:  # nothing to cut off, as the producer's own slicing has it
        return _mapped(case, category, TensorMap(padded, cut.after(None)))
    of = Trim(0, rows, padded[0])
    made = _mapped(case, category, TensorMap((rows, *padded[1:]), cut.after(of)))
    return replace(made, padded_rows=padded[0])


def _unmatched(case: Case, dim: int | None) -> Translation:
    if dim is not None:
        shape, cut = joined(case, "unmatched", dim)
        said = f"a person said that it is cut along dimension {dim}"
        return _mapped(case, "unmatched", TensorMap(shape, cut.after(None)), decided=said)
    filled = [shard for shard in case.shards if math.prod(shard)]
    if len(case.shards) == 1:
        why = "there is one rank only"
    elif len(filled) == 1:
        why = "one rank only holds anything"
    elif all(shard == () for shard in case.shards):
        why = "single elements can only be copies"
    else:
        shown = ", ".join("x".join(map(str, shard)) or "()" for shard in case.shards[:4])
        shown += ", ..." if len(case.shards) > 4 else ""
        raise case.refuse("unmatched", "universal.unmatched", shapes=shown)
    if len(filled) != 1 or len(case.shards) == 1:
        return _mapped(case, "unmatched", TensorMap(case.shards[0], Replicate()), decided=why)
    dims = [k for k in range(len(filled[0])) if all(len(s) == len(filled[0]) for s in case.shards)]
    for k in dims:
        try:
            shape, cut = joined(case, "unmatched", k)
        except Refused:
            continue
        return _mapped(case, "unmatched", TensorMap(shape, cut.after(None)), decided=why)
    raise case.misfit("unmatched", "the empty shards have other dimensions than the one that is not")


def _mapped(case: Case, category: str, tree: TensorMap, *, decided: str = "") -> Translation:
    mesh = DeviceMesh((MeshAxis(AXIS, len(case.shards)),))
    try:
        lowered = lower(tree, mesh, Budget(case.budgets))
    except Fault as fault:
        if fault.finding.code == "map.budget":
            raise
        raise Refused(category, fault.finding) from fault
    _prove(case, category, lowered)
    return Translation(case.name, category, lowered, tree, decided=decided)


def _prove(case: Case, category: str, lowered: Lowered) -> None:
    """Refuse a map that is wrong in itself, or whose shards are not the ones that are there."""
    found = check(lowered, Budget(case.budgets)).findings
    if found:
        raise Refused(category, found[0])
    apart = check_shards(lowered, dict(enumerate(case.shards)))
    if apart:
        raise Refused(category, apart[0])
