"""`shardscope [PATH]`: the explorer, where there is a terminal for it."""

import os
import sys

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import bounds
from shardscope.app.cli.output import is_terminal


@command(
    "explore",
    short_help="Look around in a checkpoint (the default command).",
    examples=(
        ("shardscope ./ckpt", "The word explore can be left out."),
        ("shardscope ./ckpt --no-mouse", "Leave the mouse to the terminal, which selects text with it."),
        ("shardscope ./ckpt --theme ansi-dark", "Use the terminal's own 16 colours."),
    ),
)
@click.argument("path", required=False, type=click.Path())
@bounds
@click.option("--no-mouse", is_flag=True, help="Do not capture the mouse.")
@click.option("--theme", metavar="NAME", help="Colour theme.")
def explore(
    path: str | None,
    no_mouse: bool,
    theme: str | None,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
) -> int:
    """Look around in a checkpoint, on the whole terminal.

    PATH is a file or folder; without it the current folder is offered.
    """
    from shardscope.app.cli.examine import split_limits

    bounded, decode_bounded = split_limits(limits)
    if reason := _hindrance():
        from shardscope.app.explorer.target import Target, inspect_command
        from shardscope.engine.model.blocker import Fault

        same = inspect_command(Target(path or ".", bounded, hf_cache, decode_bounded))
        raise Fault("usage.no_terminal", reason=reason, command=same)
    from shardscope.app.explorer import run

    return run(
        path,
        limits=bounded,
        decode_limits=decode_bounded,
        hf_cache=hf_cache,
        mouse=not no_mouse,
        theme=theme,
    )


def _hindrance() -> str | None:
    for name, stream in (("input", sys.stdin), ("output", sys.stdout), ("error", sys.stderr)):
        if not is_terminal(stream):
            return f"standard {name} is none"
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return f"TERM is {os.environ.get('TERM') or 'not set'}"
    return None
