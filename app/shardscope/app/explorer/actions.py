"""Everything that keys do, by the stable names that settings use: read from the bindings, kept nowhere else."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen


@dataclass(frozen=True)
class Action:
    """One thing that keys do."""

    id: str
    keys: tuple[str, ...]
    """By themselves, by Textual's names."""
    description: str
    tooltip: str
    owner: type[DOMNode]
    """Where it is bound."""


def owners() -> tuple[type[DOMNode], ...]:
    """Return every class that binds keys. It imports all of the explorer, which takes half a second."""
    from shardscope.app.explorer import (
        app,
        choose,
        decode,
        detail,
        dialogs,
        explore,
        helping,
        reference,
        workspace,
    )
    from shardscope.app.explorer.open import cache, screen
    from shardscope.app.explorer.report import bound as report
    from shardscope.widgets import blockers_panel, pickle_panel, rank_map, rows, tensor_table, virtual_table

    return (
        app.Explorer,
        screen.Open,
        cache.CacheBrowser,
        explore.Explore,
        workspace.Workspace,
        reference.Reference,
        dialogs.Dialog,
        dialogs.NotDone,
        dialogs.OwnError,
        dialogs.CopiedCommand,
        dialogs.SettingsNote,
        helping.Help,
        choose.Choose,
        decode.Decode,
        detail.Detail,
        rows.VirtualRows,
        virtual_table.VirtualTable,
        tensor_table.TensorPanel,
        blockers_panel.BlockersPanel,
        rank_map.RankMap,
        pickle_panel.PicklePanel,
        *report.OWNERS,
    )


def bindings(owner: type[DOMNode]) -> Iterator[Binding]:
    """Yield the bindings of a class itself, those of its bases left out."""
    for each in vars(owner).get("BINDINGS", ()):
        if isinstance(each, Binding):
            yield each


def actions() -> dict[str, Action]:
    """Return what keys do, by its stable name."""
    return {
        each.id: Action(each.id, names(each.key), each.description, each.tooltip, owner)
        for owner in owners()
        for each in bindings(owner)
        if each.id is not None
    }


def names(keys: str) -> tuple[str, ...]:
    """Return keys as Textual names them: `?` is `question_mark`."""
    return tuple(each.key for each in Binding.make_bindings([Binding(keys, "")]))


def together(one: type[Any], other: type[Any]) -> bool:
    """Tell whether what two classes bind can be asked for at the same moment."""
    if issubclass(one, other) or issubclass(other, one):
        return True
    if issubclass(one, ModalScreen) or issubclass(other, ModalScreen):
        return False  # a dialog has the keys for itself
    if issubclass(one, App) or issubclass(other, App):
        return True
    from shardscope.app.explorer.explore import Explore
    from shardscope.app.explorer.workspace import Workspace

    return bool({one, other} & {Explore, Workspace}) and not {one, other} & (_screens() - {Explore})


def _screens() -> set[type[Any]]:
    return {each for each in owners() if issubclass(each, Screen)}
