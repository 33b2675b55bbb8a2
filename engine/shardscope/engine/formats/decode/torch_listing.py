"""The tensors of one decoded file of torch.save, as a catalogue has them: names, bytes, aliases, and what cannot be written out."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.decode.torch_components import Components
from shardscope.engine.formats.decode.torch_sharing import Shared, View, shared
from shardscope.engine.formats.decode.torch_walk import Leaf, Walked, walk
from shardscope.engine.formats.decode.whole import whole
from shardscope.engine.formats.decoder import Decoder, TorchFile
from shardscope.engine.model.blocker import Param
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Role
from shardscope.engine.model.decoded import Component
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import display_name
from shardscope.engine.parse.strides import repeats

_KINDS: Final = {
    "sparse": "a sparse tensor, of indices and values",
    "quantized": "a quantised tensor, of numbers and scales",
    "nested": "a nested tensor, of several sizes",
    "wrapper": "a subclass that wraps other tensors",
}
_PENDING: Final = {"conj": "conjugated", "neg": "negated"}
"""Bits that torch sets on a view whose elements are to be read that way."""
_DISTRIBUTED: Final = (".DTensor", ".ShardedTensor")
_UNTRAINED: Final = frozenset({"int", "uint", "bool"})
"""Kinds of numbers that have no gradient: outside of parameters they are buffers."""


class _Found(Struct, frozen=True):
    """One tensor and where it is, or why it is nowhere."""

    leaf: Leaf
    fragment: Fragment | None
    note: str | None


class Listing(Struct, frozen=True):
    """What one file came to."""

    file: TorchFile
    tensors: Sequence[LogicalTensor]
    top: Iterable[str]
    """The keys at the top of the file."""


class _Trouble:
    """What is wrong with the tensors of a file: each thing said once, with how many tensors and the first."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, tuple[tuple[str, Param], ...]], tuple[int, str]] = {}

    def add(self, code: str, name: str, **params: Param) -> None:
        key = (code, tuple(params.items()))
        count, first = self._found.get(key, (0, name))
        self._found[key] = (count + 1, first)

    def report(self, decoder: Decoder, file: TorchFile) -> None:
        for (code, params), (count, first) in self._found.items():
            decoder.probe.report(code, file.entry, count=count, tensor=first, **dict(params))


def list_file(decoder: Decoder, file: TorchFile, *, component: Component | None = None) -> Listing:
    """Return the tensors of a file in the order of its pickle, and report what is odd about them.

    `component` is that of all of them, where the caller knows it.
    """
    walked = walk(file.tree, file.tree.root)
    components = Components(file.entry.name, walked.top)
    trouble = _Trouble()
    found = [_find(decoder, file, leaf, trouble) for leaf in walked.tensors]
    sharing = shared([_view(item) for item in found])
    tensors = [
        _tensor(item, component or components.of(item.leaf.top), sharing, place)
        for place, item in enumerate(found)
    ]
    plain = any(item.name == "_load_from_bytes" for item in file.tree.pickled.references)
    for name in walked.malformed:
        trouble.add("torch.plain_pickle" if plain else "torch.tensor_malformed", name)
    trouble.report(decoder, file)
    _report_walk(decoder, file, walked)
    _report_sharing(decoder, file, tensors, sharing)
    return Listing(file, tensors, walked.top.keys())


def _find(decoder: Decoder, file: TorchFile, leaf: Leaf, trouble: _Trouble) -> _Found:
    """Return where a tensor is, and why it cannot be written out as it is."""
    node = leaf.tensor
    if node.kind == "meta":
        trouble.add("torch.tensor_meta", leaf.name)
        return _Found(leaf, None, "a meta tensor: it has no data")
    if node.kind == "wrapper" and (node.subclass or "").endswith(_DISTRIBUTED):
        trouble.add("torch.distributed_part", leaf.name)
        return _Found(leaf, None, "what one rank held of it")
    if node.kind != "strided":
        trouble.add("torch.tensor_kind", leaf.name, kind=node.kind)
        fragment = decoder.fragment(file, node) if node.kind == "quantized" else None
        return _Found(leaf, fragment, _KINDS[node.kind])
    fragment = decoder.fragment(file, node)
    if fragment is None:
        trouble.add("torch.tensor_lost", leaf.name)
        return _Found(leaf, None, "its bytes cannot be read")
    bits = [word for word in ("conj", "neg") if file.tree.value(node.parts.get("metadata"), word)]
    if bits:
        trouble.add("torch.tensor_pending", leaf.name, kind=_PENDING[bits[0]])
        return _Found(leaf, fragment, f"stored before it is {_PENDING[bits[0]]}")
    if node.dtype not in DTYPES:
        trouble.add("torch.tensor_dtype", leaf.name, dtype=node.dtype)
        return _Found(leaf, fragment, "safetensors does not have its type")
    return _Found(leaf, fragment, None)


def _view(found: _Found) -> View | None:
    return None if found.fragment is None else View(found.leaf.name, found.leaf.tensor.dtype, found.fragment)


def _tensor(found: _Found, component: Component, sharing: Shared, place: int) -> LogicalTensor:
    note = found.note
    other = sharing.overlaps.get(place)
    if note is None and other is not None:
        note = f"shares bytes with {display_name(other, 120)}"
    elif note is None and (item := found.fragment) and item.strides and repeats(item.shape, item.strides):
        note = "stored once and repeated by a stride of 0"
    return whole(
        found.leaf.name,
        found.leaf.tensor.dtype,
        tuple(found.leaf.tensor.shape),
        found.fragment,
        component=component,
        role=_role(found.leaf, component),
        alias_of=sharing.alias_of.get(place),
        note=note,
    )


def _role(leaf: Leaf, component: Component) -> Role:
    node = leaf.tensor
    if component == "optimizer":
        return "state"
    if component == "other":
        return "other"
    if leaf.role == "buffer":
        return "buffer"
    if leaf.role == "parameter" or node.parameter:
        return "parameter" if node.requires_grad else "frozen"
    known = DTYPES.get(node.dtype)
    return "buffer" if known is not None and known.kind in _UNTRAINED else "parameter"


def _report_walk(decoder: Decoder, file: TorchFile, walked: Walked) -> None:
    probe = decoder.probe
    names = [leaf.name for leaf in walked.tensors]
    odd = [name for name in names for key in walked.odd[:64] if name == key or name.startswith(f"{key}.")]
    if odd:
        probe.report("torch.key_odd", file.entry, count=len(odd), tensor=odd[0])
    if walked.modules and names:
        probe.report("torch.whole_module", file.entry, count=1, name=walked.modules[0])
    if walked.bounded is not None:
        probe.report("torch.names_unbounded", file.entry, limit=walked.bounded)
    if twice := repeated(names):
        probe.report("torch.name_twice", file.entry, count=len(twice), tensor=twice[0])


def repeated(names: Iterable[str]) -> list[str]:
    """Return each name that came before, as often as it comes again."""
    seen: set[str] = set()
    twice = []
    for name in names:
        if name in seen:
            twice.append(name)
        seen.add(name)
    return twice


def _report_sharing(
    decoder: Decoder, file: TorchFile, tensors: Sequence[LogicalTensor], sharing: Shared
) -> None:
    if sharing.overlaps:
        place, other = next(iter(sorted(sharing.overlaps.items())))
        decoder.probe.report(
            "torch.shared_views",
            file.entry,
            count=len(sharing.overlaps),
            tensor=tensors[place].name,
            other=other,
        )
    if sharing.unused:
        decoder.probe.report("torch.storage_unused", file.entry, size=sharing.unused, count=sharing.unused_in)
