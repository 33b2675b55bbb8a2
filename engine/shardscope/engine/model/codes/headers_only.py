"""Formats whose headers are read and whose tensors are listed, and which nothing here converts: GGUF, NumPy, Zarr, Orbax."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

_USE: Final = (Blocks.CONVERT, Blocks.LOAD)
_NOT_SOUND: Final = (Blocks.INSPECT, Blocks.DECODE, *_USE)


def _fault(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.ERROR, Stage.PARSE, message, remedy, meaning, _NOT_SOUND)


TABLE: Final = (
    Code(
        "layout.headers_only",
        Severity.INFO,
        Stage.DESCRIBE,
        "{format:word}: {count:count tensor} listed from headers; nothing here converts or loads the format.",
        "Use a tool of that format to convert it, or convert the checkpoint that it was made from.",
        "Names, types, shapes and places are read by a bounded parser. The values stay where they are: quantised blocks, "
        "compressed chunks and foreign layouts are not rewritten as safetensors.",
        _USE,
    ),
    Code(
        "convert.headers_only",
        Severity.ERROR,
        Stage.ADMIT,
        "{format:word}: headers are read and tensors listed; nothing here converts the format.",
        "Convert it with a tool of that format.",
        "A conversion promises the same values in safetensors. For this format there is no such promise here: see the "
        "page on formats for what is read of it.",
        (Blocks.CONVERT,),
        ExitCode.UNSUPPORTED,
    ),
    _fault(
        "gguf.cut_off",
        "{file:path} ends after {size:bytes}, within its header (at byte {at:count}).",
        "Fetch it again.",
        "Metadata and the descriptions of tensors come before the data. A length in them reaches beyond the end of the file.",
    ),
    _fault(
        "gguf.malformed",
        "{file:path} has a header that cannot be: {reason:word} (at byte {at:count}).",
        "Fetch it again, and do not load it.",
        "Each value of the metadata has a type that says how long it is. After one that is not known nothing can be found.",
    ),
    _fault(
        "gguf.key_twice",
        "{file:path} has the metadata key {key:name} twice.",
        "Write the file again with one value.",
        "Readers differ on which of the two counts, so that two of them could see two models.",
    ),
    _fault(
        "gguf.alignment",
        "{file:path} declares an alignment of {found:word}; a power of two is needed.",
        "Fetch it again, and do not load it.",
        "The data and each tensor begin at multiples of general.alignment. Without it no tensor can be found.",
    ),
    _fault(
        "gguf.name_twice",
        "{file:path} has two tensors called {tensor:name}.",
        "Write the file again.",
        "A loader takes one of the two; which one is chance.",
    ),
    _fault(
        "gguf.shape",
        "{file:path} has a tensor {tensor:name} that cannot be: {reason:word}.",
        "Fetch it again, and do not load it.",
        "GGUF allows up to four dimensions, and sizes that fit in 63 bits. Larger ones overflow in careless loaders.",
    ),
    _fault(
        "gguf.block",
        "{file:path}: {tensor:name} has {found:count} elements along its fastest dimension, no multiple of the "
        "{block:count} that a block of {dtype:word} holds.",
        "Write the file again.",
        "Quantised types store whole blocks along the fastest dimension.",
    ),
    _fault(
        "gguf.misaligned",
        "{file:path}: {tensor:name} begins at {offset:count}, no multiple of the alignment {alignment:count}.",
        "Write the file again.",
        "Every tensor begins at a multiple of general.alignment, counted from the start of the data.",
    ),
    _fault(
        "gguf.overlap",
        "{file:path}: {tensor:name} begins {early:bytes} before {other:name} ends.",
        "Fetch it again, and do not load it.",
        "Tensors do not share bytes. Where they seem to, offsets or types are not true.",
    ),
    Code(
        "gguf.type_unknown",
        Severity.ERROR,
        Stage.PARSE,
        "{file:path}: {count:count tensor} of a type that is not known here, the first {dtype:word}.",
        "Look at it with a newer version of this program or of llama.cpp.",
        "New quantisations bring new type numbers. Such a tensor is listed with the bytes up to the next one.",
        _USE,
    ),
    Code(
        "gguf.gap",
        Severity.WARNING,
        Stage.PARSE,
        "{file:path} has {extra:bytes} between its tensors that belong to none.",
        "Write the file again: llama.cpp refuses it.",
        "Tensors follow one another in the order of their descriptions, each padded to the alignment and no further.",
        (Blocks.LOAD,),
    ),
    Code(
        "gguf.data_cut_off",
        Severity.ERROR,
        Stage.PARSE,
        "{file:path} lacks {missing:bytes}: its header asks for {expected:bytes}, and it has {found:bytes}.",
        "Fetch it again; the end of it is missing.",
        "The header is whole and says what should be there.",
        _USE,
    ),
    Code(
        "gguf.overlong",
        Severity.WARNING,
        Stage.PARSE,
        "{file:path} has {extra:bytes} after its last tensor.",
        "Compare its digest with that of its origin.",
        "Nothing of the format stands there. Loaders do not look at it.",
        (),
    ),
    Code(
        "gguf.name_long",
        Severity.WARNING,
        Stage.PARSE,
        "{file:path}: {count:count name} of tensors {count:verb have} more than {bound:count} bytes.",
        "Write the file again with shorter names: ggml refuses it.",
        "ggml keeps names in a field of fixed size.",
        (Blocks.LOAD,),
    ),
    Code(
        "gguf.not_utf8",
        Severity.WARNING,
        Stage.PARSE,
        "{file:path}: {count:count text} of its header {count:verb are} no UTF-8; shown with escapes.",
        "Write the file again.",
        "Keys, texts and names of a GGUF file are UTF-8.",
        (),
    ),
    Code(
        "gguf.template",
        Severity.INFO,
        Stage.PARSE,
        "{file:path} carries {count:count chat template}: a program in the Jinja language, which is not run here.",
        "Read it before a loader renders it; let it be rendered in a sandboxed environment.",
        "A template is text of the file's author that chat programs run. One that is rendered without a sandbox can call "
        "anything.",
        (),
    ),
    Code(
        "gguf.split",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{pattern:path} says that {declared:count tensor} belong together; its files hold {found:count}.",
        "Fetch all files of the split again, from one place.",
        "The first file of a split says how many tensors all of them hold (split.tensors.count).",
        _USE,
    ),
    Code(
        "numpy.unlisted",
        Severity.INFO,
        Stage.DESCRIBE,
        "{count:count array} beyond the first {bound:count} were not read.",
        "Inspect a folder with fewer files to list them all.",
        "Folders of data sets hold very many arrays, and each costs a file to open.",
        (),
    ),
    Code(
        "numpy.cut_off",
        Severity.ERROR,
        Stage.PARSE,
        "{file:path} lacks {missing:bytes} of the data of {tensor:name}.",
        "Fetch it again.",
        "The header says how many bytes follow.",
        _USE,
    ),
    Code(
        "numpy.overlong",
        Severity.WARNING,
        Stage.PARSE,
        "{file:path} has {extra:bytes} after the array {tensor:name}.",
        "Read it with numpy.load several times on one open file, or save each array in a file of its own.",
        "Several arrays can be written one after the other. Only the first is listed.",
        (),
    ),
    Code(
        "numpy.dtype",
        Severity.INFO,
        Stage.PARSE,
        "{count:count array} of a type that safetensors does not have, the first {dtype:word}.",
        "Save them as plain numbers, where they are weights.",
        "Text, dates, complex and long numbers and records have no place in safetensors. V2 is what NumPy makes of bfloat16, "
        "which it does not know: the type is lost, the bytes are not.",
        (),
    ),
    Code(
        "numpy.member",
        Severity.WARNING,
        Stage.PARSE,
        "{file:path}: {count:count record} {count:verb are} no array, the first {record:name}.",
        "Look at what else was put there.",
        "numpy.savez writes nothing but arrays. What else lies in the archive is not read here.",
        (),
    ),
    Code(
        "zarr.invalid",
        Severity.ERROR,
        Stage.PARSE,
        "{file:path} describes no array: {reason:word}.",
        "Fetch it again; compare it with a library of the format.",
        "Shape, chunks and type of an array are in .zarray (version 2) or zarr.json (version 3).",
        _USE,
    ),
    Code(
        "zarr.chunk_missing",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count chunk} of {arrays:count array} {count:verb are} not there, the first of {tensor:name}; readers fill in "
        "{value:text}.",
        "Compare with the origin, unless the writer leaves out chunks that hold nothing but the fill value.",
        "A chunk that is absent reads as the fill value, without a word. That is how writers store it, and how a lost file looks.",
        (),
    ),
    Code(
        "zarr.chunk_size",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count chunk} {count:verb have} other sizes than uncompressed chunks of their arrays, the first of "
        "{tensor:name}: {found:bytes} instead of {expected:bytes}.",
        "Copy them again.",
        "Without compression every chunk has the same size, also at the far edges.",
        _USE,
    ),
    Code(
        "zarr.foreign",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count file} among the chunks {count:verb have} no place in the grid of the array, the first "
        "{first:path}.",
        "Look at what they are; a chunk beyond the grid may belong to an earlier, larger array.",
        "The names of chunks are their places in the grid that the description declares.",
        (),
    ),
    Code(
        "orbax.chunk_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count chunk} of {arrays:count array} {count:verb are} not there, the first of {tensor:name}, and the save says "
        "that all were written.",
        "Copy the save again, or use the step before it.",
        "With store_array_data_equal_to_fill_value Orbax writes every chunk. One that is absent is lost weights, which a reader "
        "would fill with a constant.",
        _USE,
    ),
    Code(
        "orbax.array_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} names {count:count array} that {count:verb are} not there, the first {tensor:name}.",
        "Copy the save again, or use the step before it.",
        "_METADATA lists the leaves of the tree; each array has a folder of its own.",
        _USE,
    ),
    Code(
        "orbax.shape",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{file:path} gives parts to {count:count array} that cannot be of the arrays as they are described, the first "
        "{tensor:name}.",
        "Take both from the same save.",
        "The tree tells the shape that a process writes at once: as many dimensions as the array has, and none longer.",
        _USE,
    ),
    Code(
        "orbax.uncommitted",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{file:path} has no time of commit: the save may not have been finished.",
        "Use the step before it, or save again.",
        "Orbax records when a save began, and when it was committed.",
        (Blocks.LOAD,),
    ),
)
