"""Mapping tables, checked and ready to be asked."""

from collections.abc import Mapping
from typing import NoReturn

from msgspec import Struct

from shardscope.engine.geometry.mapping.sections import Asked, in_value, in_words
from shardscope.engine.geometry.mapping.templates import Names, Variant, variants
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.mapping import (
    SCHEMA,
    Kind,
    Layout,
    Made,
    MappingDocument,
    ModelFacts,
    Naming,
    Quality,
    Target,
)


class Placed(Struct, frozen=True):
    """A name in a layout."""

    kind: Kind
    numbers: dict[str, int]
    stacked: tuple[str, ...]
    """The tensor's leading axes."""
    variant: Variant
    """How the name is written; of an alias, how the name is written that it is listed under."""
    prefix: str = ""

    def written(self, numbers: Mapping[str, int]) -> str:
        """Return the name with other numbers."""
        return self.prefix + self.variant.written(numbers)


class LayoutTable:
    """A layout that can be asked for names."""

    def __init__(self, document: MappingDocument) -> None:
        """Raises `Fault` `mapping.invalid`."""
        if not isinstance(document.table, Layout):
            _invalid(document, "table", "it is no layout")
        self.name = document.name
        self.layout = document.table
        self.kinds = {kind.id: kind for kind in self.layout.kinds}
        self._names: Names[tuple[Kind, Variant | None]] = Names()
        _check_schema(document)
        for kind in self.layout.kinds:
            self._add(document, kind)

    def place(self, name: str, facts: ModelFacts) -> Placed | None:
        """Return what a name stands for under these facts; null where the table does not know it.

        Raises `Fault` `mapping.fact_missing` where that depends on a fact that is not declared.
        """
        for prefix in ("", *self.layout.prefixes):
            if not name.startswith(prefix):
                continue
            asked = Asked(self.name, name)
            for variant, numbered, (kind, listed) in self._names.find(name[len(prefix) :]):
                if holds(kind.when, facts, asked):
                    return Placed(kind, numbered.numbers, numbered.stacked, listed or variant, prefix)
        return None

    def _add(self, document: MappingDocument, kind: Kind) -> None:
        if self.kinds[kind.id] is not kind and self.kinds[kind.id].names != kind.names:
            _invalid(document, kind.id, "two kinds of other names have this id")
        if kind.each and (kind.cut is None or kind.view is None or kind.view.dim != kind.cut):
            _invalid(document, kind.id, "sections that are cut on their own lie along another dimension")
        if kind.each and kind.view is not None and kind.view.before:
            _invalid(document, kind.id, "sections that are cut on their own lie within a factor")
        shared = [section for section in kind.view.sections if section.shared] if kind.view else []
        if any(section.size is None or not kind.each for section in shared):
            _invalid(document, kind.id, "a section that ranks share has no size, or is not cut on its own")
        try:
            listed = variants(kind.names[0]) if kind.names else ()
            for template in kind.names:
                self._names.add(template, (kind, None))
            for template in kind.aliases:
                for one in variants(template):
                    under = [to for to in listed if set(to.captures) == set(one.captures)]
                    if not under:
                        _invalid(
                            document, kind.id, "an alias has other numbers than the name it is listed under"
                        )
                self._names.add(template, (kind, under[0]))
        except ValueError as error:
            _invalid(document, kind.id, str(error))


class NamingTable:
    """A naming, with the layout that it rests on."""

    def __init__(self, document: MappingDocument, layout: LayoutTable) -> None:
        """Raises `Fault` `mapping.invalid`."""
        if not isinstance(document.table, Naming):
            _invalid(document, "table", "it is no naming")
        _check_schema(document)
        self.name = document.name
        self.naming = document.table
        self.layout = layout
        if self.naming.layout != layout.name:
            _invalid(document, "layout", "it rests on another layout")
        self._made: dict[str, Made] = {}
        for made in self.naming.made:
            if made.of in self._made:
                _invalid(document, made.of, "the kind is there twice")
            self._made[made.of] = made
            kinds = [kind for kind in layout.layout.kinds if kind.id == made.of]
            if not kinds:
                _invalid(document, made.of, "the layout has no such kind")
            for target in made.to:
                for kind in kinds:
                    _check_target(document, made.of, kind, target)

    def made(self, kind: str) -> Made | None:
        """Return what is made of a kind."""
        return self._made.get(kind)

    def check(self, facts: ModelFacts) -> None:
        """Raise `Fault` where the facts are not those that the table needs: `mapping.unfit`, `mapping.fact_missing`."""
        asked = Asked(self.name, "the model")
        for fact, expected in self.naming.needs.items():
            if not holds({fact: expected}, facts, asked):
                raise asked.unfit(in_words(fact), in_value(expected), in_value(getattr(facts, fact)))
        models, found = self.naming.models, facts.architecture
        if models and found is not None and found not in models:
            raise asked.unfit("architecture", " or ".join(models), found)

    def fits(self, facts: ModelFacts) -> bool:
        """Tell whether the facts are those that the table needs; one that is not declared does not fit."""
        try:
            self.check(facts)
        except Fault:
            return False
        return True


def holds(when: Mapping[Quality, bool | str], facts: ModelFacts, asked: Asked) -> bool:
    """Tell whether conditions hold. Raises `Fault` `mapping.fact_missing` where one cannot be told."""
    for fact, expected in when.items():
        found = getattr(facts, fact)
        if found is None:
            raise asked.missing(fact)
        if found != expected:
            return False
    return True


def _check_target(document: MappingDocument, of: str, kind: Kind, target: Target) -> None:
    sections = {section.name for section in kind.view.sections} if kind.view else set()
    factors = len(kind.view.before) + len(kind.view.after) + 1 if kind.view else 0
    if not sections.issuperset(target.take):
        _invalid(document, of, "it takes a section that the kind does not have")
    if target.order and sorted(target.order) != list(range(factors)):
        _invalid(document, of, "its order is not one of the factors of the view")
    try:
        written = variants(target.name)
        known = {
            *(text for name in kind.names for one in variants(name) for text in (*one.captures, *one.stacked))
        }
    except ValueError as error:
        _invalid(document, of, str(error))
    if len(written) != 1 or not known.issuperset(written[0].captures):
        _invalid(document, of, "the name of a target has choices, or numbers that the kind does not have")


def _check_schema(document: MappingDocument) -> None:
    if document.schema != SCHEMA:
        _invalid(document, "schema", f"it is not {SCHEMA}")


def _invalid(document: MappingDocument, place: str, reason: str) -> NoReturn:
    raise Fault("mapping.invalid", table=document.name, place=place, reason=reason)
