"""PyTorch distributed checkpoints (DCP): their files, and the fragments of those that are written as safetensors."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_USE = (Blocks.CONVERT, Blocks.LOAD)
_READ = (Blocks.DECODE, *_USE)

_FILES: Final = (
    Code(
        "dcp.metadata_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{folder:path} holds {count:count .distcp file} but no .metadata, which says what is in them.",
        "Copy .metadata from the same save (names that begin with a dot are left out by `*`), or save again.",
        "The writer creates .metadata last, so a save that ended early has none. Without it nothing tells which tensor "
        "lies where.",
        _READ,
    ),
    Code(
        "dcp.save_interrupted",
        Severity.ERROR,
        Stage.DESCRIBE,
        "The save in {folder:path} did not finish: {found:path} was never renamed.",
        "Use an earlier step. A renamed temporary file is no proof that the data files beside it are whole.",
        "The writer puts its metadata into a temporary file and renames it once everything else is written.",
        _READ,
    ),
    Code(
        "dcp.resave_interrupted",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{folder:path} holds {found:path} beside finished metadata: a later save into the same folder did not finish.",
        "Use another step: data files of the finished save may be overwritten already.",
        "Saving again into a folder overwrites data files under the same names before the metadata is replaced.",
        _USE,
    ),
    Code(
        "dcp.data_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{folder:path} has the metadata of a distributed save but no .distcp file.",
        "Copy the data files (`__RANK_NUMBER.distcp`) from the same save.",
        "Metadata only says where tensors lie; their bytes are in the .distcp files.",
        _READ,
    ),
    Code(
        "dcp.rank_gap",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{folder:path} has no .distcp file of {missing:count rank}, first rank {first:count}, although rank {last:count} "
        "wrote one.",
        "Look for the files in the folder that the save was copied from.",
        "Each rank writes its own files. One that had nothing to write may have none, so only .metadata can say that a "
        "file is missing.",
        _USE,
    ),
    Code(
        "dcp.set_unproven",
        Severity.INFO,
        Stage.DESCRIBE,
        "Whether the {count:count .distcp file} in {folder:path} are all of this save, and of no other, is written only in "
        "opaque metadata.",
        "Compare the ranks with the run's own records. A file that was never copied and one left over from a larger run "
        "look the same from here.",
        "Names show the ranks that are there. A missing last rank leaves no gap, and a save of fewer ranks into an old "
        "folder leaves files of the old one behind.",
        (),
    ),
    Code(
        "dcp.rank_metadata",
        Severity.WARNING,
        Stage.DESCRIBE,
        "The metadata in {folder:path} is kept rank by rank in {count:count file}: only all of them together are the "
        "checkpoint.",
        "Do not convert it with tools that read one .metadata: they take that of rank 0 and fill the rows of other ranks "
        "with uninitialised memory.",
        "A save without collectives (`use_collectives=False`) leaves one metadata file for each rank, which lists only "
        "what that rank wrote.",
        _USE,
    ),
    Code(
        "dcp.rank_unpaired",
        Severity.ERROR,
        Stage.DESCRIBE,
        "In {folder:path} {count:count rank} of those seen lack one half: first, rank {first:count} has no {lacks:word}.",
        "Copy the missing files from the same save.",
        "In a save without collectives every rank writes a metadata file and its data.",
        _USE,
    ),
    Code(
        "dcp.metadata_mixed",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{folder:path} holds a shared .metadata and {count:count metadata file} of single ranks.",
        "Two saves lie on top of each other: find out which one you mean from the run's records.",
        "One save writes either a shared file or one for each rank, never both.",
        _USE,
    ),
    Code(
        "dcp.name_unknown",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count .distcp file} in {folder:path} carry no rank in their name, first {first:path}.",
        "Give renamed files their old names back: the metadata refers to them by name.",
        "Data files are named `__RANK_NUMBER.distcp`, at times with a word in front.",
        _USE,
    ),
    Code(
        "dcp.payload_compressed",
        Severity.INFO,
        Stage.DESCRIBE,
        "The data files in {folder:path} begin with zstd frames, such as {first:path}.",
        "Reading them takes a zstd decompressor beside everything else.",
        "The writer can compress each stored item (extension `stream.zstd`).",
        (),
    ),
    Code(
        "dcp.payload_safetensors",
        Severity.WARNING,
        Stage.DESCRIBE,
        "The data files in {folder:path} are safetensors under the name .distcp, such as {first:path}.",
        "Do not rely on torch to load them: its own reader fails on this option of its writer.",
        "`FileSystemWriter(serialization_format=SAFETENSORS)` writes them. Their headers are listed; what they make up "
        "together is in .metadata.",
        (Blocks.LOAD,),
    ),
)

_SHARDING: Final = (
    Code(
        "dcp.sharding_malformed",
        Severity.ERROR,
        Stage.PARSE,
        "DCP_SHARDING_INFO of {file:path} is no usable JSON object ({reason:word}).",
        "Copy the file again from the same save.",
        "It is the only record of where the file's fragments lie in the whole tensors.",
        _USE,
    ),
    Code(
        "dcp.sharding_absent",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count file} of this save lack DCP_SHARDING_INFO, first {first:path}.",
        "Copy them again from the same save; tools that rewrite headers drop it.",
        "Without offsets nobody can tell a fragment from a whole tensor, or where it belongs.",
        _USE,
    ),
    Code(
        "dcp.sharding_entry",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path}: DCP_SHARDING_INFO is unusable for {count:count tensor}, first {tensor:name}: {reason:word}.",
        "Copy the file again from the same save.",
        "Offsets are whole numbers from 0 up, one for each axis.",
        _USE,
    ),
    Code(
        "dcp.sharding_unlisted",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} holds {count:count tensor} that DCP_SHARDING_INFO does not name, first {tensor:name}.",
        "Copy the file again from the same save.",
        "A fragment without offsets has no place.",
        _USE,
    ),
    Code(
        "dcp.sharding_orphan",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{file:path}: DCP_SHARDING_INFO names {count:count tensor} that the header lacks, first {tensor:name}.",
        "Check whether tensors were removed from the file on purpose.",
        "The writer names exactly the tensors of the file.",
        _USE,
    ),
    Code(
        "dcp.version_unknown",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count file} carry a DCP_VERSION other than {known:word}, first {first:path}.",
        "Check the offsets below against the run's records before you use them.",
        "This release knows one version of the sharding information.",
        _USE,
    ),
    Code(
        "dcp.dtype_mixed",
        Severity.ERROR,
        Stage.DESCRIBE,
        "Fragments of {count:count tensor} {count:verb differ} in dtype, first {tensor:name}: {dtypes:word}.",
        "Copy the files again from one save: these come from different ones.",
        "Consolidation tools copy the raw bytes of either dtype one after the other, which gives wrong numbers without a "
        "word.",
        _USE,
    ),
    Code(
        "dcp.rank_mixed",
        Severity.ERROR,
        Stage.DESCRIBE,
        "Fragments of {count:count tensor} {count:verb differ} in their number of axes, first {tensor:name}.",
        "Copy the files again from one save: these come from different ones.",
        "Pieces of one tensor have as many axes as the tensor.",
        _USE,
    ),
    Code(
        "dcp.hole",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count tensor} {count:verb have} a hole that no fragment fills. First {tensor:name}: {missing:count} of "
        "{total:count element} absent, at {where:word}.",
        "Copy the missing shards from the same save. Tools that consolidate without looking leave zeros there.",
        "The fragments' offsets and shapes are compared exactly with the whole tensor.",
        _USE,
    ),
    Code(
        "dcp.overlap",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count tensor} {count:verb have} elements in more than one fragment. First {tensor:name}: {repeated:count element}, in "
        "{first:path} and {second:path}.",
        "Files of two saves may be mixed: keep those of one.",
        "The writer stores each element once. Where two fragments differ, tools let the later file win.",
        _USE,
    ),
    Code(
        "dcp.extent_unproven",
        Severity.WARNING,
        Stage.DESCRIBE,
        "The full size of {count:count tensor} is not recorded; it is taken from the furthest fragment, first "
        "{tensor:name}. {short:count} of them end in a shorter piece, as an even cut does at its end.",
        "Check that shard {last:count} was the last one of the run, or compare the shapes with the model's code.",
        "Headers hold offsets and no global shape, so a last shard that is missing leaves no trace: the tensors only look "
        "smaller.",
        (Blocks.CONVERT,),
    ),
    Code(
        "dcp.extent_contradicted",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count tensor} {count:verb reach} further than declared. First {tensor:name}: to {found:word}, where {source:path} "
        "declares {declared:word}.",
        "Files of different saves may be mixed: keep those of one.",
        "A fragment cannot end beyond its tensor.",
        _USE,
    ),
    Code(
        "dcp.extent_disagrees",
        Severity.ERROR,
        Stage.DESCRIBE,
        "Fragments of {count:count tensor} declare different global shapes, first {tensor:name}: {shapes:word}.",
        "Files of different saves may be mixed: keep those of one.",
        "Every fragment repeats the shape of the whole tensor, so that these have to be equal.",
        _USE,
    ),
    Code(
        "dcp.shard_gap",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{missing:count} of {total:count} numbered files are absent in {folder:path}, first {first:path}.",
        "Look for them in the folder that the save was copied from.",
        "Each rank writes one file for each output file that it has pieces of. Whether something is missing is decided "
        "by the fragments.",
        (),
    ),
    Code(
        "dcp.shard_duplicate",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count shard number} {count:verb stand} in more than one file name, first {first:path}.",
        "Remove the copies or move them elsewhere.",
        "Two spellings of one number come from hand work or from two writers.",
        _USE,
    ),
    Code(
        "dcp.consolidated_beside",
        Severity.INFO,
        Stage.DECODE,
        "{count:count tensor} {count:verb stand} here in fragments and, beside them, in consolidated files; the fragments are listed.",
        "Nothing to do; compare the two where it matters which one is right.",
        "The fragments are what the ranks saved. The consolidated files were made from them afterwards, by code that has lost scalars "
        "and holes without a word.",
        (),
    ),
    Code(
        "dcp.index_beside",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{file:path} names one file for each tensor, although tensors are spread over several files here.",
        "Do not load this folder through the index: it would read a fragment as the whole tensor.",
        "The writer leaves no index beside fragments. This one belongs to another save, or to the consolidated files.",
        (Blocks.LOAD,),
    ),
)

TABLE: Final = (*_FILES, *_SHARDING)
