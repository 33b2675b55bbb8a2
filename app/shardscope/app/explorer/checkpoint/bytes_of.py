"""Which file the Layout panel shows, where a tensor begins in it, and which tensor begins at some of its bytes."""

from typing import TYPE_CHECKING

from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.file_layout import ByteRange
from shardscope.engine.model.source import Entry
from shardscope.engine.model.tensors import TensorSpec

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import Inspection


def default_file(found: "Inspection") -> Entry | None:
    """Return the file that is shown where nobody has chosen one: the first with tensors in it, otherwise the largest."""
    files = found.tensors.files
    if files and (entry := file_called(found, files[0].partition(" + ")[0])) is not None:
        return entry
    return max(found.inventory.files, key=lambda entry: entry.size, default=None)


def file_called(found: "Inspection", text: str) -> Entry | None:
    """Return the file of a neutralised path."""
    return next((entry for entry in found.inventory.files if entry.text == text), None)


def file_beside(found: "Inspection", text: str, by: int) -> Entry | None:
    """Return the file `by` places further among those that hold any bytes, around the ends."""
    files = [entry for entry in found.inventory.files if entry.size]
    at = next((number for number, entry in enumerate(files) if entry.text == text), 0)
    return files[(at + by) % len(files)] if files else None


def place_of(tensor: TensorSpec, whole: LogicalTensor | None) -> tuple[str, int]:
    """Return the file in which a tensor begins, and where."""
    if whole is not None and whole.fragments:
        first = whole.fragments[0]
        begin = first.record.begin + (first.offset if first.record.coding == "plain" else 0)
        return first.record.file, begin
    return tensor.file, tensor.begin


def tensor_in(found: "Inspection", file: str, chosen: ByteRange) -> str | None:
    """Return the exact name of a tensor that lies in a stretch of a file; None where none is known to."""
    if chosen.kind == "tensor":
        return chosen.name
    for tensor in () if found.catalogue is None else found.catalogue.tensors:
        for each in tensor.fragments:
            if each.record.file == file and each.record.begin == chosen.begin:
                return tensor.name
    return None
