"""The documents beside the descriptor, and the JSON Schema of each.

`shardscope schema NAME` prints the schemas; a command in `--json` mode prints exactly one of these documents.
"""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from shardscope.engine.model import schemas
from shardscope.engine.model.anatomy import ModelDocument
from shardscope.engine.model.bench import BenchDocument
from shardscope.engine.model.blocker import Blocker, Code, Param
from shardscope.engine.model.bundle import BundleDocument
from shardscope.engine.model.capability import Capability
from shardscope.engine.model.decoded import Component, Listed
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.difference import DiffDocument
from shardscope.engine.model.file_layout import FileLayout
from shardscope.engine.model.fix import FixDocument
from shardscope.engine.model.glossary import Glossary
from shardscope.engine.model.leftovers import LeftoversDocument
from shardscope.engine.model.lowered import IndexList, LoweredDocument, LoweredTensor, ShardGroup
from shardscope.engine.model.manifest import Manifest, RenamesDocument, Run, VerificationDocument
from shardscope.engine.model.mapdocuments import (
    MapAppliedDocument,
    MapCheckDocument,
    MapDifferenceDocument,
    MapExplanationDocument,
    TransferDocument,
)
from shardscope.engine.model.mapping import MappingDocument
from shardscope.engine.model.matrix import SupportMatrix
from shardscope.engine.model.outline import PicklesDocument
from shardscope.engine.model.peek import PeekDocument
from shardscope.engine.model.piece import Piece
from shardscope.engine.model.plan import Plan
from shardscope.engine.model.reports import Report, ReportBundle, ReportDifference, ReportManifest
from shardscope.engine.model.scan import ScanDocument
from shardscope.engine.model.settings import SettingsDocument
from shardscope.engine.model.shardmap import ShardMapDocument
from shardscope.engine.model.sources import SourceRegister
from shardscope.engine.model.staging import Marker
from shardscope.engine.model.tensors import TensorSpec
from shardscope.engine.model.watch import WatchEvent


class TensorsDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """The tensors that could be listed without decoding anything."""

    schema: str
    count: int
    """How many are listed here, after `--filter`."""
    opaque_files: int
    """Files whose tensors, if they hold any, are not listed because they would need decoding."""
    tensors: tuple[TensorSpec, ...]
    """Names are exact, ranges half-open in bytes of the file."""


class StoredFragment(Struct, frozen=True, forbid_unknown_fields=True):
    """Where one fragment of a decoded tensor is stored."""

    label: int
    """Of its shard in the tensor's map."""
    shape: tuple[int, ...]
    file: str
    begin: int
    """First byte, in the file, of the record that holds it."""
    length: int
    """Bytes of that record in the file."""
    coding: str
    """`plain`; otherwise what the record has to go through before `offset` means anything."""
    offset: int
    """Of the fragment's first element, in bytes of the decoded record."""
    strides: tuple[int, ...] | None
    """In elements; null where it is row-major."""
    dtype: str | None
    """Where it is another than the tensor's."""
    big_endian: bool
    crc: int | None
    """CRC-32 of the decoded record, where it is recorded."""


class CatalogueTensor(Struct, frozen=True, forbid_unknown_fields=True):
    """One decoded tensor, whole."""

    name: str
    """Exact."""
    dtype: str
    shape: tuple[int, ...]
    bytes: int | None
    """Of the whole tensor; null for a type of unknown size."""
    component: Component
    role: str
    alias_of: str | None
    """The tensor that it shares all its bytes with."""
    stored_shape: tuple[int, ...] | None
    """With the padding that its writer added, where there is any."""
    files: tuple[str, ...]
    """That hold it, relative and neutralised."""
    fragments: int
    replicas: int
    note: str | None
    map: LoweredTensor | UnsetType = UNSET
    """With `--fragments`: how the fragments make it up."""
    stored: tuple[StoredFragment, ...] | UnsetType = UNSET
    """With `--fragments`."""


class RefusedTensor(Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor that is described and has no elements that could be read or written."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    component: Component
    why: str


class CatalogueDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """The tensors of a checkpoint of which pickles were decoded."""

    schema: str
    component: Listed
    count: int
    """How many are listed here, after `--filter`."""
    opaque_files: int
    """Files that could not be decoded."""
    refused: tuple[RefusedTensor, ...]
    tensors: tuple[CatalogueTensor, ...]


class CodesDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """Rows of the table of codes."""

    schema: str
    codes: tuple[Code, ...]


class SchemasDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """The names that `shardscope schema` knows."""

    schema: str
    schemas: tuple[str, ...]


class ErrorBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Why there is no other document."""

    code: str
    message: str
    remedy: str
    subject: str | None
    params: dict[str, Param]
    stage: str
    """The first stage that failed: of a conversion the one that ran, otherwise that of the code."""
    notes: tuple[str, ...] = ()
    """What became of what had been begun, a sentence each."""


class ErrorDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """What stands on standard output in place of the document asked for. `exit` is the exit code of the process."""

    schema: str
    error: ErrorBody
    exit: int


class AskedPath(Struct, frozen=True, forbid_unknown_fields=True):
    """One of several paths, and what came of it."""

    path: str
    """As it was given, neutralised."""
    exit: int
    """The exit code that it alone would give."""
    error: ErrorBody | None
    """Why there is no descriptor of it; null where there is one."""


class DescriptorsDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """What `shardscope inspect --json` prints about several paths."""

    schema: str
    descriptors: tuple[Descriptor | None, ...]
    """In the order of the paths; null where nothing could be examined."""
    asked: tuple[AskedPath, ...]
    """The paths in the same order."""


class Checked(Struct, frozen=True, forbid_unknown_fields=True):
    """One document or table that was held against its schema and its rules."""

    subject: str
    """What it is called, or its path, neutralised."""
    schema: str | None
    """Null for what has none: a page of text, the registry, a file that could not be read."""
    valid: bool
    says: str
    """One clause: what was looked at."""


class ValidationDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """What `shardscope validate` looked at and what it found."""

    schema: str
    valid: bool
    checked: tuple[Checked, ...]
    blockers: tuple[Blocker, ...]


DOCUMENTS: Final[dict[str, type[Struct]]] = {
    schemas.DESCRIPTOR: Descriptor,
    schemas.DESCRIPTORS: DescriptorsDocument,
    schemas.WATCH: WatchEvent,
    schemas.TENSORS: TensorsDocument,
    schemas.CATALOGUE: CatalogueDocument,
    schemas.LAYOUT: FileLayout,
    schemas.PICKLES: PicklesDocument,
    schemas.CODES: CodesDocument,
    schemas.SCHEMAS: SchemasDocument,
    schemas.ERROR: ErrorDocument,
    schemas.CAPABILITY: Capability,
    schemas.MATRIX: SupportMatrix,
    schemas.GLOSSARY: Glossary,
    schemas.SOURCES: SourceRegister,
    schemas.VALIDATION: ValidationDocument,
    schemas.SHARD_MAP: ShardMapDocument,
    schemas.LOWERED: LoweredDocument,
    schemas.MAP_CHECK: MapCheckDocument,
    schemas.MAP_EXPLANATION: MapExplanationDocument,
    schemas.TRANSFER: TransferDocument,
    schemas.MAP_DIFFERENCE: MapDifferenceDocument,
    schemas.MAP_APPLIED: MapAppliedDocument,
    schemas.PLAN: Plan,
    schemas.FIX: FixDocument,
    schemas.RENAMES: RenamesDocument,
    schemas.MANIFEST: Manifest,
    schemas.RUN: Run,
    schemas.VERIFICATION: VerificationDocument,
    schemas.DIFF: DiffDocument,
    schemas.PEEK: PeekDocument,
    schemas.SCAN: ScanDocument,
    schemas.MODEL: ModelDocument,
    schemas.MAPPING: MappingDocument,
    schemas.BUNDLE: BundleDocument,
    schemas.STAGING: Marker,
    schemas.REPORT: Report,
    schemas.REPORT_MANIFEST: ReportManifest,
    schemas.REPORT_BUNDLE: ReportBundle,
    schemas.REPORT_DIFFERENCE: ReportDifference,
    schemas.LEFTOVERS: LeftoversDocument,
    schemas.SETTINGS: SettingsDocument,
    schemas.BENCH: BenchDocument,
}
"""The struct of each document, by its schema name."""


_SPARE: Final = {kind.__name__ for kind in (Piece, IndexList, ShardGroup, LoweredTensor)}
"""Structs that leave out fields with their defaults, wherever they stand."""


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the document `name`: strict, no field beyond those listed."""
    (reference,), definitions = msgspec.json.schema_components(
        [DOCUMENTS[name]], ref_template="#/$defs/{name}"
    )
    for title, definition in definitions.items():
        if "properties" in definition:
            definition["additionalProperties"] = False
            if name not in schemas.AUTHORED and title not in _SPARE:
                # A struct's default serves whoever decodes it; the encoder writes the field, unless it is UNSET.
                without = definition.get("required", ())
                definition["required"] = [
                    key
                    for key, value in definition["properties"].items()
                    if key in without or "default" in value
                ]
    root = definitions[DOCUMENTS[name].__name__]
    root["properties"]["schema"] = {"const": name}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        **reference,
        "$defs": definitions,
    }
