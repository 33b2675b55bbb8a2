"""Documents from outside, read without following a link, within bounds, and strictly by the schema that they name."""

import os
from typing import TypeVar

import msgspec
from msgspec import Struct

from shardscope.engine.capabilities.checks import capability_findings
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.capability import Capability
from shardscope.engine.model.documents import DOCUMENTS
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.text import path_text
from shardscope.engine.parse.json import parse_json, require_object
from shardscope.engine.source.source import Source

T = TypeVar("T", bound=Struct)


def read_bytes(path: str | os.PathLike[str], limits: Limits) -> bytes:
    """Return a whole file of at most `Limits.json_bytes`.

    Raises `Fault`: what `Source` raises, `document.folder`, `limit.json_bytes`.
    """
    shown = path_text(os.fsencode(path))
    with Source(path, limits=limits) as source:
        if source.root.file is None:
            raise Fault("document.folder", file=shown)
        (entry,) = source.walk().entries
        if entry.size > limits.json_bytes:
            raise Fault("limit.json_bytes", file=shown, limit=limits.json_bytes, found=entry.size)
        with source.open(entry) as reader:
            return reader.pread(0, reader.size)


def read_document(data: bytes, limits: Limits) -> tuple[str, Struct]:
    """Return the schema that a document names, and the document.

    Raises `Fault`: what the JSON parser raises, `document.schema_unnamed`, `document.schema_unknown`,
    `document.invalid`.
    """
    value = require_object(parse_json(data, limits))
    name = value.get("schema")
    if not isinstance(name, str):
        raise Fault("document.schema_unnamed")
    if name not in DOCUMENTS:
        raise Fault("document.schema_unknown", found=name)
    try:
        return name, msgspec.convert(value, DOCUMENTS[name])
    except msgspec.ValidationError as error:
        raise Fault("document.invalid", schema=name, problem=str(error)) from None


def read_as(path: str | os.PathLike[str], kind: type[T], limits: Limits | None = None) -> T:
    """Return the file at `path` as the document that `kind` is.

    Raises `Fault`: what `read_bytes` and `read_document` raise, `document.schema_other`; each names the file.
    """
    limits = limits or Limits()
    shown = path_text(os.fsencode(path))
    try:
        name, document = read_document(read_bytes(path, limits), limits)
        if not isinstance(document, kind):
            wanted = next(schema for schema, struct in DOCUMENTS.items() if struct is kind)
            raise Fault("document.schema_other", found=name, wanted=wanted)
    except Fault as fault:
        raise Fault(fault.finding.code, **{"file": shown, **fault.finding.params}) from None
    return document


def read_capability(path: str | os.PathLike[str], limits: Limits | None = None) -> Capability:
    """Return the capability that the file at `path` describes.

    Raises `Fault`: what `read_as` raises, `capability.format_unknown`, `capability.revision_missing`.
    """
    document = read_as(path, Capability, limits)
    for finding in capability_findings(document):
        raise Fault(finding.code, **{"file": path_text(os.fsencode(path)), **finding.params})
    return document
