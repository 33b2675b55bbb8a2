"""Why a tensor cannot be looked at."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

TABLE: Final[tuple[Code, ...]] = (
    Code(
        "peek.no_tensor",
        Severity.ERROR,
        Stage.DESCRIBE,
        "There is no tensor {tensor:name} among {count:count tensor}.",
        "Run `shardscope tensors` for the names; the nearest one: {nearest:name}.",
        "Names are compared exactly, letter by letter.",
        exit=ExitCode.USAGE,
    ),
    Code(
        "peek.opaque",
        Severity.ERROR,
        Stage.DESCRIBE,
        "There is no tensor {tensor:name} that can be listed: {files:count file} {files:verb need} decoding.",
        "Ask for decoding with --decode: pickles are then read as data, for this run.",
        "Tensors of pickled files are described inside the pickle, which is not read unless a person asks for it.",
        (Blocks.DECODE,),
        ExitCode.NEEDS_DECODING,
    ),
    Code(
        "peek.unread",
        Severity.ERROR,
        Stage.DESCRIBE,
        "No number can be read: {format:word} is recognised only, and {files:count file} {files:verb hold} what is in it.",
        "Use a tool of that format.",
        "Nothing here reads more of the format, and decoding does not either.",
        exit=ExitCode.UNSUPPORTED,
    ),
    Code(
        "peek.several",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count tensor} {count:verb have} the name {tensor:name}, one for each rank; the first is of rank {rank:count}.",
        "Say which one with --rank.",
        "Nothing in the checkpoint tells how the parts of ranks make a whole, so each rank has a tensor of its own.",
        exit=ExitCode.USAGE,
    ),
    Code(
        "peek.unreadable",
        Severity.ERROR,
        Stage.DESCRIBE,
        "No number of {tensor:name} can be read: {why:word}.",
        "Look at what is known of it with `shardscope tensors`.",
        "Numbers are worked out for the types that safetensors has; blocks of quantised types are not unpacked.",
        exit=ExitCode.UNSUPPORTED,
    ),
    Code(
        "peek.bits",
        Severity.ERROR,
        Stage.COMMAND,
        "{tensor:name} is of type {dtype:text}, whose elements are not taken apart into {bits:count bit}.",
        "Give --bits for packed integers alone, and not with --heat.",
        "Packed weights are stored in integers of 8 to 64 bits, several to an element.",
        exit=ExitCode.USAGE,
    ),
    Code(
        "peek.slice",
        Severity.ERROR,
        Stage.COMMAND,
        "The slice {slice:text} cannot be read: {why:word} at character {at:count}.",
        "Write it as numpy has it, with steps above zero: `0:4,-1,::2`, and `...` for all dimensions in between.",
        "A slice is integers, ranges START:STOP:STEP, and at most one `...`, with commas in between.",
        exit=ExitCode.USAGE,
    ),
    Code(
        "peek.dimensions",
        Severity.ERROR,
        Stage.COMMAND,
        "The slice {slice:text} has {found:count dimension}, and {tensor:name} has {expected:count}.",
        "Give at most as many parts as the tensor has dimensions.",
        "What a slice leaves out at its end is taken whole.",
        exit=ExitCode.USAGE,
    ),
    Code(
        "peek.index",
        Severity.ERROR,
        Stage.COMMAND,
        "Index {index:count} is outside dimension {dimension:count} of {tensor:name}, which has {extent:count}.",
        "Give an index from 0 on, or from -1 backwards.",
        "An index has to be there; the ends of a range are cut to what is there, as numpy does it.",
        exit=ExitCode.USAGE,
    ),
)
