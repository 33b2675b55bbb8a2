"""NeMo: a `.nemo` archive, one that was unpacked, or the folder of a NeMo 2 save. Recognised only.

A `.nemo` file is a tar, plain or gzip, with `model_config.yaml` and `model_weights.ckpt` or `model_weights/` (NeMo
`core/connectors/save_restore_connector.py`). NeMo 2 keeps `weights/`, a distributed checkpoint of Megatron, beside `context/`
(`lightning/io`): the weights are left to the family that they are of.
"""

import re
from typing import Final

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.recognised_only import INSIDE, magic, named, part, unread
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.formats.torch_files import containers, report_opaque
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.text import counted, display_name

SUFFIX: Final = "nemo"
_CONFIG: Final = "model_config.yaml"
_WEIGHTS: Final = "model_weights.ckpt"
_WEIGHTS_FOLDER: Final = "model_weights"
_EXTENDED: Final = (b"x", b"g", b"L")
_OCTAL: Final = re.compile(rb"[0-7]{1,11}")
_CONTEXT: Final = ("io.json", "model.yaml")


class Nemo:
    """The family `nemo`."""

    name = "nemo"
    general = False
    hint = Hint((SUFFIX, "ckpt", "yaml"), folders=("context",))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim `*.nemo`, an unpacked archive, or the context of a NeMo 2 save."""
        archives = folder.with_suffix(SUFFIX)
        if archives:
            evidence = named(archives[0], f"{counted(len(archives), 'file')} named *.nemo")
            return Claim(self.name, folder.path, tuple(archives), Confidence.LOW, (evidence,))
        if {"weights", "context"} <= folder.folders:
            return self._second(probe, folder)
        config = folder.files.get(_CONFIG)
        weights = folder.files.get(_WEIGHTS)
        if config is not None and (weights is not None or _WEIGHTS_FOLDER in folder.folders):
            says = f"{_CONFIG} beside {_WEIGHTS if weights is not None else _WEIGHTS_FOLDER + '/'}"
            evidence = Evidence(EvidenceKind.STRUCTURE, config.text, says, Basis.INFERRED)
            files = (config,) if weights is None else (config, weights)
            return Claim(self.name, folder.path, files, Confidence.LOW, (evidence,))
        if weights is not None:
            return Alternative(self.name, f"{_WEIGHTS} without {_CONFIG}")
        return None

    def _second(self, probe: Probe, folder: Folder) -> Claim | Alternative:
        path = folder.path + b"/context" if folder.path else b"context"
        context = probe.folder(path)
        found = [context.files[name] for name in _CONTEXT if name in context.files]
        if not found:
            return Alternative(
                self.name, f"weights/ beside context/, but neither {' nor '.join(_CONTEXT)} in it"
            )
        says = f"weights/ beside context/ with {', '.join(entry.name for entry in found)}"
        evidence = Evidence(EvidenceKind.STRUCTURE, found[0].text, says, Basis.INFERRED)
        files = tuple(context.files.values())
        return Claim(self.name, folder.path, files, Confidence.LOW, (evidence,), owned=(path,))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Look at first bytes; the configuration is YAML and Python class names, and is not read."""
        by_name = {entry.name: entry for entry in claim.files}
        if claim.owned:
            probe.report("nemo.context", claim.files[0])
            return _configured(claim, "context/")
        if _CONFIG not in by_name:
            return _archives(probe, claim)
        weights = by_name.get(_WEIGHTS)
        probe.report("nemo.context", by_name[_CONFIG])
        if weights is None:
            return _configured(claim, _CONFIG)
        found = containers(probe, [weights])
        opaque = (*found.torch, *found.pickles)
        report_opaque(probe, opaque)
        state = StatePart(Presence.OPAQUE if opaque else Presence.UNKNOWN, Basis.OBSERVED, "one torch file")
        return Facts(
            confidence=Confidence.MEDIUM if found.torch else Confidence.LOW,
            evidence=found.evidence,
            components=(part(claim, claim.format, claim.files),),
            state=scope_of(probe.folder(claim.folder).files.values(), state, inside=INSIDE),
            opaque=opaque,
        )


def _configured(claim: Claim, name: str) -> Facts:
    """Return what the configuration of weights says that another family describes: nothing about the weights."""
    return Facts(
        confidence=Confidence.LOW,
        components=(part(claim, name, claim.files, kind="config"),),
        state=scope_of((), StatePart(Presence.UNKNOWN), inside=INSIDE),
        weight_reason="the weights are described by another family, or not at all",
    )


def _archives(probe: Probe, claim: Claim) -> Facts:
    evidence: list[Evidence] = []
    sound: list[Entry] = []
    for entry in claim.files:
        sniff = probe.sniff(entry)
        if sniff is None:
            continue
        if sniff.nature is Nature.TAR:
            member = _first_member(probe.peek(entry))
            says = (
                f"a tar archive whose first member is {display_name(member, 80)}"
                if member
                else "a tar archive"
            )
            evidence.append(Evidence(EvidenceKind.CONTAINER, entry.text, says, Basis.OBSERVED))
            sound.append(entry)
        elif sniff.nature is Nature.GZIP:
            evidence.append(magic(entry, "compressed with gzip, as older .nemo archives are"))
            sound.append(entry)
        else:
            probe.expect(entry, Nature.TAR, Nature.GZIP)
    return unread(
        probe,
        claim,
        claim.files,
        seen=bool(sound),
        evidence=evidence,
        components=[part(claim, entry.name, [entry]) for entry in claim.files],
    )


def _first_member(head: bytes) -> str | None:
    """Return the name of the first file in a tar, past what POSIX puts before it (types `x`, `g`, `L`)."""
    position = 0
    while len(header := head[position : position + 512]) == 512:
        if header[156:157] not in _EXTENDED:
            return header[:100].partition(b"\0")[0].decode("utf-8", "surrogateescape")
        digits = header[124:136].strip(b"\0 ")
        if not _OCTAL.fullmatch(digits):
            return None
        position += 512 + -(-int(digits, 8) // 512) * 512
    return None


NEMO: Final = Nemo()
