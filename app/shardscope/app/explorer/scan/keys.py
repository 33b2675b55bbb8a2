"""The keys of the Scan screen."""

from typing import Final

from textual.binding import Binding, BindingType

BINDINGS: Final[list[BindingType]] = [
    Binding(
        "enter",
        "start",
        "Start",
        id="scan.start",
        tooltip="Read every number once; nothing is written, and esc stops",
    ),
    Binding("slash", "search", "Search", id="scan.search", tooltip="List findings with some words in them"),
    Binding("f", "kind(1)", "Kind", id="scan.kind", tooltip="List findings of the next kind alone"),
    Binding(
        "F",
        "kind(-1)",
        "Kind before",
        show=False,
        id="scan.kind_back",
        tooltip="List findings of the kind before",
    ),
    Binding("e", "least('error')", "Errors", show=False, id="scan.errors", tooltip="List errors only"),
    Binding(
        "w",
        "least('warning')",
        "Warnings",
        show=False,
        id="scan.warnings",
        tooltip="List errors and warnings",
    ),
    Binding("a", "least('info')", "All", show=False, id="scan.all", tooltip="List all of them"),
    Binding(
        "t",
        "tensors",
        "Tensors",
        id="scan.tensors",
        tooltip="Show the tensor in the list of tensors; the scan goes on",
    ),
    Binding(
        "m",
        "shard_map",
        "Shard map",
        id="scan.shard_map",
        tooltip="Draw which rank holds what of the tensor",
    ),
    Binding("p", "peek", "Numbers", id="scan.peek", tooltip="Show the numbers of the tensor, at the finding"),
    Binding(
        "x",
        "explain",
        "Explain",
        show=False,
        id="scan.explain",
        tooltip="Say what the code of a finding means",
    ),
    Binding(
        "c",
        "component",
        "Component",
        id="scan.component",
        tooltip="Read the next component: model, optimizer, other, all",
    ),
    Binding(
        "d",
        "decode",
        "Decode",
        id="scan.decode",
        tooltip="Read pickles as data in a contained worker; asks first, each time",
    ),
    Binding(
        "ctrl+r,f5",
        "again",
        "Again",
        show=False,
        id="scan.again",
        tooltip="Forget what was found, and ask again",
    ),
    Binding("y", "copy", "Copy command", id="scan.copy", tooltip="Copy the command that says the same"),
    Binding(
        "escape", "stop", "Stop", id="scan.stop", tooltip="Stop reading; what was found until then stays"
    ),
    Binding(
        "escape", "back", "Back", id="scan.back", tooltip="Out of the search, then back to the checkpoint"
    ),
]
