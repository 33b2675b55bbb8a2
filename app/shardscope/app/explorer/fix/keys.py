"""The keys of a fix."""

from typing import Final

from textual.binding import Binding, BindingType

from shardscope.app.explorer.output.keys import keys_of_run, keys_of_steps
from shardscope.app.explorer.output.steps import Step

CHOOSING: Final = (Step.WHAT, Step.CHANGES, Step.WHERE)
"""Steps that a person goes to and fro between; nothing is written in any of them."""

BINDINGS: Final[list[BindingType]] = [
    *keys_of_steps("fix", CHOOSING),
    Binding(
        "C",
        "convert",
        "Convert it",
        id="fix.convert",
        tooltip="Convert it instead: that is no set of safetensors",
    ),
    *keys_of_run("fix", "fix", "target"),
]
