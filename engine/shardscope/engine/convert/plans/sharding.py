"""Which output file each tensor goes to, by the naming and sizes of Hugging Face."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from shardscope.engine.convert.plans.selection import Chosen
from shardscope.engine.model.plan import PlannedFile, PlannedTensor
from shardscope.engine.model.repair import Scalar
from shardscope.engine.model.tensors import DTYPES

STEM: Final = "model"
ADAPTER_STEM: Final = "adapter_model"
"""What PEFT calls the weights of an adapter."""
NOTHING: Final[Mapping[str, Scalar]] = MappingProxyType({})


def planned_bytes(item: Chosen) -> int:
    """Return the bytes of a tensor in the output."""
    return DTYPES[item.dtype].bytes_of(item.shape)


def shard(
    chosen: Sequence[Chosen],
    max_bytes: int,
    header_bytes: Callable[[Sequence[PlannedTensor]], int],
    most_header_bytes: int,
    stem: str = STEM,
) -> tuple[PlannedFile, ...]:
    """Return the output files, named by `stem`: tensors in the order of the source, a new file where the next tensor would go
    beyond `max_bytes`.

    A tensor that is larger than that has a file of its own. A header never goes beyond `most_header_bytes`.
    """
    groups: list[list[PlannedTensor]] = [[]]
    size = names = 0
    for item in chosen:
        planned = as_planned(item)
        entry = 160 + 6 * len(
            planned.name
        )  # of a header, generously: six bytes for a character that is escaped
        if groups[-1] and (size + planned.bytes > max_bytes or names + entry > most_header_bytes):
            groups.append([])
            size = names = 0
        groups[-1].append(planned)
        size += planned.bytes
        names += entry
    total = len(groups)
    files = []
    for number, group in enumerate(groups, 1):
        name = f"{stem}.safetensors" if total == 1 else f"{stem}-{number:05d}-of-{total:05d}.safetensors"
        tensors = tuple(group)
        files.append(PlannedFile(name, header_bytes(tensors) + sum(t.bytes for t in tensors), tensors))
    return tuple(files)


def as_planned(item: Chosen) -> PlannedTensor:
    """Return a chosen tensor as one of an output file."""
    return PlannedTensor(
        name=item.name,
        source=item.tensor.name,
        dtype=item.dtype,
        shape=item.shape,
        bytes=planned_bytes(item),
        stored_dtype=item.tensor.dtype,
    )


def index_name(files: Sequence[PlannedFile]) -> str:
    """Return the name of the index of several files: that of the files, without their numbers."""
    return f"{files[0].name.partition('-')[0]}.safetensors.index.json"


def index(files: Sequence[PlannedFile], more: Mapping[str, Scalar] = NOTHING) -> dict[str, object]:
    """Return the index of files (`model.safetensors.index.json`): `total_size` counts bytes of tensors, `more` stands beside it."""
    weight_map = {tensor.name: file.name for file in files for tensor in file.tensors}
    total = sum(tensor.bytes for file in files for tensor in file.tensors)
    return {"metadata": {**more, "total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
