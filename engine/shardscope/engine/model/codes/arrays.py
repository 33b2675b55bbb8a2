"""Files of arrays that maps are applied to, and the files that come of it."""

from typing import Final

from shardscope.engine.model.blocker import Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode


def _row(code: str, message: str, remedy: str, meaning: str, code_: ExitCode, stage: Stage) -> Code:
    return Code(code, Severity.ERROR, stage, message, remedy, meaning, exit=code_)


def _unreadable(code: str, message: str, remedy: str, meaning: str) -> Code:
    return _row(code, message, remedy, meaning, ExitCode.UNREADABLE, Stage.PARSE)


def _refused(code: str, message: str, remedy: str, meaning: str) -> Code:
    return _row(code, message, remedy, meaning, ExitCode.UNSUPPORTED, Stage.VALIDATE)


TABLE: Final[tuple[Code, ...]] = (
    _unreadable(
        "npy.malformed",
        "{file:path} is no .npy file that can be read: {reason:word}.",
        "Save the array again with numpy.save; an array of one plain dtype.",
        "The header of the format is a Python literal. It is matched against the one form that numpy writes for plain "
        "arrays, and never evaluated.",
    ),
    _unreadable(
        "npy.objects",
        "{file:path} holds Python objects, which are stored as a pickle.",
        "Save plain numbers.",
        "Reading such an array would run what the pickle says. Nothing here does.",
    ),
    _unreadable(
        "npy.truncated",
        "{file:path} has {found:bytes}; its header asks for {expected:bytes}.",
        "Save or copy the file again.",
        "An array that is cut off, or has something behind its data, is not what its header describes.",
    ),
    _unreadable(
        "array.kind",
        "{file:path} is neither an .npy nor a .safetensors file by its name.",
        "Give shards in one of these two formats.",
        "The two formats hold plain numbers and nothing that runs.",
    ),
    _unreadable(
        "array.missing",
        "{file:path} has no tensor {tensor:name}.",
        "Name the tensor as the file does: --key NAME, or run `shardscope tensors` for the names.",
        "A safetensors file with one tensor needs no name; one with several does.",
    ),
    _refused(
        "array.order",
        "{file:path} is stored with its first dimension fastest.",
        "Save it in row-major order: numpy.ascontiguousarray before numpy.save.",
        "Addresses of a map count elements row by row.",
    ),
    _refused(
        "array.dtype",
        "{file:path} has elements of dtype {found:text}, which cannot be moved.",
        "Convert the tensor to a dtype of 1, 2, 4 or 8 bytes.",
        "Elements are moved as they are, and only such sizes are known.",
    ),
    _refused(
        "array.dtypes_differ",
        "{file:path} has elements of dtype {found:text}, and another shard has {expected:text}.",
        "Use the shards of one save.",
        "Shards of one tensor have one dtype.",
    ),
    _row(
        "output.exists",
        "{file:path} is there already.",
        "Give another name, or move the old one away; nothing is overwritten.",
        "What stands at the target could be the only copy of something.",
        ExitCode.OUTPUT,
        Stage.COMMAND,
    ),
    _row(
        "output.refused",
        "{file:path} could not be written: {reason:word}.",
        "Make room or choose another target; what was begun has been removed.",
        "Output is written beside its target and renamed once it is whole, so a failure leaves nothing half-done.",
        ExitCode.OUTPUT,
        Stage.MATERIALIZE,
    ),
)
