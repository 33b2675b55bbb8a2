"""Files of a source by the names that records have: those that are shown, so that two may share one."""

from collections.abc import Iterable, Mapping

from shardscope.engine.convert.copies.contents import Opener
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.source import Entry, Inventory
from shardscope.engine.source.source import Source


def entries_by_name(entries: Iterable[Entry]) -> dict[str, Entry | None]:
    """Return entries by the names that records have; null for a name that two of them share."""
    found: dict[str, Entry | None] = {}
    for entry in entries:
        found[entry.text] = None if entry.text in found else entry
    return found


def entry_of(by_name: Mapping[str, Entry | None], name: str) -> Entry:
    """Return the entry of a record's file. Raises `Fault` `convert.file_unclear`."""
    entry = by_name.get(name)
    if entry is None:
        raise Fault("convert.file_unclear", file=name)
    return entry


def opener_of(source: Source, inventory: Inventory) -> Opener:
    """Return what opens files of the source by their shown names. Two files that are shown alike are opened by neither."""
    entries = entries_by_name(inventory.files)
    return lambda name: source.open(entry_of(entries, name))
