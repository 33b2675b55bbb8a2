"""Names and other texts of a command line that are held against what a checkpoint holds."""

import os
from typing import Any

import click

from shardscope.engine.model.text import path_text


class Text(click.types.StringParamType):
    """A text by the bytes that were typed: UTF-8, whatever the locale took them for."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        return as_typed(str(super().convert(value, param, ctx)))


def as_typed(argument: str) -> str:
    """Return an argument as UTF-8 has it. In a locale that has no letters beyond ASCII they arrive as surrogates, or as others."""
    return argument if argument.isascii() else path_text(os.fsencode(argument))


TEXT = Text()
