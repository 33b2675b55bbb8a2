"""From a line about tensors to these tensors: which they are, and the Tensors panel brought to show them."""

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from shardscope.app.explorer.checkpoint.workspace import Workspace

LONGEST: Final = 240
"""Characters of a search that the line takes."""
_LOUD: Final = frozenset("!'~<>=*?: ")
"""What a search takes for more than a character of a name."""
_ESCAPED: Final = re.compile(r"\\x[0-9a-f]{2}|⟨U\+[0-9A-F]+⟩|[^\x20-\x7e]")
"""One character that is not shown as it is, as it is shown; and what no search line takes."""


class Place(Struct, frozen=True):
    """Some tensors of the checkpoint in hand."""

    name: str = ""
    """The exact name of one; empty for none."""
    query: str = ""
    """What finds them, where there is no tensor of that name."""


def glob(name: str) -> str:
    """Return what finds a name, or a part of one, raw or as it is shown: `?` for each character that a search would take for more."""
    return "".join("?" if char in _LOUD else char for char in _ESCAPED.sub("?", name))


async def go_to_tensors(workspace: "Workspace", place: Place) -> None:
    """Bring the Tensors panel to the front: its cursor on the one tensor, or what is listed filtered."""
    from shardscope.widgets.tensor_table import TensorPanel

    await workspace.action_panel("tensors")
    panel = workspace.panels.front
    if not isinstance(panel, TensorPanel):
        return
    if place.name and panel.find(place.name):
        return
    panel.search(place.query[:LONGEST])
    panel.keys_widget.focus()
