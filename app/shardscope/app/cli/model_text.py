"""What a model is made of, as text: a section for each question, 80 columns wide."""

from collections.abc import Iterator, Sequence
from typing import Final

from shardscope.app.cli.paragraphs import wrapped
from shardscope.engine.model.anatomy import Adapter, Fact, Family, Line, ModelDocument, PackedGroup
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.secrets import shown
from shardscope.widgets.figures import magnitude, number, plural, share, size

ROWS: Final = 12
"""Rows of one section that are shown before the rest is counted."""
_LABEL: Final = 14
_NAME: Final = 60


def text_lines(document: ModelDocument, path: str, *, everything: bool) -> Iterator[str]:
    """Yield the lines of a text."""
    unnamed = "A model without a configuration" if document.adapter is None else "An adapter"
    yield from wrapped(f"{document.title or unnamed}  {shown(path, _NAME)}")
    yield f"{FORMAT_TITLES.get(document.format, document.format)} · {plural(document.tensors, 'tensor')}"
    for heading, lines in (
        ("Parameters", _parameters(document)),
        ("Adapter", _adapter(document.adapter)),
        ("Layers", _families(document.families, everything=everything)),
        ("Sizes", _facts(document.facts, document.configuration)),
        ("Packing", _packed(document, everything=everything)),
        ("Memory", _memory(document)),
        ("In the way", _findings(document.findings)),
    ):
        held = list(lines)
        if held:
            yield ""
            yield heading
            yield from held


def _row(label: str, text: str) -> list[str]:
    return wrapped(text, _LABEL + 2, first=f"  {label}")


def _parameters(document: ModelDocument) -> Iterator[str]:
    counts = document.parameters
    short = magnitude(counts.total)
    in_short = f" ({short})" if short else ""
    yield from _row("all", f"{number(counts.total)}{in_short}")
    if counts.unknown:
        yield from _row("", f"without {plural(counts.unknown, 'packed tensor')} whose size is not known")
    if counts.embeddings:
        yield from _row(
            "embeddings", f"{number(counts.embeddings)}, {share(counts.embeddings, counts.total)}"
        )
    if counts.experts:
        yield from _row("experts", f"{number(counts.experts)}, {share(counts.experts, counts.total)}")
    if counts.active is not None:
        yield from _row(
            "for a token",
            f"{number(counts.active)}, {share(counts.active, counts.total)}: experts by their number per token",
        )
    if counts.frozen is not None:
        yield from _row("frozen", f"{number(counts.frozen)}, {share(counts.frozen, counts.total)}")
    if counts.tied:
        more = f" and {len(counts.tied) - 1:,} more" if len(counts.tied) > 1 else ""
        yield from _row("tied", f"{shown(counts.tied[0], _NAME)}{more}: counted once")
    if counts.companions:
        yield from _row(
            "beside them", f"{number(counts.companions)} scales and zero points, not in the total"
        )
    if counts.buffers:
        yield from _row("beside them", f"{number(counts.buffers)} in buffers, not in the total")
    words = ", ".join(
        f"{shown(row.dtype, 20)} {size(row.bytes)} in {row.tensors:,}" for row in document.dtypes[:6]
    )
    yield from _row("stored as", words)


def _adapter(adapter: Adapter | None) -> Iterator[str]:
    if adapter is None:
        return
    scale = f", scaled by {adapter.scale}" if adapter.scale is not None else ""
    rank = f"rank {number(adapter.rank)}" if adapter.rank is not None else "ranks differ"
    yield from _row("kind", f"{adapter.kind}, {rank}, alpha {adapter.alpha or 'unknown'}{scale}")
    yield from _row(
        "base", shown(adapter.base, _NAME) if adapter.base is not None else "not named by a hub id"
    )
    for target in adapter.targets[:ROWS]:
        inputs, outputs = number(target.inputs), number(target.outputs)
        rank = f"rank {target.rank:,}" if target.rank is not None else "ranks differ"
        words = f"{target.count:,} x {rank}, {inputs} inputs, {outputs} outputs"
        yield from _row("changes", f"{shown(target.target, _NAME)}: {words}")
    if len(adapter.targets) > ROWS:
        yield from _row("", f"and {plural(len(adapter.targets) - ROWS, 'more target')}")
    if adapter.saved_whole:
        more = f" and {len(adapter.saved_whole) - 1:,} more" if len(adapter.saved_whole) > 1 else ""
        yield from _row("saved whole", f"{shown(adapter.saved_whole[0], _NAME)}{more}")
    if adapter.fitting is not None:
        yield from _row(
            "on the base", f"{plural(adapter.fitting, 'tensor')} fit, {adapter.unfitting or 0:,} do not"
        )


def _families(families: Sequence[Family], *, everything: bool) -> Iterator[str]:
    rows = families if everything else families[:ROWS]
    for family in rows:
        yield from wrapped(f"{shown(family.name, 120)}  x{family.count:,}", 2)
        if family.missing:
            yield from wrapped(f"missing: {family.missing}", 4)
        kinds = family.kinds if everything else family.kinds[:4]
        for kind in kinds:
            if family.experts:
                where = (
                    f"in {'layer' if kind.count == 1 else plural(kind.count, 'layer')} {kind.layers}"
                    if len(family.kinds) > 1
                    else "in each layer alike"
                )
                words = f"{where}: {plural(kind.tensors, 'tensor')} and {kind.parameters:,} elements each"
            else:
                alike = "all alike" if len(family.kinds) == 1 else f"{kind.count:,} alike ({kind.layers})"
                words = f"{alike}: {plural(kind.tensors, 'tensor')}, {kind.parameters:,} elements each"
            yield from wrapped(words, 4)
        if len(kinds) < len(family.kinds):
            yield f"    and {plural(len(family.kinds) - len(kinds), 'more kind')} (-v shows all)"
    if len(rows) < len(families):
        yield f"  and {plural(len(families) - len(rows), 'more')} (-v shows all)"


def _facts(facts: Sequence[Fact], file: str | None) -> Iterator[str]:
    if not facts:
        return
    source = shown(file, 24) if file is not None else "declared"
    yield f"    {'':<20} {source:>24}  {'shapes':>12}"
    for fact in facts:
        sign = {True: "=", False: "!", None: " "}[fact.agrees]
        declared = fact.declared if isinstance(fact.declared, str) else _cell(fact.declared)
        yield f"  {sign} {fact.name:<20} {declared:>24}  {_cell(fact.seen):>12}"


def _cell(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _packed(document: ModelDocument, *, everything: bool) -> Iterator[str]:
    if document.declared_packing is not None:
        yield from _row("declared", document.declared_packing)
    groups = document.packed if everything else document.packed[:ROWS]
    for group in groups:
        yield from _group(group)
    if len(groups) < len(document.packed):
        yield f"  and {plural(len(document.packed) - len(groups), 'more')} (-v shows all)"


def _group(group: PackedGroup) -> Iterator[str]:
    bits = f", {group.bits:,} bits" if group.bits is not None else ""
    scale = f", a scale for {group.group}" if group.group != "unknown" else ""
    yield from wrapped(f"{group.scheme}: {plural(group.modules, 'module')}{bits}{scale}", 2)
    yield from wrapped(group.explanation, 4)
    yield from wrapped(f"{shown(group.first, _NAME)}: {_shapes(group)}", 4)
    if group.elements:
        per = f": {8 * group.bytes / group.elements:.3g} bits a weight with all that belongs to it"
        yield from wrapped(f"{group.elements:,} weights in {size(group.bytes)}{per}", 4)
    if group.companions:
        words = ", ".join(f"{name} ({count:,})" for name, count in group.companions)
        yield from wrapped(f"beside them: {words}", 4)


def _shapes(group: PackedGroup) -> str:
    if group.logical == group.stored:
        return _shape(group.stored)
    logical = "unknown" if group.logical is None else _shape(group.logical)
    return f"stored {_shape(group.stored)}, the weight is {logical}"


def _shape(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _memory(document: ModelDocument) -> Iterator[str]:
    memory = document.memory
    each = f" on each of {memory.devices:,} devices" if memory.devices > 1 else ""
    for line in memory.weights:
        yield from _figure(f"weights {line.name}{each}", line)
    if memory.cache_per_token is not None:
        yield from _figure(f"cache of a token in {memory.cache_dtype}{each}", memory.cache_per_token)
    if memory.cache is not None:
        yield from _figure(f"cache of {memory.cache.name}{each}", memory.cache)
    for line in memory.together:
        yield from _figure(f"weights {line.name} and cache{each}", line)
    yield from wrapped(f"Arithmetic on bytes, no promise: not in it are {memory.left_out}.", 2)


def _figure(label: str, line: Line) -> Iterator[str]:
    yield from wrapped(f"{label}: {size(line.bytes)}", 2)
    yield from wrapped(f"= {line.formula}", 4)


def _findings(findings: Sequence[Blocker]) -> Iterator[str]:
    for item in findings:
        yield from wrapped(f"{item.severity.upper():<8}{item.code}", 2)
        yield from wrapped(item.message, 10)
        yield from wrapped(item.remedy, 13, first=f"{'':<10}→ ")
