"""PEFT adapters: `adapter_config.json` beside `adapter_model.safetensors` or `adapter_model.bin`.

Files and keys follow peft (`utils/save_and_load.py`, `SAFETENSORS_WEIGHTS_NAME`). An adapter is no model: its base is named
in the configuration, often by a private path, and nothing here looks for it.
"""

from typing import Final

from shardscope.engine.formats import model_config
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.formats.torch_files import containers, report_opaque
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.text import counted

CONFIG: Final = "adapter_config.json"
_SAFETENSORS: Final = "adapter_model.safetensors"
_TORCH: Final = ("adapter_model.bin", "adapter_model.pt")


class PeftAdapter:
    """The family `peft_adapter`."""

    name = "peft_adapter"
    general = False
    hint = Hint(("json", "safetensors", "bin", "pt"))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim the adapter's configuration and weights where either stands in the folder."""
        files = [folder.files[name] for name in (CONFIG, _SAFETENSORS, *_TORCH) if name in folder.files]
        if not files:
            return None
        says = f"named {', '.join(entry.name for entry in files)}"
        evidence = Evidence(EvidenceKind.NAME, files[0].text, says, Basis.INFERRED)
        return Claim(self.name, folder.path, tuple(files), Confidence.LOW, (evidence,))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Read the configuration and, where the weights are safetensors, their header."""
        folder = probe.folder(claim.folder)
        by_name = {entry.name: entry for entry in claim.files}
        config = by_name.get(CONFIG)
        reading = (
            model_config.describe_adapter(probe, config) if config is not None else model_config.NO_CONFIG
        )
        evidence = list(reading.evidence)
        weights = by_name.get(_SAFETENSORS)
        lora = size = tensors = 0
        if weights is not None and (header := probe.header(weights)) is not None:
            probe.catalogue(weights, header)
            model_config.check_metadata(probe, weights, header.metadata)
            tensors = len(header.names)
            size = header.data_end - header.data_begin
            lora = sum(".lora_" in name for name in header.names)
            says = f"valid safetensors header, {lora:,} of {counted(tensors, 'tensor')} named lora_*"
            evidence.append(Evidence(EvidenceKind.HEADER, weights.text, says, Basis.OBSERVED))
        torch = [by_name[name] for name in _TORCH if name in by_name]
        found = containers(probe, torch)
        opaque = (*found.torch, *found.pickles)
        report_opaque(probe, opaque)
        evidence += found.evidence
        self._report(probe, claim, config, weights, torch)
        confidence = Confidence.LOW
        if reading.recognised and tensors:
            confidence = Confidence.HIGH
        elif tensors or (reading.recognised and found.torch):
            confidence = Confidence.MEDIUM
        return Facts(
            confidence=confidence,
            evidence=tuple(evidence),
            components=(
                Component(
                    kind="adapter",
                    name=reading.title or "adapter",
                    format=self.name,
                    files=tuple(entry.text for entry in claim.files),
                    bytes=sum(entry.size for entry in claim.files),
                    note="changes a base model that is not part of it",
                ),
                *reading.components,
            ),
            producer=reading.producer,
            state=scope_of(folder.files.values(), _weights(tensors, opaque)),
            opaque=opaque,
            code_references=reading.code_references,
            weight_bytes=size if tensors and not opaque else None,
        )

    def _report(
        self, probe: Probe, claim: Claim, config: Entry | None, weights: Entry | None, torch: list[Entry]
    ) -> None:
        first = claim.files[0]
        if config is None:
            probe.report("adapter.config_missing", first)
        elif weights is None and not torch:
            probe.report("adapter.weights_missing", config)
        if weights is not None and torch:
            names = ", ".join(entry.name for entry in (weights, *torch))
            probe.report("layout.weight_sets", first, count=1 + len(torch), sets=names)
        probe.report("adapter.base_model", first)


def _weights(tensors: int, opaque: tuple[Entry, ...]) -> StatePart:
    if tensors:
        return StatePart(
            Presence.PRESENT, Basis.OBSERVED, f"{counted(tensors, 'adapter tensor')}; no base model weights"
        )
    if opaque:
        return StatePart(
            Presence.OPAQUE, Basis.OBSERVED, f"{counted(len(opaque), 'pickle-backed adapter file')}"
        )
    return StatePart(Presence.UNKNOWN)


PEFT_ADAPTER: Final = PeftAdapter()
