"""Hugging Face safetensors: one file, numbered shards with an index, variants, several sets side by side.

File names follow huggingface_hub (`model.safetensors`, `model-00001-of-00003.safetensors`,
`model.safetensors.index.json`, variants as `model.fp16.safetensors` with `model.safetensors.index.fp16.json`), but any
file with a valid safetensors header that no specific family claims is described here.
"""

from typing import Final

from shardscope.engine.formats import model_config
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.safetensors_sets import (
    SUFFIX,
    read_sets,
    weigh_sets,
    weight_bytes,
    weights_part,
)
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.formats.weight_sets import indexes_of, layout_of
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.text import counted


class HfSafetensors:
    """The family `hf_safetensors`."""

    name = "hf_safetensors"
    general = True
    hint = Hint((SUFFIX, "json"))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim every safetensors file of the folder that is left, and every index that names such files."""
        files = folder.with_suffix(SUFFIX)
        indexes = [entry for entry, _ in indexes_of(folder, SUFFIX)]
        if not files and not indexes:
            return None
        if not files and probe.inventory.root_is_file:
            return Alternative(self.name, "an index on its own: inspect the folder that holds its files")
        evidence = []
        if files:
            says = f"{counted(len(files), 'file')} named *.safetensors"
            evidence.append(Evidence(EvidenceKind.NAME, files[0].text, says, Basis.INFERRED))
        evidence += [
            Evidence(EvidenceKind.NAME, entry.text, "named like the index of a sharded save", Basis.INFERRED)
            for entry in indexes
        ]
        return Claim(self.name, folder.path, (*files, *indexes), Confidence.LOW, tuple(evidence))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """List the tensors of every set; check index, numbers and headers against each other."""
        folder = probe.folder(claim.folder)
        layout = layout_of(folder.only(claim.files), SUFFIX)
        sets, readings = read_sets(probe, claim.folder, layout)
        config = model_config.describe(probe, folder)
        confidence, evidence = weigh_sets(readings, config.recognised)
        components = [
            reading.component(found, self.name) for found, reading in zip(sets, readings, strict=True)
        ]
        producer = tuple(fact for reading in readings[:1] for fact in reading.producer)
        return Facts(
            confidence=confidence,
            evidence=(*evidence, *config.evidence),
            components=(*components, *config.components),
            producer=(*config.producer, *producer),
            state=scope_of(folder.files.values(), weights_part(readings)),
            code_references=config.code_references,
            weight_bytes=weight_bytes(readings),
            model=model_config.model_facts(probe, folder),
        )


HF_SAFETENSORS: Final = HfSafetensors()
