"""Where one element of a tensor is stored: by the shard map, in the file of which rank, at which byte."""

from collections.abc import Mapping
from math import prod

from shardscope.engine.convert.proofs.probing import byte_of, place_of
from shardscope.engine.geometry.language.layout import normal_form
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.difference import ElementPlace
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.topology import Topology


def index_of(element: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of an element that is counted row by row."""
    found = []
    for extent in reversed(shape):
        element, digit = divmod(element, extent)
        found.append(digit)
    return tuple(reversed(found))


def owners(topology: Topology | None) -> dict[str, str]:
    """Return by file whose it is: `tp 1 dp 0`. A file that several ranks share is the first one's."""
    if topology is None:
        return {}
    meshes = {mesh.name: mesh for mesh in topology.meshes}
    found: dict[str, str] = {}
    for held in topology.rank_files:
        mesh = meshes.get(held.mesh)
        if mesh is not None:
            for file in held.files:
                found.setdefault(file, mesh.rank_name(held.coordinate))
    return found


def place(tensor: LogicalTensor, element: int, owner: Mapping[str, str]) -> ElementPlace | None:
    """Return where an element of a tensor is stored; null where no fragment of it has the element.

    Of several fragments that hold it, it is the one of the lowest label: the one that values are read from.
    """
    if not 0 <= element < prod(tensor.shape):
        return None
    return place_in(normal_form(tensor), tensor, element, owner)


def place_in(
    lowered: Lowered, tensor: LogicalTensor, element: int, owner: Mapping[str, str]
) -> ElementPlace | None:
    """Return the same for a tensor whose map is known in normal form."""
    found = place_of(lowered, element)
    if found is None:
        return None
    shard, address, _ = found
    fragment = next((item for item in tensor.fragments if item.label == shard.rank), None)
    if fragment is None:
        return None
    record = fragment.record
    width, rest = divmod(DTYPES[fragment.dtype or tensor.dtype].bits, 8)
    known = record.coding == "plain" and not rest
    offset = record.begin + byte_of(fragment, shard, address, width) if known else None
    return ElementPlace(owner.get(record.file), record.file, offset)
