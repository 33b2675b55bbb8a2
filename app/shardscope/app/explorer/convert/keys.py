"""The keys of the guided conversion."""

from typing import Final

from textual.binding import BindingType

from shardscope.app.explorer.convert.conversion import CHOOSING
from shardscope.app.explorer.output.keys import keys_of_run, keys_of_steps

BINDINGS: Final[list[BindingType]] = [
    *keys_of_steps("convert", CHOOSING),
    *keys_of_run("convert", "conversion", "plan"),
]
