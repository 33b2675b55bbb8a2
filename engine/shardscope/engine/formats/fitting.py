"""Which packaged mapping tables give the tensors of a checkpoint a model's own names."""

from shardscope.engine.geometry.mapping.tables import LayoutTable, NamingTable
from shardscope.engine.mappings import table, tables
from shardscope.engine.model.mapping import Layout, ModelFacts, Naming


def fitting_tables(format_name: str, facts: ModelFacts) -> tuple[str, ...]:
    """Return the packaged namings for a family of checkpoints that fit what one of them declares."""
    found = []
    for document in tables():
        if not isinstance(document.table, Naming):
            continue
        layout = table(document.table.layout)
        known = isinstance(layout.table, Layout) and format_name in layout.table.formats
        if known and NamingTable(document, LayoutTable(layout)).fits(facts):
            found.append(document.name)
    return tuple(found)


def in_words(fitting: tuple[str, ...]) -> str:
    """Return one clause that says which tables fit."""
    if not fitting:
        return "no packaged mapping table fits the declared facts"
    return (
        f"the declared facts fit the mapping {'tables' if len(fitting) > 1 else 'table'} {', '.join(fitting)}"
    )
