"""The tensors of a model as everything here takes them, and which of them are no parameters."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.model.anatomy import Shape, Use
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.ggml import BLOCK_TYPES
from shardscope.engine.model.modules import SEPARATOR, WILD, is_number
from shardscope.engine.model.tensors import DTYPES, TensorTable, array_bytes

_BUFFER: Final = re.compile(
    r"(?:^|\.)(?:inv_freq|original_inv_freq|masked_bias|position_ids|num_batches_tracked|running_mean|running_var|rope\.freqs"
    r"|rope_freqs\.weight|cos_cached|sin_cached|final_logits_bias|layer_scalar|act_fn\.(?:beta|eps)|global_(?:mean|invstd)|pos_idx_to_embed"
    r"|slope_rate|(?:query|key|diagonal)_decay|(?<!moe_statics\.)(?<!mlp\.experts\.)e_score_correction_bias|(?:gate|router)\.expert_bias"
    r"|gate\.balancing_biases)\Z"
)
"""What transformers' classes register as buffers. Two of them have a parameter of the name of another's buffer: it is told by what stands before."""
_MASK: Final = re.compile(r"(?:^|\.)(?:attn|attention|self_attn|self_attention)\.bias\Z")
_LAYER: Final = re.compile(r"(?:(.+?)\.)?(0|[1-9][0-9]{0,8})\.(.+)\Z", re.DOTALL)
EXPERTS: Final = "expert"
_WHOLE_NUMBERS: Final = frozenset(
    {"BOOL", *(name for name, dtype in DTYPES.items() if dtype.kind in ("int", "uint"))}
)


class Item(Struct, frozen=True, gc=False):
    """One tensor."""

    name: str
    dtype: str
    shape: Shape
    bytes: int
    use: Use = "parameter"
    alias_of: str | None = None
    """It shares its bytes with this tensor."""

    @property
    def elements(self) -> int:
        """How many elements its shape has. Those of packed types are fewer than the weights in them."""
        return prod(self.shape)


class Rest(Struct, frozen=True):
    """What follows the number of a layer in a name."""

    folded: str
    """With further numbers taken out."""
    path: str | None
    """Of experts: what stands before their number."""
    number: int | None
    """Of the expert."""
    expert: bool
    """It is of experts that are chosen for a token; shared ones are used by all."""


class Place(Struct, frozen=True, gc=False):
    """A name in a stack of layers."""

    prefix: str
    layer: int
    rest: Rest


def place_of(name: str) -> Place | None:
    """Return where a name stands in a stack of layers, by the first number in it; null where it has none, or ends in it."""
    match = _LAYER.match(name)
    return None if match is None else Place(match[1] or "", int(match[2]), _rest(match[3]))


@lru_cache(1 << 16)
def _rest(rest: str) -> Rest:
    """The layers of a model are alike, so that few of these are different."""
    parts = rest.split(SEPARATOR)
    folded = SEPARATOR.join(WILD if is_number(part) else part for part in parts)
    at = next((at for at in range(1, len(parts)) if is_number(parts[at]) and EXPERTS in parts[at - 1]), None)
    path = None if at is None else SEPARATOR.join(parts[:at])
    return Rest(folded, path, None if at is None else int(parts[at]), is_expert(parts))


def is_expert(parts: Sequence[str]) -> bool:
    """Tell whether a name, in parts, is of an expert that is chosen for a token."""
    for at, part in enumerate(parts):
        if EXPERTS in part and "shared" not in part:
            return at + 1 < len(parts)
        if part.endswith("_exps"):
            return True
    return False


def of_table(table: TensorTable) -> list[Item]:
    """Return the rows of a table."""
    dtypes, shapes = table.dtypes, table.shapes
    columns = zip(table.names, table.column("dtype"), table.column("shape"), table.sizes(), strict=True)
    return [
        Item(name, dtypes[dtype], shapes[shape], size, use_of(name, dtypes[dtype], shapes[shape]))
        for name, dtype, shape, size in columns
    ]


def of_catalogue(tensors: Iterable[LogicalTensor]) -> Iterator[Item]:
    """Yield the tensors of the model in a catalogue, with what the checkpoint tells of them: frozen, buffers, aliases."""
    for tensor in tensors:
        if tensor.component != "model":
            continue
        size = array_bytes(tensor.dtype, tensor.shape) or 0
        match tensor.role:
            case "frozen" | "buffer":
                use: Use = tensor.role
            case "parameter":
                use = use_of(tensor.name, tensor.dtype, tensor.shape)
            case _:
                use = "other"
        yield Item(tensor.name, tensor.dtype, tensor.shape, size, use, tensor.alias_of)


def use_of(name: str, dtype: str, shape: Shape) -> Use:
    """Return what a tensor is by its name and type: masks, frequencies and counters are buffers, whole numbers are no parameters."""
    if _BUFFER.search(name) or (len(shape) > 2 and _MASK.search(name)):
        return "buffer"
    if dtype in BLOCK_TYPES:
        return "parameter"
    return "other" if dtype in _WHOLE_NUMBERS else "parameter"
