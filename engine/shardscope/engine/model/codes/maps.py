"""Shard maps. An invalid map contradicts itself; an unsupported layout is legitimate geometry that this engine leaves alone."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode


def _row(code: str, message: str, remedy: str, meaning: str) -> Code:
    blocks = (Blocks.CONVERT, Blocks.LOAD)
    return Code(code, Severity.ERROR, Stage.VALIDATE, message, remedy, meaning, blocks, ExitCode.UNSUPPORTED)


TABLE: Final = (
    _row(
        "map.unproven",
        "The layout cannot be proven: {reason:word}.",
        "Describe it with steps that divide each other, or as boxes; nothing is guessed.",
        "Coverage is proven by writing addresses in digits taken from the steps of the pieces. Steps that form no "
        "divisibility chain, or dimensions that run into each other, have no such digits.",
    ),
    _row(
        "map.budget",
        "The map needs {found:count} {budget:word}, more than the budget of {limit:count}.",
        "Raise the budget for this run if you expect a map like this; the result is refused whole, never cut short.",
        "Work on maps is bounded for each tensor. An exhausted budget refuses everything: a truncated plan is worse than "
        "none.",
    ),
    _row(
        "map.invalid",
        "The map contradicts itself at {place:name}: {reason:word}.",
        "Correct the map; see `shardscope schema shardmap` for the language.",
        "A node does not fit its input: widths that do not sum up, a dimension that is not there, an axis that the mesh "
        "lacks, indices beyond the tensor.",
    ),
)
