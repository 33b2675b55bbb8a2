"""Documents that are read back: what this tool wrote, what it carries with it, and what a person hands it."""

from typing import Final

from shardscope.engine.model.blocker import Code, Severity, Stage


def _error(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(f"document.{code}", Severity.ERROR, Stage.VALIDATE, message, remedy, meaning)


TABLE: Final[tuple[Code, ...]] = (
    _error(
        "folder",
        "{file:path} is a folder, and a document is one file.",
        "Name the documents themselves; `shardscope inspect` is for checkpoints.",
        "Documents are checked one by one against the schema that each of them names.",
    ),
    _error(
        "schema_unnamed",
        "{file:path} does not say which document it is.",
        'Add the key "schema" with one of the names that `shardscope schema` lists.',
        "Every document carries the name and the number of its schema as its first key. Guessing it from the content "
        "could check a document against the wrong promise.",
    ),
    _error(
        "schema_unknown",
        "{file:path} names the schema {found:text}, which this release does not know.",
        "Run `shardscope schema` for the names; a document of a later release needs that release.",
        "The number behind the slash rises when a field goes or changes its meaning, so a document of another number is "
        "not read as if it were the same.",
    ),
    _error(
        "schema_other",
        "{file:path} is a document of {found:word}, and {wanted:word} is needed here.",
        "Give a file whose key `schema` says {wanted:word}.",
        "An option that takes one kind of document takes no other.",
    ),
    _error(
        "invalid",
        "{file:path} breaks its schema {schema:word}: {problem:text}.",
        "Correct the field that is named; `shardscope schema` prints what is allowed.",
        "The schemas are strict: no field beyond those listed, no value of another type, no word outside a closed list.",
    ),
    _error(
        "schema_stale",
        "{file:path} is not the schema that this release writes for {schema:word}.",
        "Run `make docs` in the repository, or install the release again.",
        "The schema beside the data is generated from the same types that read the data. Where they differ, one of the "
        "two was changed alone.",
    ),
)
