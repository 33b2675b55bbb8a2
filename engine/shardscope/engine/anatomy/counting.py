"""How many parameters there are: packed weights unpacked, ties once, scales and buffers apart, experts as they are used."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from shardscope.engine.anatomy.items import EXPERTS, Item, is_expert, place_of
from shardscope.engine.model.anatomy import DtypeRow, Parameters, Sizes, Use
from shardscope.engine.model.modules import SEPARATOR

_EMBEDDINGS: Final = (
    "embed_tokens.weight",
    "wte.weight",
    "wpe.weight",
    "word_embeddings.weight",
    "position_embeddings.weight",
    "embed_positions.weight",
    "embed_in.weight",
    "tok_embeddings.weight",
    "token_embd.weight",
)
_HEADS: Final = ("lm_head.weight", "embed_out.weight", "output.weight")
FROZEN: Final = "frozen"


def parameters(
    items: Sequence[Item],
    packed: Mapping[str, int | None],
    companions: frozenset[str],
    sizes: Sizes | None,
    *,
    told: bool = False,
) -> Parameters:
    """Return the counts. `packed` gives the weights in packed tensors; `told`: the checkpoint tells what is frozen."""
    counts: dict[Use, int] = dict.fromkeys(("parameter", "frozen", "buffer", "companion", "other"), 0)
    embeddings = experts = unknown = 0
    tied = []
    for item in items:
        if item.alias_of is not None:
            tied.append(item.name)
            continue
        use = "companion" if item.name in companions else item.use
        if item.name in packed:
            elements, use = packed[item.name], "parameter" if item.use != FROZEN else FROZEN
            if elements is None:
                unknown += 1
                continue
        else:
            elements = item.elements
        counts[use] += elements
        if use not in ("parameter", FROZEN):
            continue
        if item.name.endswith(_EMBEDDINGS):
            embeddings += elements
        elif _is_expert(item.name):
            experts += elements
    total = counts["parameter"] + counts[FROZEN]
    if not tied and sizes is not None and sizes.tied:
        tied = _absent_head(items)
    return Parameters(
        total=total,
        unknown=unknown,
        embeddings=embeddings,
        experts=experts,
        active=_active(total, experts, sizes),
        frozen=counts[FROZEN] if told else None,
        tied=tuple(tied),
        buffers=counts["buffer"] + counts["other"],
        companions=counts["companion"],
    )


def _is_expert(name: str) -> bool:
    if EXPERTS not in name and "_exps" not in name:
        return False
    place = place_of(name)
    return place.rest.expert if place is not None else is_expert(name.split(SEPARATOR))


def _absent_head(items: Iterable[Item]) -> list[str]:
    """Return the output layer that the configuration ties to the embedding, where no file holds it."""
    names = {item.name for item in items}
    held = any(name.endswith(_HEADS) for name in names)
    return [] if held else ["lm_head.weight"]


def _active(total: int, experts: int, sizes: Sizes | None) -> int | None:
    if not experts or sizes is None or not sizes.experts or not sizes.experts_per_token:
        return None
    if sizes.experts_per_token > sizes.experts:
        return None
    return total - experts + experts * sizes.experts_per_token // sizes.experts


def dtypes(items: Iterable[Item]) -> tuple[DtypeRow, ...]:
    """Return how much is stored in each type, the most first. Aliases have no bytes of their own."""
    counts: dict[str, list[int]] = {}
    for item in items:
        row = counts.setdefault(item.dtype, [0, 0])
        row[0] += 1
        row[1] += 0 if item.alias_of is not None else item.bytes
    rows = [DtypeRow(dtype, tensors, size) for dtype, (tensors, size) in counts.items()]
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.dtype)))
