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
        "{file:path} has the storage {key:text} with {size:count} where {expected:count} are declared.",
        _REFETCH,
        "The number of elements in the pickle and the bytes that are there do not agree; reading on would shift values.",
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
        "{file:path} has a record, {record:text}, whose bytes do not match their checksum.",
        _REFETCH,
        "torch.save records a CRC-32 for each record. A mismatch is damage to the file, which loaders do not look for.",
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
)
