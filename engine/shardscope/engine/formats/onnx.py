"""ONNX models with their external data: recognised only.

The file is a protobuf message without a magic number (`onnx.proto`); writers put the version of the format and the
producer's name first. Weights beyond 2 GiB stand in files beside it, by custom named `model.onnx_data` or `model.onnx.data`; which
ones they are stands in the graph, which is not read.
"""

import re
from typing import Final

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.recognised_only import magic, named, part, unread
from shardscope.engine.formats.set_checks import report_sets
from shardscope.engine.model.evidence import Alternative, Confidence, Evidence
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted

SUFFIX: Final = "onnx"
_DATA: Final = re.compile(r"(?P<model>.+\.onnx)[._]data(_\d+)?", re.IGNORECASE)
_VERSIONS: Final = range(1, 33)


class Onnx:
    """The family `onnx`."""

    name = "onnx"
    general = False
    hint = Hint((SUFFIX,))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim `*.onnx` and the files beside them that are named like their external data."""
        models = folder.with_suffix(SUFFIX)
        if not models:
            return None
        names = {entry.name for entry in models}
        data = [entry for entry, match in folder.matching(_DATA) if match["model"] in names]
        beside = f" with {counted(len(data), 'file')} of external data" if data else ""
        evidence = named(models[0], f"{counted(len(models), 'file')} named *.onnx{beside}")
        return Claim(self.name, folder.path, (*models, *data), Confidence.LOW, (evidence,))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Look at the first bytes of each model."""
        models = [entry for entry in claim.files if _DATA.fullmatch(entry.name) is None]
        evidence = [found for entry in models if (found := _start(probe, entry)) is not None]
        report_sets(probe, claim.folder, [entry.name for entry in models])
        components = []
        for model in models:
            data = [e for e in claim.files if (m := _DATA.fullmatch(e.name)) and m["model"] == model.name]
            note = f"{counted(len(data), 'file')} of external data" if data else ""
            components.append(part(claim, model.name, [model, *data], note=note))
        return unread(
            probe,
            claim,
            claim.files,
            seen=bool(evidence) and len(evidence) == len(models),
            evidence=evidence,
            components=components,
        )


def _start(probe: Probe, entry: Entry) -> Evidence | None:
    sniff = probe.sniff(entry)
    if sniff is None:
        return None
    if sniff.nature is Nature.ONNX:
        version = probe.peek(entry, 2)[1]
        return magic(entry, f"starts like ONNX: version {version} and the name of a producer")
    if sniff.nature is not Nature.UNKNOWN:
        probe.expect(entry, Nature.ONNX)
        return None
    head = probe.peek(entry, 2)
    if len(head) == 2 and head[0] == 0x08 and head[1] in _VERSIONS:
        return magic(entry, f"starts like a protobuf message of ONNX version {head[1]}")
    probe.report("onnx.start", entry)
    return None


ONNX: Final = Onnx()
