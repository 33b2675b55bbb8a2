"""NumPy arrays: `.npy` files and `.npz` archives. Recognised only.

The magic, version and header length are those of NumPy's format document (`lib/format.py`); an `.npz` is a zip of `.npy`
records. An array of Python objects is a pickle inside, and the header says so.
"""

import re
from typing import Final

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.recognised_only import magic, named, part, unread
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted

_SUFFIXES: Final = ("npy", "npz")
_OBJECTS: Final = re.compile(rb"['\"][|<>=]?O\d*['\"]")
_LOOKED: Final = 256
"""Single arrays of one folder whose header is looked at; folders of data sets hold very many."""


class NumpyArrays:
    """The family `numpy`."""

    name = "numpy"
    general = True
    hint = Hint(_SUFFIXES)

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim the arrays that no specific family took."""
        files = folder.with_suffix(*_SUFFIXES)
        if not files:
            return None
        evidence = named(files[0], f"{counted(len(files), 'file')} named *.npy or *.npz")
        return Claim(self.name, folder.path, tuple(files), Confidence.LOW, (evidence,))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Look at the first bytes of arrays and at the record names of archives."""
        evidence: list[Evidence] = []
        components = []
        singles = [entry for entry in claim.files if entry.name.casefold().endswith(".npy")]
        archives = [entry for entry in claim.files if entry.name.casefold().endswith(".npz")]
        good = sum(_is_array(probe, entry) for entry in singles[:_LOOKED])
        if good:
            of = f" of {len(singles):,}" if len(singles) > _LOOKED else ""
            says = f"the magic of NumPy in {counted(good, 'file')}{of}"
            evidence.append(magic(singles[0], says))
        if singles:
            components.append(part(claim, "arrays", singles, kind="arrays"))
        for entry in archives:
            arrays = _arrays_in(probe, entry)
            if arrays is not None:
                says = f"a zip of {counted(arrays, 'array')}"
                evidence.append(Evidence(EvidenceKind.CONTAINER, entry.text, says, Basis.OBSERVED))
            note = counted(arrays, "array") if arrays is not None else ""
            components.append(part(claim, entry.name, [entry], kind="arrays", note=note))
        return unread(
            probe, claim, claim.files, seen=bool(evidence), evidence=evidence, components=components
        )


def _is_array(probe: Probe, entry: Entry) -> bool:
    sniff = probe.sniff(entry)
    if sniff is None:
        return False
    if sniff.nature is not Nature.NUMPY:
        if sniff.nature is Nature.UNKNOWN:
            probe.report("numpy.header", entry)
        else:
            probe.expect(entry, Nature.NUMPY)
        return False
    head = probe.peek(entry)
    major = head[6] if len(head) > 6 else 0
    begin = 10 if major == 1 else 12
    length = int.from_bytes(head[8:begin], "little")
    if major not in (1, 2, 3) or len(head) < begin or begin + length > entry.size:
        probe.report("numpy.header", entry)
        return False
    if _OBJECTS.search(head[begin : begin + length]):
        probe.report("numpy.objects", entry)
    return True


def _arrays_in(probe: Probe, entry: Entry) -> int | None:
    """Return how many arrays a `.npz` holds; None, with a blocker, where it is no zip of arrays."""
    sniff = probe.sniff(entry)
    if sniff is None:
        return None
    if sniff.nature is not Nature.ZIP:
        probe.expect(entry, Nature.ZIP)
        return None
    directory = probe.directory(entry)
    if directory is None:
        return None
    return sum(record.name.endswith(".npy") for record in directory.entries)


NUMPY_ARRAYS: Final = NumpyArrays()
