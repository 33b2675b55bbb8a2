"""Everything that keys do, by the stable names that settings use: read from the bindings, kept nowhere else."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

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
    found = {
        each
        for module in (*_screens(), *_widgets())
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, DOMNode) and each.__module__ == module.__name__
    }
    bound = [each for each in found if any(binding.id is not None for binding in bindings(each))]
    return tuple(sorted(bound, key=lambda each: (each.__module__, each.__qualname__)))


def _screens() -> tuple[ModuleType, ...]:
    from shardscope.app.explorer import app, decode, dialogs
    from shardscope.app.explorer.checkpoint import choose, detail, explore, workspace
    from shardscope.app.explorer.compare import detail as compare_detail
    from shardscope.app.explorer.compare import frame
    from shardscope.app.explorer.compare import screen as compare
    from shardscope.app.explorer.convert import forms as convert_forms
    from shardscope.app.explorer.convert import plan_step
    from shardscope.app.explorer.convert import screen as convert
    from shardscope.app.explorer.fix import forms as fix_forms
    from shardscope.app.explorer.fix import screen as fix
    from shardscope.app.explorer.help import helping, reference
    from shardscope.app.explorer.model import base
    from shardscope.app.explorer.model import screen as model
    from shardscope.app.explorer.open import cache
    from shardscope.app.explorer.open import screen as opening
    from shardscope.app.explorer.output import admission, forms, stop
    from shardscope.app.explorer.peek import frame as peek
    from shardscope.app.explorer.report import own_error, preview, writing
    from shardscope.app.explorer.report import screen as report
    from shardscope.app.explorer.scan import frame as scan
    from shardscope.app.explorer.shardmap import dialogs as shardmap_dialogs
    from shardscope.app.explorer.shardmap import screen as shardmap

    return (
        *(app, choose, decode, detail, dialogs, explore, helping, reference, workspace, opening, cache),
        *(
            compare,
            compare_detail,
            frame,
            convert,
            convert_forms,
            plan_step,
            admission,
            forms,
            stop,
            fix,
            fix_forms,
        ),
        *(report, own_error, preview, writing, shardmap, shardmap_dialogs, model, base, scan, peek),
    )


def _widgets() -> tuple[ModuleType, ...]:
    from shardscope.widgets import (
        blockers_panel,
        layout_panel,
        pickle_panel,
        plan_settings,
        preview_panel,
        rank_map,
        report_form,
        report_rows,
        rows,
        tensor_table,
        tensor_tree_view,
        tensor_views,
        virtual_table,
    )

    return (
        *(blockers_panel, layout_panel, pickle_panel, plan_settings, preview_panel, rank_map, report_form),
        *(report_rows, rows, tensor_table, tensor_tree_view, tensor_views, virtual_table),
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
    rooms = {_room(one), _room(other)}
    if rooms & _MAKING:
        rooms -= {"output"}
    if len(rooms - {""}) > 1:
        return False
    from shardscope.app.explorer.checkpoint.explore import Explore
    from shardscope.app.explorer.checkpoint.workspace import Workspace

    if rooms != {""}:  # a screen of its own, and what stands on it
        return any(issubclass(each, Screen) for each in (one, other)) and "" not in rooms
    others = [each for each in (one, other) if each is not Explore and issubclass(each, Screen)]
    return bool({one, other} & {Explore, Workspace}) and not others


_EVERYWHERE: Final = {"checkpoint", "help"}
"""Packages that are no group of their own: the Explore screen, and what may stand anywhere."""
_MAKING: Final = {"convert", "fix"}
"""Screens that make an output: what is of `output` stands on each of them."""
_ROOMS: Final = {"plan_settings": "output", "report_form": "report", "report_rows": "report"}
"""Widgets that stand on a screen of their own."""


def _room(owner: type[Any]) -> str:
    """Return which group of screens a class belongs to; empty for the Explore screen and what may stand anywhere."""
    _, _, below = owner.__module__.partition("shardscope.app.explorer.")
    if below:
        room, _, rest = below.partition(".")
        return room if rest and room not in _EVERYWHERE else ""
    return _ROOMS.get(owner.__module__.rpartition(".")[2], "")
