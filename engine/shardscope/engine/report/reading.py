"""A bundle from somebody else: few files with fixed names, read within bounds, strictly by their schemas, and never unpacked."""

import hashlib
import os
import zlib
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from shardscope.engine.model import schemas
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.facts import ZipEntry
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.reports import Report, ReportBundle, ReportManifest
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.source import Kind, Reader
from shardscope.engine.model.text import path_text
from shardscope.engine.parse.json import parse_json, require_object
from shardscope.engine.parse.zip import DEFLATED, ENCRYPTED, STORED, read_directory
from shardscope.engine.report.building import DESCRIPTOR, MANIFEST, MEMBERS, REPORT
from shardscope.engine.source.source import Source

T = TypeVar("T", bound=Struct)


def read(path: str | os.PathLike[str], limits: Limits | None = None) -> ReportBundle:
    """Return what the bundle at `path`, a zip or a folder, says. It is held against its own manifest.

    Raises `Fault`: what `Source`, the zip and JSON parsers raise, `report.member`, `report.digest`.
    """
    limits = limits or Limits()
    file = path_text(os.fsencode(path))
    try:
        members = _members(path, file, limits)
        for wanted in (REPORT, MANIFEST):
            if wanted not in members:
                raise Fault("report.member", reason=f"it has no {wanted}")
        manifest = _document(members, MANIFEST, ReportManifest, schemas.REPORT_MANIFEST, limits)
        _compare(members, manifest)
        report = _document(members, REPORT, Report, schemas.REPORT, limits)
        descriptor = (
            _document(members, DESCRIPTOR, Descriptor, schemas.DESCRIPTOR, limits)
            if DESCRIPTOR in members
            else None
        )
    except Fault as fault:
        raise Fault(fault.finding.code, **{"file": file, **fault.finding.params}) from None
    return ReportBundle(schemas.REPORT_BUNDLE, report, descriptor)


def _members(path: str | os.PathLike[str], file: str, limits: Limits) -> dict[str, bytes]:
    with Source(path, limits=limits) as source:
        inventory = source.walk()
        if inventory.root_is_file:
            with source.open(inventory.entries[0]) as reader:
                return _unzipped(reader, limits)
        members = {}
        for entry in inventory.entries:
            name = _known(entry.name)
            if entry.kind is not Kind.FILE or entry.folder:
                raise Fault("report.member", reason="it holds more than plain files", file=file)
            if entry.size > limits.json_bytes:
                raise Fault("limit.json_bytes", limit=limits.json_bytes, found=entry.size)
            with source.open(entry) as reader:
                members[name] = reader.pread(0, reader.size)
        return members


def _known(name: str) -> str:
    if name not in MEMBERS:
        raise Fault("report.member", reason="it holds a file that does not belong in one")
    return name


def _unzipped(reader: Reader, limits: Limits) -> dict[str, bytes]:
    members = {}
    for entry in read_directory(reader, limits).entries:
        name = _known(entry.name)
        if entry.size > limits.json_bytes:
            raise Fault("limit.json_bytes", limit=limits.json_bytes, found=entry.size)
        members[name] = _content(reader, entry)
    return members


def _content(reader: Reader, entry: ZipEntry) -> bytes:
    """Return the bytes of an entry: never more than it declares."""
    if entry.data_offset is None or entry.flags & ENCRYPTED or entry.method not in (STORED, DEFLATED):
        raise Fault("report.member", reason="an entry is stored in a way that no report uses")
    stored = reader.pread(entry.data_offset, entry.compressed)
    if entry.method == DEFLATED:
        machine = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            data = machine.decompress(stored, entry.size + 1)
        except zlib.error:
            raise Fault("report.member", reason="an entry cannot be decompressed") from None
        whole = machine.eof and not machine.unconsumed_tail and not machine.unused_data
    else:
        data, whole = stored, True
    if not whole or len(data) != entry.size or zlib.crc32(data) != entry.crc:
        raise Fault("report.member", reason="an entry is not what the zip says")
    return data


def _compare(members: dict[str, bytes], manifest: ReportManifest) -> None:
    listed = {file.name: file for file in manifest.files}
    for name, data in members.items():
        if name == MANIFEST:
            continue
        file = listed.pop(name, None)
        if file is None or file.bytes != len(data) or file.sha256 != hashlib.sha256(data).hexdigest():
            raise Fault("report.digest", member=name)
    if listed:
        raise Fault("report.member", reason="a file that its manifest lists is missing")


def _document(members: dict[str, bytes], name: str, kind: type[T], schema: str, limits: Limits) -> T:
    value = require_object(parse_json(members[name], limits))
    if value.get("schema") != schema:
        raise Fault("report.member", reason=f"{name} names another schema than {schema}")
    try:
        return msgspec.convert(_harmless(value), kind)
    except msgspec.ValidationError as error:
        raise Fault("document.invalid", schema=schema, problem=str(error)) from None


def _harmless(value: Any) -> Any:
    """Return a JSON value whose strings, keys included, are visible and without secrets: a bundle can say anything."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {shown(key): _harmless(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_harmless(item) for item in value]
    return value
