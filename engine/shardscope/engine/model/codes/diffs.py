"""What cannot be compared."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

TABLE: Final[tuple[Code, ...]] = (
    Code(
        "diff.opaque",
        Severity.ERROR,
        Stage.DESCRIBE,
        "No tensor of {side:word} can be listed: {files:count} of the files that would hold them need decoding.",
        "Ask for decoding with --decode: pickles are then read as data, for this run.",
        "Two checkpoints are compared by their tensors, and those of pickled files are described inside the pickle, which is "
        "not read unless a person asks for it.",
        (Blocks.DECODE,),
        ExitCode.NEEDS_DECODING,
    ),
    Code(
        "diff.nothing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "There is no tensor to compare in {side:word}: {found:word}.",
        "Run `shardscope inspect` on it, or give another --component.",
        "A comparison with nothing would call every tensor of the other side missing or extra, which says nothing about either.",
        exit=ExitCode.UNSUPPORTED,
    ),
    Code(
        "diff.adapter_none",
        Severity.ERROR,
        Stage.DESCRIBE,
        "What is said to be merged is no adapter: {found:word}.",
        "Give the folder with adapter_config.json and adapter_model.safetensors, or adapter_model.bin and --decode.",
        "Without its configuration nobody knows what an adapter scales its update with.",
        exit=ExitCode.UNSUPPORTED,
    ),
    Code(
        "diff.adapter_kind",
        Severity.ERROR,
        Stage.DESCRIBE,
        "The adapter is no plain LoRA: its configuration says {what:text}.",
        "Hold A and B against each other without --adapter, or look at what its own library merges.",
        "What it adds is not the product of two factors of one module, so that B cannot be worked out of A by it.",
        exit=ExitCode.UNSUPPORTED,
    ),
    Code(
        "diff.adapter_scale",
        Severity.ERROR,
        Stage.DESCRIBE,
        "The adapter does not say what its update scales with: there is no lora_alpha in its configuration.",
        "Look for the adapter_config.json that was saved with its weights.",
        "The update is lora_alpha / r times the product of the factors. A guess would call a merge wrong that is right.",
        exit=ExitCode.UNSUPPORTED,
    ),
    Code(
        "diff.adapter_names",
        Severity.ERROR,
        Stage.DESCRIBE,
        "The file holds the factors of {count:count adapter}, the first {first:name}.",
        "Save each adapter by itself, and give --adapter once for each that was merged.",
        "Nothing in the file says which of them were merged.",
        exit=ExitCode.UNSUPPORTED,
    ),
    Code(
        "diff.adapter_pattern",
        Severity.ERROR,
        Stage.DESCRIBE,
        "A key of rank_pattern or alpha_pattern is a regular expression: {key:name}.",
        "Write it out as the ends of the names that it stands for.",
        "Expressions of a checkpoint are not run: one can be made so that it never ends.",
        exit=ExitCode.UNSUPPORTED,
    ),
)
