"""A LoRA adapter beside its base model: which module each pair of factors is for, and whether it fits there.

Names are those of peft: `base_model.model.MODULE.lora_A.weight` changes `MODULE.weight` of the base. `lora_A` has a column for each
input of the module, `lora_B` a row for each output; embeddings have them the other way round. Modules that peft saves whole stand under their own name.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.difference import State
from shardscope.engine.model.modules import SEPARATOR

FORMAT: Final = "peft_adapter"
_PREFIX: Final = "base_model.model."
_FACTOR: Final = re.compile(
    r"(?P<module>.+)\.lora_(?P<of>embedding_)?(?P<factor>[AB])(\.[^.]+)?(\.weight)?\Z", re.DOTALL
)
_WHOLE: Final = re.compile(r"\.(?:modules_to_save|original_module)(?:\.default)?(?=\.)")


class Fit(Struct, frozen=True):
    """A tensor of an adapter, and the tensor of the base that it is for."""

    tensor: int
    base: int | None
    state: State
    """`same` where it fits, `changed` where it does not, `missing` where the base has no such module."""
    note: str | None
    whole: bool = False
    """It takes the place of the base's tensor, so that values can be compared."""


def fits(adapter: Sequence[LogicalTensor], base: Sequence[LogicalTensor]) -> Iterator[Fit]:
    """Yield every tensor of an adapter, in order, with what it is for."""
    places = _Places(base)
    for number, tensor in enumerate(adapter):
        name = tensor.name.removeprefix(_PREFIX)
        factor = _FACTOR.match(name)
        if factor is None:
            found = places.of(_WHOLE.sub("", name))
            yield _whole(number, tensor, found, base)
            continue
        found = places.of(f"{factor['module']}.weight")
        if found is None:
            yield Fit(number, None, "missing", "the base has no such module")
        else:
            yield _factor(number, tensor, found, base, factor)


def _whole(number: int, tensor: LogicalTensor, found: int | None, base: Sequence[LogicalTensor]) -> Fit:
    if found is None:
        return Fit(number, None, "missing", "the base has no such tensor", whole=True)
    if tensor.shape != base[found].shape:
        return Fit(
            number, found, "changed", "it is saved whole, in another shape than the base's", whole=True
        )
    return Fit(number, found, "same", "saved whole, in place of the base's", whole=True)


def _factor(
    number: int, tensor: LogicalTensor, found: int, base: Sequence[LogicalTensor], factor: "re.Match[str]"
) -> Fit:
    shape = base[found].shape
    inner = factor["factor"] == "A"
    if len(tensor.shape) < 2 or len(shape) < 2:
        return Fit(number, found, "changed", "a factor and its module have two dimensions at least")
    rank, width = (tensor.shape[0], tensor.shape[1]) if inner else (tensor.shape[1], tensor.shape[0])
    side = 1 if inner == (factor["of"] is None) else 0
    says = f"rank {rank:,}, {'input' if inner else 'output'} {width:,}"
    if shape[side] == width:
        return Fit(number, found, "same", says)
    if shape[1 - side] == width and len(shape) == 2:
        return Fit(number, found, "same", f"{says}, of a weight that is stored transposed")
    return Fit(number, found, "changed", f"{says}: the base has {shape[side]:,}")


class _Places:
    """Tensors of the base by name, and by the end of it: adapters are trained with another wrapper around the model at times."""

    def __init__(self, base: Sequence[LogicalTensor]) -> None:
        self._by_name = {tensor.name: number for number, tensor in reversed(list(enumerate(base)))}
        self._by_end: defaultdict[str, list[int]] = defaultdict(list)
        for number, tensor in enumerate(base):
            self._by_end[tensor.name.partition(SEPARATOR)[2]].append(number)

    def of(self, name: str) -> int | None:
        """Return the tensor of a name, with or without the first module of either."""
        for key in (name, name.partition(SEPARATOR)[2]):
            if key in self._by_name:
                return self._by_name[key]
        ended = self._by_end.get(name, ())
        return ended[0] if len(ended) == 1 else None
