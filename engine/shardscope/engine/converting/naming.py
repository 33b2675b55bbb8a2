"""What a plan calls its tensors, and how many rows of a vocabulary are true ones: by tables and by evidence, never by guess."""

import os
from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.capabilities.reading import read_bytes
from shardscope.engine.convert.plans.selection import Rows
from shardscope.engine.converting.carrying import FOLDERS
from shardscope.engine.formats import model_config
from shardscope.engine.formats.fitting import fitting_tables, in_words
from shardscope.engine.formats.probe import Probe
from shardscope.engine.geometry.mapping.apply import Mapped, apply
from shardscope.engine.geometry.mapping.fusing import fused
from shardscope.engine.geometry.mapping.joining import joined
from shardscope.engine.geometry.mapping.tables import LayoutTable, NamingTable
from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.mappings import MEGATRON, NAMES, read_table, table, tables
from shardscope.engine.model.blocker import Blocker, Fault, Finding, blocker
from shardscope.engine.model.catalogue import Catalogue, LogicalTensor
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.mapping import Layout, MappingDocument, ModelFacts, Naming
from shardscope.engine.model.plan import Decision, LeftOut, PlanOptions
from shardscope.engine.model.source import Inventory
from shardscope.engine.model.text import counted, display_name
from shardscope.engine.source.source import Source

_EMBEDDING: Final = "model.embed_tokens.weight"
_OUTPUT: Final = "lm_head.weight"
"""As transformers and vLLM call them."""
ANSWERED: Final = frozenset(
    {"consolidated.names", "megatron.names_kept", "vllm.geometry", "vllm.same_on_ranks"}
)
"""What inspection says of names and of parts that a mapping table then gives."""
_ASKING: Final = frozenset({"consolidated.names", "megatron.names_kept"})
"""What tells already that a loader does not know the names."""


class Named(Struct, frozen=True):
    """A catalogue under the names that it is written with."""

    catalogue: Catalogue
    decisions: tuple[Decision, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    """Tensors that the model works out by itself."""


def named(catalogue: Catalogue, found: Inspection, options: PlanOptions) -> Named:
    """Return a catalogue under the names of the mapping table that a person asked for, and what was decided by it.

    What ranks hold of a tensor is put together first, where the checkpoint does not say how and the table does. Raises `Fault`:
    `mapping.*`, `convert.mapping_unknown`, `convert.mapping_component`.
    """
    made = _mapped(catalogue, found, options)
    if options.fuse is None:
        return made
    put = _fused(made.catalogue, found, options, options.fuse)
    return replace(put, decisions=(*made.decisions, *put.decisions), left_out=made.left_out)


def _mapped(catalogue: Catalogue, found: Inspection, options: PlanOptions) -> Named:
    if options.mapping is None:
        return Named(catalogue)
    if options.component != "model":
        raise Fault("convert.mapping_component", component=options.component)
    document = _document(options.mapping)
    if not isinstance(document.table, Naming):
        raise Fault("convert.mapping_unknown", name=document.name, known=", ".join(namings()))
    naming = NamingTable(document, LayoutTable(_layout(document.table)))
    facts = found.model or ModelFacts()
    if options.vocab_size is not None:
        facts = replace(facts, vocabulary=options.vocab_size)
    naming.check(facts)
    parts = [tensor for tensor in catalogue.of("model") if not _is_runtime(tensor)]
    whole = joined(naming.layout, facts, parts)
    mapped = apply(naming, facts, whole)
    others = tuple(tensor for tensor in catalogue.tensors if tensor.component != "model")
    return Named(
        Catalogue((*mapped.tensors, *others)),
        (*_joining(naming, facts, parts), _decision(document, document.table, mapped)),
        _worked_out(naming, mapped),
    )


def _fused(catalogue: Catalogue, found: Inspection, options: PlanOptions, name: str) -> Named:
    """Return a catalogue under the producer's names of a naming: the naming taken the other way."""
    if options.component != "model":
        raise Fault("convert.mapping_component", component=options.component)
    document = _document(name)
    if not isinstance(document.table, Naming):
        raise Fault("convert.mapping_unknown", name=document.name, known=", ".join(namings()))
    naming = NamingTable(document, LayoutTable(_layout(document.table)))
    facts = found.model or ModelFacts()
    parts = [
        tensor for tensor in catalogue.of("model") if not _is_runtime(tensor) and tensor.alias_of is None
    ]
    facts = with_tie(facts, {tensor.name for tensor in parts})
    naming.check(facts)
    made = fused(naming, facts, parts)
    joined_ = [(name, of) for name, of in made.sources.items() if len(of) > 1]
    decision = Decision(
        kind="fuse",
        choice=f"{counted(len(joined_), 'tensor')} put end to end, under the names of {naming.layout.name}",
        evidence=f"the table {document.name}, taken the other way",
        option="--fuse",
        tensors=len(joined_),
        examples=tuple(display_name(f"{' + '.join(of)} -> {name}", 200) for name, of in joined_[:3]),
    )
    others = tuple(tensor for tensor in catalogue.tensors if tensor.component != "model")
    return Named(Catalogue((*made.tensors, *others)), (decision,))


def _joining(naming: NamingTable, facts: ModelFacts, parts: Sequence[LogicalTensor]) -> tuple[Decision, ...]:
    """Return by what the parts of ranks were put together, where they were."""
    held = [tensor for tensor in parts if tensor.part_of is not None]
    if not held:
        return ()
    ranks = counted(len({tensor.part_of for tensor in held}), "rank")
    names = list(dict.fromkeys(tensor.name for tensor in held))
    known = {"head": facts.heads, "key and value head": facts.groups, "vocabulary row": facts.vocabulary}
    said = [counted(count, noun) for noun, count in known.items() if count is not None]
    declared = f"; declared: {', '.join(said)}" if said else ""
    return (
        Decision(
            kind="layout",
            choice=f"parts of {ranks} put together",
            evidence=f"the table {naming.layout.name}{declared}",
            option="--mapping",
            tensors=len(names),
            examples=tuple(display_name(name, 120) for name in names[:3]),
        ),
    )


def _decision(document: MappingDocument, naming: Naming, mapped: Mapped) -> Decision:
    inferred = f"; inferred: {naming.assumes}" if naming.assumes else ""
    return Decision(
        kind="mapping",
        choice=f"names and tensors of {', '.join(naming.models) or document.name}",
        evidence=f"the table {document.name}: {document.title}{inferred}",
        option="--mapping",
        tensors=len(mapped.tensors),
        examples=tuple(display_name(f"{old} -> {new}", 200) for new, old in list(mapped.sources.items())[:3]),
    )


def _worked_out(naming: NamingTable, mapped: Mapped) -> tuple[LeftOut, ...]:
    if not mapped.left:
        return ()
    first = display_name(mapped.left[0], 120)
    why = f"such as {first}: the model works them out, says the table {naming.name}"
    return (LeftOut("no weights", len(mapped.left), None, why),)


def load_notes(
    blockers: Sequence[Blocker], found: Inspection, catalogue: Catalogue, options: PlanOptions
) -> tuple[Blocker, ...]:
    """Return what inspection found without what the mapping answers; without a mapping, say that one is needed to load the output."""
    if options.mapping is not None:
        return tuple(item for item in blockers if item.code not in ANSWERED)
    name = found.descriptor.classification.format
    model = catalogue.of(options.component) if options.component == "model" else ()
    if not model or name not in producers() or any(item.code in _ASKING for item in blockers):
        return tuple(blockers)
    fitting = fitting_tables(name, found.model or ModelFacts())
    asked = Finding("convert.load_names", {"first": model[0].name, "known": in_words(fitting)})
    return (*blockers, blocker(asked))


def producers() -> frozenset[str]:
    """Return the families of checkpoints whose names are none of a loader's: those that tables are for."""
    return frozenset(name for one in tables() if isinstance(one.table, Layout) for name in one.table.formats)


def _is_runtime(tensor: LogicalTensor) -> bool:
    return tensor.name.rpartition(".")[2] == "_extra_state"


def _layout(naming: Naming) -> MappingDocument:
    if naming.layout not in NAMES:
        raise Fault("convert.mapping_unknown", name=naming.layout, known=", ".join(NAMES))
    return table(naming.layout)


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


def with_tie(facts: ModelFacts, names: Collection[str]) -> ModelFacts:
    """Return facts that know whether embedding and output layer are one tensor: where only one of the two is written, they are."""
    if facts.tied is not None:
        return facts
    return replace(facts, tied=(_OUTPUT in names) != (_EMBEDDING in names))


def facts_beside(
    path: str | os.PathLike[str], inventory: Inventory, limits: Limits, *, hf_cache: bool
) -> ModelFacts:
    """Return what a config.json in a folder, or where configuration stands beside weights, declares of the model."""
    with Source(path, limits=limits, hf_cache=hf_cache) as source:
        probe = Probe(source, inventory, limits)
        for folder in FOLDERS:
            facts = model_config.model_facts(probe, probe.folder(folder))
            if facts is not None and facts != ModelFacts():
                return facts
    return ModelFacts()


def _declared(
    path: str | os.PathLike[str], found: Inspection, *, hf_cache: bool
) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return the shapes that config.json gives embeddings and output heads."""
    limits = found.descriptor.limits
    with Source(path, limits=limits, hf_cache=hf_cache) as source:
        probe = Probe(source, found.inventory, limits)
        for folder in FOLDERS:
            shapes = model_config.embedding_shapes(probe, probe.folder(folder))
            if shapes:
                return shapes
    return {}
