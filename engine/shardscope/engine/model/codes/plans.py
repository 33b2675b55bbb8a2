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
        "convert.mapping_unknown",
        "There is no mapping {name:text}; there are {known:word}.",
        "Give one of those, or the path of a table of your own (see docs/mapping-tables.md).",
        "A mapping table says what the tensors of a producer are to a model, as data.",
        ExitCode.USAGE,
    ),
    _refusal(
        "convert.mapping_component",
        "A mapping names weights; --component {component:word} has others.",
        "Leave --component away, or convert without a mapping.",
        "Tables say what weights are made of. Optimizer states of fused tensors are not taken apart.",
        ExitCode.USAGE,
    ),
    _refusal(
        "convert.vocabulary",
        "The vocabulary cannot have {asked:count row}: the tensors that hold one have {held:count}.",
        "Give the size that config.json or the tokenizer of the model declares.",
        "Writers pad vocabularies so that they divide among ranks. Rows are left out on evidence, and never made up.",
        ExitCode.USAGE,
    ),
    _refusal(
        "convert.config_folder",
        "{file:path} is a file; --config takes a folder.",
        "Name the folder that holds config.json and the tokenizer.",
        "Configuration and tokenizer come along as they stand in one folder.",
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
        "convert.file_unclear",
        "Two files of the source are shown as {file:path}, or none is any more.",
        "Rename one of them: names that differ only in bytes that cannot be shown are not told apart.",
        "Plans and manifests name files by what can be shown of their names.",
    ),
    _refusal(
        "admission.denied",
        "Admission is denied: {what:word}: {needs:word} needed, {has:word} there.",
        "Nothing was started. Make room, change --memory or --workers, or choose another target.",
        "Every figure of a plan is held against this machine before a byte is written.",
        ExitCode.DENIED,
    ),
    _refusal(
        "admission.unknown",
        "Admission cannot be decided: {what:word} cannot be read.",
        "Nothing was started. Choose a target whose file system tells its free space.",
        "What cannot be read is not guessed, and what is not known starts nothing.",
        ExitCode.DENIED,
    ),
    _refusal(
        "admission.declined",
        "The plan was not confirmed.",
        "Nothing was started. Confirm it in a terminal, or with --yes.",
        "A conversion starts when a person has seen its figures, or says --yes.",
        ExitCode.USAGE,
    ),
    _refusal(
        "verify.unreadable",
        "The staged file {file:path} is not readable for the safetensors library: {reason:text}",
        "Nothing was promoted. Tell the makers of shardscope.",
        "Every output is opened by the format's own library before it is promoted.",
        ExitCode.INTERNAL,
    ),
    _refusal(
        "verify.structure",
        "The staged file {file:path} does not hold {tensor:name} as it was planned.",
        "Nothing was promoted. Tell the makers of shardscope.",
        "What the format's own library sees in an output is compared with the plan.",
        ExitCode.INTERNAL,
    ),
    _refusal(
        "verify.metadata",
        "The staged file {file:path} does not have the metadata that were planned, {count:count key}.",
        "Nothing was promoted. Tell the makers of shardscope.",
        "What the format's own library reads of the metadata of an output is compared with the plan.",
        ExitCode.INTERNAL,
    ),
    _refusal(
        "verify.value",
        "The staged file {file:path} has another value than the source at element {element:count} of {tensor:name}.",
        "Nothing was promoted. The disk, the memory or shardscope is at fault: try another disk, and tell the makers.",
        "Elements of an output are read again and compared with the source by a way of their own.",
        ExitCode.INTERNAL,
    ),
    _refusal(
        "verify.digest",
        "The staged file {file:path} does not have the digest that the worker said when it had made it.",
        "Nothing was promoted. Look at that worker's disk, memory and network, and convert again.",
        "Files that other processes make are hashed again here under --verify full: what a worker says of its own file is one side "
        "of a comparison.",
        ExitCode.OUTPUT,
    ),
    _refusal(
        "verify.nothing",
        "There is no tensor to verify in the output.",
        "Give the folder of an output: safetensors files that can be listed without decoding.",
        "An output is verified by its own headers first.",
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
        "Give a mapping table with --mapping for Hugging Face names: {known:word}.",
        "Names and fused tensors mean something only to a model's own code. A mapping table, as data, says what they are.",
        (Blocks.LOAD,),
    ),
)
