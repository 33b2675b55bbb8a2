"""PyTorch distributed checkpoints (DCP): `.metadata` and the `.distcp` files that the ranks wrote.

Names follow torch (`distributed/checkpoint/filesystem.py`): `__RANK_NUMBER.distcp`, where the number counts writer threads or
stored items, at times with a word in front (Megatron-core's separation hint); `.metadata`, renamed from `.metadata.tmp` as the
last act of a save; `__RANK.metadata` for each rank where a save uses no collectives. TorchTitan puts each save into a
folder `step-N`.

What makes a file DCP is pickled, so names and arrangement are all there is to go by: the first bytes tell the container
(torch.save records, zstd, safetensors), which any other producer can write as well. Confidence never rises above `low`.
"""

import re
from typing import Final

from shardscope.engine.formats.dcp_save import (
    Names,
    Save,
    name_evidence,
    names_in,
    read_save,
    save_component,
    sharded_backend,
)
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.formats.torch_files import report_opaque
from shardscope.engine.model.descriptor import ProducerFact
from shardscope.engine.model.evidence import Alternative, Basis, Confidence
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.text import counted, path_text

_TITAN: Final = re.compile(r"step-\d{1,12}")
_INSIDE: Final = "the items of a distributed save are named only in its metadata, which is not examined"


class TorchDcp:
    """The family `torch_dcp`."""

    name = "torch_dcp"
    general = False
    hint = Hint(("distcp", "metadata", "tmp"))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim metadata and data files, unless a `metadata.json` says that Megatron-core wrote the folder."""
        names = names_in(folder)
        if not names.files:
            return None
        if not names.payload and not names.by_rank and not self._is_pickled(probe, names):
            reason = "metadata without a data file, and it does not begin like a pickle"
            return Alternative(self.name, reason)
        evidence = name_evidence(names)
        if (backend := sharded_backend(probe, folder)) is not None:
            reason = f"metadata.json declares the sharded backend {shown(backend, 40)}, which holds DCP files inside"
            return Alternative(self.name, reason, evidence)
        return Claim(self.name, folder.path, names.files, Confidence.LOW, evidence)

    def _is_pickled(self, probe: Probe, names: Names) -> bool:
        """Tell whether lone metadata is what DCP writes: other tools have a `.metadata`, too."""
        found = [probe.sniff(entry) for entry in names.metadata]
        return any(sniff is not None and sniff.nature is Nature.PICKLE for sniff in found)

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Look at names and first bytes; metadata and tensors stay opaque."""
        folder = probe.folder(claim.folder)
        save = read_save(probe, folder)
        readable = _list_tensors(probe, save)
        opaque = tuple(entry for entry in save.opaque if entry.path not in readable)
        report_opaque(probe, opaque)
        if readable:
            says = f"{counted(len(readable), 'data file')} list their tensors in safetensors headers"
            weights = StatePart(Presence.PRESENT, Basis.OBSERVED, says)
        else:
            says = f"{counted(len(opaque), 'opaque file')} of a distributed save, weights and more in one"
            weights = StatePart(Presence.OPAQUE, Basis.INFERRED, says)
        return Facts(
            confidence=Confidence.LOW,
            evidence=save.evidence,
            components=(save_component(save, self.name, "distributed save", folder.path),),
            producer=_producer(folder),
            topology=save.topology,
            state=scope_of(folder.files.values(), weights, inside=_INSIDE),
            opaque=opaque,
        )


def _list_tensors(probe: Probe, save: Save) -> set[bytes]:
    """List the fragments of data files that are safetensors; return the paths of these files.

    Whether they are all, and how far the tensors reach, is in the opaque metadata: nothing is concluded from them.
    """
    if not save.safetensors:
        return set()
    listed: set[bytes] = set()
    payload = [entry for entry in save.names.payload if entry.size]
    for done, entry in enumerate(payload):
        probe.checkpoint("headers", done, len(payload), entry)
        sniffed = probe.sniff(entry)
        if sniffed is None or sniffed.nature is not Nature.SAFETENSORS:
            continue
        header = probe.header(entry)
        if header is not None:
            probe.catalogue(entry, header)
            listed.add(entry.path)
    return listed


def _producer(folder: Folder) -> tuple[ProducerFact, ...]:
    name = path_text(folder.path.rpartition(b"/")[2])
    if not _TITAN.fullmatch(name):
        return ()
    says = f"folder {name}, as TorchTitan names its saves"
    return (ProducerFact("torchtitan", None, Basis.INFERRED, says),)


TORCH_DCP: Final = TorchDcp()
