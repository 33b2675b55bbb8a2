"""Configurations: fields that cannot be what they say, what they reach for, and what they should not hold."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage


def _code(severity: Severity, code: str, message: str, remedy: str, meaning: str, *blocks: Blocks) -> Code:
    return Code(code, severity, Stage.PARSE, message, remedy, meaning, blocks)


TABLE: Final[tuple[Code, ...]] = (
    _code(
        Severity.WARNING,
        "config.field_type",
        "{file:path} has {found:word} as {field:name}, where {expected:word} belongs.",
        "Correct the field where the file comes from; it is not used here.",
        "Loaders compute shapes from this field or choose a class by it. With another type they fail, or build another "
        "model. The value itself is never quoted.",
    ),
    _code(
        Severity.WARNING,
        "config.field_value",
        "In {file:path}, {field:name} cannot be what it says: {reason:word}.",
        "Correct the field where the file comes from; it is not used here.",
        "The field has the right type and a value that no model can have, alone or beside the fields it must fit. "
        "The value itself is never quoted, and nothing here loops over a declared count.",
    ),
    _code(
        Severity.WARNING,
        "config.dtype_unknown",
        "{file:path} names an element type in {field:name} that torch does not have.",
        "Correct the field; the tensors' own types stand in their headers.",
        "The declared type is what loaders cast to. The types of the stored tensors are read from the headers and do "
        "not depend on it.",
    ),
    _code(
        Severity.WARNING,
        "config.case_twins",
        "{file:path} has {count:count group} of keys that differ only in case, such as {field:name}.",
        "Keep the spelling that the model's class reads and remove the others.",
        "Loaders read one exact spelling and ignore the others without a word, so a person reading the file may take the "
        "wrong value for the one in force.",
    ),
    _code(
        Severity.INFO,
        "config.code_reference",
        "{file:path} names Python code to import, in {count:count place}: {fields:name}.",
        "Read that code before you let a loader run it; nothing here imports it.",
        "Keys such as auto_map make loaders fetch and import Python code, beside the checkpoint or of another "
        "repository, when they are told to trust it. Only the keys are named here: nothing is imported or fetched.",
    ),
    _code(
        Severity.INFO,
        "config.path_reference",
        "{file:path} points outside itself in {count:count place}, by {kind:word}; the first is {field:name}.",
        "Nothing here follows it. A loader may, so check where it leads before you load.",
        "Absolute paths, paths through a parent folder and URLs in a configuration name files of the machine that wrote "
        "it, or of the network. They are reported, not opened, and their text is not repeated.",
    ),
    _code(
        Severity.WARNING,
        "config.secret",
        "{file:path} holds what looks like a secret or a private place ({kind:word}) {count:count time}, first at "
        "{field:name}.",
        "If it is real, revoke it, and remove it before you share the file. Here it is never repeated.",
        "Training scripts write tokens, home folders, addresses and host names into configurations and metadata, where "
        "they travel with the checkpoint. The kind and the place are told, never the value.",
    ),
    _code(
        Severity.WARNING,
        "adapter.base_revision",
        "{file:path} {state:word}, so the exact weights that the adapter belongs to are unknown.",
        "Find out the commit of the base model and set `revision` to its 40 digits, or keep the base beside the adapter.",
        "An adapter changes the weights of one base model. PEFT records a name, and a branch or tag at best; both can move "
        "to other weights. Only a full commit pins them.",
        Blocks.LOAD,
    ),
)
