"""`shardscope`: the explorer by default, and the commands beside it."""

# ruff: noqa: ARG002 - click calls these methods with all of their arguments

import os
from typing import Any

import click
from click.shell_completion import CompletionItem

from shardscope.app.cli import version
from shardscope.app.cli.command import Helped
from shardscope.app.cli.session import Session

COMMANDS = (
    "explore",
    "inspect",
    "watch",
    "tensors",
    "peek",
    "scan",
    "model",
    "layout",
    "pickles",
    "plan",
    "convert",
    "reshard",
    "fix",
    "verify",
    "diff",
    "clean",
    "report",
    "explain",
    "map",
    "matrix",
    "glossary",
    "schema",
    "validate",
    "bench",
    "config",
    "serve",
    "completion",
)
"""In the order of help."""


class Front(Helped, click.Group):
    """A group whose default command is `explore`: whatever is not the name of a command is a path to look at."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported only now."""
        match cmd_name:
            case "explore":
                from shardscope.app.cli.explore import explore as command
            case "inspect":
                from shardscope.app.cli.inspect import inspect as command
            case "watch":
                from shardscope.app.cli.watch import watch as command
            case "clean":
                from shardscope.app.cli.clean import clean as command
            case "report":
                from shardscope.app.cli.reports import report as command
            case "explain":
                from shardscope.app.cli.explain import explain as command
            case "map":
                from shardscope.app.cli.map import map_ as command
            case "matrix":
                from shardscope.app.cli.matrix import matrix as command
            case "glossary":
                from shardscope.app.cli.glossary import glossary as command
            case "diff":
                from shardscope.app.cli.diff import diff as command
            case "validate":
                from shardscope.app.cli.validate import validate as command
            case "schema":
                from shardscope.app.cli.schema import schema as command
            case "completion":
                from shardscope.app.cli.completion import completion as command
            case _:
                return (
                    self._about_tensors(cmd_name)
                    or self._writing(cmd_name)
                    or self._about_the_explorer(cmd_name)
                )
        return command

    def _about_tensors(self, name: str) -> click.Command | None:
        """Return a command that lists what is inside, imported only now."""
        match name:
            case "tensors":
                from shardscope.app.cli.tensors import tensors as command
            case "scan":
                from shardscope.app.cli.scan import scan as command
            case "peek":
                from shardscope.app.cli.peek import peek as command
            case "model":
                from shardscope.app.cli.model import model as command
            case "layout":
                from shardscope.app.cli.file_layout import layout as command
            case "pickles":
                from shardscope.app.cli.pickles import pickles as command
            case _:
                return None
        return command

    def _writing(self, name: str) -> click.Command | None:
        """Return a command about outputs, imported only now."""
        match name:
            case "plan":
                from shardscope.app.cli.plan import plan as command
            case "convert":
                from shardscope.app.cli.convert import convert as command
            case "reshard":
                from shardscope.app.cli.reshard import reshard as command
            case "fix":
                from shardscope.app.cli.fix import fix as command
            case "verify":
                from shardscope.app.cli.verify import verify as command
            case _:
                return None
        return command

    def _about_the_explorer(self, name: str) -> click.Command | None:
        """Return a command about the explorer, imported only now."""
        match name:
            case "serve":
                from shardscope.app.cli.serve import serve as command
            case "bench":
                from shardscope.app.cli.bench import bench as command
            case "config":
                from shardscope.app.cli.config import config as command
            case _:
                return None
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `explore` before arguments that name no command."""
        word = self._first_word(args)
        if word is not None and word not in COMMANDS:
            if not ctx.resilient_parsing:
                self._refuse_misspelled(ctx, word)
            args = ["explore", *args]
        elif word is None and not ctx.resilient_parsing and not {"-h", "--help", "--version"} & set(args):
            args = ["explore", *args]
        return super().parse_args(ctx, args)

    def _first_word(self, args: list[str]) -> str | None:
        """Return the first argument that is neither an option nor the value of one."""
        words = iter(args)
        for word in words:
            if word in ("--color", "--limit", "--theme", "--glyphs"):
                next(words, None)
            elif word == "--":
                return next(words, None)
            elif not word.startswith("-") or word == "-":
                return word
        return None

    def _refuse_misspelled(self, ctx: click.Context, word: str) -> None:
        """Raise `NoSuchCommand` for a bare word that is close to a command and is no path here."""
        if not os.path.lexists(word):
            error = click.exceptions.NoSuchCommand(
                word, f"There is no command and no path {word!r}.", possibilities=COMMANDS, ctx=ctx
            )
            if error.possibilities:
                raise error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Offer the commands, the options and the paths."""
        found = super().shell_complete(ctx, incomplete)
        return found if incomplete.startswith("-") else [*found, CompletionItem(incomplete, type="file")]


def _show_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        version.show(ctx.ensure_object(Session))
        ctx.exit()


@click.group(
    cls=Front,
    subcommand_metavar="[PATH] | COMMAND [ARGUMENTS]",
    options_metavar="[OPTIONS]",
    context_settings={"max_content_width": 100},
    examples=(
        ("shardscope ./ckpt", "Look around in a checkpoint, on the whole terminal."),
        ("shardscope inspect ./ckpt", "The same answer as text."),
        ("shardscope inspect ./ckpt --json", "The same answer as one JSON document."),
        ("shardscope tensors ./ckpt --filter '*.q_proj.*'", "Some of its tensors."),
        ("shardscope explain header.gap", "What a code means."),
    ),
    notes="""A folder that has the name of a command is reached as ./NAME. Inspection opens every file for reading only, follows
    no link, uses no network and executes nothing.""",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and the documents it writes.",
)
def shardscope() -> None:
    """Say what a model checkpoint is, without executing any of it.

    Given a PATH, or nothing for the current folder, shardscope opens the explorer (`shardscope explore --help` has its
    options). The commands print the same facts as text or JSON.
    """
