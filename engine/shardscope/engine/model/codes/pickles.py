"""Pickles, read as data: streams that do not hold together, and what in them deserves a word."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_BLOCKS = (Blocks.DECODE, Blocks.CONVERT)
_NEW_COPY = "Get the file again; nothing of this pickle is used."


def _broken(code: str, message: str, meaning: str, remedy: str = _NEW_COPY) -> Code:
    return Code(f"pickle.{code}", Severity.ERROR, Stage.DECODE, message, remedy, meaning, _BLOCKS)


def _odd(code: str, message: str, meaning: str, remedy: str) -> Code:
    return Code(f"pickle.{code}", Severity.WARNING, Stage.DECODE, message, remedy, meaning)


TABLE: Final = (
    _broken(
        "truncated",
        "The pickle in {file:path} ends at byte {position:count} in the middle of its opcodes.",
        "A pickle ends with the opcode STOP. This one has no more bytes where the next opcode or its argument should be.",
    ),
    _broken(
        "opcode",
        "The pickle in {file:path} has the unknown opcode {opcode:word} at byte {position:count}.",
        "Every byte of a pickle is an opcode or its argument. This one is none of protocols 0 to 5.",
    ),
    _broken(
        "protocol",
        "The pickle in {file:path} says at byte {position:count} that its protocol is {found:count}; there are 0 to 5.",
        "The opcode PROTO names the version of the format. No Python writes this one.",
    ),
    _broken(
        "frame_length",
        "A frame at byte {position:count} of the pickle in {file:path} says that it has {length:count byte}, and only "
        "{left:count} are left.",
        "From protocol 4 on opcodes come in frames that name their length. This one reaches past the end.",
    ),
    _broken(
        "length",
        "A length at byte {position:count} of the pickle in {file:path} is {length:count}.",
        "Texts, bytes and integers name their length before them, and none is negative.",
    ),
    _broken(
        "stack",
        "An opcode at byte {position:count} of the pickle in {file:path} finds too little on the stack.",
        "Opcodes take what they work on from a stack, or from above a mark on it. Nothing, too few objects or an odd number of "
        "keys and values lie there.",
    ),
    _broken(
        "memo_unset",
        "An opcode at byte {position:count} of the pickle in {file:path} asks for an object that was never kept.",
        "Pickles keep objects by number to use them again. Nothing has this number.",
    ),
    _broken(
        "memo_place",
        "The number of a kept object at byte {position:count} of the pickle in {file:path} is none.",
        "Protocol 0 writes the number under which an object is kept as decimal digits on a line.",
    ),
    _broken(
        "target",
        "An opcode at byte {position:count} of the pickle in {file:path} works on an object that it cannot work on.",
        "What is appended to is a list, what gets keys is a mapping, what is called is a name or another call's result, and "
        "arguments are a tuple. Here something else lies on the stack.",
    ),
    _broken(
        "text",
        "A text in the pickle in {file:path} is not UTF-8: byte {position:count} of it cannot be read.",
        "Pickles write text in UTF-8. These bytes are none.",
    ),
    _broken(
        "text_form",
        "A line at byte {position:count} of the pickle in {file:path} is no number or text as Python writes it.",
        "Protocol 0 writes arguments as lines of text. Readers differ on other spellings than Python's own, so none is guessed.",
    ),
    _broken(
        "name",
        "A name at byte {position:count} of the pickle in {file:path} does not consist of two texts.",
        "A pickle refers to code by a module and a name in it. Here one of them is no text.",
    ),
    _broken(
        "buffer",
        "The pickle in {file:path} wants a buffer at byte {position:count} that is not in it.",
        "Protocol 5 can leave large bytes out of the pickle for another channel. A file has no other channel.",
    ),
    _broken(
        "extension",
        "The pickle in {file:path} uses a code of the extension registry at byte {position:count}.",
        "Such a code stands for a name that only the Python that wrote it knew.",
    ),
    _broken(
        "key",
        "A mapping or a set in the pickle in {file:path} has a key of a kind that no key can have: {kind:word}.",
        "Lists, dicts and sets cannot be keys, alone or in tuples: Python would refuse to load this.",
    ),
    _broken(
        "metadata_field",
        "{field:word} of {tensor:name} in {file:path} is not as PyTorch writes it.",
        "The metadata of a distributed checkpoint says of each tensor its shape, its chunks and where they are stored. A field is "
        "missing, of another type, negative or too large. Chunks that are left out would look like holes, so all of it is refused.",
    ),
    Code(
        "pickle.persistent_id",
        Severity.ERROR,
        Stage.DECODE,
        "The pickle in {file:path} refers to {count:count object} outside of it by ids that name no storage.",
        "Find out what wrote the file; the objects are left out.",
        "torch.save keeps the bytes of tensors outside of the pickle, under ids that name the type, the key, the device and the "
        "length of a storage. These ids say something else.",
        _BLOCKS,
    ),
    _odd(
        "storage_conflict",
        "The storage {key:name} of {file:path} is described twice, each time otherwise; the first counts.",
        "Tensors that share a storage describe it in the same words. PyTorch takes the first description.",
        "Do not trust the tensors of this storage.",
    ),
    _odd(
        "storage_key",
        "A storage of {file:path} has the key {key:name}, which torch does not write.",
        "Keys of storages are numbers, and name a record of the archive. Another key can find no record, and is never made a path.",
        "Ask where the file comes from.",
    ),
    _odd(
        "tensor_overlap",
        "Tensors of {file:path} use elements of their storage more than once, for example of {key:name}.",
        "An expanded or overlapping view has more elements than its storage. It is legal, and a copy of it is larger than the file.",
        "Expect a converted copy to be larger.",
    ),
    _odd(
        "frame",
        "The frames of the pickle in {file:path} are not as a pickler makes them (byte {position:count}).",
        "Frames are nested, end within an opcode or hold almost nothing. Opcodes mean the same without them, so they are read.",
        "Nothing needs to be done; ask where the file comes from.",
    ),
    _odd(
        "protocol_again",
        "The pickle in {file:path} names its protocol again at byte {position:count}.",
        "Only the first opcode of a pickle names its protocol. Loaders take this, picklers do not write it.",
        "Nothing needs to be done; ask where the file comes from.",
    ),
    _odd(
        "trailing",
        "The pickle in {file:path} is followed by {count:count more byte}.",
        "A loader stops where the pickle ends and does not look at what follows. Neither does this reader.",
        "Ask where the file comes from; no pickler writes anything there.",
    ),
    _odd(
        "nested",
        "The pickle in {file:path} holds another one as bytes, by {reference:name}; that one was not read.",
        "Tensors that were pickled without torch.save carry a whole file of torch.save each. A loader would read it in turn.",
        "Save the tensors again with torch.save.",
    ),
    _odd(
        "stack_left",
        "The pickle in {file:path} leaves {count:count object} beside its value.",
        "A pickle ends with one object on its stack. Loaders drop the others, picklers do not leave any.",
        "Nothing needs to be done; ask where the file comes from.",
    ),
    _odd(
        "surrogate",
        "A text in the pickle in {file:path} has half of a character pair; it is shown as an escape.",
        "Python can hold lone surrogates in text, and no encoding can. They are replaced by backslash escapes.",
        "Rename what has such a name where the checkpoint is written.",
    ),
    _odd(
        "python2_bytes",
        "A string of Python 2 in the pickle in {file:path} is not UTF-8; it is kept as bytes.",
        "Python 2 did not tell text from bytes. Such a string is text where it is UTF-8.",
        "Save the file again with a current Python if names are missing.",
    ),
    _odd(
        "duplicate_key",
        "Mappings in the pickle in {file:path} repeat {count:count key}; the last value of each counts.",
        "In Python the last value of a key replaces the ones before. Whoever wrote both meant one of them.",
        "Check which value is meant.",
    ),
    _odd(
        "foreign_call",
        "A loader would call {reference:name} of the pickle in {file:path} {count:count time}; it was not called.",
        "The name is outside of the closed table of understood ones. Nothing of it runs here: what it would make stays an opaque "
        "node, and everything else is read as before.",
        "Do not load this file with torch.load(weights_only=False) unless you trust whoever wrote it.",
    ),
    _odd(
        "foreign_calls_more",
        "Not listed: {count:count more foreign name} that a loader of {file:path} would call.",
        "Foreign calls are listed up to a bound; all of them are among the references of the pickle.",
        "See the list of references.",
    ),
    Code(
        "pickle.foreign_name",
        Severity.INFO,
        Stage.DECODE,
        "The pickle in {file:path} refers to {count:count name} outside of the table, for example {reference:name}.",
        "See the list of references.",
        "A loader would import the module of each. Here a name is only listed, and what it stands for stays opaque.",
    ),
    Code(
        "pickle.arguments",
        Severity.ERROR,
        Stage.DECODE,
        "{reference:name} is called {count:count time} in {file:path} with other arguments than it takes.",
        "Find out what wrote the file; what the call would make is left out.",
        "The name is understood, and its arguments or its state are not of the number, the types or the range that it is written "
        "with. The object stays opaque.",
        _BLOCKS,
    ),
)
