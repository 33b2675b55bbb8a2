"""The keys of the screen that shows numbers."""

from typing import Final

from textual.binding import Binding, BindingType


def _quiet(keys: str, action: str, name: str, description: str, tooltip: str) -> Binding:
    return Binding(keys, action, description, show=False, id=f"peek.{name}", tooltip=tooltip)


BINDINGS: Final[list[BindingType]] = [
    Binding("tab", "next_view(1)", "View", id="peek.next_view", tooltip="Show the next view"),
    _quiet("shift+tab", "next_view(-1)", "previous_view", "View before", "Show the view before"),
    _quiet("1", "view(0)", "values", "Values", "Show the numbers themselves"),
    _quiet("2", "view(1)", "statistics", "Statistics", "Show what all of them come to"),
    _quiet("3", "view(2)", "histogram", "Histogram", "Show how they are spread over signs and magnitudes"),
    _quiet("4", "view(3)", "heat", "Heat map", "Show where they are large, and where small"),
    Binding(
        "g",
        "go_to",
        "Go to",
        id="peek.go_to",
        tooltip="Go to an element, or look at a slice alone: 5,17 0:4,::8",
    ),
    Binding(
        "v",
        "notation",
        "Notation",
        id="peek.notation",
        tooltip="Write numbers short, scientific, fixed, or as bits in hexadecimal",
    ),
    Binding(
        "s",
        "gather",
        "Read all",
        id="peek.gather",
        tooltip="Read every number, for figures, histogram and heat map",
    ),
    Binding("c", "stop", "Stop", id="peek.stop", tooltip="Stop reading; what is known stays, as partial"),
    Binding(
        "e",
        "largest",
        "Largest",
        id="peek.largest",
        tooltip="Go to the number of the largest magnitude, as far as read; in the heat map to the hottest box",
    ),
    Binding(
        "E",
        "strange",
        "NaN",
        id="peek.strange",
        tooltip="Go to the first NaN, otherwise to the first infinity",
    ),
    Binding(
        "x",
        "axis",
        "Axis",
        id="peek.axis",
        tooltip="Heat map: rows and columns in boxes, then each channel of one dimension after the other",
    ),
    Binding(
        "n",
        "step(1)",
        "Next matrix",
        id="peek.next",
        tooltip="Go to the next index of the dimensions before the last two",
    ),
    _quiet("N", "step(-1)", "before", "Matrix before", "Go to the index before"),
    _quiet(
        "i", "turn", "turn", "Dimension", "Step through another one of the dimensions before the last two"
    ),
    _quiet("b", "bits", "bits", "Packed", "Take packed integers apart: 4, 2 or 1 bits, or not at all"),
    _quiet(
        "u",
        "unpack",
        "unpack",
        "Unpack",
        "Of a packed weight, show the numbers that it stands for, or those that are stored again",
    ),
    _quiet("enter", "open", "open", "Go there", "From the heat map to the numbers of a box"),
    Binding("d", "decode", "Decode", id="peek.decode", tooltip="Go back and ask whether to decode"),
    Binding("y", "copy", "Copy command", id="peek.copy", tooltip="Copy the command that shows the same"),
    _quiet("up,k", "move(-1, 0)", "up", "Up", "Go up"),
    _quiet("down,j", "move(1, 0)", "down", "Down", "Go down"),
    _quiet("left,h", "move(0, -1)", "left", "Left", "Go left"),
    _quiet("right,l", "move(0, 1)", "right", "Right", "Go right"),
    _quiet("pageup,ctrl+b", "page(-1, 0)", "page_up", "Page up", "Go a page up"),
    _quiet("pagedown,ctrl+f", "page(1, 0)", "page_down", "Page down", "Go a page down"),
    _quiet("comma", "page(0, -1)", "page_left", "Page left", "Go a page left"),
    _quiet("full_stop", "page(0, 1)", "page_right", "Page right", "Go a page right"),
    _quiet(
        "home",
        "ends(False)",
        "first",
        "First",
        "Go to the beginning of the row, and from there of everything",
    ),
    _quiet("end", "ends(True)", "last", "Last", "Go to the end of the row, and from there of everything"),
    _quiet("G", "bottom", "bottom", "Bottom", "Go to the last row"),
    Binding(
        "escape",
        "stop",
        "Stop",
        show=False,
        id="peek.stop_first",
        tooltip="Stop reading; what is known stays",
    ),
    Binding("escape", "back", "Back", id="peek.back", tooltip="Back to where you came from"),
]
"""In the order in which hints are chosen."""
