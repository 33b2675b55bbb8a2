"""`shardscope map`: shard maps as data, from reading one to moving a tensor by it."""

# ruff: noqa: ARG002 - click calls these methods with all of their arguments

import fnmatch
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from shardscope.app.cli.command import Helped
from shardscope.app.cli.limit import Limit, nearest
from shardscope.app.cli.text import TEXT
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.shardmaps.reading import ShardMaps

COMMANDS = ("lower", "check", "explain", "compose", "diff", "apply", "from-deepspeed", "to-deepspeed")
"""In the order of help."""

EXITS = (
    ExitCode.OK,
    ExitCode.USAGE,
    ExitCode.UNREADABLE,
    ExitCode.LIMIT,
    ExitCode.UNSUPPORTED,
)
"""Of every command here: 8 for a map that is invalid or a layout that is not supported."""

F = TypeVar("F", bound=Callable[..., object])


class Maps(Helped, click.Group):
    """The group of map commands, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported only now."""
        match cmd_name:
            case "lower":
                from shardscope.app.cli.map_lower import lower as command
            case "check":
                from shardscope.app.cli.map_check import check as command
            case "explain":
                from shardscope.app.cli.map_explain import explain as command
            case "compose":
                from shardscope.app.cli.map_compose import compose as command
            case "diff":
                from shardscope.app.cli.map_diff import diff as command
            case "apply":
                from shardscope.app.cli.map_apply import apply as command
            case "from-deepspeed":
                from shardscope.app.cli.map_deepspeed import from_deepspeed as command
            case "to-deepspeed":
                from shardscope.app.cli.map_deepspeed import to_deepspeed as command
            case _:
                return None
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names.

        Raises `NoSuchCommand` with those that are near.
        """
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.exceptions.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)


@click.group(
    "map",
    cls=Maps,
    no_args_is_help=False,
    short_help="Check, explain, compare and run shard maps.",
    examples=(
        ("shardscope map explain map.json", "Which rank holds what, with a picture."),
        ("shardscope map check map.json", "Whether it holds together."),
        ("shardscope map compose tp8.json tp4.json", "What moves where."),
        (
            "shardscope map apply tp2.json rank0.npy rank1.npy --assemble -o full.npy",
            "The full tensor.",
        ),
    ),
    notes="""A map is a document shardmap or lowered (see `shardscope schema`). docs/geometry.md defines the language,
    docs/gallery.md shows layouts in it. Nothing here reads a tensor's name to learn how it is cut.""",
    exits=EXITS,
)
def map_() -> None:
    """Say which elements of a tensor each rank holds, check it, compare it, and move tensors by it.

    Everything but apply works on the numbers of the maps alone, whatever the size of the tensors.
    """


def reading(command: F) -> F:
    """Add the option that bounds reading of documents."""
    return click.option(
        "--limit",
        "limits",
        type=Limit(),
        multiple=True,
        help="Set a bound on reading; may be repeated. See docs/limits.md.",
    )(command)


def choosing(command: F) -> F:
    """Add the option that chooses tensors."""
    return click.option(
        "--tensor",
        "patterns",
        metavar="NAME",
        type=TEXT,
        multiple=True,
        help="Only this tensor; may be repeated. A name, or a pattern with * and ?.",
    )(command)


def opened(paths: Iterable[str], limits: Sequence[tuple[str, int]]) -> "list[ShardMaps]":
    """Return the maps of files; equal ones among them are worked on once.

    Raises `Fault`.
    """
    from shardscope.engine import Planner, read_shard_map
    from shardscope.engine.model.limits import Limits, with_overrides

    bounds = with_overrides(Limits(), dict(limits))
    planner = Planner()
    return [read_shard_map(path, bounds, planner=planner) for path in paths]


def chosen(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the names that match any pattern, all of them without patterns.

    Raises `click.BadParameter` for a pattern that matches none.
    """
    if not patterns:
        return list(names)
    found: set[str] = set()
    for pattern in patterns:
        here = {name for name in names if name == pattern}
        if not here and ("*" in pattern or "?" in pattern):
            here = {name for name in names if fnmatch.fnmatchcase(name, pattern)}
        if not here:
            hint = nearest(pattern, tuple(names))
            raise click.BadParameter(f"there is no tensor {pattern!r}.{hint}", param_hint="--tensor")
        found |= here
    return [name for name in names if name in found]
