"""Copying fragments into output files: what records turn out to hold, and what cannot be written."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

_REFETCH: Final = "Fetch the file again, or take another save; no output is kept."


def _row(
    code: str, message: str, remedy: str, meaning: str, exit_code: ExitCode = ExitCode.UNSUPPORTED
) -> Code:
    return Code(
        code, Severity.ERROR, Stage.MATERIALIZE, message, remedy, meaning, (Blocks.CONVERT,), exit_code
    )


TABLE: Final = (
    _row(
        "convert.cast",
        "Elements of type {stored:text} are not converted to {wanted:word}.",
        "Use --dtype keep, or leave the tensor out with --exclude.",
        "Floating-point numbers of 16, 32 and 64 bits are converted to numbers of 16 and 32 bits. Integers, booleans, scales and "
        "quantised values mean something else in another type.",
    ),
    _row(
        "convert.dtype",
        "The tensor {tensor:name} has elements of type {found:text}, which safetensors does not have.",
        "Leave it out with --exclude.",
        "A safetensors file names one of a closed set of types for each tensor; another word makes it unreadable.",
    ),
    _row(
        "convert.header_name",
        "A tensor cannot be called {tensor:name} in the output: {reason:word}.",
        "Give it another name with --rename.",
        "Names of a safetensors file are text, each occurs once, and `__metadata__` belongs to the format.",
    ),
    _row(
        "convert.header_size",
        "The header of a file of {count:count tensor} would have {size:bytes}, more than {limit:bytes}.",
        "Write more files with a smaller --max-shard-size.",
        "Readers refuse headers beyond a limit: that of the Hugging Face hub is the lowest.",
    ),
    _row(
        "convert.fragment_missing",
        "The tensor {tensor:name} needs the shard of rank {rank:word}, which is not there.",
        "Add the files of that rank.",
        "The tensor's map says that some of its elements are in a shard that no file has. Nothing stands in for them.",
    ),
    _row(
        "convert.outside_record",
        "The tensor {tensor:name} reaches to byte {end:count} of a record of {file:path} that has {size:bytes}.",
        _REFETCH,
        "Offset, shape and strides of a fragment lead out of what the file stores for it.",
    ),
    _row(
        "convert.strides",
        "The tensor {tensor:name} is stored with {found:count} strides, and has another number of dimensions.",
        "Report it with `shardscope report`: the structure of the file contradicts itself.",
        "A view has one stride for each dimension.",
    ),
    _row(
        "convert.view",
        "The tensor {tensor:name} is a view that repeats elements in more than {limit:count} places.",
        "Save it as a tensor of its own, or leave it out with --exclude.",
        "An expanded or overlapping view is written out element by element; beyond a limit that is not done.",
    ),
    _row(
        "convert.not_comparable",
        "The tensors {tensor:name} and {other:name} differ in type or shape, so that their bytes are not compared.",
        "Convert them to one type first.",
        "Copies of a tensor are compared byte for byte, which says something only where their elements are alike.",
    ),
    _row(
        "convert.short_record",
        "{file:path} has {found:bytes} of the record at byte {offset:count}, of which a tensor needs {expected:bytes}.",
        _REFETCH,
        "A record ends before the tensor does that lies in it: the file was cut off, or decodes to less than it says.",
        ExitCode.BLOCKED,
    ),
    _row(
        "convert.record_damaged",
        "{file:path} has a record at byte {offset:count} that cannot be decoded: {reason:word}.",
        _REFETCH,
        "A deflated record or a zstd frame does not decode to what its container recorded.",
        ExitCode.BLOCKED,
    ),
    _row(
        "convert.zstd_missing",
        "{file:path} has records that are compressed by zstd, which this Python cannot read.",
        "Install the extra `shardscope[zstd]`, or use Python 3.14, whose standard library reads them.",
        "zstd is part of Python's standard library from 3.14 on; before, the package `zstandard` is needed.",
    ),
)
