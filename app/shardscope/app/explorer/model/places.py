"""Which tensors a line about a model is about, in the words of the search of the Tensors panel. Pure."""

import re
from typing import Final

from shardscope.app.explorer.checkpoint.tensors_at import Place, glob
from shardscope.engine.model.anatomy import Family, ModelDocument
from shardscope.engine.model.blocker import Blocker
from shardscope.widgets.model_answer import TYPES

_NUMBERS: Final = re.compile(r"\{[^{}]*\}|\*")
"""What stands for the numbers of layers or experts in a name."""

LACKING: Final = frozenset({"model.layer_lacks"})
"""Findings whose tensor is one that is not there: all others of the layer are shown."""


def place_of(document: ModelDocument, key: str) -> Place | None:
    """Return the tensors of a line, by the key that it has on the page; None where it is about none."""
    kind, *rest = key.split(":")
    at = [int(each) for each in rest]
    match kind:
        case "finding":
            return _of_finding(document.findings[at[0]])
        case "type" if at[0] < TYPES:
            return Place(query=f"dtype:{glob(document.dtypes[at[0]].dtype)}")
        case "family":
            return Place(query=_of_family(document.families[at[0]]))
        case "kind":
            family = document.families[at[0]]
            return Place(query=f"layer:{family.kinds[at[1]].layers} {_of_family(family)}")
        case "fact":
            by = document.facts[at[0]].by
            return Place(query=_below(by)) if _NUMBERS.search(by) else Place(by, glob(by))
        case "packed":
            first = document.packed[at[0]].first
            return Place(first, f"{glob(first)}*")
        case "target":
            return (
                Place(query=f"*{glob(document.adapter.targets[at[0]].target)}.lora_*")
                if document.adapter
                else None
            )
        case "saved" if document.adapter is not None:
            return Place(query=f"*{glob(document.adapter.saved_whole[0])}")
        case "tied":
            name = document.parameters.tied[0]
            return Place(name, glob(name))
    return None


def _of_family(family: Family) -> str:
    """Return all tensors of a family: of experts those below their numbers."""
    return _below(family.name)


def _below(name: str) -> str:
    """Return what a name with its numbers in braces stands for: `model.layers.{0-31}` is `model.layers.*.*`."""
    return f"{_wild(name)}.*"


def _of_finding(item: Blocker) -> Place | None:
    """Return what a finding is about, whatever its code: a layer of a family, or a tensor."""
    family, layer, tensor = (item.params.get(each) for each in ("family", "layer", "tensor"))
    if family is not None:
        absent = tensor is None or layer is None or item.code in LACKING
        below = "*" if absent else _wild(str(tensor))
        prefix = _wild(str(family))
        where = f"{prefix}.{below}" if prefix else below
        return Place(query=where if layer is None else f"layer:{layer} {where}")
    return None if tensor is None else Place(str(tensor), f"*{glob(str(tensor))}*")


def _wild(name: str) -> str:
    """Return a name with an asterisk for each number that is taken out of it."""
    return "*".join(glob(part) for part in _NUMBERS.split(name))
