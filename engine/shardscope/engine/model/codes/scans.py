"""What stands out in the numbers of a checkpoint."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

TABLE: Final[tuple[Code, ...]] = (
    Code(
        "scan.empty",
        Severity.ERROR,
        Stage.DESCRIBE,
        "There is nothing to scan: no tensor of the component that was asked for, and {count:count tensor} of others.",
        "Run `shardscope inspect` on it, or give another --component.",
        "A scan of nothing finds nothing, which says nothing about the checkpoint.",
        exit=ExitCode.UNSUPPORTED,
    ),
    Code(
        "scan.nothing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "There is no tensor to scan: none is listed, and {files:count file} {files:verb need} decoding.",
        "Ask for decoding with --decode where files need it, or give another --component.",
        "A scan of nothing finds nothing, which says nothing about the checkpoint.",
        (Blocks.DECODE,),
        ExitCode.NEEDS_DECODING,
    ),
    Code(
        "scan.not_finite",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{tensor:name} has {nans:count NaN} and {infinite:count infinite number} among {numbers:count number}, "
        "the first in element {element:count}.",
        "Look where they are with `shardscope peek --heat`; take an earlier step if training broke.",
        "One NaN in a weight makes every output that it reaches NaN.",
    ),
    Code(
        "scan.zeros",
        Severity.WARNING,
        Stage.DESCRIBE,
        "All {numbers:count number} of {tensor:name} are zero.",
        "Compare it with an earlier step or with the export.",
        "Biases and factors of a new adapter begin as zeros. Elsewhere it is a tensor that was never written or loaded.",
    ),
    Code(
        "scan.constant",
        Severity.INFO,
        Stage.DESCRIBE,
        "All {numbers:count number} of {tensor:name} are the same one, {value:word}.",
        "Nothing has to be done where it is a norm or a buffer.",
        "Norms begin as ones. A matrix of one number was not trained.",
    ),
    Code(
        "scan.zero_run",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{tensor:name} has at least {bytes:bytes} of zeros in one stretch, from byte {begin:count} of its {size:bytes} on.",
        "Compare it with an earlier step or with the export; look for a full disk or a copy that was stopped.",
        "A hole in a sparse file reads as zeros, and so does what a writer reserved and never wrote. Weights seldom have "
        "64 KiB of zeros side by side unless they were pruned or padded.",
    ),
    Code(
        "scan.zero_runs",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count tensor}, {tensor:name}, have at least {bytes:bytes} of zeros in one stretch each.",
        "Compare them with an earlier step or with the export; look for a full disk or a copy that was stopped.",
        "The same as scan.zero_run, of tensors whose names differ in numbers alone.",
    ),
    Code(
        "scan.duplicate",
        Severity.INFO,
        Stage.DESCRIBE,
        "{tensor:name} has the same bytes as {other:name}.",
        "Nothing has to be done where both are meant to be one, as tied weights are.",
        "Equal type, shape and digest of bytes. Layers that were copied, or one that was loaded twice, look like this.",
    ),
    Code(
        "scan.duplicate_layer",
        Severity.INFO,
        Stage.DESCRIBE,
        "{tensor:name} has the same bytes as {other:name} in {count:count} of its {total:count tensor}.",
        "Nothing has to be done where layers were copied on purpose, as upscaling does before training goes on.",
        "Equal type, shape and digest of bytes. Tensors of one number alone are not counted: new biases and norms are all alike. Where "
        "ranges stand in both names, layers belong to each other in their order, or all of them to the one.",
    ),
    Code(
        "scan.near_duplicate",
        Severity.INFO,
        Stage.DESCRIBE,
        "{tensor:name} is nearly {other:name} in {count:count} of its {total:count tensor}: cosine {cosine:word} at least, differences "
        "of {apart:word} of their length and of {largest:word} of the largest number at most.",
        "Nothing has to be done where layers were copied on purpose and trained little since.",
        "The length of the difference is at most a tenth of what the numbers deviate from their mean: a correlation of 0.995. Layers "
        "that were trained apart from each other have one near 0. Candidates are found by sketches of some numbers, then measured over all.",
    ),
    Code(
        "scan.equal_experts",
        Severity.WARNING,
        Stage.DESCRIBE,
        "All {count:count expert} of {tensor:name} have the same bytes.",
        "Compare it with a later step: experts that were copied from one are only of use once they were trained apart.",
        "A router cannot choose between experts that are equal. A dense model that was made into one of experts begins like this.",
    ),
    Code(
        "scan.half_written",
        Severity.WARNING,
        Stage.DESCRIBE,
        "The last {count:count tensor} of {file:path} {count:verb are} zero, from byte {begin:count} in {tensor:name} on to the end: "
        "{bytes:bytes}, of which {unstored:bytes} were never stored.",
        "Copy or write the file again; look for a full disk, a download or a copy that was stopped.",
        "A file that got its size first and was not filled ends like this: its header is whole, its tail is zeros. Tensors in it "
        "have no findings of their own on that account.",
    ),
    Code(
        "scan.holes",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{bytes:bytes} of {file:path} were never stored and read as zeros: {holes:count hole} in {count:count tensor}, the first in "
        "{tensor:name} at byte {begin:count}.",
        "Copy or write the file again, unless a tool made it sparse on purpose.",
        "File systems leave out what was never written. Some copies leave out pages of zeros, too; then the tensors are whole.",
    ),
    Code(
        "scan.dead_channels",
        Severity.INFO,
        Stage.DESCRIBE,
        "{tensor:name} has {rows:count row} of {all_rows:count} and {columns:count column} of {all_columns:count} that hold one number "
        "alone.",
        "Nothing has to be done where channels were pruned or a vocabulary was padded.",
        "The last dimension is across, all others are down. A row of zeros is an output that is always the bias; a column of zeros is an "
        "input that is never heard.",
    ),
    Code(
        "scan.f16_overflow",
        Severity.INFO,
        Stage.DESCRIBE,
        "{tensor:name} has numbers of up to {value:word}, beyond the largest one of F16, 65,504.",
        "Do not cast it to F16; BF16 and F32 hold it.",
        "A cast to F16 makes such numbers infinite, and outputs NaN.",
    ),
    Code(
        "scan.subnormal",
        Severity.INFO,
        Stage.DESCRIBE,
        "{tensor:name} has numbers of about 2^{exponent:word}, below the smallest normal one of {dtype:text}.",
        "Nothing has to be done in most cases; look with `shardscope peek --histogram`.",
        "Many kernels take subnormal numbers for zeros, so that results differ from one machine to the next.",
    ),
    Code(
        "scan.unreadable",
        Severity.ERROR,
        Stage.DESCRIBE,
        "The numbers of {tensor:name} cannot be read [{cause:word}]: {why:word}",
        "Fetch the file again; `shardscope explain` says what the code in brackets means.",
        "Other tensors were read. Of several that have the same code, the sentence is that of the first.",
        exit=ExitCode.UNSUPPORTED,
    ),
    Code(
        "scan.unread",
        Severity.INFO,
        Stage.DESCRIBE,
        "The numbers of {tensor:name} were not read: {why:word}.",
        "Look at what is known of it with `shardscope tensors`.",
        "What was not read was not found sound.",
    ),
)
