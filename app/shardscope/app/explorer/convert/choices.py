"""All choices, by step, and which key changes what an option of the command line says."""

from collections.abc import Sequence
from typing import Any, Final

from shardscope.app.explorer.convert.option_fields import OPTIONS
from shardscope.app.explorer.convert.what_fields import WHAT
from shardscope.app.explorer.output.fields import Field
from shardscope.app.explorer.output.where_fields import WHERE

_STEPS: Final[tuple[tuple[int, Sequence[Field[Any, Any]]], ...]] = ((1, WHAT), (2, WHERE), (3, OPTIONS))


def keys_from(step: int) -> dict[str, str]:
    """Return, for options of the command line, what to press at a step: a key, after the number of another step."""
    return {
        item.option: item.key if number == step else f"{number} {item.key}"
        for number, fields in _STEPS
        for item in fields
        if item.option
    }
