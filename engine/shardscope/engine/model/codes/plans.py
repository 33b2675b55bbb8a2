"""Plans of conversion: what cannot be planned, and plans that do not fit their source."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode


def _refusal(
    code: str, message: str, remedy: str, meaning: str, code_exit: ExitCode | None = ExitCode.UNSUPPORTED
) -> Code:
    return Code(code, Severity.ERROR, Stage.VALIDATE, message, remedy, meaning, (Blocks.CONVERT,), code_exit)


TABLE: Final[tuple[Code, ...]] = (
    _refusal(
        "convert.nothing",
        "There is nothing to convert: {count:count tensor} listed, and none is left after {options:word}.",
        "List the tensors with `shardscope tensors`; with --decode where files are opaque.",
        "A plan without a tensor would make an empty model.",
    ),
    _refusal(
        "convert.opaque",
        "The tensors are inside {count:count opaque file}, first {first:path}.",
        "Ask for decoding with --decode: pickles are then read as data, for this run.",
        "Names, shapes and places of the tensors stand in pickles, which are not read unless a person asks for it.",
        ExitCode.NEEDS_DECODING,
    ),
    _refusal(
        "convert.tensor",
        "The tensor {tensor:name} cannot be written: {reason:word}.",
        "Leave it out with --exclude, if the model does without it.",
        "safetensors holds dense tensors of a closed set of types. What is not one of them is refused by name, and never "
        "dropped in silence.",
    ),
    _refusal(
        "convert.name_repeated",
        "Two tensors of the source are called {tensor:name}.",
        "Convert one part at a time: give the folder of one of them, or --component.",
        "Which of the two a reader would get cannot be told.",
    ),
    _refusal(
        "convert.rename_rule",
        "Rule {number:count} of the renaming is none: {problem:word}.",
        "See `shardscope schema renames` for what a rule looks like.",
        "A rule has one of name, prefix and pattern, and the text `to`.",
        ExitCode.USAGE,
    ),
    _refusal(
        "convert.rename_collision",
        "Renaming makes {name:name} of both {first:name} and {second:name}.",
        "Change the rules so that every name stays different.",
        "One of the two would be lost.",
        ExitCode.USAGE,
    ),
    _refusal(
        "convert.unsound",
        "The tensor {tensor:name} does not pass its checks ({check:word}): {reason:text}",
        "Nothing is written. See what inspection says about its files.",
        "Before a byte is written it is proven that fragments cover a tensor, that none of them lies where another does, and that "
        "each has the size that its map says.",
    ),
    _refusal(
        "convert.copies_differ",
        "The tensor {tensor:name} is stored more than once and the copies differ, first at byte {offset:count}: {first:path} and "
        "{second:path}.",
        "Find out which of the ranks is right; nothing is written while they disagree.",
        "Replicas and tied tensors hold the same bytes in a whole checkpoint. A difference is drift or damage.",
    ),
    _refusal(
        "plan.identity",
        "The plan is for another source, or the source has changed since: {problem:word}.",
        "Plan again.",
        "A plan names its source by the path, size and times of every file, so that it cannot run on something that nobody looked at.",
        ExitCode.CHANGED,
    ),
    _refusal(
        "plan.document",
        "{file:path} is no plan: {problem:text}.",
        "Write one with `shardscope plan SRC --json > plan.json`.",
        "A plan is a document of the schema shardscope.plan/1.",
        ExitCode.USAGE,
    ),
    _refusal(
        "plan.tensor",
        "The plan writes {tensor:name} from {source:name}: {problem:word}.",
        "Plan again, or mend the entry.",
        "An edited plan is checked as if it had been planned: its tensors must exist, with shapes, types and bytes that fit.",
        ExitCode.USAGE,
    ),
    Code(
        "convert.load_names",
        Severity.WARNING,
        Stage.VALIDATE,
        "The output keeps the producer's own names and fused tensors ({first:name}), which the stock Hugging Face loader does not know.",
        "Give a mapping with --mapping ({known:word}, or a file) for Hugging Face names.",
        "Names and fused tensors mean something only to a model's own code. A mapping table, as data, says what they are.",
        (Blocks.LOAD,),
    ),
)
