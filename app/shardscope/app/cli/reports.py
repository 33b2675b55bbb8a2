"""`shardscope report`: what a person can send to a stranger about a checkpoint, and what the stranger does with it."""

# ruff: noqa: ARG002 - click calls these methods with all of their arguments

import click

from shardscope.app.cli.command import Helped

COMMANDS = ("make", "show", "diff")
"""In the order of help."""
_VALUED = ("--color",)
"""Options of every command that take a value."""


class Reports(Helped, click.Group):
    """A group whose default command is `make`: whatever is not the name of a command is a path to report about."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported only now."""
        match cmd_name:
            case "make":
                from shardscope.app.cli.report_make import make as command
            case "show":
                from shardscope.app.cli.report_show import show as command
            case "diff":
                from shardscope.app.cli.report_diff import diff as command
            case _:
                return None
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `make` before arguments that name no command."""
        if "--diff" in args[: args.index("--") if "--" in args else len(args)]:
            raise click.UsageError("Two bundles are compared by: shardscope report diff ONE OTHER", ctx)
        if args and not {"-h", "--help"} & set(args[:1]) and self._first_word(args) not in COMMANDS:
            args = ["make", *args]
        return super().parse_args(ctx, args)

    def _first_word(self, args: list[str]) -> str | None:
        words = iter(args)
        for word in words:
            if word in _VALUED:
                next(words, None)
            elif not word.startswith("-") or word in ("-", "--"):
                return word
        return None


@click.group(
    "report",
    cls=Reports,
    short_help="Make a report that can be sent to a stranger.",
    subcommand_metavar="PATH | COMMAND [ARGUMENTS]",
    options_metavar="[OPTIONS]",
    examples=(
        ("shardscope report ./ckpt -o report.zip", "A bundle about a checkpoint."),
        ("shardscope report ./ckpt --preview", "What would be in it, without writing anything."),
        ("shardscope report show report.zip", "What somebody sent."),
        ("shardscope report diff before.zip after.zip", "Two bundles side by side."),
    ),
    notes="""A folder that has the name of a command is reached as ./NAME. docs/reporting.md says what is in a report, what never
    is, and how that is held.""",
)
def report() -> None:
    """Make a sanitised report about a checkpoint, show one, or compare two.

    Given a PATH, `report` makes one (`shardscope report make --help` has its options).
    """
