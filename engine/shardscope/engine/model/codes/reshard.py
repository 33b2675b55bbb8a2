"""Resharding: targets that cannot be made of a source, and layouts that cannot hold a target."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode


def _refusal(
    code: str, message: str, remedy: str, meaning: str, code_exit: ExitCode = ExitCode.UNSUPPORTED
) -> Code:
    return Code(code, Severity.ERROR, Stage.VALIDATE, message, remedy, meaning, (Blocks.CONVERT,), code_exit)


TABLE: Final[tuple[Code, ...]] = (
    _refusal(
        "reshard.target",
        "The target cannot be made of these numbers: {reason:word}.",
        "Change the numbers, or give the target as a shard map with --target.",
        "Ranks, stages and experts have to divide; what does not divide is never rounded or guessed.",
        ExitCode.USAGE,
    ),
    _refusal(
        "reshard.no_table",
        "No packaged table says how ranks cut these tensors; the first without a rule in the nearest table, {table:name}, is "
        "{tensor:name}.",
        "Name a table with --cuts (docs/mapping-tables.md), write one, or give the target as a shard map with --target.",
        "Which dimension a tensor is cut along follows from what it is for, which its name alone does not tell.",
    ),
    _refusal(
        "reshard.table_unclear",
        "More than one table has rules for all of these tensors: {tables:word}.",
        "Choose one with --cuts.",
        "Two tables may cut the same names differently. Neither is taken by guess.",
        ExitCode.USAGE,
    ),
    _refusal(
        "reshard.unplaced",
        "The table {table:name} has no rule for {count:count tensor}, the first {tensor:name}.",
        "Choose another table with --cuts, leave the tensors out with --exclude, or give the target as a shard map.",
        "A tensor that no rule names is neither copied to every rank nor cut by guess.",
    ),
    _refusal(
        "reshard.stage",
        "The table {table:name} does not say on which stage of a pipeline {tensor:name} is: {reason:word}.",
        "Use --pp 1, or give the target as a shard map with --target.",
        "A tensor with a layer goes where its layer goes; any other needs a word of the table.",
    ),
    _refusal(
        "reshard.cut",
        "{tensor:name} cannot be cut among {ranks:count rank}: {reason:word}.",
        "Choose a number of ranks that divides it, or give the target as a shard map with --target.",
        "Heads, groups and experts stay whole, and every rank gets an equal share.",
    ),
    _refusal(
        "reshard.unmapped",
        "The target has no map for {count:count tensor} of the source, the first {tensor:name}.",
        "Add the maps, or leave the tensors out with --exclude.",
        "A tensor without a map would be missing from the output without a word.",
    ),
    _refusal(
        "reshard.absent",
        "The target has maps for {count:count tensor} that {count:verb are} not written, the first {tensor:name}.",
        "Compare the names with `shardscope tensors`; --rename and --mapping change those of the source.",
        "A target that names other tensors was probably made for another model.",
    ),
    _refusal(
        "reshard.shape",
        "{tensor:name} is {found:text} in the source and {expected:text} in the target.",
        "Compare the models; --vocab-size leaves the padding of a vocabulary out.",
        "A shard map is for one shape: the logical one, without padding.",
    ),
    _refusal(
        "reshard.state",
        "{tensor:name} is optimizer state, and no written parameter of its shape is its own.",
        "Leave it out with --exclude, or give it a map of its own in the target.",
        "A state moves with its parameter: same map, same shape. Which parameter that is follows from its name.",
    ),
    _refusal(
        "reshard.loses",
        "The target holds not all of {tensor:name}: {found:count element} of {total:count} are on no rank.",
        "Correct the map; `shardscope map check` shows what is missing.",
        "An output that cannot be put together again is never written.",
    ),
    _refusal(
        "reshard.scaled",
        "The target multiplies elements of {tensor:name}.",
        "Leave the factor out of the map.",
        "Resharding moves bytes and changes no number.",
    ),
    _refusal(
        "reshard.layout",
        "{tensor:name} on rank {rank:word} does not fit the layout {layout:text}: {reason:word}.",
        "Choose another map; --layout ranks holds every one whose padding lies behind the elements of a shard.",
        "A layout of others says less than a shard map: a box for each rank, and nothing of padding.",
    ),
    _refusal(
        "reshard.names",
        "{tensor:name} has not the name that vLLM's workers give it: the table {table:name} has no rule for it.",
        "Fuse the tensors by a table with --fuse, or choose the runtime's table with --cuts.",
        "A worker loads fused projections by their names alone. Names that it does not know are not written for it.",
    ),
    _refusal(
        "reshard.fuse",
        "The table {table:name} cannot be taken the other way at {tensor:name}: {reason:word}.",
        "Choose another table with --fuse, or keep the names with --layout ranks.",
        "Tensors are put end to end only where the table says of which sections, and all of them are here.",
    ),
    _refusal(
        "reshard.no_target",
        "There is no target: neither a shard map nor a number of ranks.",
        "Give --target FILE, or numbers such as --tp 4.",
        "Into how many parts, and along which dimension, is the one thing that resharding cannot know.",
        ExitCode.USAGE,
    ),
)
