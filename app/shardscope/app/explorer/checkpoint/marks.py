"""Which letters stand beside which files: what the descriptor says about each, for the tree."""

from typing import Final

from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.descriptor import Descriptor, FileRecord
from shardscope.engine.model.source import Inventory
from shardscope.widgets.file_tree import Mark

HOLE: Final = 64 << 10
"""Bytes that a file must hold more than its blocks before it counts as one with holes; compression of a small file is none."""

_BY_SEVERITY: Final = {Severity.ERROR: Mark.ERROR, Severity.WARNING: Mark.WARNING}


def _path(record: FileRecord) -> bytes:
    return record.path.encode() if record.path_bytes is None else bytes.fromhex(record.path_bytes)


def roles(descriptor: Descriptor) -> list[str]:
    """Return what each entry of the inventory is for, in its order."""
    return [record.role for record in descriptor.source.entries]


def marks(descriptor: Descriptor, inventory: Inventory) -> dict[bytes, set[Mark]]:
    """Return the marks of every entry that has one, by its path."""
    found: dict[bytes, set[Mark]] = {}
    for record in descriptor.source.entries:
        letters = set()
        if record.opaque:
            letters.add(Mark.OPAQUE)
        if record.role == "code":
            letters.add(Mark.CODE)
        if record.kind == "file" and record.size - record.allocated >= HOLE:
            letters.add(Mark.HOLES)
        if letters:
            found[_path(record)] = letters
    subjects: dict[str, set[Mark]] = {}
    for each in descriptor.blockers:
        if each.subject is not None and each.severity in _BY_SEVERITY:
            subjects.setdefault(each.subject, set()).add(_BY_SEVERITY[each.severity])
    if subjects:
        for entry in inventory.entries:
            if entry.text in subjects:
                found.setdefault(entry.path, set()).update(subjects[entry.text])
    return found
