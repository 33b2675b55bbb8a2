"""The state files of a Universal checkpoint: one tensor each, whole, with or without a word on how it was put together.

Payload kinds that converters write (deepspeed `checkpoint/ds_to_universal.py`, 0.19.8): a mapping with the tensor under
`param` and, beside it, `cat_dim`, `vocab_tensor`, `param_n_sub_params` or `sub_param_shape`; from stage 3 the bare tensor,
flattened; and for the step a bare number. Whatever stands beside the tensor says how to cut it again, and nothing about it.
"""

from math import prod
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.model.catalogue import Fragment
from shardscope.engine.model.pickled import PickledTensor
from shardscope.engine.model.source import Entry

PARAM: Final = "param"

Shape = tuple[int, ...]


class Payload(Struct, frozen=True):
    """One state of one parameter."""

    entry: Entry
    fragment: Fragment
    dtype: str
    bare: bool
    """Without a mapping around it: then a single dimension can stand for any shape."""
    vocabulary: bool

    @property
    def shape(self) -> Shape:
        """As it is stored."""
        return self.fragment.shape

    def shaped(self, shape: Shape) -> "Payload | None":
        """Return it in a shape of as many elements; null where it has others."""
        if self.fragment.shape == shape:
            return self
        if prod(self.fragment.shape) != prod(shape) or self.fragment.strides is not None:
            return None
        if not self.bare and len(self.fragment.shape) != 1:
            return None
        return replace(self, fragment=replace(self.fragment, shape=shape))


def read_payload(decoder: Decoder, entry: Entry) -> Payload | None:
    """Return what a state file holds; null where it holds no tensor or cannot be read, which is reported."""
    file = decoder.torch(entry)
    if file is None:
        return None
    tree = file.tree
    node = tree.node(tree.root)
    bare = isinstance(node, PickledTensor)
    tensor = node if isinstance(node, PickledTensor) else tree.tensor(tree.root, PARAM)
    if tensor is None:
        decoder.probe.report("deepspeed.universal_payload", entry)
        return None
    fragment = decoder.fragment(file, tensor)
    if fragment is None:
        return None
    vocabulary = tree.value(tree.root, "vocab_tensor") is True
    return Payload(entry, fragment, tensor.dtype, bare, vocabulary)
