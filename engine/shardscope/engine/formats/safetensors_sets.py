"""The headers of safetensors weight sets: read file by file, checked against index and numbers, and weighed.

Whatever family a set belongs to, its files are read here.
"""

from collections.abc import Sequence
from typing import Final

from shardscope.engine.formats import model_config
from shardscope.engine.formats.hf_index import CrossCheck, Index, read_index
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.set_checks import check_group, report_sets
from shardscope.engine.formats.weight_sets import Layout, WeightSet, weight_sets
from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.descriptor import Component, ProducerFact
from shardscope.engine.model.evidence import Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.text import counted, display_name

SUFFIX: Final = "safetensors"


class SetReading:
    """What the headers of one weight set said."""

    def __init__(self) -> None:
        self.files: list[Entry] = []
        self.tensors = 0
        self.bytes = 0
        self.complete = True
        self.agrees = True
        self.indexed = False
        self.producer: list[ProducerFact] = []

    def component(self, found: WeightSet, format_name: str) -> Component:
        """The set as a part of the checkpoint."""
        files = (*((found.index,) if found.index else ()), *found.files)
        return Component(
            kind="weights",
            name=display_name(found.key) or "(unnamed)",
            format=format_name,
            files=tuple(entry.text for entry in files),
            bytes=sum(entry.size for entry in files),
            note=None if self.complete else "not whole: see the blockers",
        )


def read_sets(probe: Probe, folder: bytes, layout: Layout) -> tuple[list[WeightSet], list[SetReading]]:
    """Read every header of the sets of a layout; check index, numbers and headers against each other."""
    indexes = [read_index(probe, entry) for entry, _ in layout.indexes]
    sets = weight_sets(layout, [index.files if index else () for index in indexes])
    by_entry = {index.entry.path: index for index in indexes if index is not None}
    check_group(probe, layout)
    readings = [
        _read_set(probe, found, by_entry.get(found.index.path) if found.index else None) for found in sets
    ]
    report_sets(
        probe, folder, [found.key for found, reading in zip(sets, readings, strict=True) if reading.files]
    )
    return sets, readings


def _read_set(probe: Probe, found: WeightSet, index: Index | None) -> SetReading:
    reading = SetReading()
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
    harmless: dict[str, str] = {}
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
        if header.metadata != harmless and model_config.check_metadata(probe, entry, header.metadata):
            harmless = header.metadata  # a writer repeats it in every file
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


def weigh_sets(readings: Sequence[SetReading], recognised: bool) -> tuple[Confidence, list[Evidence]]:
    """Return how sure the headers make us, and what they say. `recognised`: a configuration beside them names the model."""
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
    if whole and (indexed or recognised):
        return Confidence.HIGH, evidence
    return Confidence.MEDIUM, evidence


def weights_part(readings: Sequence[SetReading]) -> StatePart:
    """Return the weights' part of the state scope."""
    tensors = sum(reading.tensors for reading in readings)
    return StatePart(
        Presence.PRESENT if tensors else Presence.UNKNOWN,
        Basis.OBSERVED if tensors else Basis.UNKNOWN,
        f"{counted(tensors, 'tensor')} in {counted(sum(len(r.files) for r in readings), 'readable file')}",
    )


def weight_bytes(readings: Sequence[SetReading]) -> int | None:
    """Return the bytes of all tensors; None where a set is not whole."""
    if not all(reading.complete for reading in readings):
        return None
    return sum(reading.bytes for reading in readings)
