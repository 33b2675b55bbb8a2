"""Megatron-LM and Megatron Core saves: rank folders, distributed checkpoints, zarr arrays."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_USE = (Blocks.CONVERT, Blocks.LOAD)
_ALL = (Blocks.DECODE, *_USE)

TABLE: Final = (
    Code(
        "megatron.rank_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{missing:count} of {total:count rank folder} that the numbers call for are absent, the first {first:path}.",
        "Copy the missing folders from the same save. Ranks after the last one seen cannot be noticed from names.",
        "The names of the folders span a rectangle of ranks, and not every rank of it is here. Each holds its part of the "
        "layers, so the model cannot be put together without it.",
        _ALL,
    ),
    Code(
        "megatron.rank_duplicate",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count folder} carry the numbers of one rank, among them {first:path}.",
        "Keep the folders of one save.",
        "Names that differ in padding alone mean the same rank. Which of them belongs to the others is not told.",
        _ALL,
    ),
    Code(
        "megatron.rank_names_mixed",
        Severity.ERROR,
        Stage.DESCRIBE,
        "Rank folders with {counts:word} numbers in their names stand side by side.",
        "Move the folders of one of the saves away.",
        "A save names all of its rank folders with the same count of numbers: tensor-parallel rank, then pipeline rank and "
        "expert-parallel rank where there are several. Two saves were written over each other.",
        _ALL,
    ),
    Code(
        "megatron.model_file_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count} of {total:count rank folder} {count:verb hold} no model_optim_rng.pt, the first {file:path}.",
        "Copy the file from the same save.",
        "Each rank keeps its part of the model there. An interrupted save or copy leaves the folder without it.",
        _ALL,
    ),
    Code(
        "megatron.optimizer_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count} of {total:count rank folder} {count:verb hold} no {name:name}, although others do; the first is {file:path}.",
        "Copy the missing files from the same save, or leave the optimizer behind on purpose when you load.",
        "Every rank writes its part of the optimizer state. Some of the parts are gone.",
        _USE,
    ),
    Code(
        "megatron.layer_wise_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{missing:count file} of the layer-wise optimizer are absent, the first {first:path}.",
        "Copy the missing files from the same save.",
        "Each data-parallel rank writes one of them beside the model file; their numbers span more than is here.",
        _USE,
    ),
    Code(
        "megatron.no_tracker",
        Severity.WARNING,
        Stage.DESCRIBE,
        "There is no latest_checkpointed_iteration.txt beside {folder:path}.",
        "Make sure that the save was finished, and name the iteration when you load it.",
        "Megatron-LM writes that file when a save is complete. An interrupted save has none, and a folder that was copied on "
        "its own has none either.",
        (),
    ),
    Code(
        "megatron.model_mapping",
        Severity.WARNING,
        Stage.DESCRIBE,
        "The arrays have Megatron's names and layout: offsets, rank offsets and replicas place them; what they are to "
        "another model is not told.",
        "Keep the training arguments with the save: a conversion needs a mapping of names and layouts for this model.",
        "Global shapes and offsets put each shard in its place, which is half of the way. Fused projections, gated layers, "
        "padded vocabularies and stacked layers still need rules for each kind of model before another framework can read "
        "them.",
        (Blocks.CONVERT,),
    ),
    Code(
        "megatron.metadata_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{folder:path} has no metadata.json: the save was not finished, or the file was lost.",
        "Copy metadata.json from the same save; do not write one by hand.",
        "Megatron Core writes metadata.json last, and it says which backend wrote the shards. Without it nothing vouches that "
        "every shard was written.",
        _ALL,
    ),
    Code(
        "megatron.common_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{folder:path} has no common.pt.",
        "Copy common.pt from the same save.",
        "State that is the same on all ranks (arguments, iteration, schedulers) is kept in common.pt; loading starts there.",
        _USE,
    ),
    Code(
        "megatron.arrays_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{folder:path} holds no array, although its metadata.json names the backend zarr.",
        "Copy the folders of the keys from the same save, dot files included.",
        "The description of the save is here and the arrays are not.",
        _ALL,
    ),
    Code(
        "megatron.backends_mixed",
        Severity.ERROR,
        Stage.DESCRIBE,
        "metadata.json names the backend {backend:name}, and {count:count file} of another stand beside it, first {first:path}.",
        "Move the files of one of the saves away.",
        "A save has one backend. Two saves were written over each other, and which of them metadata.json belongs to is not "
        "told by the rest.",
        _ALL,
    ),
    Code(
        "megatron.writer_uneven",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count rank} {count:verb have} fewer shard files than the {most:count} of others; the first is rank {first:count}.",
        "Compare with the listing of the source, and copy what is missing.",
        "All ranks of a save have the same number of writer threads, and a thread without data writes no file. So fewer files "
        "are normal for a rank with very little data, and otherwise one is lost. What should be there is in .metadata, which "
        "is opaque.",
        (Blocks.CONVERT,),
    ),
    Code(
        "megatron.backend_unknown",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} names the sharded backend {backend:text}, which is not known here.",
        "Read it with the version of Megatron Core that wrote it.",
        "Known are torch_dist and zarr. Nothing is guessed about the layout of others.",
        _ALL,
    ),
    Code(
        "megatron.zarray_invalid",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} describes no array: {reason:word}.",
        "Fetch the file again; it is a small JSON document.",
        "Shape, chunk shape and data type of an array are in its .zarray. Where one of them is missing or impossible, the "
        "chunks beside it cannot be read.",
        _ALL,
    ),
    Code(
        "megatron.zarr_encoding",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count array} {count:verb are} stored with {what:word}, the first {first:path}.",
        "Read them with a zarr library.",
        "Megatron Core writes plain chunks in C order and little-endian. Anything else is described here and not read.",
        (Blocks.CONVERT,),
    ),
    Code(
        "megatron.chunk_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{missing:count} of {total:count chunk} that the arrays declare are absent, the first {first:path}.",
        "Copy the missing chunk files from the same save.",
        "Zarr libraries fill absent chunks with a constant without a word. In a checkpoint an absent chunk is lost weights.",
        _ALL,
    ),
    Code(
        "megatron.chunk_unexpected",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count file} beside the chunks fit no chunk of their array, the first {first:path}.",
        "Keep the files of one save: they may be left from an array of another shape.",
        "The names of chunks are their places in the grid that .zarray declares.",
        _USE,
    ),
    Code(
        "megatron.chunk_size",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count chunk} {count:verb have} the wrong size: {first:path} has {size:bytes} instead of {expected:bytes}.",
        "Fetch the chunk again.",
        "Chunks without compression all have the size of a full chunk. Another size means a truncated or a foreign file.",
        _ALL,
    ),
    Code(
        "megatron.key_empty",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count folder} of the save hold no .zarray, the first {first:path}.",
        "Copy the folders again, dot files included.",
        "Each array of a zarr save has a folder with its .zarray and its chunks. Chunks without .zarray cannot be read.",
        _ALL,
    ),
)
