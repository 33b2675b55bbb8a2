"""The offline validator: what this package carries, and any document or page that is named, against its own promise."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from shardscope.engine.capabilities import published
from shardscope.engine.capabilities.checks import (
    Register,
    by_id,
    capability_findings,
    glossary_findings,
    matrix_findings,
    register_findings,
    registry_findings,
)
from shardscope.engine.capabilities.claims import page_findings
from shardscope.engine.capabilities.published import SCHEMA_FILES, packaged
from shardscope.engine.capabilities.reading import read_bytes, read_document
from shardscope.engine.capabilities.registry import REGISTRY
from shardscope.engine.model import schemas
from shardscope.engine.model.blocker import Blocker, Fault, Finding, blocker
from shardscope.engine.model.capability import Capability
from shardscope.engine.model.documents import Checked, ValidationDocument, json_schema
from shardscope.engine.model.glossary import Glossary
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.matrix import SupportMatrix
from shardscope.engine.model.sources import SourceRegister
from shardscope.engine.model.text import counted, display_name, path_text
from shardscope.engine.parse.json import parse_json

PAGE: Final = b".md"
_NO_SCHEMA: Final = "not a document that is known"


def validate(
    paths: Sequence[str | os.PathLike[str]] = (), *, limits: Limits | None = None
) -> ValidationDocument:
    """Check the data of this package, then each document or Markdown page at `paths`.

    Nothing is fetched and nothing is written. A file that cannot be read becomes a blocker of its own.
    """
    limits = limits or Limits()
    blockers: list[Blocker] = []
    checked = _carried(blockers)
    for path in paths:
        checked.append(_named(path, limits, blockers))
    return ValidationDocument(schemas.VALIDATION, not blockers, tuple(checked), tuple(blockers))


def _carried(blockers: list[Blocker]) -> list[Checked]:
    """Check the matrix, the glossary, the register, the registry and the schemas that stand beside them."""
    checked: list[Checked] = []

    def check(subject: str, schema: str | None, work: Callable[[], tuple[str, list[Finding]]]) -> None:
        says, found = _held(work, schema)
        blockers.extend(blocker(finding, subject) for finding in found)
        checked.append(Checked(subject, schema, not found, says))

    check("the register of sources", schemas.SOURCES, lambda: _document(published.sources()))
    check("the support matrix", schemas.MATRIX, lambda: _document(published.support_matrix()))
    check("the glossary", schemas.GLOSSARY, lambda: _document(published.glossary()))
    check(
        "the registry of capabilities",
        None,
        lambda: (counted(len(REGISTRY), "row"), registry_findings(REGISTRY)),
    )
    for file, schema in SCHEMA_FILES.items():
        check(file, schema, lambda file=file, schema=schema: _schema(file, schema))  # type: ignore[misc]
    return checked


def _held(work: Callable[[], tuple[str, list[Finding]]], schema: str | None) -> tuple[str, list[Finding]]:
    try:
        return work()
    except Fault as fault:
        return _NO_SCHEMA, [fault.finding]
    except msgspec.ValidationError as error:
        return _NO_SCHEMA, [Finding("document.invalid", {"schema": schema, "problem": str(error)})]


def _schema(file: str, schema: str) -> tuple[str, list[Finding]]:
    same = parse_json(packaged(file), Limits()).value == json_schema(schema)
    return "the schema beside the data", [] if same else [
        Finding("document.schema_stale", {"schema": schema})
    ]


def _named(path: str | os.PathLike[str], limits: Limits, blockers: list[Blocker]) -> Checked:
    raw = os.fsencode(path)
    subject = path_text(raw)
    schema = None
    try:
        data = read_bytes(path, limits)
        if raw.lower().endswith(PAGE):
            says, found = _page(subject, data)
        else:
            schema, document = read_document(data, limits)
            says, found = _document(document)
    except Fault as fault:
        says, found = _NO_SCHEMA, [fault.finding]
    blockers.extend(_about(found, subject))
    return Checked(display_name(subject), schema, not found, says)


def _about(findings: Iterable[Finding], subject: str) -> Iterable[Blocker]:
    for finding in findings:
        params = {name: value for name, value in finding.params.items() if name != "file"}
        yield blocker(Finding(finding.code, params), subject)


def _page(subject: str, data: bytes) -> tuple[str, list[Finding]]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Fault("json.not_utf8", offset=error.start) from None
    return "its claims and citations", list(page_findings(subject, text, _register()))


def _register() -> Register:
    return by_id(published.sources())


def _document(document: Struct) -> tuple[str, list[Finding]]:
    """Return in a clause what a document holds, and what is wrong with it beyond its schema."""
    match document:
        case SupportMatrix():
            cells = sum(1 for row in document.rows for _ in row.each())
            return f"{counted(len(document.rows), 'row')}, {counted(cells, 'cell')}", matrix_findings(
                document, _register()
            )
        case Glossary():
            return counted(len(document.terms), "term"), glossary_findings(document, _register())
        case SourceRegister():
            return counted(len(document.entries), "source"), register_findings(document)
        case Capability():
            return f"the capability {document.id}", capability_findings(document)
    return "its fields", []
