"""What a model is made of, in words: layers that repeat, sizes against the configuration, packed weights, an adapter."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from shardscope.engine.model.anatomy import Adapter, Fact, Family, Kind, ModelDocument, PackedGroup
from shardscope.widgets.figures import number, plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.model_answer import LABEL, short
from shardscope.widgets.paragraphs import Paragraph, heading, labelled
from shardscope.widgets.safe import Part, Tone, visible

KINDS: Final = 8
"""Kinds of layers that are listed before the rest is counted."""
ROWS: Final = 40
"""Families, groups and targets that are listed before the rest is counted."""
_FACT: Final = 20
_FIGURE: Final = 13


def families(
    found: Sequence[Family], odd: Collection[tuple[str, str]], glyphs: Glyphs
) -> Iterator[Paragraph]:
    """Yield what repeats. `odd` are family and layers of kinds that a finding is about. Keys: `family:N`, `kind:N:M`."""
    if found:
        yield from heading("Layers and experts", "enter lists the tensors")
    for at, family in enumerate(found[:ROWS]):
        missing: Part = (f"  {glyphs.stop} missing {family.missing}", Tone.STOP) if family.missing else ""
        yield Paragraph(
            (short(family.name, glyphs), (f"  x{family.count:,}", Tone.STRONG), missing),
            indent=2,
            hang=4,
            key=f"family:{at}",
        )
        for place, kind in enumerate(family.kinds[:KINDS]):
            strange = any(kind.layers == layers and _is_of(family, name) for name, layers in odd)
            mark: Part = (f"{glyphs.caution} ", Tone.CAUTION) if strange else "  "
            alone = family.experts or len(family.kinds) == 1
            yield Paragraph(
                (mark, _kind(family, kind)),
                indent=2,
                hang=6,
                key=None if alone and len(family.kinds) == 1 else f"kind:{at}:{place}",
            )
        if len(family.kinds) > KINDS:
            yield Paragraph(
                ((f"and {plural(len(family.kinds) - KINDS, 'more kind')}", Tone.MUTED),), indent=4
            )
    if len(found) > ROWS:
        yield Paragraph(((f"and {plural(len(found) - ROWS, 'more')}", Tone.MUTED),), indent=2)


def _is_of(family: Family, name: str) -> bool:
    """Tell whether a name is that of a family, with the numbers of its experts or without."""
    return family.name == name or (family.experts and family.name.startswith(f"{name}.{{"))


def _kind(family: Family, kind: Kind) -> str:
    each = f"{plural(kind.tensors, 'tensor')}, {kind.parameters:,} elements each"
    if len(family.kinds) == 1:
        return f"{'in each layer alike' if family.experts else 'all alike'}: {each}"
    if family.experts:
        layers = "layer" if kind.count == 1 else plural(kind.count, "layer")
        return f"in {layers} {kind.layers}: {each}"
    return (
        f"layer {kind.layers} alone: {each}"
        if kind.count == 1
        else f"{kind.count:,} alike ({kind.layers}): {each}"
    )


def facts(document: ModelDocument, width: int, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what is declared beside what the shapes show, contradictions first. `fact:N` is the key of the one at N."""
    found = document.facts
    if not found:
        return
    yield from heading("Sizes", "= agrees, ! does not, blank: one is missing")
    source = "declared" if document.configuration is None else short(document.configuration, glyphs, _FIGURE)
    yield Paragraph(((f"    {'':<{_FACT}}{source:>{_FIGURE}}{'shapes':>{_FIGURE}}", Tone.MUTED),))
    order = sorted(range(len(found)), key=lambda at: found[at].agrees is not False)
    room = width - 4 - _FACT - 2 * _FIGURE - 2
    for at in order:
        fact = found[at]
        sign, tone = {True: ("=", Tone.OK), False: ("!", Tone.STOP), None: (" ", Tone.MUTED)}[fact.agrees]
        by: Part = (f"  {short(fact.by, glyphs, room)}", Tone.MUTED) if room >= 16 and fact.by else ""
        wrong = Tone.STOP if fact.agrees is False else Tone.PLAIN
        yield Paragraph(
            (
                (f"  {sign} ", tone),
                f"{fact.name:<{_FACT}}",
                (f"{_declared(fact):>{_FIGURE}}{_cell(fact.seen):>{_FIGURE}}", wrong),
                by,
            ),
            key=f"fact:{at}" if fact.by else None,
        )


def _declared(fact: Fact) -> str:
    return visible(fact.declared, _FIGURE) if isinstance(fact.declared, str) else _cell(fact.declared)


def _cell(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def packing(document: ModelDocument, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield how weights are packed. `packed:N` is the key of the group at N."""
    if not document.packed and document.declared_packing is None:
        return
    yield from heading("Packing")
    if document.declared_packing is not None:
        yield labelled("  declared", document.declared_packing, width=LABEL)
    for at, group in enumerate(document.packed[:ROWS]):
        yield from _group(group, glyphs, f"packed:{at}")
    if len(document.packed) > ROWS:
        yield Paragraph(((f"and {plural(len(document.packed) - ROWS, 'more')}", Tone.MUTED),), indent=2)


def _group(group: PackedGroup, glyphs: Glyphs, key: str) -> Iterator[Paragraph]:
    bits = f", {group.bits:,} bits" if group.bits is not None else ""
    scale = f", a scale for {group.group}" if group.group != "unknown" else ""
    head = f": {plural(group.modules, 'module')}{bits}{scale}"
    yield Paragraph(((group.scheme, Tone.STRONG), head), indent=2, hang=4, key=key)
    yield Paragraph(((group.explanation, Tone.MUTED),), indent=4, hang=4, key=key)
    yield Paragraph((short(group.first, glyphs, 60), f": {_shapes(group)}"), indent=4, hang=6, key=key)
    if group.elements:
        per = f": {8 * group.bytes / group.elements:.3g} bits a weight with all that belongs to it"
        yield Paragraph(
            (f"{group.elements:,} weights in {size(group.bytes)}{per}",), indent=4, hang=6, key=key
        )
    if group.companions:
        yield Paragraph(("beside them: ", *_companions(group, glyphs)), indent=4, hang=6, key=key)


def _companions(group: PackedGroup, glyphs: Glyphs) -> Iterator[Part]:
    """Yield which tensors stand beside packed weights, and that not every module has one where that is so."""
    for at, (name, count) in enumerate(group.companions):
        comma = ", " if at else ""
        if count < group.modules:
            yield f"{comma}{glyphs.caution} {name} in {count:,} of {group.modules:,}", Tone.CAUTION
        else:
            yield f"{comma}{name}"


def _shapes(group: PackedGroup) -> str:
    if group.logical == group.stored:
        return extents(group.stored)
    logical = "unknown" if group.logical is None else extents(group.logical)
    return f"stored {extents(group.stored)}, the weight is {logical}"


def extents(shape: Sequence[int]) -> str:
    """Return a shape as it is written."""
    return f"[{', '.join(map(str, shape))}]"


def adapter(found: Adapter | None, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Yield what an adapter changes. `target:N` is the key of the one at N."""
    if found is None:
        return
    yield from heading("Adapter")
    rank = f"rank {number(found.rank)}" if found.rank is not None else "ranks differ"
    scale = f", scaled by {found.scale}" if found.scale is not None else ""
    yield labelled("  kind", f"{found.kind}, {rank}, alpha {found.alpha or 'unknown'}{scale}", width=LABEL)
    base: Part = (
        ("not named by a hub id", Tone.MUTED) if found.base is None else short(found.base, glyphs, 60)
    )
    yield labelled("  base", base, width=LABEL)
    for at, target in enumerate(found.targets[:ROWS]):
        inputs, outputs = number(target.inputs), number(target.outputs)
        rank = f"rank {target.rank:,}" if target.rank is not None else "ranks differ"
        words = f"  {target.count:,} x {rank}, {inputs} inputs, {outputs} outputs"
        said = labelled("  changes", short(target.target, glyphs, 60), (words, Tone.MUTED), width=LABEL)
        yield Paragraph(said.parts, hang=said.hang, key=f"target:{at}")
    if len(found.targets) > ROWS:
        yield Paragraph(
            ((f"and {plural(len(found.targets) - ROWS, 'more target')}", Tone.MUTED),), indent=LABEL
        )
    if found.saved_whole:
        more = f" and {len(found.saved_whole) - 1:,} more" if len(found.saved_whole) > 1 else ""
        said = labelled("  saved whole", short(found.saved_whole[0], glyphs, 60), more, width=LABEL)
        yield Paragraph(said.parts, hang=said.hang, key="saved")
