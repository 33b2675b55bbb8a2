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
        "slash", "search", "Search", id="compare.search", tooltip="List tensors with a text in their names"
    ),
    Binding("f", "kind(1)", "Kind", id="compare.kind", tooltip="List the next kind of difference alone"),
    Binding(
        "F",
        "kind(-1)",
        "Kind before",
        show=False,
        id="compare.kind_back",
        tooltip="List the kind of difference before alone",
    ),
    Binding(
        "n",
        "difference(1)",
        "Next",
        id="compare.next",
        tooltip="Go to the next tensor that is not the same",
    ),
    Binding(
        "N",
        "difference(-1)",
        "Before",
        show=False,
        id="compare.previous",
        tooltip="Go to the tensor before that is not the same",
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
        "d",
        "decode",
        "Decode",
        id="compare.decode",
        tooltip="Read pickles of both as data in a contained worker; asks first, each time",
    ),
    Binding(
        "p",
        "peek",
        "Numbers",
        show=False,
        id="compare.peek",
        tooltip="Look at the numbers of the tensor of the row, at the first difference where that is known",
    ),
    Binding(
        "P",
        "peek_other",
        "Numbers of B",
        show=False,
        id="compare.peek_other",
        tooltip="Look at the numbers that B has of it",
    ),
    Binding(
        "m",
        "shard_map(False)",
        "Shard map",
        show=False,
        id="compare.shard_map",
        tooltip="Draw which rank holds what of the tensor of the row",
    ),
    Binding(
        "M",
        "shard_map(True)",
        "Map of B",
        show=False,
        id="compare.shard_map_other",
        tooltip="Draw which rank holds what of it in B",
    ),
    Binding(
        "A",
        "adapter",
        "Adapter",
        show=False,
        id="compare.adapter",
        tooltip="Name a LoRA adapter: B is then held against A with its updates",
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
    Binding(
        "escape", "back", "Back", id="compare.back", tooltip="Out of the search, then back to the checkpoint"
    ),
]
