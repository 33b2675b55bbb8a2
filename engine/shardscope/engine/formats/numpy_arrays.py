"""NumPy arrays: `.npy` files and `.npz` archives.

The header is that of NumPy's format document (`lib/format.py`); an `.npz` is a zip of `.npy` records. An array of Python objects is a
pickle inside: it is listed as opaque, and never read.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.headers_only import listed, part_of
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.recognised_only import magic, named, unread
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.facts import Nature, ZipDirectory, ZipEntry
from shardscope.engine.model.source import Entry, Reader
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import counted
from shardscope.engine.parse.npy import NpyArray, read_array
from shardscope.engine.parse.npz import SUFFIX, read_arrays
from shardscope.engine.parse.zip import STORED

_SUFFIXES: Final = ("npy", "npz")
LOOKED: Final = 10_000
"""Single arrays of one folder whose header is read; folders of data sets hold very many."""


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
        """Read the header of every array, in files and in archives."""
        tally = _Tally(probe)
        singles = [entry for entry in claim.files if entry.name.casefold().endswith(SUFFIX)]
        archives = [entry for entry in claim.files if not entry.name.casefold().endswith(SUFFIX)]
        for done, entry in enumerate(singles[:LOOKED]):
            probe.checkpoint("headers", done, len(singles), entry)
            tally.single(entry)
        evidence: list[Evidence] = []
        components = []
        if tally.read:
            of = f" of {len(singles):,}" if len(singles) > LOOKED else ""
            evidence.append(magic(singles[0], f"the magic of NumPy in {counted(tally.read, 'file')}{of}"))
        if singles:
            components.append(part_of(claim, "arrays", singles, kind="arrays"))
        for entry in archives:
            arrays = tally.archive(entry)
            if arrays is not None:
                says = f"a zip of {counted(arrays, 'array')}"
                evidence.append(Evidence(EvidenceKind.CONTAINER, entry.text, says, Basis.OBSERVED))
            note = counted(arrays, "array") if arrays is not None else "not read: see the blockers"
            components.append(part_of(claim, entry.name, [entry], kind="arrays", note=note))
        if len(singles) > LOOKED:
            probe.report("numpy.unlisted", singles[LOOKED], count=len(singles) - LOOKED, bound=LOOKED)
        if not evidence:
            return unread(probe, claim, claim.files, seen=False, components=components)
        tally.report()
        return listed(
            probe,
            claim,
            tally.arrays,
            tally.bytes if tally.whole and len(singles) <= LOOKED else None,
            confidence=Confidence.MEDIUM,
            evidence=evidence,
            components=components,
            opaque=tally.opaque,
        )


class _Tally:
    """The arrays of a folder, listed one after the other, and what is to be said of them together."""

    def __init__(self, probe: Probe) -> None:
        self.read = 0
        """Files of one array."""
        self.arrays = 0
        self.bytes = 0
        self.whole = True
        self.opaque: list[Entry] = []
        self._probe = probe
        self._odd: Counter[str] = Counter()
        self._first: Entry | None = None

    def single(self, entry: Entry) -> None:
        """List the array of an `.npy` file."""
        sniff = self._probe.sniff(entry)
        if sniff is None:
            self.whole = False
            return
        if sniff.nature not in (Nature.NUMPY, Nature.UNKNOWN):
            self._probe.expect(entry, Nature.NUMPY)
            self.whole = False
            return
        if sniff.nature is Nature.UNKNOWN:
            self._probe.report("numpy.header", entry)
            self.whole = False
            return
        array = self._probe.guarded(entry, read_array)
        if array is None:
            self.whole = False
            return
        self.read += 1
        self._add(entry, entry.name[: -len(SUFFIX)], array, array.begin, entry.size - array.begin)

    def archive(self, entry: Entry) -> int | None:
        """List the arrays of an `.npz` file and return how many there are; null where it is no zip."""
        sniff = self._probe.sniff(entry)
        directory = None
        if sniff is not None and sniff.nature is not Nature.ZIP:
            self._probe.expect(entry, Nature.ZIP)
        elif sniff is not None:
            directory = self._probe.directory(entry, "zip.compressed")
        found = None if directory is None else self._probe.guarded(entry, _reading(directory))
        if directory is None or found is None:
            self.whole = False
            return None if directory is None else 0
        others = [each.name for each in directory.entries if not each.name.endswith(SUFFIX)]
        if others:
            self._probe.report("numpy.member", entry, count=len(others), record=others[0])
        for record, array in found:
            if array is None:
                self.whole = False
                continue
            begin = (record.data_offset or 0) + array.begin if record.method == STORED else 0
            self._add(entry, record.name[: -len(SUFFIX)], array, begin, record.size - array.begin)
        return len(found)

    def _add(self, entry: Entry, name: str, array: NpyArray, begin: int, room: int) -> None:
        if array.objects:
            self._probe.report("numpy.objects", entry)
            self.whole = False
            if not self.opaque or self.opaque[-1] is not entry:
                self.opaque.append(entry)
            return
        if array.bytes > room:
            self._probe.report("numpy.cut_off", entry, missing=array.bytes - room, tensor=name)
            self.whole = False
        elif array.bytes < room:
            self._probe.report("numpy.overlong", entry, extra=room - array.bytes, tensor=name)
        if array.dtype not in DTYPES:
            self._odd[array.dtype] += 1
            self._first = self._first or entry
            self.whole = False
        if self._probe.catalogue_array(entry.text, name, array.dtype, array.shape, array.bytes, begin):
            self.arrays += 1
            self.bytes += array.bytes
        else:
            self.whole = False

    def report(self) -> None:
        """Report the types that safetensors does not have."""
        if self._odd:
            first = next(iter(self._odd))
            self._probe.report("numpy.dtype", self._first, count=self._odd.total(), dtype=first)


def _reading(directory: ZipDirectory) -> Callable[[Reader], Sequence[tuple[ZipEntry, NpyArray | None]]]:
    def read(reader: Reader) -> Sequence[tuple[ZipEntry, NpyArray | None]]:
        return list(read_arrays(reader, directory))

    return read


NUMPY_ARRAYS: Final = NumpyArrays()
