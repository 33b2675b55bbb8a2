"""The pages made from the tree of commands: `commands.md` and the manual page `shardscope.1`."""

import inspect
import re
from collections.abc import Iterator

import click

from shardscope.app.cli.command import Helped
from shardscope.app.cli.root import shardscope
from shardscope.engine.model.exits import MEANINGS, precedence
from shardscope.engine.version import __version__

NAME = "shardscope"
ENVIRONMENT = (
    ("NO_COLOR", "Set to anything, it takes colour out of text, unless --color always is given."),
    ("TERM", "dumb or unknown: no colour, and no explorer."),
    (
        "XDG_CONFIG_HOME",
        "Where shardscope/config.toml is looked for: settings of the explorer, and of nothing else.",
    ),
    ("XDG_STATE_HOME", "Where the explorer keeps recent paths, if the settings say `recent = true`."),
    ("HF_HUB_CACHE, HF_HOME", "Where the explorer looks for the Hugging Face cache. Nothing is fetched."),
    (
        "LC_ALL, LC_CTYPE, LANG",
        "Unless they name UTF-8, text keeps to ASCII. Documents are UTF-8 whatever they say.",
    ),
)
"""The variables that change what is printed."""


def tree() -> Iterator[tuple[Helped, click.Context]]:
    """Yield `shardscope` and its commands, and theirs, each with a context of its own."""
    yield from below(shardscope, click.Context(shardscope, info_name=NAME))


def below(command: click.Command, context: click.Context) -> Iterator[tuple[Helped, click.Context]]:
    """Yield a command and what is below it."""
    if not isinstance(command, Helped):
        raise TypeError(command.name)
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is None:
                raise TypeError(name)
            yield from below(inner, click.Context(inner, info_name=name, parent=context))


def options(command: Helped, context: click.Context) -> list[tuple[str, str]]:
    """The options with their help, as `--help` lists them."""
    records = (option.get_help_record(context) for option in command.get_params(context))
    return [record for record in records if record is not None and record[0].startswith("-")]


def usage(command: Helped, context: click.Context) -> str:
    """The usage line without its heading."""
    return " ".join([context.command_path, *command.collect_usage_pieces(context)])


def paragraphs(text: str | None) -> list[str]:
    """Paragraphs of a help text, each on one line."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(text or ""))
    return [" ".join(block.split()) for block in blocks if block.strip()]


def commands() -> str:
    """What `--help` says, for every command."""
    lines = [
        "# Commands",
        "",
        "Data goes to standard output and everything else to standard error. A pipe never asks a question, and one that is",
        "closed early is no error. [Exit codes](exit-codes.md) and [codes](codes.md) are the same for every command.",
        "",
    ]
    for command, context in tree():
        lines += [f"## `{context.command_path}`", "", "```", usage(command, context), "```", ""]
        for paragraph in paragraphs(command.help) + paragraphs(command.notes):
            lines += [paragraph, ""]
        lines += ["| option | |", "|---|---|"]
        lines += [
            f"| `{name.replace('|', chr(92) + '|')}` | {text} |" for name, text in options(command, context)
        ]
        lines += ["", "```console"]
        for line, purpose in command.examples:
            lines += [f"# {purpose}", line]
        lines += ["```", ""]
    return "\n".join(lines)


def roff(text: str) -> str:
    """Escape `text` for a line of a manual page."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return "\\&" + escaped if escaped.startswith(".") else escaped


def entries(pairs: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> Iterator[str]:
    """A tagged paragraph for each pair."""
    for tag, text in pairs:
        yield from (".TP", f".B {roff(tag)}", roff(text))


def manual() -> str:
    """The manual page, in the macros of man(7)."""
    (front, root), *rest = tree()
    lines = [
        f'.TH SHARDSCOPE 1 "" "shardscope {__version__}" "User Commands"',
        ".SH NAME",
        "shardscope \\- say what a model checkpoint is, without executing any of it",
        ".SH SYNOPSIS",
    ]
    for command, context in (front, root), *rest:
        lines += [
            f".B {roff(context.command_path)}",
            roff(" ".join(command.collect_usage_pieces(context))),
            ".br",
        ]
    lines += [".SH DESCRIPTION"]
    for paragraph in paragraphs(front.help) + paragraphs(front.notes):
        lines += [".PP", roff(paragraph)]
    lines += [".SH OPTIONS", *entries(options(front, root)), ".SH COMMANDS"]
    for command, context in rest:
        lines += [f".SS {roff(usage(command, context))}"]
        for paragraph in paragraphs(command.help) + paragraphs(command.notes):
            lines += [".PP", roff(paragraph)]
        common = options(front, root)
        lines += entries([record for record in options(command, context) if record not in common])
    lines += [".SH EXIT STATUS"]
    lines += entries([(str(code.value), meaning) for code, meaning in MEANINGS.items()])
    order = ", ".join(str(code.value) for code in precedence())
    lines += [".PP", roff(f"Where several apply, the first of {order} wins.")]
    lines += [".SH ENVIRONMENT", *entries(ENVIRONMENT), ".SH EXAMPLES"]
    for command, _ in (front, root), *rest:
        lines += entries(command.examples)
    return "\n".join([*lines, ""])
