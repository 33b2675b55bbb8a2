"""JSON files: configurations, indexes and trackers that do not say what they should."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_ALL: Final = (Blocks.INSPECT, Blocks.CONVERT, Blocks.LOAD)
_FETCH: Final = "Fetch the file again, or restore it from where it was saved."


def _error(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.ERROR, Stage.PARSE, message, remedy, meaning, _ALL)


def _warning(code: str, message: str, remedy: str, meaning: str, *blocks: Blocks) -> Code:
    return Code(code, Severity.WARNING, Stage.PARSE, message, remedy, meaning, blocks)


TABLE: Final[tuple[Code, ...]] = (
    _error(
        "json.syntax",
        "{file:path} is not valid JSON at line {line:count}, column {column:count}: {expected:word}.",
        _FETCH,
        "The text breaks the JSON grammar (RFC 8259) at the place named. Comments, trailing commas, single quotes and "
        "several documents in one file are not JSON, whatever some editors accept.",
    ),
    _error(
        "json.not_utf8",
        "{file:path} is not UTF-8 text: byte {offset:count} belongs to no character.",
        "Save the file as UTF-8, or fetch it again.",
        "JSON is exchanged as UTF-8. A byte that is not UTF-8 means another encoding or damage; guessing which would "
        "change names.",
    ),
    _error(
        "json.encoding",
        "{file:path} is text in {encoding:word}, not UTF-8.",
        "Convert it, for example with iconv -f {encoding:word} -t UTF-8.",
        "Some editors save UTF-16 or UTF-32. Python's json module guesses these from the bytes; most other readers, and "
        "every loader that opens the file as UTF-8 text, refuse them.",
    ),
    _warning(
        "json.bom",
        "{file:path} begins with a byte-order mark.",
        "Save the file as UTF-8 without a byte-order mark.",
        "RFC 8259 forbids writers to add a byte-order mark and lets readers ignore it. It is ignored here; loaders that "
        "open the file as plain UTF-8 text fail on it.",
        Blocks.LOAD,
    ),
    _error(
        "json.not_object",
        "{file:path} holds {found:word}; an object in braces is expected.",
        _FETCH,
        "Every JSON file of a checkpoint is an object at its top level. Another value means that another file stands "
        "in its place.",
    ),
    _error(
        "json.duplicate_key",
        "{file:path} has the key {key:name} twice in one object.",
        "Remove one of the two; which is right cannot be told from the file.",
        "Parsers differ on which value wins, so two readers of this file can see two different checkpoints. Both values "
        "are refused.",
    ),
    _error(
        "json.lone_surrogate",
        "{file:path} has half of a surrogate pair as an escape at line {line:count}, column {column:count}.",
        "Write the character as UTF-8, or as both halves of the pair.",
        "An unpaired surrogate escape is allowed by the grammar but is no character: it cannot be written as UTF-8 "
        "again, and strict parsers refuse it.",
    ),
    _warning(
        "json.nonfinite",
        "{file:path} holds NaN or Infinity ({count:count} in all), which JSON does not have.",
        "Nothing, if only Python reads the file; otherwise write null or a string.",
        "Python's json module writes NaN and Infinity by default, and configurations and training logs carry them. "
        "They are read as what they say; strict readers refuse the file.",
    ),
    _warning(
        "json.integer_range",
        "{file:path} has {count:count integer} beyond 64 bits, read as floating-point numbers.",
        "Nothing, unless the field is a size or a count.",
        "Large placeholders such as a maximum length of 10 to the 30th are common in tokenizer configurations. As a "
        "floating-point number the value loses digits, so it is never used as a size.",
    ),
    _warning(
        "json.number_range",
        "{file:path} has {count:count number} too large for a 64-bit float, read as infinite.",
        "Correct the value where the file comes from.",
        "The grammar allows any number of digits; no reader can hold these. They are never used as a size.",
    ),
)
