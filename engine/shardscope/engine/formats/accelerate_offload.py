"""Offload folders of Accelerate: one model's tensors as raw files, with an index of dtypes and shapes.

After Accelerate (`utils/offload.py`): `index.json` maps a name to `{"dtype", "shape"}`, and `<name>.dat` holds the numbers in C
order and nothing else; bfloat16 and float8 are kept as integers of their width, the index names what they are; a scalar is
stored as one element. A folder is where one process put what did not fit its memory: a matter of capacity, not a
distributed checkpoint, and no rank is derived from it.
"""

import re
from math import prod
from typing import Any, Final

from msgspec import Struct

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.descriptor import Component, ProducerFact
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import counted, display_name, path_text
from shardscope.engine.model.topology import Topology
from shardscope.engine.parse.json import kind_of

INDEX: Final = "index.json"
SUFFIX: Final = "dat"
_TENSOR: Final = re.compile(r".+\.(weight|bias|weight_scale|lora_[AB]\..+)\.dat")
_PEEKED: Final = 64
_LARGEST: Final = (1 << 63) - 1
_DTYPES: Final = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}
"""Words of numpy and torch to ours."""


class _Unusable(Exception):  # noqa: N818 - an entry on its way to becoming a reason
    """Why an entry of the index cannot be used."""


class _Described(Struct, frozen=True):
    """One usable entry of the index."""

    dtype: str
    """A name of `DTYPES`, or `unknown`."""
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int | None:
        """The size of its file; null where the dtype is unknown."""
        dtype = DTYPES.get(self.dtype)
        return None if dtype is None else prod(self.shape) * dtype.bits // 8


class AccelerateOffload:
    """The family `accelerate_offload`."""

    name = "accelerate_offload"
    general = False
    hint = Hint((SUFFIX,))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim the raw files and their index; without an index, files that are named like tensors."""
        files = list(folder.named(SUFFIX).values())
        index = folder.files.get(INDEX)
        if not files:
            return None
        says = f"{counted(len(files), 'file')} named *.dat"
        evidence = [Evidence(EvidenceKind.NAME, files[0].text, says, Basis.INFERRED)]
        if index is None:
            named = [entry for name, entry in folder.named(SUFFIX).items() if _TENSOR.fullmatch(name)]
            if not named:
                return None
            return Claim(self.name, folder.path, tuple(named), Confidence.LOW, tuple(evidence))
        document = probe.json(index)
        if document is not None and not _is_index(document.value):
            return Alternative(
                self.name, "index.json does not give tensors a dtype and a shape", tuple(evidence)
            )
        says = "an index stands beside raw files"
        evidence.append(Evidence(EvidenceKind.STRUCTURE, index.text, says, Basis.OBSERVED))
        return Claim(self.name, folder.path, (index, *files), Confidence.LOW, tuple(evidence))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """List the tensors of the index and compare each with the size of its file."""
        folder = probe.folder(claim.folder)
        index = folder.files.get(INDEX)
        before = len(probe.blockers)
        described = _read_index(probe, claim, index)
        sizes, rows = _compare(probe, folder, index, described) if index is not None else (None, 0)
        clean = len(probe.blockers) == before
        evidence = []
        if described and index is not None:
            says = f"gives {counted(len(described), 'tensor')} a dtype and a shape"
            evidence.append(Evidence(EvidenceKind.JSON, index.text, says, Basis.DECLARED))
            if clean:
                says = "every file has the size that its dtype and shape make"
                evidence.append(Evidence(EvidenceKind.STRUCTURE, index.text, says, Basis.OBSERVED))
        confidence = Confidence.LOW
        if described:
            confidence = Confidence.HIGH if clean else Confidence.MEDIUM
        says = f"{counted(rows, 'tensor')} in raw files"
        weights = StatePart(Presence.PRESENT if rows else Presence.UNKNOWN, Basis.OBSERVED, says)
        return Facts(
            confidence=confidence,
            evidence=tuple(evidence),
            components=(
                Component(
                    kind="weights",
                    name=display_name(path_text(claim.folder.rpartition(b"/")[2])) or "offload folder",
                    format=self.name,
                    files=tuple(entry.text for entry in claim.files),
                    bytes=sum(entry.size for entry in claim.files),
                    note="tensors that one process put aside for want of memory",
                ),
            ),
            producer=(ProducerFact("accelerate", None, Basis.INFERRED, "index.json beside <tensor>.dat"),),
            topology=Topology(note="Not distributed: one process put tensors aside for want of memory."),
            state=scope_of(folder.files.values(), weights),
            weight_bytes=sizes if clean else None,
            weight_reason=None if clean else "files and index do not agree, see the blockers",
        )


def _is_index(value: Any) -> bool:
    """Tell whether the first entries of a document are those of an offload index."""
    if not isinstance(value, dict) or not value:
        return False
    first = [entry for _, entry in zip(range(_PEEKED), value.values(), strict=False)]
    return any(isinstance(entry, dict) and "dtype" in entry for entry in first)


def _read_index(probe: Probe, claim: Claim, index: Entry | None) -> dict[str, _Described]:
    """Return the usable entries of the index; report the others."""
    if index is None:
        probe.report("offload.index_missing", claim.files[0], count=len(claim.files))
        return {}
    document = probe.json(index)
    if document is None:
        return {}
    for finding in document.notes:
        probe.note(finding, index)
    found: dict[str, _Described] = {}
    bad: list[tuple[str, str]] = []
    elsewhere: list[str] = []
    for name, entry in document.value.items():
        if isinstance(entry, dict) and "safetensors_file" in entry:
            elsewhere.append(name)
            continue
        try:
            found[name] = _described(entry, probe.limits.tensor_rank)
        except _Unusable as error:
            bad.append((name, str(error)))
    if bad:
        name, reason = bad[0]
        probe.report("offload.entry_malformed", index, count=len(bad), tensor=name, reason=reason)
    if elsewhere:
        probe.report("offload.elsewhere", index, count=len(elsewhere), tensor=elsewhere[0])
    return found


def _described(entry: Any, axes: int) -> _Described:
    """Return one entry; raises `_Unusable` with the reason where it cannot be used."""
    if not isinstance(entry, dict):
        raise _Unusable(f"it is {kind_of(entry)}")
    dtype, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(dtype, str):
        raise _Unusable(f"its dtype is {kind_of(dtype)}")
    if not isinstance(shape, list) or len(shape) > axes:
        raise _Unusable(
            "its shape is no list" if not isinstance(shape, list) else "its shape has too many axes"
        )
    if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in shape):
        raise _Unusable("its shape holds something else than numbers from 0 up")
    if prod(shape) > _LARGEST >> 4:
        raise _Unusable("its shape is beyond 63 bits")
    return _Described(_DTYPES.get(dtype, "unknown"), tuple(shape))


def _compare(probe: Probe, folder: Folder, index: Entry, described: dict[str, _Described]) -> tuple[int, int]:
    """List the tensors that have a file; return their bytes and how many there are, and report what does not fit."""
    if len(probe.tensors) + len(described) > probe.limits.tensors:
        found = len(probe.tensors) + len(described)
        probe.note(Fault("limit.tensors", limit=probe.limits.tensors, found=found).finding, index)
        return 0, 0
    files = folder.named(SUFFIX)
    absent: list[str] = []
    unknown: list[str] = []
    wrong: list[tuple[Entry, int]] = []
    total = rows = 0
    for name, tensor in described.items():
        entry = files.get(f"{name}.{SUFFIX}")
        if entry is None:
            absent.append(name)
            continue
        probe.tensors.append(entry.text, name, tensor.dtype, tensor.shape, 0, entry.size)
        rows += 1
        expected = tensor.bytes
        if expected is None:
            unknown.append(name)
            continue
        total += expected
        if expected != entry.size:
            wrong.append((entry, expected))
    extra = [entry for name, entry in files.items() if name.removesuffix(f".{SUFFIX}") not in described]
    if absent:
        probe.report("offload.file_missing", index, count=len(absent), tensor=absent[0])
    if unknown:
        probe.report("offload.dtype_unknown", index, count=len(unknown), tensor=unknown[0])
    if wrong:
        first, expected = wrong[0]
        probe.report(
            "offload.file_size",
            first,
            count=len(wrong),
            first=first.text,
            found=first.size,
            expected=expected,
        )
    if extra:
        probe.report("offload.file_unlisted", extra[0], count=len(extra), first=extra[0].text)
    return total, rows


ACCELERATE_OFFLOAD: Final = AccelerateOffload()
