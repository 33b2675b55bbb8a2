"""Hugging Face weights in torch files: `pytorch_model.bin`, alone or sharded with `pytorch_model.bin.index.json`.

Names follow transformers (`modeling_utils.py`, `WEIGHTS_NAME`) and huggingface_hub (`serialization/_torch.py`). The files
stay opaque: the index, which is JSON, tells the names of the tensors, and nothing tells their shapes.
"""

import re
from typing import Final

from shardscope.engine.formats import model_config
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.hf_index import CrossCheck, Index, read_index
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.formats.set_checks import check_group, report_sets
from shardscope.engine.formats.torch_files import containers, report_opaque
from shardscope.engine.formats.weight_sets import WeightSet, indexes_of, layout_of, weight_sets
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.text import counted, display_name

SUFFIX: Final = "bin"
WEIGHTS: Final = re.compile(r"(pytorch_model|diffusion_pytorch_model)([-_.].*)?\.bin", re.IGNORECASE)
_NOT_WEIGHTS: Final = re.compile(r"pytorch_model_fsdp.*\.bin", re.IGNORECASE)


class HfTorch:
    """The family `hf_torch`."""

    name = "hf_torch"
    general = True
    hint = Hint((SUFFIX, "json"))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim what is left of `pytorch_model*.bin` and every `*.bin` that a `*.bin.index.json` can name."""
        named = [
            entry
            for name, entry in folder.named(SUFFIX).items()
            if WEIGHTS.fullmatch(name) and not _NOT_WEIGHTS.fullmatch(name)
        ]
        indexed = indexes_of(folder, SUFFIX)
        keys = {key for _, key in indexed}
        groups = layout_of(folder, SUFFIX).groups if keys else ()
        numbered = [shard.entry for group in groups if group.key in keys for shard in group.shards]
        files = sorted({entry.path: entry for entry in (*named, *numbered)}.values(), key=lambda e: e.path)
        indexes = [entry for entry, _ in indexed]
        if not files and not indexes:
            return None
        if not files and probe.inventory.root_is_file:
            return Alternative(self.name, "an index on its own: inspect the folder that holds its files")
        first = (files or indexes)[0]
        says = f"{counted(len(files), 'file')} named like Hugging Face torch weights"
        evidence = [Evidence(EvidenceKind.NAME, first.text, says, Basis.INFERRED)]
        return Claim(self.name, folder.path, (*files, *indexes), Confidence.LOW, tuple(evidence))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Look at containers and index; the tensors stay opaque."""
        folder = probe.folder(claim.folder)
        layout = layout_of(folder.only(claim.files), SUFFIX)
        indexes = [read_index(probe, entry) for entry, _ in layout.indexes]
        sets = weight_sets(layout, [index.files if index else () for index in indexes])
        by_entry = {index.entry.path: index for index in indexes if index is not None}
        check_group(probe, layout)
        report_sets(probe, claim.folder, [found.key for found in sets if found.files])
        whole = all(_whole(probe, found, by_entry) for found in sets)
        found = containers(probe, [entry for entry in claim.files if not entry.name.endswith(".json")])
        opaque = (*found.torch, *found.pickles)
        report_opaque(probe, opaque)
        config = model_config.describe(probe, folder)
        names = sum(len(index.weight_map) for index in by_entry.values())
        says = f"{counted(len(opaque), 'pickle-backed file')}" + (
            f"; the index names {counted(names, 'tensor')}" if names else ""
        )
        state = StatePart(Presence.OPAQUE if opaque else Presence.UNKNOWN, Basis.OBSERVED, says)
        confidence = Confidence.MEDIUM if found.torch and whole else Confidence.LOW
        return Facts(
            confidence=confidence,
            evidence=(*found.evidence, *config.evidence),
            components=(*(_component(item) for item in sets), *config.components),
            producer=config.producer,
            state=scope_of(folder.files.values(), state),
            opaque=opaque,
            code_references=config.code_references,
            model=model_config.model_facts(probe, folder),
        )


def _whole(probe: Probe, found: WeightSet, indexes: dict[bytes, Index]) -> bool:
    """Report files that the index names and that are absent, and files that it does not name."""
    index = indexes.get(found.index.path) if found.index else None
    if index is None:
        return found.index is None
    check = CrossCheck(probe, index)
    absent = check.absent()
    listed = {entry.path for entry in check.files}
    unlisted: list[Entry] = [entry for entry in found.files if entry.path not in listed]
    for entry in unlisted:
        probe.report("index.shard_unlisted", index.entry, target=entry.text)
    foreign = [entry for entry in check.files if not entry.name.casefold().endswith(f".{SUFFIX}")]
    for entry in foreign:
        probe.report("index.foreign_file", index.entry, target=entry.text)
    return not absent and not unlisted and not foreign


def _component(found: WeightSet) -> Component:
    files = (*((found.index,) if found.index else ()), *found.files)
    return Component(
        kind="weights",
        name=display_name(found.key) or "(unnamed)",
        format=HfTorch.name,
        files=tuple(entry.text for entry in files),
        bytes=sum(entry.size for entry in files),
        note="opaque: not examined in the safe plane",
    )


HF_TORCH: Final = HfTorch()
