"""Keras models: `.keras` archives and HDF5 files. Recognised only.

A `.keras` archive is a zip with `metadata.json`, `config.json` and `model.weights.h5` (Keras `saving/saving_lib.py`). The HDF5
signature says nothing about who wrote a file: that Keras did is inferred from its name.
"""

import re
from typing import Final

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.recognised_only import magic, named, part, unread
from shardscope.engine.formats.set_checks import report_sets
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted

_SUFFIXES: Final = ("keras", "h5", "hdf5")
_RECORDS: Final = ("metadata.json", "config.json", "model.weights.h5")
_KERAS_NAME: Final = re.compile(r"(.+[._])?(weights|model)([._-].*)?\.(h5|hdf5)", re.IGNORECASE)


class Keras:
    """The family `keras`."""

    name = "keras"
    general = False
    hint = Hint(_SUFFIXES)

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim `*.keras` and HDF5 files."""
        files = folder.with_suffix(*_SUFFIXES)
        if not files:
            return None
        evidence = named(files[0], f"{counted(len(files), 'file')} named *.keras, *.h5 or *.hdf5")
        return Claim(self.name, folder.path, tuple(files), Confidence.LOW, (evidence,))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Look at the record names of archives and at the signature of HDF5 files."""
        evidence: list[Evidence] = []
        seen = 0
        for entry in claim.files:
            archive = entry.name.casefold().endswith(".keras")
            found = _archive(probe, entry) if archive else _hdf5(probe, entry)
            if found is not None:
                evidence.append(found)
                seen += archive or _KERAS_NAME.fullmatch(entry.name) is not None
        report_sets(probe, claim.folder, [entry.name for entry in claim.files])
        return unread(
            probe,
            claim,
            claim.files,
            seen=bool(seen) and seen == len(claim.files),
            evidence=evidence,
            components=[part(claim, entry.name, [entry]) for entry in claim.files],
        )


def _archive(probe: Probe, entry: Entry) -> Evidence | None:
    sniff = probe.sniff(entry)
    if sniff is None or sniff.nature is not Nature.ZIP:
        probe.expect(entry, Nature.ZIP)
        return None
    directory = probe.directory(entry)
    if directory is None:
        return None
    names = {record.name for record in directory.entries}
    missing = [name for name in _RECORDS if name not in names]
    if missing:
        probe.report("keras.archive", entry, missing=len(missing))
        return None
    return Evidence(EvidenceKind.CONTAINER, entry.text, "a zip with the records of Keras", Basis.OBSERVED)


def _hdf5(probe: Probe, entry: Entry) -> Evidence | None:
    sniff = probe.sniff(entry)
    if sniff is None:
        return None
    if sniff.nature is not Nature.HDF5:
        probe.expect(entry, Nature.HDF5)
        return None
    return magic(entry, "the signature of HDF5, which Keras and others write")


KERAS: Final = Keras()
