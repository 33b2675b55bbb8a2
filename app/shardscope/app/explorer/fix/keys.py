"""The keys of a fix."""

from typing import Final

from textual.binding import Binding, BindingType

from shardscope.app.explorer.output.steps import Step

CHOOSING: Final = (Step.WHAT, Step.CHANGES, Step.WHERE)
"""Steps that a person goes to and fro between; nothing is written in any of them."""

BINDINGS: Final[list[BindingType]] = [
    Binding("n", "next", "Next", id="fix.next", tooltip="The next step; the last one asks for a word"),
    *(
        Binding(
            str(number),
            f"step('{step}')",
            f"Step {step}",
            show=False,
            id=f"fix.{step}",
            tooltip="Go to this step",
        )
        for number, step in enumerate(CHOOSING, start=1)
    ),
    Binding(
        "tab", "page", "Text", show=False, id="fix.page", tooltip="From the choices to the text and back"
    ),
    Binding(
        "C",
        "convert",
        "Convert it",
        id="fix.convert",
        tooltip="Convert it instead: that is no set of safetensors",
    ),
    Binding("c,escape", "stop", "Stop", id="fix.stop", tooltip="Stop the fix; asks first"),
    Binding(
        "r",
        "again",
        "Back to the target",
        id="fix.again",
        tooltip="Change something, or go on with what was kept",
    ),
    Binding("o", "look_at", "Look at it", id="fix.look_at", tooltip="Look at the output in the explorer"),
    Binding(
        "v",
        "verify",
        "Copy verify",
        show=False,
        id="fix.verify",
        tooltip="Copy the command that verifies the output once more",
    ),
    Binding("y", "copy", "Copy command", id="fix.copy", tooltip="Copy the command that does the same"),
    Binding("escape", "back", "Back", id="fix.back", tooltip="One step back; nothing is written"),
]
