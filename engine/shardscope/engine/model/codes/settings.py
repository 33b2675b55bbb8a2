"""The settings of the explorer: what is wrong in the file that a person wrote. No checkpoint is at fault."""

from typing import Final

from shardscope.engine.model.blocker import Code, Severity, Stage

TABLE: Final[tuple[Code, ...]] = (
    Code(
        "settings.unreadable",
        Severity.ERROR,
        Stage.COMMAND,
        "The settings in {file:path} cannot be read: {reason:word}.",
        "Make it a file of text that you may read, or take it away; the explorer goes on with its defaults.",
        "The file of the settings is there, and is no regular file, is larger than 64 KiB, is not UTF-8, or may not be read. None of "
        "it holds. Checkpoints are not concerned.",
    ),
    Code(
        "settings.syntax",
        Severity.ERROR,
        Stage.COMMAND,
        "The settings in {file:path} are no TOML at line {line:count}, column {column:count}: {problem:text}.",
        "Mend that place; the explorer goes on with its defaults.",
        "A file that cannot be read as a whole is not used in part, since half of it may be the half that nobody meant.",
    ),
    Code(
        "settings.unknown",
        Severity.WARNING,
        Stage.COMMAND,
        "Line {line:count} of the settings: there is no setting {name:text}.",
        "Take the line away, or correct the name{near:word}.",
        "A name that this release does not know is passed over. The others hold.",
    ),
    Code(
        "settings.value",
        Severity.ERROR,
        Stage.COMMAND,
        "Line {line:count} of the settings: {name:word} takes {wanted:word}.",
        "Correct the value; the explorer goes on with its default.",
        "A value of another kind, or one that does not exist, is passed over, and that setting keeps its default.",
    ),
    Code(
        "settings.unknown_action",
        Severity.WARNING,
        Stage.COMMAND,
        "Line {line:count} of the settings: no key does {name:text}.",
        "Take the line away, or correct the name{near:word}. `shardscope config show --keys` lists them.",
        "Keys are moved by the stable names of what they do. This release has nothing of that name.",
    ),
    Code(
        "settings.key_conflict",
        Severity.WARNING,
        Stage.COMMAND,
        "Line {line:count} of the settings: {key:text} is the key of {name:text} and of {other:text}.",
        "Give one of them another key; while both have it, only one of them works.",
        "Two things that can be asked for at the same place have the same key.",
    ),
    Code(
        "settings.key_name",
        Severity.ERROR,
        Stage.COMMAND,
        "Line {line:count} of the settings: {key:text} is no key that every terminal sends.",
        "Take a letter, a digit or a sign, ctrl with a letter, one of f1 to f12, or a key such as enter, tab, space or pageup.",
        "Combinations such as ctrl+shift+x or shift+enter do not survive tmux, screen and SSH. What cannot arrive is not bound.",
    ),
)
