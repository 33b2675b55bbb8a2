"""Mapping tables: what they say, and whether they fit a checkpoint."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_USE = (Blocks.CONVERT, Blocks.LOAD)

TABLE: Final = (
    Code(
        "mapping.invalid",
        Severity.ERROR,
        Stage.VALIDATE,
        "The mapping table {table:name} is not valid at {place:text}: {reason:word}.",
        "Correct the table; `shardscope schema shardscope.mapping/1` prints its form.",
        "A table names kinds of tensors, the sections that their dimensions are made of, and what they become. Templates, "
        "sections and kinds that it refers to must be there.",
        _USE,
    ),
    Code(
        "mapping.fact_missing",
        Severity.ERROR,
        Stage.VALIDATE,
        "The mapping table {table:name} needs the {fact:word} for {tensor:name}, and the checkpoint does not declare it.",
        "Give the number, or keep the producer's configuration with the checkpoint.",
        "How a fused or padded tensor is put together depends on facts of the model. A value that is not declared is not "
        "guessed.",
        _USE,
    ),
    Code(
        "mapping.size",
        Severity.ERROR,
        Stage.VALIDATE,
        "{tensor:name} has {found:count slice} along dimension {dim:count}, which the mapping table {table:name} cannot divide: "
        "{reason:word}.",
        "Compare the declared facts of the model with the shape; choose another table if the model is of another kind.",
        "A table says of which sections a dimension is made. Their sizes, from declared facts, must come to the extent that is "
        "there.",
        _USE,
    ),
    Code(
        "mapping.unfit",
        Severity.ERROR,
        Stage.VALIDATE,
        "The mapping table {table:name} is not for this model: {fact:word}: {expected:word} in the table, {found:text} in the "
        "checkpoint.",
        "Choose a table for this kind of model, or write one.",
        "A table names the facts of a model that it was written for. Tensors of another kind of model could have the same names "
        "and mean something else.",
        _USE,
    ),
    Code(
        "mapping.shards",
        Severity.ERROR,
        Stage.VALIDATE,
        "The shards of {tensor:name} are not cut as the mapping table {table:name} says: {reason:word}.",
        "Compare the declared facts of the model with the shards, and look for files of ranks that are not here.",
        "Which rank holds which part of a tensor is not recorded in the files; the table says it, and every size that the table "
        "and the declared facts give has to agree with what is there.",
        _USE,
    ),
    Code(
        "mapping.unplaced",
        Severity.ERROR,
        Stage.VALIDATE,
        "{count:count tensor} {count:verb have} no place in the mapping table {table:name}, the first {tensor:name}.",
        "Choose a table for this kind of model, or write one.",
        "A tensor without a rule is never dropped silently: the model would not be the same.",
        _USE,
    ),
    Code(
        "mapping.collision",
        Severity.ERROR,
        Stage.VALIDATE,
        "The mapping table {table:name} makes {target:name} of two tensors, {first:name} and {second:name}.",
        "Correct the table, or leave one of the two tensors out.",
        "Two tensors of the checkpoint cannot be one tensor of the model.",
        _USE,
    ),
)
