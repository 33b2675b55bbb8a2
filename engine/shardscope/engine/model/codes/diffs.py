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
)
