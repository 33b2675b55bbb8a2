"""GGUF files of llama.cpp, alone or split, and the GGML files that came before them.

A header holds everything: metadata, and the name, type, shape and place of each tensor. Split files are named
`name-00001-of-00003.gguf` (llama.cpp `gguf-split`), and the first tells how many tensors all of them hold. Older files were often
named `ggml-model-q4_0.bin`, so files of that suffix are known by their magic; they are recognised only.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from shardscope.engine.formats import gguf_facts, hf_torch
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.headers_only import listed, part_of
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.recognised_only import magic, named, part, unread
from shardscope.engine.formats.set_checks import check_group, report_sets
from shardscope.engine.formats.weight_sets import WeightSet, layout_of, weight_sets
from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.facts import GgufHeader, Nature
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted

SUFFIX: Final = "gguf"
_BIN: Final = "bin"
_LOOKED: Final = 16
"""Files named `.bin` in a folder where each is looked at: GGUF under that name comes alone or in a handful."""
_OLDER: Final = {b"lmgg": "GGML", b"fmgg": "GGMF", b"tjgg": "GGJT", b"algg": "GGLA"}

_Headers = Mapping[bytes, GgufHeader | None]


class Gguf:
    """The family `gguf`."""

    name = "gguf"
    general = False
    hint = Hint((SUFFIX, _BIN))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim `*.gguf`, and `*.bin` that start with the magic of GGUF or of its forerunners."""
        files = folder.with_suffix(SUFFIX)
        disguised = _disguised(probe, folder)
        if not files and not disguised:
            return None
        evidence = []
        if files:
            evidence.append(named(files[0], f"{counted(len(files), 'file')} named *.gguf"))
        if disguised:
            says = f"{counted(len(disguised), 'file')} named *.bin with the magic of GGUF or GGML"
            evidence.append(magic(disguised[0], says))
        return Claim(self.name, folder.path, (*files, *disguised), Confidence.LOW, tuple(evidence))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Read every header; check splits against their names and against each other."""
        layout = layout_of(probe.folder(claim.folder).only(claim.files), SUFFIX)
        check_group(probe, layout)
        sets = weight_sets(layout, [() for _ in layout.indexes])
        headers = _read(probe, claim)
        alone = [entry for entry in claim.files if not entry.name.casefold().endswith(f".{SUFFIX}")]
        report_sets(probe, claim.folder, [*(found.key for found in sets), *(entry.name for entry in alone)])
        for found in sets:
            _check_split(probe, found, headers)
        known = [(entry, header) for entry in claim.files if (header := headers[entry.path]) is not None]
        components = [_part(claim, found.key, found.files, headers) for found in sets]
        components += [_part(claim, entry.name, [entry], headers) for entry in alone]
        if not known:
            return unread(probe, claim, claim.files, seen=bool(alone), components=_unread(claim, sets, alone))
        return self._facts(probe, claim, known, components)

    def _facts(
        self,
        probe: Probe,
        claim: Claim,
        known: Sequence[tuple[Entry, GgufHeader]],
        components: Sequence[Component],
    ) -> Facts:
        entry, header = known[0]
        facts = gguf_facts.model_facts(header)
        words = f"GGUF version {header.head.version}, {gguf_facts.counts([header])}"
        evidence = [
            magic(entry, words),
            Evidence(
                EvidenceKind.HEADER, entry.text, f"{counted(len(known), 'valid GGUF header')}", Basis.OBSERVED
            ),
        ]
        if facts.architecture is not None:
            says = f"general.architecture is {facts.architecture}"
            evidence.append(Evidence(EvidenceKind.HEADER, entry.text, says, Basis.DECLARED))
        whole = len(known) == len(claim.files) and not any(_broken(each) for _, each in known)
        sure = whole and facts.architecture is not None
        return listed(
            probe,
            claim,
            sum(len(each.names) for _, each in known),
            sum(sum(each.ends) - sum(each.begins) for _, each in known) if whole else None,
            confidence=Confidence.HIGH if sure else Confidence.MEDIUM,
            evidence=evidence,
            components=components,
            opaque=[each for each in claim.files if each.path not in {found.path for found, _ in known}],
            model=facts,
        )


def _read(probe: Probe, claim: Claim) -> _Headers:
    """Return the header of each file, its tensors listed; null for a file that has none, which is reported."""
    headers: dict[bytes, GgufHeader | None] = {}
    for done, entry in enumerate(claim.files):
        probe.checkpoint("headers", done, len(claim.files), entry)
        header = headers[entry.path] = _header(probe, entry)
        if header is None:
            continue
        gguf_facts.check_metadata(probe, entry, header)
        rows = zip(header.names, header.dtypes, header.shapes, header.begins, header.ends, strict=True)
        for name, dtype, shape, begin, end in rows:
            probe.tensors.append(entry.text, name, dtype, shape, begin, end)
    return headers


def _disguised(probe: Probe, folder: Folder) -> list[Entry]:
    files = folder.named(_BIN)
    if len(files) > _LOOKED:
        return []
    return [
        entry
        for name, entry in files.items()
        if not hf_torch.WEIGHTS.fullmatch(name)
        and (sniff := probe.sniff(entry)) is not None
        and sniff.nature in (Nature.GGUF, Nature.GGML)
    ]


def _header(probe: Probe, entry: Entry) -> GgufHeader | None:
    """Return the header of a GGUF file; report what else the file is."""
    sniff = probe.sniff(entry)
    if sniff is None:
        return None
    if sniff.nature is Nature.GGML:
        word = _OLDER[probe.peek(entry, 4)]
        probe.report("gguf.older", entry, word=word)
        return None
    if sniff.nature not in (Nature.GGUF, Nature.UNKNOWN):
        probe.expect(entry, Nature.GGUF)
        return None
    return probe.gguf(entry)


def _broken(header: GgufHeader) -> bool:
    return any(CODES[finding.code].severity is Severity.ERROR for finding in header.notes)


def _check_split(probe: Probe, found: WeightSet, headers: _Headers) -> None:
    """Compare what the first file of a split says with what all of them hold."""
    read = [header for entry in found.files if (header := headers[entry.path]) is not None]
    if found.group is None or len(read) < found.group.total:
        return
    declared = next(
        (n for each in read if (n := gguf_facts.whole(each, "split.tensors.count")) is not None), None
    )
    held = sum(len(each.names) for each in read)
    if declared is not None and declared != held:
        pattern = f"{found.key}-*-of-*.{SUFFIX}"
        probe.report("gguf.split", found.files[0], pattern=pattern, declared=declared, found=held)


def _part(claim: Claim, name: str, files: Sequence[Entry], headers: _Headers) -> Component:
    note = gguf_facts.counts([headers[entry.path] for entry in files])
    return part_of(claim, name, files, note=note or "not read: see the blockers")


def _unread(claim: Claim, sets: Sequence[WeightSet], alone: Sequence[Entry]) -> list[Component]:
    return [
        *(part(claim, found.key, found.files) for found in sets),
        *(part(claim, entry.name, [entry]) for entry in alone),
    ]


GGUF: Final = Gguf()
