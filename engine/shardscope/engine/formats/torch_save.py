"""Any other file of torch.save: recognised by its container, whatever its name; opaque in the safe plane.

The zip container and its records are those of `torch/csrc` (`inline_container`), the stream from before 1.6 starts with the
magic number of `torch/serialization.py`.
"""

from typing import Final

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.formats.torch_files import PICKLED, containers, has_zip_behind, report_opaque
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.text import counted

SUFFIXES: Final = ("pt", "pth", "bin", "ckpt", "pkl", "pickle", "tar")

_LOOKED: Final = 64
"""Files of one folder that are looked at before it is called no folder of torch files."""


class TorchSave:
    """The family `torch_save`."""

    name = "torch_save"
    general = True
    hint = Hint(SUFFIXES)

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim the files that are left and named like torch files, or a single file that is one by its first bytes."""
        files = folder.with_suffix(*SUFFIXES)
        if not files and probe.inventory.root_is_file:
            files = [e for e in folder.files.values() if (s := probe.sniff(e)) and s.nature in PICKLED]
        if not files:
            return None
        looked = files[:: max(1, len(files) // _LOOKED)]
        if all(_tells_nothing(probe, entry) for entry in looked):
            among = f", {len(looked):,} looked at" if len(looked) < len(files) else ""
            reason = f"{counted(len(files), 'file')} with its suffix{among}, none of which starts like a torch file"
            return Alternative(self.name, reason)
        says = f"{counted(len(files), 'file')} named like torch files"
        evidence = Evidence(EvidenceKind.NAME, files[0].text, says, Basis.INFERRED)
        return Claim(self.name, folder.path, tuple(files), Confidence.LOW, (evidence,))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Look at the containers; nothing in them is interpreted."""
        found = containers(probe, claim.files)
        opaque = (*found.torch, *found.pickles)
        report_opaque(probe, opaque)
        says = f"{counted(len(opaque), 'pickle-backed file')}"
        state = StatePart(Presence.OPAQUE if opaque else Presence.UNKNOWN, Basis.OBSERVED, says)
        confidence = Confidence.MEDIUM if found.torch and not found.other else Confidence.LOW
        return Facts(
            confidence=confidence,
            evidence=found.evidence,
            components=tuple(
                Component(
                    kind="torch file",
                    name=entry.text,
                    format=self.name,
                    files=(entry.text,),
                    bytes=entry.size,
                    note="opaque: not examined in the safe plane",
                )
                for entry in opaque
            ),
            state=scope_of(probe.folder(claim.folder).files.values(), state),
            opaque=opaque,
        )


def _tells_nothing(probe: Probe, entry: Entry) -> bool:
    """Tell whether neither end of a file is of any known kind."""
    sniff = probe.sniff(entry)
    unknown = sniff is not None and sniff.nature is Nature.UNKNOWN
    return unknown and not has_zip_behind(probe, entry, Nature.UNKNOWN)


TORCH_SAVE: Final = TorchSave()
