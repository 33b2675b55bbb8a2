"""safetensors headers: what breaks one, and what deserves a word about one that can be read."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_REFETCH: Final = "Fetch or save the file again; its header cannot be repaired from the file itself."
_WRITER: Final = (
    "Report it to whoever wrote the file; saving it again with a current safetensors release mends it."
)


def _error(code: str, message: str, remedy: str, meaning: str) -> Code:
    blocks = (Blocks.INSPECT, Blocks.CONVERT, Blocks.LOAD)
    return Code(code, Severity.ERROR, Stage.PARSE, message, remedy, meaning, blocks)


def _warning(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.WARNING, Stage.PARSE, message, remedy, meaning)


def _info(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.INFO, Stage.PARSE, message, remedy, meaning)


_FRAME: Final = (
    _error(
        "header.too_short",
        "{file:path} has {size:bytes}; a safetensors file has at least the 8 bytes of its header length.",
        _REFETCH,
        "The file ends before its header does: a download or a save that stopped at its start.",
    ),
    _error(
        "header.length_zero",
        "{file:path} says that its header is 0 bytes long.",
        _REFETCH,
        "The smallest header is an empty JSON object, two bytes. A length of zero usually means that the file's space "
        "was reserved but never written.",
    ),
    _error(
        "header.past_eof",
        "{file:path} says that its header is {length:bytes} long, which is {missing:bytes} more than the file has.",
        "Fetch the file again if it was cut off; otherwise it is not a safetensors file.",
        "The first eight bytes give the length of the header. A length beyond the end of the file means a file cut off "
        "within its header, or another format whose first bytes only look like a length.",
    ),
    _error(
        "header.beyond_reference",
        "{file:path} has a header of {length:bytes}; loaders refuse more than {ceiling:bytes}.",
        "Save it in more shards.",
        "The reference library opens no header above 100,000,000 bytes. It was read here because the limit was raised "
        "for this run.",
    ),
    _error(
        "header.truncated",
        "{file:path} is cut off: its tensor data is short by {missing:bytes}, {expected:bytes} declared and {found:bytes} "
        "present.",
        "Fetch the file again; a download that resumes needs only the missing end.",
        "The header is whole and lists its tensors, but the data after it is shorter than the header says. Tensors "
        "near the end of the file are damaged.",
    ),
    _error(
        "header.overlong",
        "{file:path} has {extra:bytes} after the end of its last tensor.",
        "Find out what was appended; a file that was joined or written over needs to be saved again.",
        "The format lets no byte lie outside a tensor, so that nothing can hide in a file. Loaders refuse the file.",
    ),
)

_TEXT: Final = (
    _error(
        "header.bad_start",
        "{file:path} has a header that does not begin with an opening brace.",
        _REFETCH,
        "The header is a JSON object. Other bytes in its place mean another format or damage.",
    ),
    _error(
        "header.not_object",
        "{file:path} has a header that is {found:word}, not an object.",
        _REFETCH,
        "The header maps names to tensors, so it is a JSON object and nothing else.",
    ),
    _error(
        "header.not_utf8",
        "{file:path} has a header that is not UTF-8: byte {offset:count} of it belongs to no character.",
        _REFETCH,
        "Names that are not UTF-8 have no agreed spelling. Loaders refuse the file.",
    ),
    _error(
        "header.syntax",
        "{file:path} has a header that is not valid JSON at character {offset:count}: {expected:word}.",
        _REFETCH,
        "The header breaks the JSON grammar (RFC 8259) at the place named, counted from the header's start.",
    ),
    _error(
        "header.padding",
        "{file:path} has {count:bytes} after its header's JSON that are neither spaces nor text.",
        _WRITER,
        "A header may be padded with spaces to align the data. NUL or other bytes make it invalid JSON.",
    ),
    _error(
        "header.nonfinite",
        "{file:path} has NaN or Infinity in its header, which JSON does not have.",
        _WRITER,
        "No field of a header can hold such a value; strict parsers refuse it.",
    ),
    _error(
        "header.number_range",
        "{file:path} has a number in its header that no 64-bit float can hold.",
        _WRITER,
        "The reference library refuses such numbers even in fields that it ignores.",
    ),
    _error(
        "header.lone_surrogate",
        "{file:path} has half of a surrogate pair as an escape in its header, at character {offset:count}.",
        _WRITER,
        "An unpaired surrogate escape is no character and has no UTF-8 form. Loaders refuse the file.",
    ),
    _warning(
        "header.leading_space",
        "{file:path} has white space before its header's opening brace.",
        _WRITER,
        "The format's text asks for the brace first; the reference library tolerates white space before it, so the file "
        "opens there and may not elsewhere.",
    ),
    _warning(
        "header.padding_space",
        "{file:path} pads its header with tabs or line breaks.",
        _WRITER,
        "The format's text names the space as the only padding; the reference library tolerates any JSON white space.",
    ),
)

_ENTRY: Final = (
    _error(
        "header.name_duplicate",
        "{file:path} lists the tensor {tensor:name} twice.",
        _WRITER,
        "The format forbids it. Lenient parsers keep the last entry and do not even check the other, so two readers "
        "can see two different tensors.",
    ),
    _error(
        "header.field_duplicate",
        "{file:path} gives {field:text} of the tensor {tensor:name} twice.",
        _WRITER,
        "Which of the two is meant cannot be told from the file. Loaders refuse it.",
    ),
    _error(
        "header.metadata_duplicate",
        "{file:path} has the key {key:name} twice in its metadata.",
        _WRITER,
        "The format forbids it; lenient parsers keep the last value without a word.",
    ),
    _error(
        "header.metadata_twice",
        "{file:path} has its metadata twice.",
        _WRITER,
        "Which of the two is meant cannot be told from the file. Loaders refuse it.",
    ),
    _error(
        "header.entry_type",
        "{file:path} describes the tensor {tensor:name} by {found:word}, not by an object.",
        _WRITER,
        "Each tensor is described by an object with dtype, shape and data_offsets.",
    ),
    _error(
        "header.field_missing",
        "{file:path} gives no {field:word} for the tensor {tensor:name}.",
        _WRITER,
        "dtype, shape and data_offsets are all required, spelled exactly so.",
    ),
    _error(
        "header.dtype_type",
        "{file:path} gives {found:word} as the dtype of {tensor:name}; a string is expected.",
        _WRITER,
        "A dtype is one of a closed list of names.",
    ),
    _error(
        "header.shape_type",
        "{file:path} gives {found:word} in the shape of {tensor:name}; whole numbers from 0 to 2**64 - 1 are expected.",
        _WRITER,
        "A shape is a list of non-negative integers that fit 64 bits; fractions, exponents and negative zero do not count "
        "as integers.",
    ),
    _error(
        "header.offsets_type",
        "{file:path} gives {found:word} in the data_offsets of {tensor:name}; two whole numbers from 0 to 2**64 - 1 are "
        "expected.",
        _WRITER,
        "data_offsets is a list of exactly two non-negative integers that fit 64 bits.",
    ),
    _error(
        "header.metadata_not_object",
        "{file:path} has metadata that is {found:word}, not an object.",
        _WRITER,
        "Metadata is one flat object whose values are strings.",
    ),
    _error(
        "header.metadata_type",
        "{file:path} has {found:word} in its metadata where a string is expected.",
        _WRITER,
        "Metadata is one flat object whose values are strings.",
    ),
    _warning(
        "header.metadata_null",
        "{file:path} gives null as its metadata.",
        _WRITER,
        "The format wants an object of strings; the reference library reads null as absent.",
    ),
    _warning(
        "header.field_extra",
        "{file:path} has {count:count field} beside dtype, shape and data_offsets.",
        "Nothing; they are ignored, as loaders ignore them.",
        "The format's schema allows no other field. A producer that adds some may expect a reader that understands them.",
    ),
)

_GEOMETRY: Final = (
    _error(
        "header.reversed",
        "{file:path} places {tensor:name} from byte {begin:count} back to byte {end:count}.",
        _WRITER,
        "A tensor's first byte cannot lie after its last.",
    ),
    _error(
        "header.gap",
        "{file:path} leaves {missing:bytes} without a tensor before {tensor:name}.",
        _WRITER,
        "Tensors must tile the data without a hole, so that nothing can hide between them. Loaders refuse the file.",
    ),
    _error(
        "header.overlap",
        "{file:path} begins {tensor:name} {early:bytes} before the end of {other:name}.",
        "Save the file again; tied weights are stored once, under one name.",
        "Two tensors share bytes. The format forbids it even for tied weights. Loaders refuse the file.",
    ),
    _error(
        "header.shape_overflow",
        "{file:path} gives {tensor:name} a shape whose size does not fit 64 bits: {shape:word}.",
        _WRITER,
        "The product of the dimensions and the bits of an element overflows. Loaders refuse the file.",
    ),
    _error(
        "header.subbyte_unaligned",
        "{file:path} gives {tensor:name} {bits:count} bits ({dtype:word} {shape:word}), which do not end on a whole byte.",
        _WRITER,
        "Elements of less than a byte are packed, and a tensor has to end on a byte boundary. The shape counts "
        "elements, not bytes.",
    ),
    _error(
        "header.size_mismatch",
        "{file:path} gives {tensor:name} {found:bytes}, but {dtype:word} {shape:word} needs {expected:bytes}.",
        _WRITER,
        "The byte range and the shape contradict each other, so neither can be trusted.",
    ),
    Code(
        "header.dtype_unknown",
        Severity.ERROR,
        Stage.PARSE,
        "{file:path} has {count:count tensor} of a dtype that this release does not know, first {dtype:word}.",
        "Use a release that knows the dtype, or convert the tensors where they were written.",
        "The tensors are listed with their bytes, but their elements cannot be counted and their size cannot be checked. "
        "A dtype name that is long or holds unusual characters is not repeated in the message.",
        (Blocks.CONVERT, Blocks.LOAD),
    ),
    _info(
        "header.unaligned",
        "{file:path} begins its data at byte {offset:count}, which is not a multiple of 8.",
        "Nothing; the file is valid. Readers that map files into memory copy its tensors first.",
        "Writers pad the header so that the data starts on an 8-byte boundary. It is advice, not a rule.",
    ),
    _info(
        "header.rank_large",
        "{file:path} has {count:count tensor} of more than 16 dimensions, at most {rank:count}.",
        "Nothing, unless a reader refuses them.",
        "The format sets no bound on the rank. Some libraries stop at 16 dimensions, array libraries at 64.",
    ),
)

_NAMES: Final = (
    _info(
        "header.metadata_large",
        "{file:path} carries {characters:count} characters of metadata in {keys:count key}.",
        "Nothing, unless the metadata was not meant to be shared.",
        "Metadata is free text. Much of it means sharding records, training settings or something stored out of place.",
    ),
    _warning(
        "header.metadata_control",
        "{file:path} has control or invisible characters in its metadata.",
        "Do not print the metadata raw.",
        "Control characters can change what a terminal shows. They are made visible here.",
    ),
    _warning(
        "header.name_empty",
        "{file:path} has a tensor with an empty name.",
        "Rename it where the file is written.",
        "The format allows it; most programs cannot address it.",
    ),
    _warning(
        "header.name_long",
        "{file:path} has {count:count tensor name} of more than {bound:count} characters.",
        "Nothing, unless a program cuts names off.",
        "Names that long are shortened in the middle wherever they are shown; two of them can then look the same.",
    ),
    _warning(
        "header.name_control",
        "{file:path} has {count:count tensor name} with control characters.",
        "Do not print the names raw.",
        "Escape sequences, line breaks and other control characters can change what a terminal shows or fake a line of "
        "a report. They are made visible here.",
    ),
    _warning(
        "header.name_invisible",
        "{file:path} has {count:count tensor name} with characters that are invisible or change the direction of text.",
        "Compare such names by their bytes, not by eye.",
        "Zero-width, bidirectional, private-use and unassigned characters let two different names look the same.",
    ),
    _warning(
        "header.name_confusable",
        "{file:path} has {count:count tensor name} that {count:verb are} easily taken for another.",
        "Compare such names by their bytes, not by eye.",
        "The names differ only in case, white space or the composition of their accents, or mix alphabets whose letters "
        "look alike.",
    ),
    _info(
        "header.name_structure",
        "{file:path} has {count:count tensor name} that {count:verb are} not plain dotted paths.",
        "Nothing here; quote them in scripts.",
        "Names with empty parts, path steps, markup, quotes, shell characters, unusual digits or very many levels trip "
        "programs that split, sort, format or print names without care.",
    ),
)

TABLE: Final[tuple[Code, ...]] = (*_FRAME, *_TEXT, *_ENTRY, *_GEOMETRY, *_NAMES)
