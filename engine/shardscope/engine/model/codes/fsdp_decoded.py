"""Decoded rank files: distributed tensors held against each other, rank by rank."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_HARM: Final = (Blocks.CONVERT, Blocks.LOAD)
_AGAIN: Final = "Save again as a full or sharded state, or as a distributed checkpoint."
_MIXED: Final = "Files of different saves may be mixed: keep those of one."


def _error(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.ERROR, Stage.DECODE, message, remedy, meaning, _HARM)


TABLE: Final = (
    _error(
        "fsdp.local_state",
        "{pattern:path} holds {count:count flat parameter} in pieces, first {tensor:name}: the shapes of the parameters in "
        "them are in no file.",
        "Load it with the same wrapping and the same number of ranks, and save again as a full or sharded state.",
        "A LOCAL_STATE_DICT save of FSDP keeps what a rank has in memory: parts of parameters laid end to end. The names of "
        "parameters beside them hold one-dimensional pieces and look like whole tensors.",
    ),
    _error(
        "fsdp.flat_optimizer",
        "{pattern:path} holds {count:count tensor} of an optimizer that are pieces of flat parameters, first {tensor:name}: "
        "which parameters are in them is in no file.",
        "Save the optimizer through FSDP.optim_state_dict, or start it anew.",
        "An optimizer over FSDP's flat parameters keeps one-dimensional state for what a rank has in memory.",
    ),
    _error(
        "fsdp.partial",
        "{pattern:path} holds {count:count tensor} that {count:verb are} sums over ranks not yet added up, first {tensor:name}.",
        "Redistribute them (to Replicate or Shard) before saving.",
        "With a Partial placement each rank holds a summand: no element of the tensor is in any file.",
    ),
    _error(
        "fsdp.layout_unknown",
        "{pattern:path} holds {count:count distributed tensor} whose layout cannot be read, first {tensor:name}: "
        "{reason:word}.",
        _AGAIN,
        "Mesh, placements and this rank's place, or the list of shards, have to be in the pickle of each rank.",
    ),
    _error(
        "fsdp.layout_differs",
        "{count:count tensor} of {pattern:path} {count:verb are} described differently by different ranks, first {tensor:name}: "
        "{reason:word}.",
        _MIXED,
        "Every rank repeats dtype, shape and layout of the whole tensor.",
    ),
    _error(
        "fsdp.rank_differs",
        "{file:path} was written by rank {found:count}, as its own tensors say, and is named for rank {named:count}.",
        "Give the file its old name back, or copy it again from the same save.",
        "A mesh in a pickle records the rank that saved it.",
    ),
    _error(
        "fsdp.shard_missing",
        "{count:count tensor} of {pattern:path} {count:verb lack} shards, first {tensor:name}: that of rank {rank:count}.",
        "Copy the missing rank files from the same save: each holds a part that no other file has.",
        "The mesh says how many shards there are and who holds them.",
    ),
    _error(
        "fsdp.shard_shape",
        "{count:count tensor} of {pattern:path} {count:verb have} a shard of another size than their placement makes, first "
        "{tensor:name}: {found:word} where {expected:word} belongs.",
        _AGAIN,
        "DTensor cuts as torch.chunk does. A shard of another size was cut by a rule that is not recorded.",
    ),
    _error(
        "fsdp.shapes_differ",
        "{count:count tensor} of {pattern:path} {count:verb have} another shape or type on another rank and nothing that says how they "
        "belong together, first {tensor:name}: {reason:word}.",
        _AGAIN,
        "Plain tensors carry no layout. Those of one name that differ between ranks are pieces of something.",
    ),
    _error(
        "fsdp.replicas_differ",
        "{count:count tensor} of {pattern:path} should be the same on several ranks and are not, by their checksums, first "
        "{tensor:name}.",
        "Find out which rank holds the right values: nothing in the files tells.",
        "A tensor that ranks hold whole, or on equal places of several meshes, is one tensor. Checksums of its records are "
        "compared without reading it.",
    ),
)
