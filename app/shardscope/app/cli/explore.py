"""`shardscope [PATH]`: the explorer, where there is a terminal for it."""

import os
import sys
from typing import Literal

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
        ("shardscope --hf-cache", "Look around in the Hugging Face cache of this machine."),
    ),
    notes="""For a screen reader, a pipe or a dumb terminal, `shardscope inspect PATH` prints the same as plain text. Settings are
    read from $XDG_CONFIG_HOME/shardscope/config.toml (`shardscope config path`); options win.""",
)
@click.argument("path", required=False, type=click.Path())
@bounds
@click.option("--mouse/--no-mouse", default=None, help="Whether to take the mouse from the terminal.")
@click.option("--theme", metavar="NAME", help="Colour theme.")
@click.option(
    "--glyphs",
    type=click.Choice(["auto", "unicode", "ascii"]),
    help="Signs and borders. auto: ASCII unless the locale is UTF-8.",
)
@click.option("--served", is_flag=True, hidden=True)
def explore(
    path: str | None,
    mouse: bool | None,
    theme: str | None,
    glyphs: Literal["auto", "unicode", "ascii"] | None,
    served: bool,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
) -> int:
    """Look around in a checkpoint, on the whole terminal.

    PATH is a file or folder; without it the current folder is offered, and with --hf-cache the Hugging Face cache of this
    machine.
    """
    from shardscope.app.cli.examine import split_limits

    bounded, decode_bounded = split_limits(limits)
    if not served and (reason := _hindrance()):
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
        mouse=mouse,
        theme=theme,
        glyphs=glyphs,
        served=served,
    )


def _hindrance() -> str | None:
    for name, stream in (("input", sys.stdin), ("output", sys.stdout), ("error", sys.stderr)):
        if not is_terminal(stream):
            return f"standard {name} is none"
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return f"TERM is {os.environ.get('TERM') or 'not set'}"
    return None
