"""What a plan calls its tensors, and how many rows of a vocabulary are true ones: by tables and by evidence, never by guess."""

import os
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from shardscope.engine.capabilities.reading import read_bytes
from shardscope.engine.convert.selection import Rows
from shardscope.engine.formats import model_config
from shardscope.engine.formats.probe import Probe
from shardscope.engine.geometry.mapping.apply import apply
from shardscope.engine.geometry.mapping.tables import LayoutTable, NamingTable
from shardscope.engine.inspection import Inspection
from shardscope.engine.mappings import MEGATRON, NAMES, read_table, table
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Catalogue, LogicalTensor
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.mapping import MappingDocument, ModelFacts, Naming
from shardscope.engine.model.plan import Decision, PlanOptions
from shardscope.engine.model.text import display_name
from shardscope.engine.source.source import Source

CONFIG_FOLDERS: Final = (b"", b"huggingface", b"hf_weights", b"context")
"""Where configuration stands, relative to the checkpoint."""


def named(
    catalogue: Catalogue, found: Inspection, options: PlanOptions
) -> tuple[Catalogue, tuple[Decision, ...]]:
    """Return a catalogue under the names of the mapping table that a person asked for, and what was decided by it.

    Raises `Fault`: `mapping.*`, `convert.mapping_unknown`, `convert.mapping_component`.
    """
    if options.mapping is None:
        return catalogue, ()
    if options.component != "model":
        raise Fault("convert.mapping_component", component=options.component)
    document = _document(options.mapping)
    if not isinstance(document.table, Naming):
        raise Fault("convert.mapping_unknown", name=document.name, known=", ".join(namings()))
    naming = NamingTable(document, LayoutTable(table(document.table.layout)))
    facts = found.model or ModelFacts()
    if options.vocab_size is not None:
        facts = replace(facts, vocabulary=options.vocab_size)
    model = catalogue.of("model")
    mapped = apply(naming, facts, [tensor for tensor in model if not _is_runtime(tensor)])
    others = tuple(tensor for tensor in catalogue.tensors if tensor.component != "model")
    decision = Decision(
        kind="mapping",
        choice=f"names and tensors of {', '.join(document.table.models) or document.name}",
        evidence=f"the table {document.name}: {document.title}",
        option="--mapping",
        tensors=len(mapped.tensors),
        examples=tuple(display_name(f"{old} -> {new}", 200) for new, old in list(mapped.sources.items())[:3]),
    )
    return Catalogue((*mapped.tensors, *others)), (decision,)


def _is_runtime(tensor: LogicalTensor) -> bool:
    return tensor.name.rpartition(".")[2] == "_extra_state"


def _document(name: str) -> MappingDocument:
    """Return a packaged table, or the one in a file."""
    if name in NAMES:
        return table(name)
    if os.sep not in name and not name.endswith(".json"):
        raise Fault("convert.mapping_unknown", name=name, known=", ".join(namings()))
    return read_table(read_bytes(name, Limits()), Limits())


def namings() -> tuple[str, ...]:
    """Return the packaged tables that give names."""
    return tuple(name for name in NAMES if isinstance(table(name).table, Naming))


def true_rows(
    path: str | os.PathLike[str],
    found: Inspection,
    catalogue: Catalogue,
    options: PlanOptions,
    *,
    hf_cache: bool,
) -> dict[str, Rows]:
    """Return the true height of every padded vocabulary in a catalogue: as a person gave it, or as config.json says.

    Raises `Fault`: `convert.vocabulary`, where a person gave a height that no tensor can have.
    """
    tensors = _vocabularies(catalogue, found.model)
    if options.vocab_size is not None:
        rows = Rows(options.vocab_size, "given with --vocab-size")
        short = [tensor for tensor in tensors if tensor.shape[0] < options.vocab_size]
        if short or not tensors:
            held = short[0].shape[0] if short else 0
            raise Fault("convert.vocabulary", asked=options.vocab_size, held=held)
        return {tensor.name: rows for tensor in tensors}
    shapes = _declared(path, found, hf_cache=hf_cache)
    evidence = {}
    for tensor in tensors:
        shape, file = shapes.get(_last_parts(tensor.name), ((), ""))
        if len(shape) == len(tensor.shape) and shape[1:] == tensor.shape[1:] and shape[0] < tensor.shape[0]:
            evidence[tensor.name] = Rows(shape[0], f"vocab_size of {file}")
    return evidence


def _vocabularies(catalogue: Catalogue, facts: ModelFacts | None) -> list[LogicalTensor]:
    """Return the tensors with a vocabulary on dimension 0, by the names that transformers uses or by the producer's table."""
    layout = LayoutTable(table(MEGATRON)) if facts is not None else None
    return [
        tensor
        for tensor in catalogue.of("model")
        if tensor.shape
        and (_last_parts(tensor.name) in model_config.EMBEDDINGS or _by_table(tensor.name, layout, facts))
    ]


def _by_table(name: str, layout: LayoutTable | None, facts: ModelFacts | None) -> bool:
    placed = layout.place(name, facts) if layout is not None and facts is not None else None
    view = placed.kind.view if placed is not None else None
    return view is not None and view.dim == 0 and any(part.size == "vocabulary" for part in view.sections)


def _last_parts(name: str) -> str:
    """Return the longest end of a name, by its parts, that is one of an embedding; otherwise the name."""
    parts = name.split(".")
    ends: Sequence[str] = [".".join(parts[number:]) for number in range(len(parts))]
    return next((end for end in ends if end in model_config.EMBEDDINGS), name)


def _declared(
    path: str | os.PathLike[str], found: Inspection, *, hf_cache: bool
) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return the shapes that config.json gives embeddings and output heads."""
    limits = found.descriptor.limits
    with Source(path, limits=limits, hf_cache=hf_cache) as source:
        probe = Probe(source, found.inventory, limits)
        for folder in CONFIG_FOLDERS:
            shapes = model_config.embedding_shapes(probe, probe.folder(folder))
            if shapes:
                return shapes
    return {}
