"""Where a finding is: the tensor, the element, and by its shard map the file, the byte and the rank. Whatever the kind of finding."""

from collections.abc import Mapping, Sequence
from typing import Final

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.tensors import DTYPES
from shardscope.widgets.scan_detail import Spot

FRAGMENTS: Final = 4_096
"""A map of more of them is not looked into while a cursor moves."""


class Names:
    """The tensors that were read, by the names that findings have for them."""

    def __init__(self, tensors: Sequence[LogicalTensor]) -> None:
        self._by_name = {tensor.name: tensor for tensor in reversed(tensors)}
        self._tensors = tensors
        self._by_shown: dict[str, LogicalTensor] | None = None

    def find(self, name: str) -> LogicalTensor | None:
        """Return the tensor of a name, which may be neutralised; None where there is none."""
        found = self._by_name.get(name)
        if (
            found is None and self._by_shown is None
        ):  # only names with something to hide are not found at once
            self._by_shown = {shown(tensor.name): tensor for tensor in reversed(self._tensors)}
        return found or (self._by_shown or {}).get(name)

    def of(self, item: Blocker) -> LogicalTensor | None:
        """Return the tensor that a finding is about, or the first of those that it is about; None where it is about a file alone."""
        for name in (item.params.get("tensor"), item.subject):
            if isinstance(name, str) and (found := self.find(name)) is not None:
                return found
        return None


def spot_of(item: Blocker, tensor: LogicalTensor | None, owners: Mapping[str, str]) -> Spot:
    """Return where a finding is. An element is counted; a byte is that of the file if the finding names one, otherwise of the tensor."""
    from shardscope.engine.diffing.placing import index_of, place

    file, begin = item.params.get("file"), item.params.get("begin")
    if isinstance(file, str):
        return _spot(tensor, None, None, owners.get(file), file, begin if isinstance(begin, int) else None)
    if tensor is None:
        return Spot()
    element = _element(item, tensor)
    if element is None or len(tensor.fragments) > FRAGMENTS:
        return _lone(tensor, element, owners)
    found = place(tensor, element, owners)
    index = index_of(element, tensor.shape)
    if found is None:
        return _spot(tensor, element, index, None, None, None)
    return _spot(tensor, element, index, found.rank, found.file, found.offset)


def _lone(tensor: LogicalTensor, element: int | None, owners: Mapping[str, str]) -> Spot:
    """Return what is known without the map: the file, where one alone holds the tensor."""
    files = {each.record.file for each in tensor.fragments}
    file = files.pop() if len(files) == 1 else None
    return _spot(tensor, element, None, None if file is None else owners.get(file), file, None)


def _element(item: Blocker, tensor: LogicalTensor) -> int | None:
    """Return the element at which a finding begins; None where it says none, or is about the whole tensor."""
    element, begin = item.params.get("element"), item.params.get("begin")
    if isinstance(element, int):
        return element
    kind = DTYPES.get(tensor.dtype)
    return begin * 8 // kind.bits if isinstance(begin, int) and kind is not None else None


def _spot(
    tensor: LogicalTensor | None,
    element: int | None,
    index: tuple[int, ...] | None,
    rank: str | None,
    file: str | None,
    byte: int | None,
) -> Spot:
    if tensor is None:
        return Spot(rank=rank, file=file, byte=byte)
    return Spot(tensor.name, tensor.dtype, tensor.shape, index, element, rank, file, byte)
