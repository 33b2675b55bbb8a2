"""A LoRA adapter beside its base model: which module each pair of factors is for, and whether it fits there.

Names are those of peft: `base_model.model.MODULE.lora_A.weight` changes `MODULE.weight` of the base. `lora_A` has a column for each
input of the module, `lora_B` a row for each output; embeddings have them the other way round. Modules that peft saves whole stand under their own name.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from shardscope.engine.formats.model_config import EMBEDDINGS
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.difference import State
from shardscope.engine.model.modules import SEPARATOR

FORMAT: Final = "peft_adapter"
_PREFIX: Final = "base_model.model."
_FACTOR: Final = re.compile(
    r"(?P<module>.+)\.lora_(?P<of>embedding_)?(?P<factor>[AB])"
    r"(?:\.(?P<adapter>(?!(?:weight|bias)\Z)[^.]+))?(?:\.(?P<part>weight|bias))?\Z",
    re.DOTALL,
)
_WHOLE: Final = re.compile(r"\.(?:modules_to_save|original_module|base_layer)(?:\.default)?(?=\.)")


_HEADS: Final = frozenset({"lm_head.weight", "embed_out.weight", "output.weight"})


class Part(NamedTuple):
    """What a tensor of an adapter is, as its name tells."""

    target: str
    """The tensor of the base that it is for."""
    factor: Literal["A", "B", None] = None
    """Null of a tensor that takes the place of the base's."""
    embedding: bool = False
    bias: bool = False
    """It is added to a bias: only `B` has one."""
    adapter: str | None = None
    """Whose factor it is, where the name says so: files that hold several adapters do."""
    original: bool = False
    """It is the base's own, which some savers keep beside what was trained."""


def part_of(name: str) -> Part:
    """Return what a tensor of an adapter is."""
    name = name.removeprefix(_PREFIX)
    found = _FACTOR.match(name)
    if found is None:
        return Part(_WHOLE.sub("", name), original=".original_module." in name)
    bias = found["part"] == "bias"
    factor: Literal["A", "B"] = "A" if found["factor"] == "A" else "B"
    target = f"{found['module']}.{'bias' if bias else 'weight'}"
    return Part(target.replace(".base_layer.", "."), factor, found["of"] is not None, bias, found["adapter"])


class Fit(Struct, frozen=True):
    """A tensor of an adapter, and the tensor of the base that it is for."""

    tensor: int
    base: int | None
    state: State
    """`same` where it fits, `changed` where it does not, `missing` where the base has no such module."""
    note: str | None
    whole: bool = False
    """It takes the place of the base's tensor, so that values can be compared."""


def fits(
    adapter: Sequence[LogicalTensor], base: Sequence[LogicalTensor], *, tied: bool = False
) -> Iterator[Fit]:
    """Yield every tensor of an adapter, in order, with what it is for. `tied`: a base without a head has its embedding for
    one.
    """
    places = Places(base, tied=tied)
    for number, tensor in enumerate(adapter):
        part = part_of(tensor.name)
        found = places.of(part.target)
        if part.factor is None:
            yield _whole(number, tensor, found, base)
        elif found is None:
            yield Fit(number, None, "missing", "the base has no such module")
        else:
            yield _factor(number, tensor, found, base, part)


def _whole(number: int, tensor: LogicalTensor, found: int | None, base: Sequence[LogicalTensor]) -> Fit:
    if found is None:
        return Fit(number, None, "missing", "the base has no such tensor", whole=True)
    if tensor.shape != base[found].shape:
        return Fit(
            number, found, "changed", "it is saved whole, in another shape than the base's", whole=True
        )
    return Fit(number, found, "same", "saved whole, in place of the base's", whole=True)


def _factor(number: int, tensor: LogicalTensor, found: int, base: Sequence[LogicalTensor], part: Part) -> Fit:
    shape = base[found].shape
    inner = part.factor == "A"
    if part.bias:
        fit: State = "same" if tensor.shape == shape else "changed"
        return Fit(number, found, fit, "added to a bias")
    if len(tensor.shape) < 2 or len(shape) < 2:
        return Fit(number, found, "changed", "a factor and its module have two dimensions at least")
    rank, width = (tensor.shape[0], tensor.shape[1]) if inner else (tensor.shape[1], tensor.shape[0])
    side = 0 if inner == part.embedding else 1
    says = f"rank {rank:,}, {'input' if inner else 'output'} {width:,}"
    if shape[side] == width:
        return Fit(number, found, "same", says)
    if shape[1 - side] == width and len(shape) == 2:
        return Fit(number, found, "same", f"{says}, of a weight that is stored transposed")
    return Fit(number, found, "changed", f"{says}: the base has {shape[side]:,}")


class Places:
    """Tensors of the base by name, and by the end of it: adapters are trained with another wrapper around the model at times."""

    def __init__(self, base: Sequence[LogicalTensor], *, tied: bool = False) -> None:
        self._by_name = {tensor.name: number for number, tensor in reversed(list(enumerate(base)))}
        self._by_end: defaultdict[str, list[int]] = defaultdict(list)
        for number, tensor in enumerate(base):
            self._by_end[tensor.name.partition(SEPARATOR)[2]].append(number)
        self._head = _embedding(base) if tied else None

    def of(self, name: str) -> int | None:
        """Return the tensor of a name, with or without the first module of either; for a head that is tied, its embedding."""
        for key in (name, name.partition(SEPARATOR)[2]):
            if key in self._by_name:
                return self._by_name[key]
        ended = self._by_end.get(name, ())
        if len(ended) == 1:
            return ended[0]
        return self._head if SEPARATOR.join(name.split(SEPARATOR)[-2:]) in _HEADS else None


def _embedding(base: Sequence[LogicalTensor]) -> int | None:
    ends = tuple(end for end in EMBEDDINGS if end not in _HEADS)
    found = [number for number, tensor in enumerate(base) if tensor.name.endswith(ends)]
    return found[0] if len(found) == 1 else None
