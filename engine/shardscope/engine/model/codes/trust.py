"""What is opaque in the safe plane, and what would be code if anything ran it."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

TABLE: Final = (
    Code(
        "trust.opaque_pickle",
        Severity.WARNING,
        Stage.CLASSIFY,
        "Opaque: {count:count pickle-backed file}, {size:bytes}, first {first:path}; the names, shapes and "
        "dtypes in them are not examined.",
        "Nothing but decoding reads them, and decoding must be asked for each time; never open them with torch.load to "
        "look.",
        "Pickle can run code when it is loaded. In the safe plane no pickle byte is interpreted. A checksum, a familiar "
        "name, an earlier scan or weights_only=True does not change that.",
        (Blocks.CONVERT, Blocks.LOAD),
    ),
    Code(
        "trust.not_asked",
        Severity.ERROR,
        Stage.DECODE,
        "{file:path} needs decoding, which was not asked for.",
        "Ask for it with --decode: pickles are then read as data, for this run.",
        "A pickle is not read unless a person asks for it, each time.",
        (Blocks.CONVERT, Blocks.LOAD),
    ),
    Code(
        "trust.code_file",
        Severity.INFO,
        Stage.CLASSIFY,
        "The checkpoint holds {count:count file} of code, first {first:path}.",
        "They were listed and not run. Read them before anything that would import them.",
        "Loaders with trust_remote_code, and recovery scripts that producers leave behind, run such files.",
        (),
    ),
)
