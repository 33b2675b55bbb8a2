"""What DeepSpeed says of its shards: affine maps, the pattern lists of `universal_checkpoint_info`, expert placements."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode


def _row(code: str, message: str, remedy: str, meaning: str, severity: Severity = Severity.ERROR) -> Code:
    error = severity is Severity.ERROR
    blocks = (Blocks.CONVERT, Blocks.LOAD) if error else ()
    return Code(
        code,
        severity,
        Stage.VALIDATE,
        message,
        remedy,
        meaning,
        blocks,
        ExitCode.UNSUPPORTED if error else None,
    )


TABLE: Final = (
    _row(
        "affine.malformed",
        "The affine map is not one at {place:name}: {reason:word}.",
        "Take the map from an unedited save.",
        "An affine map holds whole numbers, lists and one factor, nothing else. A truth value or a fraction where a whole "
        "number belongs, a field that this reader does not know or a rank named twice means that it cannot be trusted.",
    ),
    _row(
        "affine.version",
        "The affine maps have format version {found:text}; this reader knows version {known:count}.",
        "Use a release of shardscope that knows this version.",
        "A newer version may give a field another meaning, so nothing of it is read.",
    ),
    _row(
        "affine.key",
        "The affine map of {pattern:name} has a key that is no plain name: {reason:word}.",
        "Write the key as the anchored, escaped name of one parameter.",
        "Writers key a map by ^name$ with every special character escaped. A key that could mean several parameters is "
        "not read as one.",
    ),
    _row(
        "affine.unwritable",
        "{tensor:name} has no affine map in DeepSpeed's format: {reason:word}.",
        "Keep this layout as a shard map document instead.",
        "The format has strided pieces that fill each shard and one factor as a floating-point number. Padding, index "
        "lists and factors that no such number comes near cannot be said in it.",
    ),
    _row(
        "universal.malformed",
        "universal_checkpoint_info contradicts itself at {place:name}: {reason:word}.",
        "Take the entry from an unedited save.",
        "The entry is a dictionary of pattern lists, widths and sizes. One of them is not what it has to be.",
    ),
    _row(
        "universal.version",
        "universal_checkpoint_info has version {found:text}; versions up to {known:word} are known.",
        "Use a release of shardscope that knows this version.",
        "A newer version may add a category of parameters, and a parameter of it would be put together wrongly.",
    ),
    _row(
        "universal.pattern",
        "The pattern {pattern:text} is not one that can be matched safely: {reason:word}.",
        "Rewrite the pattern with plain characters, classes, groups, alternatives and repeats.",
        "Patterns of a checkpoint are matched in time proportional to their length, never by an engine that backtracks. "
        "Look-around, back references and flags have no place in that, and no known writer uses them.",
    ),
    _row(
        "universal.ambiguous",
        "{tensor:name} matches more than one pattern: {patterns:text}.",
        "Correct the patterns so that one of them matches.",
        "Patterns of one category, or of two categories that exclude each other, both claim the parameter. Which is right "
        "is not told.",
    ),
    _row(
        "universal.pattern_unused",
        "The pattern {pattern:text} of {category:word} matches no parameter.",
        "Check whether parameters were renamed after the save, or leave strict mode.",
        "A pattern that nothing matches means that the patterns and the parameters are of two models, and that another "
        "parameter may go unmatched.",
    ),
    _row(
        "universal.unmatched",
        "No category describes {tensor:name}, and its shard shapes {shapes:word} leave more than one way to join them.",
        "Say how such parameters are cut, for instance that they are cut along dimension 0.",
        "DeepSpeed's converter joins such a parameter along dimension 0. That is right for a plain column cut and wrong "
        "without a word for anything else, so it is not done unasked.",
    ),
    _row(
        "universal.average",
        "{tensor:name} is to be averaged over ranks, which cannot be undone.",
        "Take the copy of the rank that you trust, outside of this conversion.",
        "The average of copies that drifted apart is a value that no rank holds, and no map leads back from it.",
    ),
    _row(
        "universal.unsupported",
        "The writer could not describe {tensor:name}: {reason:text}.",
        "Give the layout with the number of heads, as a shard map.",
        "Its layout depends on head counts that the checkpoint does not hold. With them it is an ordinary map.",
    ),
    _row(
        "universal.widths_missing",
        "{tensor:name} has sub-parameters, and no widths are recorded for them.",
        "Take the entry from an unedited save.",
        "Since version 0.4 the width of every sub-parameter on every rank is recorded: dividing evenly reads the wrong rows "
        "where heads do not divide.",
    ),
    _row(
        "universal.indivisible",
        "{tensor:name} has sub-parameters of {sizes:word}, which {ranks:count rank} cannot share evenly.",
        "Save again with a version that records widths.",
        "Before version 0.4 only even cuts could be described, so how this one was cut is not known.",
    ),
    _row(
        "universal.shapes",
        "The shards of {tensor:name} do not fit its category {category:word}: {reason:word}.",
        "Check that shapes and patterns are of one save.",
        "The shapes of the shards and what the category says of them contradict each other.",
    ),
    _row(
        "universal.vocabulary_size",
        "{tensor:name} is a vocabulary whose size without padding is {found:text}; its shards have {rows:count row}.",
        "Add original_vocab_size to the entry.",
        "Rows beyond the size of the vocabulary are padding of arbitrary content, which has to be cut off.",
    ),
    _row(
        "universal.experts",
        "{tensor:name} belongs to experts, and where they are placed is not said.",
        "Give the placement of the experts; it stands in the model states.",
        "Experts lie on another grid of the same ranks than the dense parameters. How the two meet is described by the "
        "placement, not by patterns.",
    ),
    _row(
        "universal.contradiction",
        "{tensor:name} has an affine map and is listed as impossible to describe: {reason:text}.",
        "Take the entry from an unedited save.",
        "A writer that has a map does not list the parameter. One of the two is left over from another save.",
    ),
    _row(
        "universal.categories_differ",
        "The categories describe {tensor:name} otherwise than its affine map: {reason:word}.",
        "Nothing needs to be done here; a converter that knows no affine maps would read it wrongly.",
        "The map is preferred, as its writer means it. Layouts that the categories cannot express are still listed under "
        "the nearest one, so that a reader of categories alone puts the wrong elements together.",
        Severity.WARNING,
    ),
    _row(
        "experts.malformed",
        "The placement of experts contradicts itself at {place:name}: {reason:word}.",
        "Take the placement from an unedited save.",
        "A placement names each rank once and every expert at least once.",
    ),
    _row(
        "experts.version",
        "The placement of experts has version {found:text}; this reader knows version {known:count}.",
        "Use a release of shardscope that knows this version.",
        "A newer version may give a field another meaning, so nothing of it is read.",
    ),
)
