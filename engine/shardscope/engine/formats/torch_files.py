"""Pickle-backed torch files in the safe plane: what their container tells, with no pickle byte interpreted."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.evidence import Basis, Evidence, EvidenceKind
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted
from shardscope.engine.parse.sniff import TAIL, ends_as_zip

PICKLED: Final = frozenset({Nature.ZIP, Nature.TORCH_LEGACY, Nature.PICKLE, Nature.TAR})
"""What a file of torch.save can be by its first bytes: a zip, the stream from before 1.6, or the tar before that."""


_UNCLEAR: Final = frozenset({Nature.UNKNOWN, Nature.PICKLE, Nature.TORCH_LEGACY})


def has_zip_behind(probe: Probe, entry: Entry, nature: Nature) -> bool:
    """Whether a file that does not begin like a zip ends like one: cut at its head, or two formats in one file."""
    return nature in _UNCLEAR and ends_as_zip(probe.peek(entry, TAIL, -TAIL))


class Containers(Struct, frozen=True):
    """What the containers of some torch files say together."""

    torch: tuple[Entry, ...]
    """Files that are what torch.save writes: its zip records or its legacy stream."""
    pickles: tuple[Entry, ...]
    """Bare pickle streams without a sign of torch."""
    other: tuple[Entry, ...]
    """Files that are something else, or could not be read."""
    storage_bytes: int | None
    """Bytes of all tensor storages where every container is a zip that stores them uncompressed."""
    evidence: tuple[Evidence, ...]


def containers(probe: Probe, files: Sequence[Entry]) -> Containers:
    """Look at the first bytes and, for zips, at the record names of `files`."""
    torch: list[Entry] = []
    pickles: list[Entry] = []
    other: list[Entry] = []
    storage_bytes: int | None = 0
    zips = legacy = 0
    for done, entry in enumerate(files):
        probe.checkpoint("containers", done, len(files), entry)
        sniffed = probe.sniff(entry)
        nature = sniffed.nature if sniffed else Nature.UNKNOWN
        if nature is not Nature.ZIP and has_zip_behind(probe, entry, nature):
            nature = Nature.ZIP
        archive = probe.archive(entry) if nature is Nature.ZIP else None
        if archive is not None:
            torch.append(entry)
            zips += 1
            if storage_bytes is not None:
                storage_bytes += archive.storage_bytes
            continue
        storage_bytes = None
        if nature is Nature.TORCH_LEGACY:
            torch.append(entry)
            legacy += 1
        elif nature in (Nature.PICKLE, Nature.TAR):
            pickles.append(entry)
        else:
            other.append(entry)
            if sniffed is not None and nature is not Nature.ZIP:
                probe.expect(entry, *PICKLED)
    evidence = []
    if zips:
        says = f"{counted(zips, 'zip')} with the records of torch.save"
        evidence.append(Evidence(EvidenceKind.CONTAINER, torch[0].text, says, Basis.OBSERVED))
    if legacy:
        says = f"{counted(legacy, 'file')} with the magic number of torch.save before 1.6"
        evidence.append(Evidence(EvidenceKind.MAGIC, torch[0].text, says, Basis.OBSERVED))
    return Containers(
        tuple(torch), tuple(pickles), tuple(other), storage_bytes if files else None, tuple(evidence)
    )


def report_opaque(probe: Probe, opaque: Sequence[Entry]) -> None:
    """Say once that these files stay opaque."""
    if opaque:
        size = sum(entry.size for entry in opaque)
        probe.report("trust.opaque_pickle", opaque[0], count=len(opaque), size=size, first=opaque[0].text)
