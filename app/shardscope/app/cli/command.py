"""What every command shares: short and full help with examples, and the options that hold everywhere."""

# ruff: noqa: ARG002 - click calls these methods with all of their arguments

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import click

from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import MEANINGS, ExitCode

Examples = tuple[tuple[str, str], ...]
"""Command lines, and what each is for."""


class Helped(click.Command):
    """A command whose `--help` ends with notes and examples; `-h` leaves them out. It takes the common options too."""

    def __init__(
        self,
        *args: Any,
        examples: Examples = (),
        notes: str = "",
        exits: Sequence[ExitCode] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        """For `--help` and the pages that are made from it."""
        self.notes = notes
        """Paragraphs that stand after the options."""
        self.exits = exits
        """The exit codes that the command is made for."""
        self.params += _common_options()
        for param in self.params:
            if isinstance(param.type, click.Path):
                # What cannot be read is no wrong command line: the engine says it, and why.
                param.type.readable = False

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return `--help`; its partner `-h` is one of the common options."""
        if self._help_option is None:
            self._help_option = _HelpOption(
                ["--help", "_full_help"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_help,
            )
        return self._help_option

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help text; `-h` leaves it at the first paragraph."""
        text = inspect.cleandoc(self.help or "")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text.partition("\n\n")[0] if _is_short(ctx) else text)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write notes and examples, for `--help` only."""
        if _is_short(ctx):
            return
        if self.notes:
            with formatter.section("Notes"):
                formatter.write_text(inspect.cleandoc(self.notes))
        if self.exits:
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(int(code)), MEANINGS[code]) for code in self.exits])
        if self.examples:
            with formatter.section("Examples"):
                for line, purpose in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")
                    with formatter.indentation():
                        formatter.write_text(purpose)


class _HelpOption(click.Option):
    """`--help`, shown together with the hidden `-h`."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return "-h, --help", "Show help; --help adds notes and examples."


def _is_short(ctx: click.Context) -> bool:
    return bool(ctx.meta.get("shardscope.short_help"))


def _show_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta["shardscope.short_help"] = "-h" in param.opts
        ctx.ensure_object(Session).out.write_text(f"{ctx.get_help()}\n")
        ctx.exit()


def _set_color(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None and not ctx.resilient_parsing:
        ctx.ensure_object(Session).color = value


def _set_quiet(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.ensure_object(Session).quiet = True


def _set_verbose(ctx: click.Context, _param: click.Parameter, value: int) -> None:
    if value and not ctx.resilient_parsing:
        ctx.ensure_object(Session).verbose += value


def _common_options() -> list[click.Parameter]:
    """Return the options that every command takes. They set the `Session`, before or after the command's name."""
    return [
        click.Option(
            ["--color"],
            type=click.Choice(["auto", "always", "never"]),
            expose_value=False,
            callback=_set_color,
            help="Colour in text. auto: on a terminal, unless NO_COLOR is set or TERM is dumb.",
        ),
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=_set_quiet,
            help="Say nothing beside the data but errors.",
        ),
        click.Option(
            ["-v", "--verbose"],
            count=True,
            expose_value=False,
            callback=_set_verbose,
            help="Leave nothing out of a report.",
        ),
        click.Option(
            ["-h", "_short_help"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            hidden=True,
            callback=_show_help,
        ),
    ]


def command(name: str, **attributes: Any) -> Callable[[Callable[..., Any]], Helped]:
    """Declare a command with help, examples and the options of every command."""
    return click.command(name, cls=Helped, **attributes)
