"""Zip containers and the archives that torch.save writes in them, by their directory alone."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_ALL: Final = (Blocks.INSPECT, Blocks.DECODE, Blocks.CONVERT, Blocks.LOAD)
_USE: Final = (Blocks.DECODE, Blocks.CONVERT, Blocks.LOAD)
_REFETCH: Final = "Fetch or save the file again."
_ORIGIN: Final = (
    "Find out where the file comes from before using it; saving it again with torch.save mends it."
)


def _fault(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.ERROR, Stage.PARSE, message, remedy, meaning, _ALL)


def _error(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.ERROR, Stage.PARSE, message, remedy, meaning, _USE)


def _warning(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.WARNING, Stage.PARSE, message, remedy, meaning)


def _info(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.INFO, Stage.PARSE, message, remedy, meaning)


_END: Final = (
    _fault(
        "zip.no_end_record",
        "{file:path} has no zip end record in its last {looked:bytes}.",
        "Fetch the file again; a zip that was cut off cannot be read.",
        "The directory of a zip stands at its end, and a record of 22 bytes after it says where. Without that record "
        "the file was cut off, or something long was appended.",
    ),
    _fault(
        "zip.multiple_end_records",
        "{file:path} has {count:count} places that could be its zip end record.",
        _ORIGIN,
        "Programs differ in which record they take, so two of them can see two different archives in one file.",
    ),
    _fault(
        "zip.end_record_mismatch",
        "{file:path} says in its end record that it has {declared:count record}; its directory says otherwise.",
        _REFETCH,
        "The count in the end record and the directory contradict each other. Lenient programs believe one of the two.",
    ),
    _fault(
        "zip.zip64_bad",
        "{file:path} has zip64 records that cannot be right: {reason:word}.",
        _REFETCH,
        "Archives above 4 GiB, and all that torch.save writes, carry a second set of records with 64-bit sizes. Here "
        "they are missing, broken or at odds with the first set.",
    ),
    _fault(
        "zip.multi_disk",
        "{file:path} is a part of a zip that spans several files.",
        "Join the parts first.",
        "The zip format can split an archive over several disks. No checkpoint is written so.",
    ),
    _fault(
        "zip.prefix",
        "{file:path} has {extra:bytes} before its zip archive.",
        _ORIGIN,
        "Something else stands before the archive, so the file can be two formats at once. torch looks for a zip at the "
        "first byte.",
    ),
    _warning(
        "zip.trailing",
        "{file:path} has {extra:bytes} after its zip archive.",
        _ORIGIN,
        "A zip ends with its end record. Programs that search backwards read the archive nevertheless.",
    ),
    _warning(
        "zip.comment",
        "{file:path} has an archive comment of {length:bytes}.",
        "Nothing; do not print the comment raw.",
        "The format allows a comment. torch.save never writes one.",
    ),
)

_DIRECTORY: Final = (
    _fault(
        "zip.directory_bad",
        "{file:path} has a zip directory that cannot be read: {reason:word}.",
        _REFETCH,
        "The central directory lists every entry with its place and size. Here it is out of range or malformed.",
    ),
    _fault(
        "zip.duplicate",
        "{file:path} has two entries named {entry:name}.",
        _ORIGIN,
        "Programs differ in which of the two they read.",
    ),
    _fault(
        "zip.path_unsafe",
        "{file:path} has an entry whose name leaves the archive: {entry:name}.",
        _ORIGIN,
        "The name is absolute, climbs with '..', names a drive, or holds a backslash or NUL. Unpacking it could write "
        "outside the folder meant; shardscope unpacks nothing.",
    ),
    _fault(
        "zip.size_lie",
        "{file:path} says that {entry:name} has {size:bytes} in {stored:bytes}, which cannot be true.",
        _REFETCH,
        "The sizes of the entry exceed the file, differ though nothing is compressed, or ask for more than deflate can "
        "reach (1,032 to 1).",
    ),
    _fault(
        "zip.entry_range",
        "{file:path} places {entry:name} outside the part of the file that holds entries.",
        _REFETCH,
        "An entry has to lie before the directory.",
    ),
    _fault(
        "zip.overlap",
        "{file:path} lets {entry:name} run over {other:name}.",
        _ORIGIN,
        "Two entries share bytes, or an entry shares bytes with the directory. It is how small archives are made to "
        "unpack to enormous ones.",
    ),
    _fault(
        "zip.local_mismatch",
        "{file:path} describes {entry:name} differently in its directory and before its data: {reason:word}.",
        _ORIGIN,
        "Each entry is described twice. Programs differ in which description they believe.",
    ),
    _error(
        "zip.encrypted",
        "{file:path} has {count:count encrypted record}.",
        "Decrypt the archive first.",
        "Encrypted entries cannot be read, and torch.save writes none.",
    ),
    _error(
        "zip.method",
        "{file:path} has {count:count record} in a compression method that is not supported, first method {method:count}.",
        "Save the file again with torch.save.",
        "torch.save stores entries as they are; deflate is read as well. No loader reads other methods.",
    ),
    _warning(
        "zip.compressed",
        "{file:path} has {count:count deflated record}.",
        "Nothing for reading; saving the file again with torch.save makes its tensors readable in place.",
        "torch.save stores entries as they are, so that tensors can be read by position. A deflated entry has to be "
        "inflated from its start.",
    ),
    _warning(
        "zip.name_odd",
        "{file:path} has {count:count record} with odd names.",
        "Do not print the names raw.",
        "The names are empty, very long, not UTF-8, not marked as UTF-8, not in their shortest form, hold control "
        "characters, name a folder that has data, or have another name in an extra field.",
    ),
    _warning(
        "zip.symlink",
        "{file:path} has {count:count record} marked as a symbolic link.",
        "Nothing; nothing is unpacked here. Do not unpack the file with a program that follows them.",
        "torch.save writes no links.",
    ),
    _warning(
        "zip.zip64_unneeded",
        "{file:path} has {count:count record} with 64-bit sizes that are not asked for.",
        "Nothing; they are ignored, as the format says.",
        "Some programs take the 64-bit sizes nevertheless and see another archive.",
    ),
    _warning(
        "zip.unclaimed",
        "{file:path} has {extra:bytes} between its entries that belong to none.",
        _ORIGIN,
        "torch.save writes entries back to back, its padding included. Bytes between them can hold something that no "
        "listing shows.",
    ),
)

_TORCH: Final = (
    _fault(
        "torch.no_data_pkl",
        "{file:path} is a zip of {entries:count record} without the data.pkl of torch.save.",
        "Check that the file is what its name says; an ordinary zip or .npz is not a checkpoint.",
        "torch.save writes every entry below one folder, with the structure of the saved object in data.pkl.",
    ),
    _fault(
        "torch.multiple_roots",
        "{file:path} has {count:count top folder}; torch.save writes one.",
        _ORIGIN,
        "Which folder holds the object cannot be told, and torch refuses the file.",
    ),
    _fault(
        "torch.empty_pickle",
        "{file:path} has a data.pkl of 0 bytes.",
        _REFETCH,
        "The entry that holds the structure of the saved object is empty, so there is nothing to read.",
    ),
    _error(
        "torch.version",
        "{file:path} has a container version that torch does not read: {found:text}.",
        "Save the file again with a current torch.",
        "torch reads the container versions 1 to 10, given by a number in the entry `version`. The directory can be "
        "listed whatever it says.",
    ),
    _error(
        "torch.byteorder",
        "{file:path} has a byte order that is neither little nor big.",
        _REFETCH,
        "The entry `byteorder` says how tensors are stored. Any other word makes their values unknown.",
    ),
    _info(
        "torch.big_endian",
        "{file:path} stores its tensors in big-endian order.",
        "Nothing; values are swapped when they are read.",
        "The file was saved on a machine of the other byte order.",
    ),
    _warning(
        "torch.torchscript",
        "{file:path} is a TorchScript archive: it holds a program beside the tensors.",
        "Export the weights with torch.save of a state dict; the program is never run here.",
        "torch.jit.save writes code and constants into the same container. Loading such a file runs its program.",
    ),
)

TABLE: Final[tuple[Code, ...]] = (*_END, *_DIRECTORY, *_TORCH)
