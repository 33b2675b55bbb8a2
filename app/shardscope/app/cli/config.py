"""`shardscope config`: where the settings of the explorer are, what is in force, and what is wrong with them."""

# ruff: noqa: ARG002 - click calls these methods with all of their arguments

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import Helped, command
from shardscope.app.cli.paragraphs import wrapped
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.model.settings import SettingInForce, SettingsDocument

COMMANDS = ("path", "show", "validate")
"""In the order of help."""


class Config(Helped, click.Group):
    """The commands about settings."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command."""
        return {"path": path, "show": show, "validate": validate}.get(cmd_name)


@click.group(
    "config",
    cls=Config,
    short_help="Say where the explorer's settings are, and what is in force.",
    subcommand_metavar="COMMAND [ARGUMENTS]",
    options_metavar="[OPTIONS]",
    examples=(
        ("shardscope config path", "Where the file is, or would be."),
        ("shardscope config show", "What is in force, and where each value comes from."),
        ("shardscope config validate", "What is wrong with the file, line by line."),
    ),
    notes="""The file is $XDG_CONFIG_HOME/shardscope/config.toml, or ~/.config/shardscope/config.toml. It concerns the explorer alone:
    every other command gives the same answer with any settings. Options of the command line win. docs/explorer.md lists
    the settings. shardscope writes no settings, and state only where `recent = true` asks for it.""",
)
def config() -> None:
    """Say where the settings of the explorer are, what is in force, and what is wrong with them."""


@command(
    "path",
    short_help="Print where the file of the settings is, or would be.",
    examples=(('"$EDITOR" "$(shardscope config path)"', "Edit the settings."),),
)
@click.pass_obj
def path(session: Session) -> None:
    """Print the path of the file, whether it exists or not."""
    from shardscope.app.settings.places import config_path

    session.out.write(os.fsencode(config_path(os.environ)) + b"\n")


@command(
    "show",
    short_help="Print what is in force, and where it comes from.",
    examples=(("shardscope config show --keys", "With the names and keys of everything that keys do."),),
    exits=(ExitCode.OK,),
)
@click.option("--keys", is_flag=True, help="List every action with its keys, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def show(session: Session, keys: bool, as_json: bool) -> None:
    """Print each setting with its value, and whether that comes from the file, the environment or the defaults."""
    found = _found(keys=keys)
    _say(session, found, _shown(found), as_json=as_json)


@command(
    "validate",
    short_help="Say what is wrong with the file.",
    examples=(("shardscope config validate --json", "The same for a program."),),
    exits=(ExitCode.OK, ExitCode.BLOCKED),
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def validate(session: Session, as_json: bool) -> int:
    """Say what is wrong with the file, each with its line. Exit code 1 says that something in it does not hold.

    A name that is not known is a warning: the file may be for a newer release.
    """
    from shardscope.engine.inspecting.inspection import exit_code
    from shardscope.engine.model.blocker import Severity

    found = _found(keys=False)
    _say(session, found, _complaints(found), as_json=as_json)
    return exit_code(found.blockers, Severity.ERROR)


def _found(*, keys: bool) -> "SettingsDocument":
    from shardscope.app.settings.in_force import in_force
    from shardscope.app.settings.places import config_path
    from shardscope.app.settings.reading import read_settings

    return in_force(read_settings(config_path(os.environ)), os.environ, keys=keys)


def _say(session: Session, found: "SettingsDocument", lines: Iterator[str], *, as_json: bool) -> None:
    if as_json:
        session.out.write_document(found)
    else:
        session.out.write_text("\n".join(lines) + "\n")


def _shown(found: "SettingsDocument") -> Iterator[str]:
    names = max(len(each.name) for each in found.settings)
    values = max(len(_value(each)) for each in found.settings)
    yield found.path if found.exists else f"{found.path} (there is none)"
    for each in found.settings:
        where = f"line {each.line}" if each.line is not None else each.source.value
        yield f"{each.name:<{names}}  {_value(each):<{values}}  {where}"
    yield from _problems(found)


def _complaints(found: "SettingsDocument") -> Iterator[str]:
    yield found.path if found.exists else f"{found.path} (there is none)"
    yield from _problems(found)
    if not found.blockers:
        yield "valid" if found.exists else "nothing to check: the defaults hold"


def _problems(found: "SettingsDocument") -> Iterator[str]:
    for blocker in found.blockers:
        yield ""
        yield f"{blocker.severity.value.upper()} {blocker.code}"
        yield from wrapped(blocker.message, 2, first="")
        yield from wrapped(blocker.remedy, 4, first="  →")


def _value(setting: "SettingInForce") -> str:
    from shardscope.engine.model.text import display_name

    if isinstance(setting.value, bool):
        return str(setting.value).lower()
    return display_name(str(setting.value))
