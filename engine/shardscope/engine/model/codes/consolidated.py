"""Weights that a release or a serving engine cut by rank: Meta, Mistral and vLLM layouts."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_USE = (Blocks.CONVERT, Blocks.LOAD)

TABLE: Final = (
    Code(
        "consolidated.dimensions",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count file} {count:verb hold} one model, and nothing in them says along which dimension a tensor was cut.",
        "Have the release notes of the exact model at hand; the cut has to be given, because it cannot be read.",
        "Each file of this layout is one model-parallel rank. Which dimension a tensor was cut along is a convention of "
        "the code that wrote it, and has changed: the token embedding of Llama 2 is cut along dimension 1, that of Llama "
        "3 along dimension 0. The rows of the query and key projections stand in an order of their own as well.",
        _USE,
    ),
    Code(
        "consolidated.cut_inferred",
        Severity.WARNING,
        Stage.DECODE,
        "How {count:count tensor} of this model were cut is inferred, from the shapes of the ranks and params.json.",
        "Compare with the model code of the release where it matters: shapes prove the axis, and not the order of ranks.",
        "params.json and the model code give the whole shape of each tensor; the shape that every rank holds leaves one axis along "
        "which equal parts come to it, or is the whole. That rank 0 holds the first part is the convention of all known releases. "
        "The rows of query and key projections stay in the order of the release, unless a mapping table gives another.",
        (Blocks.LOAD,),
    ),
    Code(
        "consolidated.cut_unproven",
        Severity.ERROR,
        Stage.DECODE,
        "How {count:count tensor}, such as {tensor:name}, were cut cannot be told from params.json and the shapes of the ranks; "
        "they are listed rank by rank.",
        "Give a mapping that says along which axis each was cut, or complete params.json and the files of all ranks.",
        "Cuts along rows and along columns need facts of the model: the width of the model and of its layers, the number of heads, "
        "the vocabulary. What is not declared, and tensors that the model code of these releases does not have, are not guessed.",
        _USE,
    ),
    Code(
        "consolidated.rank_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{missing:count} of at least {total:count} files of {pattern:path} are absent, first number {first:count}.",
        "Fetch or copy the missing files from the same release.",
        "Every file holds a part of each tensor. With one of them absent no tensor that was cut is whole. A missing last "
        "file cannot be seen from names.",
        _USE,
    ),
    Code(
        "consolidated.rank_twice",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count file} of {pattern:path} carry the number {number:count}, such as {file:path}.",
        "Keep the file that belongs to this release.",
        "Two files claim the same model-parallel rank.",
        _USE,
    ),
    Code(
        "consolidated.ranks_differ",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} holds {found:count tensor storage} of {found_bytes:bytes}, but {other:path} holds "
        "{expected:count} of {expected_bytes:bytes}.",
        "Compare the files with the release they come from; fetch the odd one again.",
        "All ranks of this layout hold parts of equal size. Files that differ are of different saves, or one of them is "
        "not what was released.",
        _USE,
    ),
    Code(
        "consolidated.listed_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} lists {count:count file} that {count:verb are} not here, such as {target:name}.",
        "Fetch or copy them from the same release.",
        "The checklist of the release names every file of it. The digests in it (MD5) are not compared.",
        _USE,
    ),
    Code(
        "consolidated.checklist",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{file:path} is not a list of digests and names.",
        "Fetch it again if you need to know which files belong to the release.",
        "A checklist has a line for each file: an MD5 digest and a name.",
        (),
    ),
    Code(
        "consolidated.names",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count tensor} carry names of the release's own, such as {tensor:name}; loaders of Hugging Face know "
        "other names.",
        "Give a mapping table with --mapping when converting, such as meta-llama: names, and the order of rows in the query and "
        "key projections, are others in such a loader.",
        "Releases in this layout name tensors after the code of their authors. Equal shapes do not make two names the "
        "same parameter.",
        (Blocks.LOAD,),
    ),
    Code(
        "consolidated.params_missing",
        Severity.WARNING,
        Stage.DESCRIBE,
        "There is no params.json beside {file:path}.",
        "Copy it from the same release: the number of heads and layers stands only there.",
        "In this layout params.json takes the place of config.json.",
        (Blocks.LOAD,),
    ),
    Code(
        "vllm.geometry",
        Severity.WARNING,
        Stage.DESCRIBE,
        "Nothing here records how {count:count tensor} became the parts of {ranks:count rank}: no dimension of a cut, "
        "no order and no widths of what was fused, no shape of a whole.",
        "Give a mapping table with --mapping, which says it ({fitting:word}); or go back to the checkpoint this was saved from.",
        "Files of this layout are the memory of running workers. Projections are fused (qkv_proj, gate_up_proj), kernels "
        "may have changed the layout, and of tensors that shared memory one name is left.",
        _USE,
    ),
    Code(
        "vllm.same_on_ranks",
        Severity.INFO,
        Stage.DESCRIBE,
        "{count:count tensor} {count:verb have} the same name and shape on each of {ranks:count rank}: part of a whole or copy of "
        "it, the files do not tell.",
        "Nothing to do; a mapping would have to say it for each tensor.",
        "A matrix that was cut evenly and a vector that every rank keeps look alike from outside.",
        (),
    ),
    Code(
        "vllm.rank_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{missing:count} of at least {total:count} ranks of {pattern:path} have no file, first rank {first:count}.",
        "Copy the files of the missing ranks from the same save.",
        "Each rank reads only its own files. A missing last rank cannot be seen from names.",
        _USE,
    ),
    Code(
        "vllm.part_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "Rank {rank:count} lacks {missing:count part} of {pattern:path}, first part {first:count}.",
        "Copy the missing files from the same save.",
        "Parts are numbered from 0 without gaps; a rank whose files leave one out has lost tensors.",
        _USE,
    ),
    Code(
        "vllm.file_twice",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} and {other:path} are both part {part:count} of rank {rank:count}.",
        "Keep the one that belongs to this save.",
        "Numbers written with different widths name the same part twice.",
        _USE,
    ),
    Code(
        "vllm.tensors_differ",
        Severity.ERROR,
        Stage.DESCRIBE,
        "Rank {rank:count} lacks {missing:count tensor} that other ranks hold, such as {tensor:name}.",
        "Look for a missing last part of that rank, or for files of another save.",
        "Tensor-parallel ranks hold tensors of the same names.",
        _USE,
    ),
    Code(
        "vllm.shapes_differ",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count tensor} {count:verb differ} in shape or dtype between ranks, such as {tensor:name} on ranks {first:count} "
        "and {second:count}.",
        "Check whether the files come from one save.",
        "vLLM cuts evenly. Parts of unequal size come from two saves, or from a kernel that laid them out anew.",
        _USE,
    ),
)
