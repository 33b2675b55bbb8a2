"""Checksums of the records that tensors are in, compared on request: every byte is read once, in bounded memory."""

from collections.abc import Iterable

from msgspec import Struct

from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor, Record
from shardscope.engine.model.source import Entry, Reader
from shardscope.engine.parse.record_crc import check_record, checkable


class Checked(Struct, frozen=True):
    """What comparing came to."""

    records: int
    """Compared, good and bad."""
    bytes: int
    """Read for that."""
    damaged: tuple[Record, ...]
    unrecorded: int
    """Records without a checksum, or in a coding that is not undone here."""


def check_records(probe: Probe, tensors: Iterable[LogicalTensor]) -> Checked:
    """Compare each record of some tensors, replicas included, with its recorded checksum, and report those that differ.

    A record that several tensors are in is read once. Raises `Cancelled`.
    """
    named: dict[Record, str] = {}
    for tensor in tensors:
        for fragment in (*tensor.fragments, *tensor.replicas):
            named.setdefault(fragment.record, tensor.name)
    by_file: dict[str, list[Record]] = {}
    for record in named:
        if checkable(record):
            by_file.setdefault(record.file, []).append(record)
    entries = {entry.text: entry for entry in probe.inventory.files}
    total = sum(len(records) for records in by_file.values())
    damaged: list[Record] = []
    done = read = 0
    for file, records in by_file.items():
        entry = entries[file]
        records.sort(key=lambda record: record.begin)
        bad, size = _check_file(probe, entry, records, named, done, total)
        damaged += bad
        read += size
        done += len(records)
    return Checked(total, read, tuple(damaged), len(named) - total)


def _check_file(
    probe: Probe, entry: Entry, records: list[Record], named: dict[Record, str], done: int, total: int
) -> tuple[list[Record], int]:
    bad: list[Record] = []
    read = 0

    def count(size: int) -> None:
        nonlocal read
        read += size
        probe.checkpoint("checksums", done, total, entry)

    def check(reader: Reader) -> None:
        for record in records:
            try:
                check_record(reader, record, count)
            except Fault as fault:
                if fault.finding.code != "torch.record_crc":
                    raise
                bad.append(record)

    probe.guarded(entry, check)
    if bad:
        probe.report(
            "torch.record_crc", entry, count=len(bad), record=f"{named[bad[0]]}, at byte {bad[0].begin:,}"
        )
    return bad, read
