"""The decoded partitions of a DeepSpeed optimizer: flat stretches of weights and moments, group by group.

Keys of deepspeed 0.19.8, `runtime/zero/stage_1_and_2.py`, `runtime/zero/stage3.py` and `runtime/bf16_optimizer.py`; the last
writes no `zero_stage` and keeps the padding that it says it has. A flat tensor is cut here by nothing but shapes.
"""

from collections.abc import Sequence
from math import prod
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.formats.decode.deepspeed_states import there, whole_number
from shardscope.engine.formats.decoder import Decoder, TorchFile
from shardscope.engine.formats.deepspeed_names import Numbered
from shardscope.engine.formats.rank_grid import Coordinate
from shardscope.engine.model.catalogue import Fragment
from shardscope.engine.model.pickled import Number, PickledTensor
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.parse.pickled.tree import Tree

WEIGHT: Final = "fp32"
"""The state that is the parameter itself, as the converter to Universal names it too."""


class Flat(Struct, frozen=True):
    """One flat tensor of a rank: of weights, or of a state of the optimizer."""

    fragment: Fragment
    dtype: str

    @property
    def length(self) -> int:
        """Elements."""
        return self.fragment.shape[0]

    def cut(self, at: int, count: int) -> Fragment:
        """Return `count` elements from `at` on. They have to be there."""
        width = DTYPES[self.dtype].bits // 8
        return replace(self.fragment, shape=(count,), offset=self.fragment.offset + at * width)


class Group(Struct, frozen=True):
    """One parameter group of a rank; in stage 3 a part of one."""

    flats: dict[str, Flat]
    """By state; the weights are `WEIGHT`."""
    ranks: int
    """How many ranks it is partitioned among; 0 where it is not said."""
    position: int | None
    """This rank's place among them, where it is recorded."""
    experts: bool
    paddings: tuple[int, ...] | None
    """Elements behind each parameter."""
    slices: dict[str, tuple[int, int]] | None
    """Where the writer says that parameters are in this partition, as start and count. A claim: shapes decide."""


class Partition(Struct, frozen=True):
    """One `*_optim_states.pt` file of a rank."""

    at: Coordinate
    """(mp, dp)."""
    file: TorchFile
    stage: int | None
    """Null where none is recorded: the optimizer of bf16 with gradients in fp32."""
    groups: tuple[Group, ...]
    version: str | None


def read_partition(decoder: Decoder, numbered: Numbered) -> Partition | None:
    """Return one partition; null where it is none or cannot be read, which is reported."""
    file = decoder.torch(numbered.entry)
    if file is None:
        return None
    tree = file.tree
    top = tree.get(tree.root, "optimizer_state_dict")
    three = tree.has(top, "fp32_flat_groups")
    weights = tree.items(top, "fp32_flat_groups" if three else "single_partition_of_fp32_groups")
    if not three and not tree.has(top, "single_partition_of_fp32_groups"):
        decoder.probe.report("deepspeed.not_partition", numbered.entry)
        return None
    states = tree.get(top, "optimizer_state_dict" if three else "base_optimizer_state")
    if not three and tree.items(top, "base_optimizer_state"):
        decoder.probe.report("deepspeed.elastic", numbered.entry)
        return None
    groups = []
    for number, node in enumerate(weights):
        flats = _states(decoder, file, tree.get(states, "state", number))
        weight = _flat(decoder, file, tree.tensor(node))
        if weight is not None:
            flats[WEIGHT] = weight
        groups.append(_group(tree, top, states, number, flats, three=three))
    return Partition(
        at=numbered.at,
        file=file,
        stage=whole_number(tree, top, "zero_stage"),
        groups=tuple(groups),
        version=tree.text(tree.root, "ds_version") or tree.text(top, "ds_version"),
    )


def _group(
    tree: Tree, top: Number | None, states: Number | None, number: int, flats: dict[str, Flat], *, three: bool
) -> Group:
    if three:
        # Only experts are partitioned among other ranks than all, and only then it is recorded.
        own = tree.get(top, "ds_zero_partition_groups", number)
        ranks = tree.integer(own, "partition_count") or tree.integer(top, "partition_count") or 0
        position = tree.integer(own, "partition_rank")
        whole = tree.integer(top, "partition_count")
        return Group(flats, ranks, position, whole is not None and ranks != whole, None, None)
    counts = tree.items(top, "partition_count")
    count = tree.integer(counts[number]) if number < len(counts) else tree.integer(top, "partition_count")
    return Group(
        flats=flats,
        ranks=count or 0,
        position=None,
        experts=tree.value(states, "param_groups", number, "moe") is True,
        paddings=tree.integers(top, "param_alignment_paddings", number),
        slices=_slices(tree, there(tree, tree.get(top, "param_slice_mappings", number))),
    )


def _states(decoder: Decoder, file: TorchFile, number: Number | None) -> dict[str, Flat]:
    """Return the flat tensors of an optimizer's state by name; single numbers are of the whole group and stay out."""
    found = {}
    for key, value in file.tree.entries(number):
        tensor = file.tree.tensor(value)
        if not isinstance(key, str) or tensor is None or (prod(tensor.shape) == 1 and key == "step"):
            continue
        flat = _flat(decoder, file, tensor)
        if flat is not None:
            found[key] = flat
    return found


def _flat(decoder: Decoder, file: TorchFile, tensor: PickledTensor | None) -> Flat | None:
    """Return a tensor of one dimension without steps, of a type that has whole bytes; null for anything else."""
    if tensor is None or len(tensor.shape) != 1:
        return None
    fragment = decoder.fragment(file, tensor)
    known = DTYPES.get(tensor.dtype)
    if fragment is None or known is None or known.bits % 8 or fragment.strides is not None:
        return None
    return Flat(fragment, tensor.dtype)


def _slices(tree: Tree, number: Number | None) -> dict[str, tuple[int, int]] | None:
    if number is None:
        return None
    found = {}
    for key, value in tree.entries(number):
        start, count = tree.integer(value, "start"), tree.integer(value, "numel")
        if isinstance(key, str) and start is not None and count is not None:
            found[key] = (start, count)
    return found


def counted_ranks(partitions: Sequence[Partition]) -> int:
    """Return among how many data-parallel ranks the partitions say that they are; 0 where they do not say."""
    return max((group.ranks for partition in partitions for group in partition.groups), default=0)
