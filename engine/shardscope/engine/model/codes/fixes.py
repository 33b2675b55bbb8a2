"""What a fix does not do, and what it does not do without being told."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode


def _refusal(
    code: str, message: str, remedy: str, meaning: str, code_exit: ExitCode = ExitCode.UNSUPPORTED
) -> Code:
    return Code(code, Severity.ERROR, Stage.VALIDATE, message, remedy, meaning, (Blocks.CONVERT,), code_exit)


TABLE: Final[tuple[Code, ...]] = (
    _refusal(
        "fix.other_format",
        "This is no set of safetensors files that can be fixed: {found:word}.",
        "Convert it: `shardscope convert PATH OUT` makes Hugging Face safetensors of it. A single file is fixed by its own path.",
        "A fix changes Hugging Face safetensors and the safetensors of PEFT adapters, where every tensor stands whole in one file. "
        "Anything else is converted.",
    ),
    _refusal(
        "fix.no_weights",
        "There is no weight file to fix: {found:word}.",
        "Point at the folder that holds the files, or fetch them.",
        "An index alone, or configuration alone, has no tensor that could be written.",
    ),
    _refusal(
        "fix.several_sets",
        "{count:count weight set} {count:verb stand} side by side: {sets:name}.",
        "Choose the files of one with --file GLOB, or give the folder or the file of one.",
        "Variants, two saves on top of each other, or a single file beside shards. Which of them is meant cannot be told, and none "
        "is picked.",
    ),
    _refusal(
        "fix.no_match",
        "{option:word} fits none of the {count:count} there are: {pattern:name}.",
        "Look at the names with `shardscope tensors` or `shardscope tensors --json`, and write it as it stands there.",
        "What is asked for and matches nothing is a mistake in writing more often than a wish for nothing.",
        ExitCode.USAGE,
    ),
    _refusal(
        "fix.unasked",
        "{file:path} has something wrong that {repair:word} mends, which was not asked for: {code:word}.",
        "Add --what {repair:word}; `shardscope explain {code:word}` tells what is wrong.",
        "Nothing is repaired in passing: what a source has wrong is mended by the operation that is named for it, or not at all.",
    ),
    _refusal(
        "fix.damaged",
        "{count:count part} of the checkpoint cannot be written, first {name:name} in {file:path}: {why:word}.",
        "Fetch the files again, or add --what salvage: everything that is whole is then written, and what is lost is listed by name.",
        "A tensor whose bytes are missing, shared with another tensor, or not as many as its type and shape ask for, and what an "
        "index names and no file holds. Nothing of that is ever left out in silence.",
    ),
    _refusal(
        "fix.copies_unlike",
        "{count:count tensor} {count:verb are} in more than one file, and not alike: {tensor:name} is {first:word} in {file:path} "
        "and {second:word} in {other:path}.",
        "Choose the files of one save with --file GLOB.",
        "Copies with the same type and shape are compared byte for byte and written once. These are of different models, or of "
        "different saves.",
    ),
    _refusal(
        "fix.nothing_left",
        "No tensor is left to write: {count:count} were there, {dropped:count} dropped and {lost:count} lost.",
        "Drop less, or choose other files with --file.",
        "An output without a tensor would look like a model and be none.",
    ),
    _refusal(
        "fix.nothing_to_do",
        "There is nothing to change: {count:count tensor} in {files:count file} would be copied as they are.",
        "Name what to change with --what; `shardscope fix --help` lists what there is.",
        "A copy under another name would say that something was wrong. To copy a checkpoint, copy its folder.",
        ExitCode.USAGE,
    ),
    _refusal(
        "fix.tied",
        "Dropping {tensor:name} takes {other:name} away, too: the two are tied, say {says:word}.",
        "Keep it, or add --untie to drop it for both names.",
        "One of two tied tensors is stored once, under one name, and a loader makes the other of it. Without it neither is there.",
        ExitCode.USAGE,
    ),
    _refusal(
        "fix.adapter_split",
        "An adapter stays in one file: PEFT loads no other.",
        "Leave --what split away.",
        "PEFT looks for adapter_model.safetensors and knows no index.",
        ExitCode.USAGE,
    ),
    _refusal(
        "fix.operations",
        "The operations do not go together: {problem:word}.",
        "See `shardscope fix --help` for what each operation takes.",
        "Each operation has options of its own, and some exclude each other.",
        ExitCode.USAGE,
    ),
)
