"""The keys of the Compare screen."""

from typing import Final

from textual.binding import Binding, BindingType

BINDINGS: Final[list[BindingType]] = [
    Binding(
        "v",
        "values",
        "Values",
        id="compare.values",
        tooltip="Compare every number of both, tile by tile; esc stops",
    ),
    Binding(
        "V",
        "row_values",
        "Values of row",
        show=False,
        id="compare.row_values",
        tooltip="Compare the numbers of the tensors of this row alone",
    ),
    Binding(
        "a",
        "all",
        "All",
        id="compare.all",
        tooltip="List the tensors that are the same, too, or only those that differ",
    ),
    Binding(
        "c",
        "component",
        "Component",
        id="compare.component",
        tooltip="Compare the next component: model, optimizer, other, all",
    ),
    Binding(
        "D",
        "decode",
        "Decode",
        id="compare.decode",
        tooltip="Read pickles of both as data in a contained worker; asks first, each time",
    ),
    Binding("o", "other", "Other path", id="compare.other", tooltip="Compare with another checkpoint"),
    Binding("y", "copy", "Copy command", id="compare.copy", tooltip="Copy the command that says the same"),
    Binding("tab", "complete", "Complete", show=False, id="compare.complete", tooltip="Complete the path"),
    Binding(
        "escape",
        "stop",
        "Stop",
        id="compare.stop",
        tooltip="Stop looking, or comparing values; what is known stays",
    ),
    Binding("escape", "back", "Back", id="compare.back", tooltip="Back to the checkpoint"),
]
