"""The decoded model states of a DeepSpeed save: what names, shapes and values they declare (deepspeed `runtime/engine.py`).

Keys of `_common_checkpoint_state` in 0.19.8 and of the releases before it; a key that is not there is not missed. Pipeline
layers and experts are files of plain tensors by name.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.decoder import Decoder, TorchFile
from shardscope.engine.formats.deepspeed_names import Numbered
from shardscope.engine.formats.rank_grid import Coordinate
from shardscope.engine.model.pickled import Number, PickledTensor, Plain, Record
from shardscope.engine.parse.pickled.tree import Tree

Shape = tuple[int, ...]

_STATE_KEYS: Final = ("module", "param_shapes", "buffer_names", "dp_world_size", "ds_config")
"""A file without all of these is no file of model states, whatever its name says."""


class ModelStates(Struct, frozen=True):
    """One `*_model_states.pt` file of a rank."""

    at: Coordinate
    """(mp,) or, in stage 3, (mp, dp)."""
    file: TorchFile
    module: dict[str, PickledTensor]
    """Tensors of the module by name, in its order; empty for a pipeline, which keeps them in layer files."""
    others: tuple[str, ...]
    """Names in the module that are no tensors: extra states."""
    groups: tuple[dict[str, Shape], ...] | None
    """`param_shapes`: the parameters of each group, in the order of the flat buffer; null without ZeRO."""
    frozen: dict[str, Shape]
    fragments: dict[str, PickledTensor]
    """Of frozen parameters: whole in stage 2, this rank's part in stage 3."""
    shared: dict[str, str]
    """The name that a tied name stands for, as the first rank recorded it."""
    buffers: frozenset[str]
    optimizer: Number | None
    """Of stage 0, which has no partitions."""

    @property
    def tree(self) -> Tree:
        """The facts of the file."""
        return self.file.tree

    def number(self, *path: str) -> int | None:
        """Return an integer at a path from the top."""
        return self.tree.integer(self.tree.root, *path)

    @property
    def version(self) -> str | None:
        """Of deepspeed, as declared."""
        return self.tree.text(self.tree.root, "ds_version")

    @property
    def stage(self) -> int | None:
        """The ZeRO stage of `ds_config`; null where it is not said."""
        return self.number("ds_config", "zero_optimization", "stage")

    @property
    def data_before_experts(self) -> bool:
        """Whether ranks that hold the same experts stand side by side."""
        return self.tree.value(self.tree.root, "ds_config", "use_data_before_expert_parallelism") is True

    @property
    def nvme(self) -> str | None:
        """What is kept on an NVMe device instead of in the files: `optimizer` or `parameters`; null where nothing is."""
        for key, what in (("offload_optimizer", "the optimizer"), ("offload_param", "parameters")):
            if self.tree.text(self.tree.root, "ds_config", "zero_optimization", key, "device") == "nvme":
                return what
        return None

    @property
    def names(self) -> Iterator[str]:
        """Yield the names of trained parameters, in the order of the groups."""
        for group in self.groups or ():
            yield from group


def read_states(decoder: Decoder, numbered: Numbered) -> ModelStates | None:
    """Return one file of model states; null where it is none or cannot be read, which is reported."""
    file = decoder.torch(numbered.entry)
    if file is None:
        return None
    tree, root = file.tree, file.tree.root
    if not any(tree.has(root, key) for key in _STATE_KEYS):
        decoder.probe.report("deepspeed.not_states", numbered.entry)
        return None
    module = tree.get(root, "module")
    tensors, others = tensors_of(tree, module)
    groups = there(tree, tree.get(root, "param_shapes"))
    return ModelStates(
        at=numbered.at,
        file=file,
        module=tensors,
        others=others,
        groups=_groups(decoder, numbered, tree, groups),
        frozen=_shapes(tree, tree.get(root, "frozen_param_shapes")) or {},
        fragments=tensors_of(tree, tree.get(root, "frozen_param_fragments"))[0],
        shared=_shared(tree, tree.get(root, "shared_params")),
        buffers=frozenset(_texts(tree, root, "buffer_names")),
        optimizer=there(tree, tree.get(root, "optimizer")),
    )


def tensors_of(tree: Tree, number: Number | None) -> tuple[dict[str, PickledTensor], tuple[str, ...]]:
    """Return the tensors of a mapping by name, and the names of what else it holds."""
    found: dict[str, PickledTensor] = {}
    others = []
    for key, value in tree.entries(number):
        node = tree.node(value)
        if isinstance(node, PickledTensor) and isinstance(key, str):
            found[key] = node
        elif there(tree, value) is not None:
            others.append(str(key))
    return found, tuple(others)


def there(tree: Tree, number: Number | None) -> Number | None:
    """Return a node; null also where it is None."""
    node = tree.node(number)
    return None if isinstance(node, Plain) and node.value is None else number


def whole_number(tree: Tree, number: Number | None, *path: str | int) -> int | None:
    """Return an integer at a path, also where it is the value of an enumeration."""
    at = tree.get(number, *path)
    node = tree.node(at)
    if isinstance(node, Record) and node.values:
        return tree.integer(node.values[0])
    return tree.integer(at)


def _groups(
    decoder: Decoder, numbered: Numbered, tree: Tree, number: Number | None
) -> tuple[dict[str, Shape], ...] | None:
    if number is None:
        return None
    groups = [_shapes(tree, item) for item in tree.items(number)]
    if None in groups:
        decoder.probe.report("deepspeed.shapes_malformed", numbered.entry)
        return None
    return tuple(group for group in groups if group is not None)


def _shapes(tree: Tree, number: Number | None) -> dict[str, Shape] | None:
    """Return shapes by name; null where one of them is none."""
    shapes: dict[str, Shape] = {}
    for key, value in tree.entries(number):
        shape = tree.integers(value)
        if shape is None or not isinstance(key, str) or min(shape, default=0) < 0:
            return None
        shapes[key] = shape
    return shapes


def _shared(tree: Tree, number: Number | None) -> dict[str, str]:
    found = {}
    for key, value in tree.entries(number):
        target = tree.text(value)
        if isinstance(key, str) and target is not None:
            found[key] = target
    return found


def _texts(tree: Tree, number: Number, *path: str) -> Iterator[str]:
    for item in tree.items(number, *path):
        text = tree.text(item)
        if text is not None:
            yield text
