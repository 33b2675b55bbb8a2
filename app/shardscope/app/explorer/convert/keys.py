"""The keys of the guided conversion."""

from typing import Final

from textual.binding import Binding, BindingType

from shardscope.app.explorer.convert.conversion import CHOOSING

BINDINGS: Final[list[BindingType]] = [
    Binding("n", "next", "Next", id="convert.next", tooltip="The next step; the last one asks for a word"),
    *(
        Binding(
            str(number),
            f"step('{step}')",
            f"Step {step}",
            show=False,
            id=f"convert.{step}",
            tooltip="Go to this step",
        )
        for number, step in enumerate(CHOOSING, start=1)
    ),
    Binding(
        "tab",
        "page",
        "Text",
        show=False,
        id="convert.page",
        tooltip="From the choices to the text and back",
    ),
    Binding("c,escape", "stop", "Stop", id="convert.stop", tooltip="Stop the conversion; asks first"),
    Binding(
        "r",
        "again",
        "Back to the plan",
        id="convert.again",
        tooltip="Change something, or go on with what was kept",
    ),
    Binding("o", "look_at", "Look at it", id="convert.look_at", tooltip="Look at the output in the explorer"),
    Binding(
        "v",
        "verify",
        "Copy verify",
        show=False,
        id="convert.verify",
        tooltip="Copy the command that verifies the output once more",
    ),
    Binding("y", "copy", "Copy command", id="convert.copy", tooltip="Copy the command that does the same"),
    Binding("escape", "back", "Back", id="convert.back", tooltip="One step back; nothing is written"),
]
