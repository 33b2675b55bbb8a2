"""Bundles: documents of tensors that are normalised already, held against the files that they name."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

_USE: Final = (Blocks.CONVERT, Blocks.LOAD)


def _row(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.ERROR, Stage.VALIDATE, message, remedy, meaning, _USE, ExitCode.UNSUPPORTED)


TABLE: Final[tuple[Code, ...]] = (
    Code(
        "bundle.document",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} is no bundle at {place:name}: {problem:text}.",
        "Correct the field that is named; `shardscope schema bundle` prints what is allowed.",
        "A bundle holds numbers, text and lists, and no field beyond those of its schema.",
        _USE,
        ExitCode.UNREADABLE,
    ),
    Code(
        "bundle.version",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} has the schema {found:text}; this release reads {known:word}.",
        "Use a release of shardscope that knows this version.",
        "The number behind the slash rises when a field goes or changes its meaning, so that a bundle of another version is not "
        "read as if it were the same.",
        _USE,
        ExitCode.UNSUPPORTED,
    ),
    _row(
        "bundle.path_unsafe",
        "The tensor {tensor:name} is said to be in {target:text}, which is no path below the bundle's own folder.",
        "Put the files beside the document, and name them relative to it.",
        "A bundle reaches no file outside its folder: paths are relative, and have no part `.` or `..` and no backslash.",
    ),
    _row(
        "bundle.file_missing",
        "The tensor {tensor:name} is said to be in {target:path}, which is not here.",
        "Copy the file that belongs to this bundle, or correct the name.",
        "Every fragment is an entry of a file of the bundle.",
    ),
    _row(
        "bundle.key_missing",
        "{target:path} has no entry {key:name}, which is said to be a fragment of {tensor:name}.",
        "Use the files that were written with this document.",
        "Every fragment is an entry of a safetensors file, by its name there.",
    ),
    _row(
        "bundle.dtype",
        "The tensor {tensor:name} is of type {expected:text}, and its fragment in {target:path} of type {found:text}.",
        "Write the fragments in the tensor's type, or declare the type that they have.",
        "All fragments of a tensor have its type. Bytes of one type are never read as another.",
    ),
    _row(
        "bundle.shape",
        "The fragment of rank {rank:word} of {tensor:name} has the shape {found:word}, and the map says {expected:word}.",
        "Use the map that belongs to these fragments.",
        "A fragment is the shard of its rank, padding included, in the shape that the map gives it.",
    ),
    _row(
        "bundle.rank",
        "Rank {rank:word} of {tensor:name} {problem:word}.",
        "Give every rank of the map one fragment, and list further copies of it among the replicas.",
        "The ranks of a map and the fragments are the same set: a topology with a rank missing or too many is not whole.",
    ),
    _row(
        "bundle.padding",
        "The tensor {tensor:name} is padded where it must not be: {problem:word}.",
        "Store the shards with their elements first and their padding behind, or without padding.",
        "Padding lies behind the elements of a shard in each of its dimensions. What lies between them is a hole, whatever it is "
        "called.",
    ),
    _row(
        "bundle.unsound",
        "The map of {tensor:name} does not hold together ({check:word}): {reason:word}.",
        "Correct the map; `shardscope explain {check:word}` says what is wrong.",
        "Before a byte is written it is proven that the shards cover the tensor, that no two pieces claim one place, and that none "
        "reaches outside.",
    ),
    _row(
        "bundle.alias",
        "The tensor {tensor:name} cannot be tied to {other:name}: {problem:word}.",
        "Name a tensor of the same type and shape that is no tie itself.",
        "Tied tensors are one tensor under several names.",
    ),
    _row(
        "bundle.tie_undeclared",
        "The tensors {tensor:name} and {other:name} have the same fragments, and neither is said to be tied to the other.",
        "Say `alias_of` of one of them, or store them apart.",
        "Whether two names are one tensor decides how a model is trained and saved: it is declared, and never concluded from an entry "
        "that two tensors share.",
    ),
    _row(
        "bundle.more",
        "{count:count further tensor} of {file:path} do not hold together, first {tensor:name}.",
        "Mend what is said of the others first: they are often wrong in the same way.",
        "What is wrong is told for the first tensors of a bundle, each by its name; of more there is a count.",
    ),
    Code(
        "bundle.key_unused",
        Severity.WARNING,
        Stage.VALIDATE,
        "{count:count entry} of the bundle's files belong to no tensor, first {first:name} of {file:path}.",
        "Remove them, or add the tensors that they belong to.",
        "What no tensor refers to is not converted.",
        (),
    ),
)
