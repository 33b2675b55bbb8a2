"""What the types of the data cannot say: seven rows, eight terms, seven items, and sources that carry their claims."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from shardscope.engine.capabilities.claims import VENDOR_WORDS, sentences, wording_findings
from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.capability import PINNED_BY_REVISION, Capability, Row
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.glossary import Glossary, Reading, Term
from shardscope.engine.model.matrix import (
    COLUMNS,
    SUBJECTS,
    Cell,
    Dependence,
    MatrixRow,
    SupportMatrix,
    Word,
)
from shardscope.engine.model.qualification import Qualification
from shardscope.engine.model.sources import SourceEntry, SourceGroup, SourceKind, SourceRegister, Standing

Register = Mapping[str, SourceEntry]

TERMS: Final = (
    "hf-file-shard",
    "safetensors-byte-range",
    "device-map",
    "offload",
    "dcp-fsdp-state",
    "megatron-offset",
    "deepspeed-state",
    "live-multi-node",
)
"""The eight terms, in order."""

CLAIMS_OF_OURS: Final = (
    Word.SUPPORTED,
    Word.EXPERIMENTAL,
    Word.CONDITIONAL,
    Word.CANONICAL,
    Word.PREFLIGHT_ONLY,
)
"""Words that say something of this product: they need evidence of this project."""


def by_id(register: SourceRegister) -> dict[str, SourceEntry]:
    """Return the entries of the register by their ids."""
    return {entry.id: entry for entry in register.entries}


def matrix_findings(matrix: SupportMatrix, register: Register) -> list[Finding]:
    """Return what is wrong with the matrix beyond its schema."""
    findings = [
        *_in_order("rows", [row.id for row in matrix.rows], SUBJECTS),
        *_in_order("columns", [column.id for column in matrix.columns], COLUMNS),
        *_in_order(
            "vocabulary", [each.word.value for each in matrix.vocabulary], [word.value for word in Word]
        ),
        *_said("the support matrix", matrix),
    ]
    for row in matrix.rows:
        findings += _row_findings(row, register)
    return findings


def _in_order(what: str, found: Sequence[str], wanted: Sequence[str]) -> Iterator[Finding]:
    if tuple(found) != tuple(wanted):
        yield Finding("matrix.shape", {"what": what, "problem": _difference(found, wanted)})


def _difference(found: Sequence[str], wanted: Sequence[str]) -> str:
    parts = [
        f"{word} {', '.join(names)}"
        for word, names in (
            ("absent:", [name for name in wanted if name not in found]),
            ("unknown:", [name for name in found if name not in wanted]),
            ("twice:", [name for name, count in Counter(found).items() if count > 1]),
        )
        if names
    ]
    return "; ".join(parts) or "they stand in another order"


def _row_findings(row: MatrixRow, register: Register) -> Iterator[Finding]:
    for name in row.formats:
        if name not in FORMAT_TITLES:
            yield Finding("matrix.format_unknown", {"row": row.id, "found": name})
    words = [cell.word for _, cell in row.each()]
    missing = (row.qualification or Qualification()).missing()
    if Word.SUPPORTED in words and missing:
        yield Finding("matrix.unqualified", {"row": row.id, "items": ", ".join(missing)})
    for column, cell in row.each():
        yield from _cell_findings(f"{row.id} / {column}", cell, register)


def _cell_findings(where: str, cell: Cell, register: Register) -> Iterator[Finding]:
    absent = [each.value for each in Dependence if each not in cell.depends_on]
    if cell.word is Word.CONDITIONAL and absent:
        yield Finding("matrix.dependence_missing", {"cell": where, "items": ", ".join(absent)})
    yield from _source_findings(where, cell.sources, register)
    ours = any(entry.group is SourceGroup.PROJECT for entry in _known(cell.sources, register))
    if cell.word in CLAIMS_OF_OURS and not ours:
        yield Finding("claims.source_foreign", {"where": where, "found": cell.word.value})


def _source_findings(where: str, ids: Sequence[str], register: Register) -> Iterator[Finding]:
    for name in ids:
        if name not in register:
            yield Finding("claims.source_unknown", {"where": where, "found": name})
    entries = list(_known(ids, register))
    names = ", ".join(entry.id for entry in entries)
    if entries and all(entry.standing is Standing.HISTORICAL for entry in entries):
        yield Finding("claims.source_weak", {"where": where, "found": names, "problem": "it is historical"})
    elif entries and all(
        entry.kind is SourceKind.TUTORIAL or entry.standing is Standing.HISTORICAL for entry in entries
    ):
        yield Finding(
            "claims.source_weak", {"where": where, "found": names, "problem": "a tutorial illustrates"}
        )


def _known(ids: Iterable[str], register: Register) -> Iterator[SourceEntry]:
    return (register[name] for name in ids if name in register)


def glossary_findings(glossary: Glossary, register: Register) -> list[Finding]:
    """Return what is wrong with the glossary beyond its schema."""
    found = [term.id for term in glossary.terms]
    findings = list(_said("the glossary", glossary))
    if tuple(found) != TERMS:
        findings.append(Finding("glossary.terms", {"problem": _difference(found, TERMS)}))
    for term in glossary.terms:
        findings += _term_findings(f"the term {term.id}", term, register)
    return findings


def _term_findings(where: str, term: Term, register: Register) -> Iterator[Finding]:
    yield from _source_findings(where, term.sources, register)
    if term.reading is Reading.DOCUMENTED:
        if not VENDOR_WORDS.search(term.meaning):
            problem = "a vendor documents, defines or currently implements"
            yield Finding(
                "claims.wording",
                {"where": where, "rule": 1, "problem": problem, "sentence": term.meaning},
            )
    elif not any(entry.group is SourceGroup.PROJECT for entry in _known(term.sources, register)):
        yield Finding("claims.source_foreign", {"where": where, "found": term.reading.value})


def register_findings(register: SourceRegister) -> list[Finding]:
    """Return what is wrong with the register beyond its schema."""
    findings = list(_said("the register of sources", register))
    twice = [name for name, count in Counter(entry.id for entry in register.entries).items() if count > 1]
    findings += [Finding("register.twice", {"found": name}) for name in twice]
    numbers = [rule.number for rule in register.rules]
    if numbers != list(range(1, len(numbers) + 1)):
        findings.append(Finding("register.rules", {"found": ", ".join(map(str, numbers))}))
    return findings


def capability_findings(capability: Capability) -> list[Finding]:
    """Return what makes a capability inexact, though its schema holds."""
    findings = []
    if capability.format not in FORMAT_TITLES:
        findings.append(Finding("capability.format_unknown", {"found": capability.format}))
    if capability.format.startswith(PINNED_BY_REVISION) and capability.producer_revision is None:
        findings.append(Finding("capability.revision_missing", {"producer": capability.producer}))
    return findings


def registry_findings(rows: Sequence[Row]) -> list[Finding]:
    """Return what keeps rows from standing in the registry: an item that was not retained, an inexact capability."""
    findings = []
    for row in rows:
        findings += capability_findings(row.capability)
        if missing := row.retained.missing():
            items = ", ".join(missing)
            findings.append(
                Finding("capability.unqualified", {"capability": row.capability.id, "items": items})
            )
    return findings


def _said(where: str, document: Struct) -> Iterator[Finding]:
    """Yield the wording of every text in a document, wherever it stands."""
    for text in _texts(document):
        yield from wording_findings(where, text)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from sentences(value)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _texts(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item)
