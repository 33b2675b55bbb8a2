"""`shardscope tensors --decode --json`: logical tensors with their fragments, piece by piece."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from shardscope.engine.geometry.language.document import written
from shardscope.engine.geometry.language.layout import normal_form
from shardscope.engine.inspecting.decoding import bytes_of
from shardscope.engine.model.catalogue import Catalogue, Fragment, LogicalTensor
from shardscope.engine.model.documents import CatalogueTensor, RefusedTensor, StoredFragment
from shardscope.engine.model.schemas import CATALOGUE
from shardscope.engine.model.text import json_escape

if TYPE_CHECKING:
    from shardscope.engine.model.decoded import Listed


def json_parts(
    catalogue: Catalogue,
    opaque: int,
    listed: "Listed",
    names: set[str] | None,
    *,
    fragments: bool,
    order: str | None,
) -> Iterator[bytes]:
    """Yield the document `shardscope.catalogue/1`, one tensor a line; `names` are those asked for, null for all."""
    found = catalogue.of(listed)
    refused = [_refused(t, t.unwritable) for t in found if t.unwritable is not None]
    tensors = [t for t in found if t.unwritable is None and (names is None or t.name in names)]
    if order == "name":
        tensors.sort(key=lambda tensor: tensor.name)
    elif order == "bytes":
        tensors.sort(key=lambda tensor: (-(bytes_of(tensor) or 0), tensor.name))
    yield (
        f'{{"schema":"{CATALOGUE}","component":"{listed}","count":{len(tensors)},"opaque_files":{opaque},'
    ).encode()
    encode = msgspec.json.Encoder().encode
    yield b'"refused":' + json_escape(encode(refused).decode()).encode() + b',"tensors":['
    separator = b"\n"
    for tensor in tensors:
        line = encode(row(tensor, fragments=fragments))
        yield separator + json_escape(line.decode()).encode()
        separator = b",\n"
    yield b"\n]}\n" if tensors else b"]}\n"


def _refused(tensor: LogicalTensor, why: str) -> RefusedTensor:
    return RefusedTensor(tensor.name, tensor.dtype, tensor.shape, tensor.component, why)


def row(tensor: LogicalTensor, *, fragments: bool) -> CatalogueTensor:
    """Return one tensor as the document has it."""
    files = tuple(dict.fromkeys(item.record.file for item in (*tensor.fragments, *tensor.replicas)))
    return CatalogueTensor(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=tensor.shape,
        bytes=bytes_of(tensor),
        component=tensor.component,
        role=tensor.role,
        alias_of=tensor.alias_of,
        stored_shape=tensor.stored_shape,
        files=files,
        fragments=len(tensor.fragments),
        replicas=len(tensor.replicas),
        note=tensor.note,
        map=written(normal_form(tensor), tensor.dtype) if fragments else msgspec.UNSET,
        stored=tuple(map(_stored, tensor.fragments)) if fragments else msgspec.UNSET,
    )


def _stored(item: Fragment) -> StoredFragment:
    record = item.record
    return StoredFragment(
        label=item.label,
        shape=item.shape,
        file=record.file,
        begin=record.begin,
        length=record.length,
        coding=record.coding,
        offset=item.offset,
        strides=item.strides,
        dtype=item.dtype,
        big_endian=record.big_endian,
        crc=record.crc,
    )
