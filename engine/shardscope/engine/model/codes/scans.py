"""What stands out in the numbers of a checkpoint."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

TABLE: Final[tuple[Code, ...]] = (
    Code(
        "scan.empty",
        Severity.ERROR,
        Stage.DESCRIBE,
        "There is no tensor to scan among {count:count tensor} of other components.",
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
        "scan.duplicate",
        Severity.INFO,
        Stage.DESCRIBE,
        "{tensor:name} has the same bytes as {other:name}.",
        "Nothing has to be done where both are meant to be one, as tied weights are.",
        "Equal type, shape and digest of bytes. Layers that were copied, or one that was loaded twice, look like this.",
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
