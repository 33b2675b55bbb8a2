"""FSDP rank files and what Accelerate saves around them."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_USE = (Blocks.CONVERT, Blocks.LOAD)

_RANKS: Final = (
    Code(
        "fsdp.rank_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{missing:count} of {total:count} rank files of {pattern:path} are absent, first rank {first:count}.",
        "Copy the missing files from the same save: each holds a part that no other file has.",
        "The names, or the ranks that are there, say how many files belong together.",
        _USE,
    ),
    Code(
        "fsdp.rank_extra",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count rank file} of {pattern:path} {count:verb have} a rank beyond the declared world of {total:count}, first {first:path}.",
        "Files of two saves may be mixed: keep those of one.",
        "Ranks are counted from 0 and stay below the size of the world.",
        _USE,
    ),
    Code(
        "fsdp.rank_duplicate",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count rank} of {pattern:path} {count:verb have} more than one file, first rank {first:count}.",
        "Keep one file for each rank.",
        "Two spellings of one rank come from hand work or from two writers.",
        _USE,
    ),
    Code(
        "fsdp.worlds_mixed",
        Severity.ERROR,
        Stage.DESCRIBE,
        "Rank files of {pattern:path} come from worlds of different size: {worlds:word}.",
        "Two saves lie in one folder: move the files of one of them elsewhere.",
        "Saving again with another number of ranks leaves the old files behind.",
        _USE,
    ),
    Code(
        "fsdp.world_disagrees",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} declares a world of {declared:count}, but the files are named for {found:word}.",
        "Copy fsdp_config.json and the rank files from the same save.",
        "The configuration and the names are written together.",
        _USE,
    ),
    Code(
        "fsdp.world_unproven",
        Severity.INFO,
        Stage.DESCRIBE,
        "How many ranks saved {pattern:path} is not declared anywhere readable: rank {last:count} is the highest that is "
        "here.",
        "Compare with the number of processes of the run: a missing last rank leaves no gap.",
        "These names carry the rank and not the size of the world.",
        (),
    ),
    Code(
        "fsdp.flat_pieces",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{pattern:path} is what Accelerate calls a LOCAL_STATE_DICT save: flattened pieces without the shapes they were "
        "cut from.",
        "Load it with the same wrapping and the same number of ranks, and save again as a full or sharded state.",
        "Such files hold original names with one-dimensional pieces. They look like a plain state dict and are none.",
        _USE,
    ),
)

_STATE: Final = (
    Code(
        "accelerate.weights_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{folder:path} is named like an Accelerate state, but no model weights are in it.",
        "Copy the model's files or folder (pytorch_model_fsdp_0, model.safetensors, ...) from the same save.",
        "Random states, optimizer and scheduler do not make a model.",
        _USE,
    ),
    Code(
        "accelerate.optimizer_missing",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{folder:path} has random states but no file or folder of an optimizer.",
        "Expect training to start its optimizer anew, or copy optimizer.bin or optimizer_0 from the same save.",
        "Accelerate writes the optimizer with everything else when it saves a state.",
        (),
    ),
    Code(
        "accelerate.ranks_disagree",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{folder:path} has random states of {states:count rank}, but data files of {data:count rank}.",
        "Check that both come from the same save and that no file was left out.",
        "Every process writes its random state, and in a sharded save every process writes data.",
        (Blocks.LOAD,),
    ),
    Code(
        "accelerate.random_states_gap",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{missing:count} of {total:count} random states are absent in {folder:path}, first random_states_{first:count}.pkl.",
        "Copy them from the same save if the run has to continue exactly.",
        "Every process writes one, numbered from 0.",
        (Blocks.LOAD,),
    ),
    Code(
        "accelerate.folder_empty",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} is named like a part of an Accelerate state and holds no distributed save.",
        "Copy its files from the same save, the .metadata included.",
        "In a sharded save these folders hold .metadata and .distcp files.",
        _USE,
    ),
)

_OFFLOAD: Final = (
    Code(
        "offload.index_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count .dat file} are named like offloaded tensors, but index.json, which holds their dtypes and shapes, is "
        "not beside them.",
        "Copy index.json from the same folder, or make the offload folder again from the original checkpoint.",
        "The files are raw numbers without any header.",
        _USE,
    ),
    Code(
        "offload.index_malformed",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} is not the index of an offload folder: {reason:word}.",
        "Make the offload folder again from the original checkpoint.",
        "The index is an object: tensor name to dtype and shape.",
        _USE,
    ),
    Code(
        "offload.entry_malformed",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} describes {count:count tensor} in a way that cannot be used, first {tensor:name}: {reason:word}.",
        "Make the offload folder again from the original checkpoint.",
        "An entry holds a dtype and a shape.",
        _USE,
    ),
    Code(
        "offload.dtype_unknown",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} names a dtype that this release does not know for {count:count tensor}, first {tensor:name}.",
        "Use a release that knows the dtype, or convert the tensors where they were written.",
        "The size of such a tensor cannot be checked.",
        _USE,
    ),
    Code(
        "offload.file_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} names {count:count tensor} without a file, first {tensor:name}.",
        "Copy the missing .dat files, or make the offload folder again from the original checkpoint.",
        "Each tensor has a file of its name with .dat behind it.",
        _USE,
    ),
    Code(
        "offload.file_size",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count .dat file} have the wrong size, first {first:path}: {found:bytes} where dtype and shape make "
        "{expected:bytes}.",
        "Copy them again; a shorter file was cut off.",
        "The files are raw numbers: size and shape have to agree to the byte.",
        _USE,
    ),
    Code(
        "offload.file_unlisted",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count .dat file} are not in index.json, first {first:path}.",
        "Remove what is left over from another model, or look for the right index.",
        "Offloading another model into the same folder leaves the old files behind.",
        (),
    ),
    Code(
        "offload.elsewhere",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{file:path} refers {count:count tensor} to safetensors files, first {tensor:name}; they are not followed.",
        "Inspect the checkpoint that they come from.",
        "Accelerate can leave tensors in their original file and keep only its path.",
        _USE,
    ),
)

TABLE: Final = (*_RANKS, *_STATE, *_OFFLOAD)
