"""Decoded files of torch.save: what their pickle says, held against their records."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_HARM: Final = (Blocks.CONVERT, Blocks.LOAD)
_REFETCH: Final = "Fetch or save the file again; if it was edited, use the original."


def _error(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.ERROR, Stage.DECODE, message, remedy, meaning, _HARM)


TABLE: Final[tuple[Code, ...]] = (
    _error(
        "torch.storage_missing",
        "{file:path} lacks {count:count storage} that its tensors refer to, first data/{first:text}, or holds them in a form "
        "that cannot be read.",
        _REFETCH,
        "Tensors are views of storages, each a record of the archive. Without its record a tensor has no bytes.",
    ),
    _error(
        "torch.storage_size",
        "{file:path} has {count:count storage} of other sizes than its pickle says, first data/{key:text} with {size:bytes} where "
        "{expected:bytes} are declared.",
        _REFETCH,
        "The number of elements in the pickle and the bytes that are there do not agree; reading on would shift values.",
    ),
    _error(
        "torch.storage_unwritten",
        "{file:path} has {count:count storage} that {count:verb were} reserved and never written, first data/{first:text}: their checksum is 0 "
        "beside those of other records.",
        "Find the file that holds the values; this one was saved under torch.serialization.skip_data.",
        "torch can lay out a file without writing the tensors, for another program to fill in. Their bytes are a hole that reads as "
        "zeros, which nothing but the absent checksum tells from real ones.",
    ),
    _error(
        "torch.stream_count",
        "{file:path} has the storage {key:text} with {found:count element} where {expected:count} are declared.",
        _REFETCH,
        "Before each storage of the older stream stands its number of elements, as the pickle has it. They do not agree.",
    ),
    _error(
        "torch.tensor_range",
        "{file:path} has a tensor that reaches to byte {end:count} of the storage {key:text}, which has {size:bytes}.",
        _REFETCH,
        "Offset, shape and strides of the tensor lead out of its storage.",
    ),
    _error(
        "torch.dtype_unknown",
        "{file:path} has a tensor of the type {dtype:text}, which is not known here.",
        "Save the tensor in another type, or leave it out.",
        "Without the size of an element no byte range can be told.",
    ),
    _error(
        "torch.record_crc",
        "{file:path} has {count:count record} whose bytes do not match their checksum, first that of {record:text}.",
        _REFETCH,
        "torch.save records a CRC-32 for each record of its archive, the structure and every storage. A mismatch is damage to the "
        "values: loaders do not compare them and go on without a word.",
    ),
    Code(
        "torch.records_checked",
        Severity.INFO,
        Stage.DECODE,
        "{count:count record} match their checksum ({size:bytes} read); {unrecorded:count} have none that could be compared.",
        "Nothing to do.",
        "Asked for by --checksums: every byte of the records that tensors are in was read once. Archives of torch record a CRC-32 for "
        "each storage unless told not to; safetensors and raw files record none.",
        (),
    ),
    _error(
        "torch.pickle_unreadable",
        "{file:path} keeps its data.pkl encrypted, in pieces or compressed by method {method:count}, which cannot be read.",
        "Save the file again with torch.save.",
        "torch.save stores its records as they are; deflated ones are read too.",
    ),
    _error(
        "torch.tar_form",
        "{file:path} is a tar of torch before version 0.1.10: recognised, and not read.",
        "Load and save it once with a torch of that time, on a machine that you can throw away.",
        "The oldest form of torch.save is a tar of the members sys_info, pickle, storages and tensors.",
    ),
    _error(
        "torch.not_torch",
        "{file:path} was to be decoded as a file of torch.save, but by its first bytes it is: {found:word}.",
        _REFETCH,
        "Only what torch.save writes is decoded: its zip archive, its older stream, or a bare pickle.",
    ),
    _error(
        "torch.part_range",
        "{file:path} has {size:bytes}; an item is recorded at byte {begin:count} with {length:bytes}.",
        "Fetch or save the checkpoint again; a data file is cut off or of another save.",
        "An item of a distributed checkpoint lies beyond the end of its data file.",
    ),
    _error(
        "torch.stream_cut",
        "{file:path} ends {missing:bytes} too early for its storages.",
        _REFETCH,
        "Behind the pickles of the older stream stand the storages, one after the other to the end of the file.",
    ),
    _error(
        "torch.stream_keys",
        "{file:path} lists {listed:count storage} behind its pickles and refers to {used:count}, or to others.",
        _REFETCH,
        "The older stream lists the keys of its storages in order. Which bytes belong to which tensor cannot be told.",
    ),
    _error(
        "torch.stream_rest",
        "{file:path} has {extra:bytes} behind its last storage.",
        _REFETCH,
        "The older stream ends with its last storage. What follows belongs to nothing that is known.",
    ),
    _error(
        "torch.tensor_lost",
        "{file:path} describes {count:count tensor} whose bytes cannot be read, such as {tensor:name}.",
        "Other tensors of the file are not affected. See what else is said of this file for the reason.",
        "The storage of the tensor is absent, has another size than declared, or ends before the tensor does.",
    ),
    _error(
        "torch.tensor_malformed",
        "{file:path} has {count:count tensor} whose description does not hold together, such as {tensor:name}; not listed.",
        _REFETCH,
        "Type, shape, strides and offset are not numbers of a tensor, or lead out of its storage.",
    ),
    _error(
        "torch.plain_pickle",
        "{file:path} holds {count:count tensor}, such as {tensor:name}, as pickle itself writes them: their bytes are files within "
        "the pickle, and are not read.",
        "Save it with torch.save, or as safetensors, on the machine that made it.",
        "pickle.dump puts each storage into the stream as a small file of its own, which a loader would unpickle in turn.",
    ),
    _error(
        "torch.tensor_pending",
        "{file:path} has {count:count tensor} whose elements are stored before they are {kind:word}, such as {tensor:name}.",
        "Resolve it before saving: resolve_conj() or resolve_neg().",
        "torch conjugates and negates complex tensors by a bit that says so, and saves the elements as they were. Written out as they "
        "are stored, the values would be wrong.",
    ),
    _error(
        "torch.tensor_meta",
        "{file:path} describes {count:count tensor} without data, such as {tensor:name}: they were on the meta device.",
        "Save the model after its weights were loaded, or leave these tensors out.",
        "A meta tensor has a shape and a type and no numbers.",
    ),
    _error(
        "torch.tensor_kind",
        "{file:path} has {count:count tensor} of the kind {kind:word}, such as {tensor:name}, which safetensors cannot hold as it "
        "is.",
        "Make it dense or dequantise it with the library that made it, or leave it out.",
        "Sparse, quantised and nested tensors, and subclasses that wrap others, are made of several parts and a rule. The parts are "
        "not the tensor.",
    ),
    _error(
        "torch.tensor_dtype",
        "{file:path} has {count:count tensor} of the type {dtype:text}, such as {tensor:name}, which safetensors does not have.",
        "Save it as another type (complex128 as two float64 tensors, for one), or leave it out.",
        "The safetensors format has a closed list of element types.",
    ),
    _error(
        "torch.distributed_part",
        "{file:path} holds {count:count part} of distributed tensors, such as {tensor:name}, as one rank saved them.",
        "Inspect the folder that holds the files of all ranks, each named for its rank: model_rank0.pt, model_rank1.pt and so on.",
        "A DTensor or ShardedTensor saved by torch.save is what one rank held. Without the other ranks the tensor is not whole.",
    ),
    _error(
        "torch.name_twice",
        "{file:path} has {count:count tensor} under a name that another has as well, such as {tensor:name}.",
        "Rename the keys in the program that saves them.",
        "Names are the keys on the way to a tensor, joined by dots. Different ways can make the same name; which one is meant cannot "
        "be told.",
    ),
    _error(
        "torch.names_unbounded",
        "{file:path} reaches its tensors on more ways than are followed ({limit:count}).",
        "Save the tensors in one mapping, each once.",
        "Containers that are shared many times over multiply names without end. Each was opened at least once, so that every tensor "
        "is listed under one of its names at least.",
    ),
    Code(
        "torch.key_odd",
        Severity.WARNING,
        Stage.DECODE,
        "{file:path} has {count:count tensor} under keys that are neither text nor numbers, such as {tensor:name}.",
        "Rename them while converting.",
        "Tuples and objects as keys have no agreed form as a name; the form that is listed is made up here.",
        (Blocks.LOAD,),
    ),
    Code(
        "torch.whole_module",
        Severity.WARNING,
        Stage.DECODE,
        "{file:path} holds {count:count whole module}, the outermost of the class {name:text}, not only its weights.",
        "Nothing to do for the weights: they are listed by the names that its state_dict() would have.",
        "torch.save(model) pickles the object with the class that the training script defined. Loading it imports that class and can run "
        "code; its parameters and buffers are plain tensors, and are read without it.",
        (Blocks.LOAD,),
    ),
    Code(
        "torch.shared_views",
        Severity.INFO,
        Stage.DECODE,
        "{file:path} has {count:count tensor} that share bytes with another without being the same, such as {tensor:name} and "
        "{other:name}.",
        "Nothing to do; written out, each has its own copy.",
        "Views of one storage: slices, transposes, a fused tensor beside its parts. Changing one after loading changed the other.",
        (),
    ),
    Code(
        "torch.storage_unused",
        Severity.INFO,
        Stage.DECODE,
        "{file:path} stores at least {size:bytes} in {count:count storage} that no tensor refers to.",
        "Nothing to do; a conversion writes only what tensors refer to.",
        "torch.save writes whole storages: a slice of a large tensor brings all of it along. Values that were meant to be left out can "
        "still be in the file.",
        (),
    ),
    _error(
        "tar.header",
        "{file:path} is a tar that does not hold together at byte {begin:count}: {reason:word}.",
        _REFETCH,
        "Each member of a tar stands behind a header with its name, its size and a checksum of the header itself.",
    ),
    _error(
        "tar.truncated",
        "{file:path} ends {missing:bytes} before its last member does.",
        _REFETCH,
        "A copy or a download was broken off.",
    ),
    _error(
        "nemo.compressed",
        "{file:path} is compressed with gzip: its weights have no place in the file that could be read by itself.",
        "Unpack it (tar -xzf) on a machine of your own and inspect the folder.",
        "Older .nemo archives are compressed as a whole. Tensors are read by their place, which exists only after unpacking.",
    ),
    _error(
        "nemo.inside",
        "{file:path} holds its weights as {kind:word}, in {count:count member}, which is not read inside of an archive.",
        "Unpack it (tar -xf) and inspect the folder.",
        "Only one torch file with all weights is read where it stands in the archive.",
    ),
    _error(
        "nemo.weights_missing",
        "{file:path} holds no model_weights.ckpt.",
        "Look for the archive of the model; this one holds other things, or is of another version.",
        "A .nemo archive is a tar with model_config.yaml and the weights.",
    ),
)
