"""What the tensors of one checkpoint are called in another: by a person's rules, by the manifest that a conversion left, and by the
mapping tables of producers.

Tables are read where two sides are of two families, and nowhere else: most comparisons need none.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.inspecting.sides import Side, manifest_in
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Catalogue
from shardscope.engine.model.decoded import Listed
from shardscope.engine.model.difference import By
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.manifest import Manifest
from shardscope.engine.model.plan import PlanOptions, RenameRule
from shardscope.engine.model.text import counted, display_name

AUTO: Final = "auto"
"""Takes the mapping table that fits, where exactly the names of the other side speak for it."""


class Names(Struct, frozen=True):
    """Two catalogues whose names can be put side by side."""

    first: Catalogue
    second: Catalogue
    renamed: Callable[[str], str] | None = None
    """Makes the name in B of a name in A; null where names stay."""
    by: By = "name"
    decisions: tuple[str, ...] = ()
    """What was decided, and by what."""


def correspondence(
    first: Side,
    second: Side,
    rules: Sequence[RenameRule],
    mapping: str | None,
    component: Listed,
    limits: Limits,
) -> Names:
    """Return the catalogues of two sides under names that can be put side by side.

    Rules go before a manifest, and either before what a table says. Raises `Fault`: `convert.rename_rule`, those of a manifest that
    is damaged, and those of a mapping table that was asked for.
    """
    if rules:
        from shardscope.engine.convert.plans.renaming import Renaming

        says = f"{counted(len(rules), 'rule')} of renaming"
        mapped = _mapped(first, second, mapping, component)
        return replace(mapped, renamed=Renaming(rules), by="rules", decisions=(*mapped.decisions, says))
    by_manifest = _by_manifest(first, second, limits, component)
    return by_manifest or _mapped(first, second, mapping, component)


def _by_manifest(first: Side, second: Side, limits: Limits, component: Listed) -> Names | None:
    """Return names by the manifest of a side that was made of the other one; null where no manifest says so."""
    for made, source in ((second, first), (first, second)):
        manifest = manifest_in(made, limits)
        if manifest is None:
            continue
        catalogue = _as_planned(source, manifest)
        names = {tensor.name for tensor in catalogue.of(component)}
        outputs = {tensor.source: tensor.name for file in manifest.outputs for tensor in file.tensors}
        if not outputs or names.isdisjoint(outputs):
            continue
        letter = "B" if made is second else "A"
        says = (f"names by the manifest of {letter}",)
        if made is second:
            return Names(catalogue, made.catalogue, _looked_up(outputs), "manifest", says)
        back = {name: source for source, name in outputs.items()}
        return Names(made.catalogue, catalogue, _looked_up(back), "manifest", says)
    return None


def _as_planned(source: Side, manifest: Manifest) -> Catalogue:
    """Return a catalogue with what a conversion's table made of it; as it is where that does not work on it."""
    from shardscope.engine.converting.naming import named

    try:
        return named(source.catalogue, source.found, manifest.options).catalogue
    except Fault:
        return source.catalogue


def _looked_up(names: Mapping[str, str]) -> Callable[[str], str]:
    return lambda name: names.get(name, name)


def _mapped(first: Side, second: Side, mapping: str | None, component: Listed) -> Names:
    """Return names by a mapping table: the one that was asked for, or the one that fits best."""
    as_they_are = Names(first.catalogue, second.catalogue)
    if mapping is None or component != "model":
        return as_they_are
    if mapping == AUTO and _family(first) == _family(second):
        return as_they_are
    if mapping != AUTO:
        letter = "A" if _is_for(mapping, first) or not _is_for(mapping, second) else "B"
        return _with_table(first, second, mapping, letter)
    for letter, side, other in (("A", first, second), ("B", second, first)):
        name = _best(side, other)
        if name is not None:
            return _with_table(first, second, name, letter)
    return as_they_are


def _best(side: Side, other: Side) -> str | None:
    """Return the table under whose names most tensors of a side are in the other one, more than under its own."""
    from shardscope.engine.converting.naming import producers
    from shardscope.engine.formats.fitting import fitting_tables
    from shardscope.engine.model.mapping import ModelFacts

    family = _family(side)
    if family not in producers():
        return None
    there = {tensor.name for tensor in other.catalogue.of("model")}
    found, most = None, len(there.intersection(tensor.name for tensor in side.catalogue.of("model")))
    for name in fitting_tables(family, side.found.model or ModelFacts()):
        try:
            made = _catalogue(side, name, other)
        except Fault:  # it fits what is declared, and not what is there
            continue
        shared = len(there.intersection(tensor.name for tensor in made.of("model")))
        if shared > most:
            found, most = name, shared
    return found


def _with_table(first: Side, second: Side, name: str, letter: str) -> Names:
    side, other = (first, second) if letter == "A" else (second, first)
    catalogue = _catalogue(side, name, other)
    says = (f"names of {letter} by the mapping table {display_name(name, 80)}",)
    if letter == "A":
        return Names(catalogue, second.catalogue, decisions=says)
    return Names(first.catalogue, catalogue, decisions=says)


def _catalogue(side: Side, name: str, other: Side) -> Catalogue:
    """Return a side under the names of a table. How many rows a vocabulary has, which few producers say, the other side shows."""
    from shardscope.engine.converting.naming import named

    declared = side.found.model is not None and side.found.model.vocabulary is not None
    options = PlanOptions(mapping=name, vocab_size=None if declared else _vocabulary(other))
    return named(side.catalogue, side.found, options).catalogue


def _vocabulary(side: Side) -> int | None:
    """Return the rows of the embedding of a side that has the names of a model; null where none is there."""
    from shardscope.engine.formats.model_config import EMBEDDINGS

    rows = (
        tensor.shape[0]
        for tensor in side.catalogue.of("model")
        if tensor.name.endswith(EMBEDDINGS) and tensor.shape
    )
    return next(rows, None)


def _is_for(name: str, side: Side) -> bool:
    """Tell whether a packaged table is for the family of a side."""
    from shardscope.engine.mappings import NAMES, table
    from shardscope.engine.model.mapping import Layout, Naming

    if name not in NAMES:
        return False
    naming = table(name).table
    layout = table(naming.layout).table if isinstance(naming, Naming) else naming
    return isinstance(layout, Layout) and _family(side) in layout.formats


def _family(side: Side) -> str:
    return side.found.descriptor.classification.format
