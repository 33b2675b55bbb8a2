"""GGUF files of llama.cpp, alone or split, and the GGML files that came before them: recognised only.

The head is that of ggml's `docs/gguf.md`; split files are named `name-00001-of-00003.gguf` (llama.cpp `gguf-split`). Older
files were often named `ggml-model-q4_0.bin`, so files of that suffix are known by their magic.
"""

from typing import Final

from shardscope.engine.formats import hf_torch
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.recognised_only import magic, named, part, unread
from shardscope.engine.formats.set_checks import check_group, report_sets
from shardscope.engine.formats.weight_sets import layout_of, weight_sets
from shardscope.engine.model.evidence import Alternative, Confidence, Evidence
from shardscope.engine.model.facts import GgufHead, Nature
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted

SUFFIX: Final = "gguf"
_BIN: Final = "bin"
_LOOKED: Final = 16
"""Files named `.bin` in a folder where each is looked at: GGUF under that name comes alone or in a handful."""
_OLDER: Final = {b"lmgg": "GGML", b"fmgg": "GGMF", b"tjgg": "GGJT", b"algg": "GGLA"}


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
        """Read the head of each file: version and counts."""
        layout = layout_of(probe.folder(claim.folder).only(claim.files), SUFFIX)
        check_group(probe, layout)
        sets = weight_sets(layout, [() for _ in layout.indexes])
        heads = {entry.path: _head(probe, entry) for entry in claim.files}
        older = [entry for entry in claim.files if not entry.name.casefold().endswith(f".{SUFFIX}")]
        evidence: list[Evidence] = []
        first = next((entry for entry in claim.files if heads[entry.path] is not None), None)
        if first is not None and (head := heads[first.path]) is not None:
            says = f"GGUF version {head.version}, {_counts([head])}"
            evidence.append(magic(first, says))
        report_sets(probe, claim.folder, [*(found.key for found in sets), *(entry.name for entry in older)])
        components = [
            *(
                part(claim, found.key, found.files, note=_counts([heads[e.path] for e in found.files]))
                for found in sets
            ),
            *(part(claim, entry.name, [entry], note=_counts([heads[entry.path]])) for entry in older),
        ]
        seen = bool(evidence) or bool(older)
        return unread(probe, claim, claim.files, seen=seen, evidence=evidence, components=components)


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


def _head(probe: Probe, entry: Entry) -> GgufHead | None:
    """Return the head of a GGUF file; report what else the file is."""
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


def _counts(heads: list[GgufHead | None]) -> str:
    known = [head for head in heads if head is not None]
    if not known:
        return ""
    tensors = counted(sum(head.tensors for head in known), "tensor")
    pairs = counted(sum(head.pairs for head in known), "metadata key")
    return f"declares {tensors} and {pairs}"


GGUF: Final = Gguf()
