"""Decoded distributed checkpoints: metadata held against data files, and chunks against the tensors that they make up."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_USE: Final = (Blocks.CONVERT, Blocks.LOAD)
_REFETCH: Final = "Copy the folder again from the same save, .metadata and data files together."


def _code(
    severity: Severity, code: str, message: str, remedy: str, meaning: str, blocks: tuple[Blocks, ...]
) -> Code:
    return Code(code, severity, Stage.DECODE, message, remedy, meaning, blocks)


def _error(code: str, message: str, remedy: str, meaning: str) -> Code:
    return _code(Severity.ERROR, code, message, remedy, meaning, _USE)


def _warning(code: str, message: str, remedy: str, meaning: str) -> Code:
    return _code(Severity.WARNING, code, message, remedy, meaning, ())


_METADATA: Final = (
    _error(
        "dcp.not_metadata",
        "{file:path} is a pickle of something else than the metadata of a distributed checkpoint.",
        _REFETCH,
        "The metadata is one object of the class Metadata of torch.distributed.checkpoint.",
    ),
    _warning(
        "dcp.metadata_version",
        "{file:path} declares version {version:text} of the metadata; {known:word} is known here.",
        "Compare names, shapes and a few values with the run before you rely on them.",
        "The fields that were read are those of the known version.",
    ),
    _code(
        Severity.WARNING,
        "dcp.ranks_united",
        "{folder:path} is put together from the metadata of {count:count rank}.",
        "Do not load it with tools that read one file of metadata: they fill the rows of other ranks with uninitialised "
        "memory.",
        "A save without collectives leaves one metadata file for each rank. Here all of them were read, and what they list "
        "was proven to make up whole tensors.",
        (Blocks.LOAD,),
    ),
    _error(
        "dcp.ranks_disagree",
        "The metadata of single ranks disagree about {count:count tensor}, first {tensor:name}: {reason:word}.",
        "Files of different saves may be mixed: keep those of one.",
        "Each rank's file repeats dtype and shape of the whole tensor beside the chunks that the rank wrote.",
    ),
    _warning(
        "dcp.names_disagree",
        "{file:path} gives {count:count key} an original place that does not spell the key, first {tensor:name}.",
        "Keys are listed as they are recorded; check how the state was named before you rely on parts of a key.",
        "The planner records for each flattened key the path that it had in the nested state.",
    ),
    _warning(
        "dcp.names_absent",
        "{file:path} records the place of {count:count key} that it stores nothing for, first {tensor:name}.",
        "Look for them in the run's code: they were part of the state and were not written.",
        "The planner's record covers the whole state, the rest of the metadata what was written.",
    ),
    _error(
        "dcp.storage_unrecorded",
        "{file:path} records no place for {count:count chunk}, first of {tensor:name}.",
        _REFETCH,
        "storage_data has the file and the bytes of every chunk. Without an entry a chunk is nowhere.",
    ),
    _warning(
        "dcp.storage_stray",
        "{file:path} records the place of {count:count chunk} that no tensor has, first of {tensor:name}.",
        "Check whether the metadata was edited: the bytes are in the data files and belong to nothing.",
        "storage_data and the lists of chunks are written together and name the same chunks.",
    ),
    _error(
        "dcp.path_unsafe",
        "{file:path} places data outside its own folder, in {count:count file}, first {first:text}: not followed.",
        "Do not use this checkpoint before you know who wrote it; a save names plain files beside its metadata.",
        "A relative path with separators in it leads a reader to files that are no part of the checkpoint.",
    ),
    _error(
        "dcp.file_missing",
        "{file:path} refers to {count:count data file} that {count:verb are} not here, first {first:path}: {tensors:count tensor} {tensors:verb lack} "
        "bytes, first {tensor:name}.",
        "Copy the missing files from the same save. Nothing else holds these bytes.",
        "Each chunk is stored once, in the file of the rank that wrote it.",
    ),
    _warning(
        "dcp.stale_file",
        "{folder:path} holds {count:count data file} that its metadata does not name, first {first:path}: left over, and not "
        "read.",
        "Remove them once you know that no other metadata needs them.",
        "Saving into a folder again leaves the files of ranks that the new run does not have. Only files that the metadata "
        "names belong to the checkpoint.",
    ),
)

_ITEMS: Final = (
    _error(
        "dcp.item_range",
        "{file:path} has {size:bytes}, and {count:count item} of it {count:verb reach} beyond that, first {tensor:name} at byte {end:count}.",
        "Copy the file again: it is cut off, or of another save.",
        "The metadata has the first byte and the length of every stored item.",
    ),
    _error(
        "dcp.items_overlap",
        "{file:path} has {count:count item} that begin before the one before them ends, first {tensor:name}.",
        _REFETCH,
        "A writer appends items one after the other. Items that share bytes come from edited metadata or from another save.",
    ),
    _error(
        "dcp.items_unreadable",
        "{file:path} has {count:count item} that cannot be read as what the writer stores, first {tensor:name}.",
        "Copy the file again from the same save.",
        "Each item is a file of torch.save of its own, or all of them together are one safetensors file.",
    ),
    _error(
        "dcp.item_odd",
        "{file:path} has an item that holds {found:word} where its metadata records a tensor.",
        "Copy the file again from the same save.",
        "A chunk of a tensor is stored as one plain tensor.",
    ),
    _error(
        "dcp.item_disagrees",
        "{file:path} holds {count:count item} that {count:verb differ} from what the metadata records, first {tensor:name}: "
        "{found:word} where {expected:word} is recorded.",
        "Files of different saves may be mixed: keep those of one.",
        "Each item repeats dtype and shape of its chunk.",
    ),
    _error(
        "dcp.transform_unknown",
        "{count:count item} went through a transformation that is not known here, first {tensor:name}: {transform:text}.",
        "Save again without it, with the extension's own code on a machine of your own.",
        "The writer's extensions can rewrite each item. zstd compression is the one that torch has.",
    ),
    _error(
        "dcp.zstd_missing",
        "{count:count item} {count:verb are} compressed with zstd, first {tensor:name}, and no decompressor is installed.",
        "Install it with: pip install 'shardscope[zstd]' (Python 3.14 has one of its own).",
        "Where a tensor's bytes lie inside a compressed item is known only once it is decompressed.",
    ),
    _error(
        "dcp.frame_damaged",
        "{file:path} has an item that is no whole zstd frame ({reason:word}).",
        "Copy the file again from the same save.",
        "A compressed item is one zstd frame from its first byte to its last.",
    ),
    _error(
        "dcp.frame_size",
        "{file:path} has a compressed item that grows beyond {limit:bytes}, what its tensor can need.",
        "Do not use this file: it is no item that a writer made.",
        "A few bytes of a frame can stand for any number of bytes. A tensor's item is little more than its elements.",
    ),
    _warning(
        "dcp.object_damaged",
        "{file:path} has {count:count stored object} that {count:verb are} no whole file of torch.save, first {tensor:name}.",
        "Copy the file again from the same save if the run has to continue exactly.",
        "Objects hold numbers, texts and states of the training; the tensors are stored apart from them.",
    ),
    _code(
        Severity.INFO,
        "dcp.objects_unread",
        "{file:path} stores {count:count object} beside the tensors; {read:count} of them were decoded.",
        "Their names are known from the metadata; nothing in them is needed to read the tensors.",
        "Numbers, texts and random states of the training are stored one by one as files of torch.save.",
        (),
    ),
)

_GEOMETRY: Final = (
    _error(
        "dcp.tensor_size",
        "{file:path} declares {count:count tensor} larger than any machine's memory, first {tensor:name}: {shape:word}.",
        "Do not use this metadata: no writer makes it.",
        "Shapes with more than 2**63 bytes are refused before anything is computed from them.",
    ),
    _error(
        "dcp.chunk_malformed",
        "{file:path} has chunks of {count:count tensor} with other dimensions than the tensor, or with negative numbers, "
        "first {tensor:name}.",
        _REFETCH,
        "A chunk has one offset and one size for each dimension of its tensor.",
    ),
    _error(
        "dcp.chunk_range",
        "{file:path} has chunks of {count:count tensor} that {count:verb reach} beyond the tensor, first {tensor:name}: to {reach:word} "
        "in {shape:word}.",
        "Files of different saves may be mixed: keep those of one.",
        "Chunks are boxes inside the tensor. One that ends outside belongs to a tensor of another shape.",
    ),
    _error(
        "dcp.dtype_unknown",
        "{file:path} has {count:count tensor} of a type that is not known here, first {tensor:name}: {dtype:text}.",
        "Save the tensor in another type, or leave it out.",
        "Without the size of an element no byte range can be told.",
    ),
)

TABLE: Final = (*_METADATA, *_ITEMS, *_GEOMETRY)
