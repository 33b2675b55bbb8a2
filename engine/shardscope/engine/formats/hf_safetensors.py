"""Hugging Face safetensors: one file, numbered shards with an index, variants, several sets side by side.

File names follow huggingface_hub (`model.safetensors`, `model-00001-of-00003.safetensors`,
`model.safetensors.index.json`, variants as `model.fp16.safetensors` with `model.safetensors.index.fp16.json`), but any
file with a valid safetensors header that no specific family claims is described here.
"""

from typing import Final

from shardscope.engine.formats import model_config
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.hf_index import CrossCheck, Index, read_index
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.formats.set_checks import check_group, report_sets
from shardscope.engine.formats.weight_sets import WeightSet, layout_of, weight_sets
from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.descriptor import Component, ProducerFact
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.text import counted

SUFFIX: Final = "safetensors"


class HfSafetensors:
    """The family `hf_safetensors`."""

    name = "hf_safetensors"
    general = True

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim every safetensors file of the folder that is left, and every index that names such files."""
        layout = layout_of(folder, SUFFIX)
        files = layout.files
        if not files and not layout.indexes:
            return None
        if not files and probe.inventory.root_is_file:
            return Alternative(self.name, "an index on its own: inspect the folder that holds its files")
        evidence = []
        if files:
            says = f"{counted(len(files), 'file')} named *.safetensors"
            evidence.append(Evidence(EvidenceKind.NAME, files[0].text, says, Basis.INFERRED))
        evidence += [
            Evidence(EvidenceKind.NAME, entry.text, "named like the index of a sharded save", Basis.INFERRED)
            for entry, _ in layout.indexes
        ]
        return Claim(
            self.name,
            folder.path,
            (*files, *(entry for entry, _ in layout.indexes)),
            Confidence.LOW,
            tuple(evidence),
        )

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """List the tensors of every set; check index, numbers and headers against each other."""
        folder = probe.folder(claim.folder)
        layout = layout_of(folder.only(claim.files), SUFFIX)
        indexes = [read_index(probe, entry) for entry, _ in layout.indexes]
        sets = weight_sets(layout, [index.files if index else () for index in indexes])
        by_entry = {index.entry.path: index for index in indexes if index is not None}
        check_group(probe, layout)
        readings = [
            _read_set(probe, found, by_entry.get(found.index.path) if found.index else None) for found in sets
        ]
        report_sets(
            probe,
            claim.folder,
            [found.key for found, reading in zip(sets, readings, strict=True) if reading.files],
        )
        config = model_config.describe(probe, folder)
        tensors = sum(reading.tensors for reading in readings)
        weight_bytes = (
            sum(reading.bytes for reading in readings)
            if all(reading.complete for reading in readings)
            else None
        )
        confidence, evidence = _weigh(readings, config)
        state = StatePart(
            Presence.PRESENT if tensors else Presence.UNKNOWN,
            Basis.OBSERVED if tensors else Basis.UNKNOWN,
            f"{counted(tensors, 'tensor')} in {counted(sum(len(r.files) for r in readings), 'readable file')}",
        )
        components = [reading.component(found) for found, reading in zip(sets, readings, strict=True)]
        producer = tuple(fact for reading in readings[:1] for fact in reading.producer)
        return Facts(
            confidence=confidence,
            evidence=(*evidence, *config.evidence),
            components=(*components, *config.components),
            producer=(*config.producer, *producer),
            state=scope_of(folder.files.values(), state),
            code_references=config.code_references,
            weight_bytes=weight_bytes,
        )


class _Reading:
    """What the headers of one set said."""

    def __init__(self) -> None:
        self.files: list[Entry] = []
        self.tensors = 0
        self.bytes = 0
        self.complete = True
        self.agrees = True
        self.indexed = False
        self.producer: list[ProducerFact] = []

    def component(self, found: WeightSet) -> Component:
        files = (*((found.index,) if found.index else ()), *found.files)
        return Component(
            kind="weights",
            name=found.key or "(unnamed)",
            format=HfSafetensors.name,
            files=tuple(entry.text for entry in files),
            bytes=sum(entry.size for entry in files),
            note=None if self.complete else "not whole: see the blockers",
        )


def _read_set(probe: Probe, found: WeightSet, index: Index | None) -> _Reading:
    reading = _Reading()
    check = CrossCheck(probe, index) if index is not None else None
    if check is not None:
        reading.indexed = True
        reading.complete = not check.absent()
    elif found.index is not None:
        reading.complete = False
    files = sorted(
        {e.path: e for e in (*found.files, *(check.files if check else ()))}.values(), key=lambda e: e.path
    )
    first_row = len(probe.tensors)
    for done, entry in enumerate(files):
        probe.checkpoint("headers", done, len(files), entry)
        header = probe.header(entry)
        if header is None:
            reading.complete = False
            if check is not None:
                check.unreadable(entry)
            continue
        reading.files.append(entry)
        reading.tensors += len(header.names)
        reading.bytes += header.data_end - header.data_begin
        if any(CODES[finding.code].severity is Severity.ERROR for finding in header.notes):
            reading.complete = False
        if check is not None:
            reading.agrees = check.compare(entry, header) and reading.agrees
        if not reading.producer:
            reading.producer += model_config.producer_of(entry, header.metadata)
        model_config.check_metadata(probe, entry, header.metadata)
        probe.catalogue(entry, header)
    if len(reading.files) > 1 and not (reading.indexed and reading.agrees):
        reading.agrees = not _report_duplicates(probe, first_row) and reading.agrees
    if check is not None:
        check.total()
    elif found.index is None and found.group is not None and len(found.files) > 1:
        pattern = f"{found.key}-*-of-*.{SUFFIX}"
        probe.report("index.absent", found.files[0], count=len(found.files), pattern=pattern)
    return reading


def _report_duplicates(probe: Probe, first_row: int) -> bool:
    """Report names that more than one file of a set holds; tell whether there was any.

    Needed only where an index does not already prove that each name has one file.
    """
    names = probe.tensors.names[first_row:]
    if len(set(names)) == len(names):
        return False
    seen: dict[str, int] = {}
    twice = [(seen[name], row) for row, name in enumerate(names) if seen.setdefault(name, row) != row]
    first, second = (probe.tensors[first_row + row] for row in twice[0])
    count = len(twice)
    probe.report("index.tensor_duplicate", first.file, count=count, tensor=first.name, target=second.file)
    return True


def _weigh(readings: list[_Reading], config: model_config.ConfigReading) -> tuple[Confidence, list[Evidence]]:
    read = [entry for reading in readings for entry in reading.files]
    if not read:
        return Confidence.LOW, []
    says = f"{counted(len(read), 'valid safetensors header')}"
    evidence = [Evidence(EvidenceKind.HEADER, read[0].text, says, Basis.OBSERVED)]
    indexed = [reading for reading in readings if reading.indexed]
    whole = all(reading.complete and reading.agrees for reading in readings)
    if indexed:
        agree = all(reading.complete and reading.agrees for reading in indexed)
        says = "index, files and headers agree entry by entry" if agree else "index and files disagree"
        evidence.append(Evidence(EvidenceKind.STRUCTURE, read[0].text, says, Basis.OBSERVED))
    if whole and (indexed or config.recognised):
        return Confidence.HIGH, evidence
    return Confidence.MEDIUM, evidence


HF_SAFETENSORS: Final = HfSafetensors()
