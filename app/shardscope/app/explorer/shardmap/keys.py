"""The keys of the shard map."""

from typing import Final

from textual.binding import Binding, BindingType


def _quiet(keys: str, action: str, name: str, description: str, tooltip: str) -> Binding:
    return Binding(keys, action, description, show=False, id=f"shardmap.{name}", tooltip=tooltip)


BINDINGS: Final[list[BindingType]] = [
    Binding(
        "v", "turn", "View", id="shardmap.view", tooltip="Full tensor, shard, files: show the next of them"
    ),
    Binding("n", "step(1)", "Piece", id="shardmap.next", tooltip="Go to the next piece"),
    _quiet("p", "step(-1)", "before", "Piece before", "Go to the piece before"),
    Binding("z", "zoom_in", "Zoom", id="shardmap.zoom", tooltip="Look closer at what the cursor is on"),
    _quiet("Z", "zoom_out", "zoom_out", "Zoom out", "Go back to where you zoomed in from"),
    Binding(
        "m",
        "target",
        "Target",
        id="shardmap.target",
        tooltip="Hold it against a target: asks for one, then shows source and target in turn",
    ),
    _quiet("M", "ask_target", "other_target", "Other target", "Ask for another target"),
    Binding(
        "x",
        "transfer",
        "Transfer",
        id="shardmap.transfer",
        tooltip="Which rank gives how many bytes to which rank of the target",
    ),
    Binding("g", "go_to", "Element", id="shardmap.go_to", tooltip="Go to an element by its index"),
    Binding(
        "P",
        "peek",
        "Numbers",
        id="shardmap.peek",
        tooltip="Look at the numbers, from the element of the cursor on",
    ),
    Binding("y", "copy", "Copy command", id="shardmap.copy", tooltip="Copy the command that says the same"),
    Binding("d", "decode", "Decode", id="shardmap.decode", tooltip="Go back and ask whether to decode"),
    _quiet("o", "holder", "holder", "Other holder", "Tell another of the ranks that hold the element"),
    _quiet("tab", "notes", "notes", "Notes", "Give the keys to the words beside the picture, and back"),
    _quiet("up,k", "move(-1, 0)", "up", "Up", "Go to the cell above"),
    _quiet("down,j", "move(1, 0)", "down", "Down", "Go to the cell below"),
    _quiet("left,h", "move(0, -1)", "left", "Left", "Go to the cell before"),
    _quiet("right,l", "move(0, 1)", "right", "Right", "Go to the next cell"),
    _quiet("pageup,ctrl+b", "move(-8, 0)", "page_up", "Page up", "Go eight lines up"),
    _quiet("pagedown,ctrl+f", "move(8, 0)", "page_down", "Page down", "Go eight lines down"),
    _quiet("home", "ends(False)", "first", "First", "Go to the first element"),
    _quiet("end,G", "ends(True)", "last", "Last", "Go to the last element"),
    Binding("escape", "back", "Back", id="shardmap.back", tooltip="Out of the zoom, then one level up"),
]
"""In the order in which hints are chosen."""
