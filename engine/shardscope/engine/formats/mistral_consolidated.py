"""Mistral's own release layout: `consolidated.safetensors`, alone or sharded with an index, beside `params.json`.

Names of files and tensors are those of mistral-inference (`transformer.py`). The headers are readable; loaders of Hugging Face
know the tensors under other names, and rows of the query and key projections in another order.
"""

import re
from functools import partial
from typing import Any, Final

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
from shardscope.engine.formats.weight_sets import layout_of
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted

PARAMS: Final = "params.json"
_FILES: Final = re.compile(r"consolidated(-\d+-of-\d+)?\.safetensors")
_INDEX: Final = "consolidated.safetensors.index.json"
_OWN_NAME: Final = re.compile(r"(.+\.)?layers\.\d+\.(attention\.w|feed_forward\.).+|tok_embeddings\.weight")
_PARAMS_KEYS: Final = frozenset({"dim", "n_layers", "n_heads", "vocab_size"})


class MistralConsolidated:
    """The family `mistral_consolidated`."""

    name = "mistral_consolidated"
    general = False
    hint = Hint((SUFFIX, "json"))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim `consolidated*.safetensors` where params.json or the names of its tensors speak for it."""
        files = [e for e in folder.starting("consolidated", SUFFIX) if _FILES.fullmatch(e.name)]
        index = folder.files.get(_INDEX)
        if not files and index is None:
            return None
        first = files[0] if files else index
        says = f"named like Mistral's consolidated weights, {counted(len(files), 'file')}"
        evidence = [Evidence(EvidenceKind.NAME, first.text, says, Basis.INFERRED)] if first else []
        header = probe.peek_header(files[0]) if files else None
        own = sum(_OWN_NAME.fullmatch(name) is not None for name in header.names) if header else 0
        declared = read_params(probe, folder)
        if header is not None and own:
            says = f"{own:,} of {counted(len(header.names), 'tensor')} named as in Mistral's code"
            evidence.append(Evidence(EvidenceKind.HEADER, files[0].text, says, Basis.OBSERVED))
        elif header is not None and declared is None:
            reason = (
                f"named like it, but none of {counted(len(header.names), 'tensor')} has a name of Mistral's"
            )
            return Alternative(self.name, reason, tuple(evidence))
        if declared is not None:
            evidence.append(declared)
        claimed = (*files, index) if index is not None else tuple(files)
        return Claim(self.name, folder.path, claimed, Confidence.LOW, tuple(evidence))

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """List the tensors; say that their names need a mapping."""
        folder = probe.folder(claim.folder)
        row = len(probe.tensors)
        sets, readings = read_sets(probe, claim.folder, layout_of(folder.only(claim.files), SUFFIX))
        names = probe.tensors.names[row:]
        own = [name for name in names if _OWN_NAME.fullmatch(name)]
        if own:
            probe.report("consolidated.names", claim.files[0], count=len(own), tensor=own[0])
        declared = any(item.kind is EvidenceKind.JSON for item in claim.evidence)
        if PARAMS not in folder.files and not probe.inventory.root_is_file:
            probe.report("consolidated.params_missing", claim.files[0])
        confidence, evidence = weigh_sets(readings, recognised=declared)
        if not own:
            confidence = min(confidence, Confidence.MEDIUM, key=lambda value: value.rank)
        config = model_config.describe(probe, folder)
        return Facts(
            confidence=confidence,
            evidence=tuple(evidence),
            components=(
                *(reading.component(found, self.name) for found, reading in zip(sets, readings, strict=True)),
                *config.components,
            ),
            producer=tuple(fact for reading in readings[:1] for fact in reading.producer),
            state=scope_of(folder.files.values(), weights_part(readings)),
            weight_bytes=weight_bytes(readings),
            model=model_facts(probe, folder),
        )


def read_params(probe: Probe, folder: Folder) -> Evidence | None:
    """Return what params.json declares in the words of Meta's and Mistral's code; None where it is not theirs."""
    entry = folder.files.get(PARAMS)
    document = probe.json(entry) if entry is not None else None
    if entry is None or document is None or not isinstance(document.value, dict):
        return None
    declared = {key: value for key, value in document.value.items() if key in _PARAMS_KEYS}
    if not {"dim", "n_layers"} <= declared.keys():
        return None
    return _params_evidence(entry, declared)


def model_facts(probe: Probe, folder: Folder) -> ModelFacts | None:
    """Return what params.json declares to mapping tables; null where there is none of Meta's or Mistral's.

    As in their code: without `n_kv_heads` every head has a key of its own. A vocabulary of -1 is that of the tokenizer.
    """
    entry = folder.files.get(PARAMS)
    document = probe.json(entry) if entry is not None else None
    if document is None or not isinstance(document.value, dict):
        return None
    count = partial(_count, document.value)
    heads = count("n_heads")
    moe = document.value.get("moe") is not None or document.value.get("moe_args") is not None
    return ModelFacts(
        layers=count("n_layers"),
        heads=heads,
        groups=count("n_kv_heads") or heads,
        head_size=count("head_dim"),
        experts=count("num_experts") or (1 if moe else None),
        vocabulary=count("vocab_size"),
    )


def _count(declared: dict[str, Any], key: str) -> int | None:
    value = declared.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else None


def _params_evidence(entry: Entry, declared: dict[str, Any]) -> Evidence:
    known = [f"{k} {v:,}" for k, v in declared.items() if isinstance(v, int) and 0 < v < 1 << 40]
    says = f"declares {', '.join(known)}" if known else "declares dim and n_layers"
    return Evidence(EvidenceKind.JSON, entry.text, says, Basis.DECLARED)


MISTRAL_CONSOLIDATED: Final = MistralConsolidated()
