"""Layers of experts as DeepSpeed's AutoEP records them (`ds_autoep_layers`): a placement, and affine maps that have to agree.

Keys: `deepspeed/checkpoint/autoep_affine.py` and `runtime/engine.py` of 0.19.8. A layer without a placement is one of older
writers, who place experts evenly. Ranks are those of expert parallelism; how its shards are cut further among data-parallel
ranks is not said here.
"""

from collections.abc import Mapping
from typing import NoReturn

from msgspec import Struct

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.checking.compare import first_difference
from shardscope.engine.geometry.constructors.experts import Placement, placed, read_layer
from shardscope.engine.geometry.interchange.deepspeed import read_affine_map
from shardscope.engine.geometry.pieces.budget import DEFAULT, Budget, Budgets
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered


class ExpertLayer(Struct, frozen=True):
    """The experts of one layer."""

    placement: Placement
    maps: dict[str, Lowered]
    """Of packed tensors [expert, ...], by parameter name; empty where only the placement is recorded."""


def read_expert_layers(value: object, budgets: Budgets = DEFAULT) -> dict[str, ExpertLayer]:
    """Return the layers of experts by the prefix of their parameters.

    Raises `Fault`: `experts.malformed` (also where a map puts other experts on a rank than the placement does),
    `experts.version`, those of `read_affine_map`, what `check` finds wrong with a map, `map.budget`.
    """
    if not isinstance(value, list | tuple):
        _malformed("ds_autoep_layers", "it is no list")
    layers: dict[str, ExpertLayer] = {}
    for number, entry in enumerate(value):
        place = f"ds_autoep_layers[{number}]"
        placement = read_layer(entry)
        prefix = entry.get("expert_key_prefix")
        if not isinstance(prefix, str) or not prefix or prefix in layers:
            _malformed(place, "its prefix is missing, no text or there twice")
        layers[prefix] = ExpertLayer(placement, _maps(entry, placement, place, budgets))
    return layers


def _maps(
    entry: Mapping[str, object], placement: Placement, place: str, budgets: Budgets
) -> dict[str, Lowered]:
    container = entry.get("affine_maps")
    if not container:
        return {}
    maps = read_affine_map(container, budgets, keys_are_names=True)
    for name, lowered in maps.items():
        wrong = check(lowered, Budget(budgets)).findings
        if wrong:
            raise Fault(wrong[0].code, **wrong[0].params)
        if not lowered.shape or lowered.shape[0] != placement.experts:
            _malformed(place, f"a map of a tensor that does not begin with {placement.experts:,} experts")
        expected = placed(placement, lowered.shape, Budget(budgets))
        if first_difference(lowered, expected, Budget(budgets)) is not None:
            _malformed(f"{place}: {name}", "its map and the placement put experts on different ranks")
    return maps


def _malformed(place: str, reason: str) -> NoReturn:
    raise Fault("experts.malformed", place=place, reason=reason)
